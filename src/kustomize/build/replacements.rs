//! The transformer of `replacements`: copies a value from one object to fields of others.
//!
//! Source: kustomize's `api/filters/replacement`.

use serde::Deserialize;

use super::id::{Gvk, Id};
use super::matcher::{self, Found};
use super::path;
use super::resmap::ResMap;
use super::resource::Resource;
use super::select::Compiled;
use super::structured;
use crate::kustomize::file::{Replacement, Selector, Source, Target};
use crate::kustomize::node::{Node, Origin};

/// What is replaced where nothing is said.
const DEFAULT_FIELD: &str = "metadata.name";
/// The namespace of objects that name none.
const DEFAULT_NAMESPACE: &str = "default";

/// Why a replacement does not happen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Failure {
    /// kustomize refuses it.
    Refused(String),
    /// What kustomize writes is not worked out here.
    Unknown(String),
}

impl From<String> for Failure {
    fn from(message: String) -> Self {
        Self::Refused(message)
    }
}

/// `options` of a source or target.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct FieldOptions {
    /// Separates the parts of a text.
    delimiter: String,
    /// Which part.
    index: i64,
    /// Whether missing fields are made.
    create: bool,
}

/// Replaces values in objects.
///
/// # Errors
///
/// When kustomize refuses a replacement, or its result is not worked out.
pub(super) fn apply(map: &mut ResMap, replacements: &[Replacement], origin: Origin) -> Result<(), Failure> {
    for replacement in replacements {
        let Some(targets) = &replacement.targets else { return Err(incomplete()) };
        let value = value_of(map, replacement)?;
        for target in targets {
            replace(map, target, &value, origin)?;
        }
    }
    Ok(())
}

fn incomplete() -> Failure {
    Failure::Refused("a replacement needs a source and at least one target".to_owned())
}

/// The value that is copied.
fn value_of(map: &ResMap, replacement: &Replacement) -> Result<Node, Failure> {
    let source = match (&replacement.source, &replacement.source_value) {
        (None, None) => return Err(incomplete()),
        (Some(_), Some(_)) => return Err("`source` and `sourceValue` exclude one another".to_owned().into()),
        (None, Some(value)) => return Ok(Node::scalar(value.as_str())),
        (Some(source), None) => source,
    };
    let object = source_object(map, source)?;
    let field = if source.field_path.is_empty() { DEFAULT_FIELD } else { &source.field_path };
    let value = path::lookup(&object.node, &path::split(field, '.')).filter(|value| !value.is_null_or_empty());
    let Some(value) = value else {
        return Err(format!("the field `{field}` of the source {} is missing", object.id(&map.scope)).into());
    };
    part_of(value, &options(source.options.as_ref())?)
}

fn options(options: Option<&serde_json::Value>) -> Result<FieldOptions, Failure> {
    let read = options.filter(|options| !options.is_null()).map(FieldOptions::deserialize).transpose();
    read.map(Option::unwrap_or_default).map_err(|error| format!("its options are wrong: {error}").into())
}

/// The one object that a source names.
fn source_object<'m>(map: &'m ResMap, source: &Source) -> Result<&'m Resource, Failure> {
    let mut found = map.resources().iter().filter(|resource| ids(resource).any(|id| is_source(&id, source)));
    match (found.next(), found.next()) {
        (Some(one), None) => Ok(one),
        (None, _) => Err("the source selects no object".to_owned().into()),
        (Some(_), Some(_)) => Err("the source selects more than one object".to_owned().into()),
    }
}

fn is_source(id: &Id<'_>, source: &Source) -> bool {
    let gvk = Gvk { group: &source.group, version: &source.version, kind: &source.kind };
    (source.name.is_empty() || source.name == id.name)
        && (source.namespace.is_empty() || or_default(&source.namespace) == or_default(id.namespace))
        && id.gvk.is_selected(&gvk)
}

fn or_default(namespace: &str) -> &str {
    if namespace.is_empty() { DEFAULT_NAMESPACE } else { namespace }
}

/// The present and the former identities. Whether a kind has a namespace is not looked at here.
fn ids(resource: &Resource) -> impl Iterator<Item = Id<'_>> {
    let now = Id { gvk: resource.gvk(), name: resource.name(), namespace: resource.namespace(), is_cluster: false };
    std::iter::once(now).chain(resource.previous_ids())
}

/// The part of a text that the options of a source name.
fn part_of(value: &Node, options: &FieldOptions) -> Result<Node, Failure> {
    if options.delimiter.is_empty() {
        return Ok(value.clone());
    }
    let Some(text) = value.text() else { return Err(delimited()) };
    let part = usize::try_from(options.index).ok().and_then(|index| text.split(&*options.delimiter).nth(index));
    let Some(part) = part else {
        return Err(format!("options.index {} is out of bounds for the value `{text}`", options.index).into());
    };
    let mut node = value.clone();
    node.set_text(part);
    Ok(node)
}

fn delimited() -> Failure {
    "the option `delimiter` can only be used with scalars".to_owned().into()
}

/// Writes a value into all objects that a target selects.
fn replace(map: &mut ResMap, target: &Target, value: &Node, origin: Origin) -> Result<(), Failure> {
    let Some(select) = &target.select else { return Err("a target needs `select`".to_owned().into()) };
    let selectors = Selectors::new(select, &target.reject)?;
    let options = options(target.options.as_ref())?;
    let default = [DEFAULT_FIELD.to_owned()];
    let fields = if target.field_paths.is_empty() { &default[..] } else { &target.field_paths };
    for at in map.positions(|resource| selectors.select(resource)) {
        let Some(resource) = map.resources_mut().get_mut(at) else { continue };
        for field in fields {
            write(&mut resource.node, field, value, &options, origin)?;
        }
        resource.spread();
    }
    Ok(())
}

/// What a target selects and rejects.
struct Selectors {
    select: Compiled,
    reject: Vec<(Compiled, Selector)>,
}

impl Selectors {
    fn new(select: &Selector, reject: &[Selector]) -> Result<Self, Failure> {
        let compile = |selector: &Selector| {
            Compiled::new(selector).map_err(|part| Failure::Refused(format!("`{part}` is no selector")))
        };
        let rejected = |selector: &Selector| Ok::<_, Failure>((compile(selector)?, selector.clone()));
        Ok(Self { select: compile(select)?, reject: reject.iter().map(rejected).collect::<Result<_, _>>()? })
    }

    fn select(&self, resource: &Resource) -> bool {
        self.select.selects_labels(resource)
            && !self.reject.iter().any(|(compiled, selector)| rejects(compiled, selector, resource))
            && ids(resource).any(|id| self.select.selects_id(&id))
    }
}

/// Labels and identity are looked at one by one: either of them rejects.
fn rejects(compiled: &Compiled, selector: &Selector, resource: &Resource) -> bool {
    let has_labels = !(selector.label_selector.is_empty() && selector.annotation_selector.is_empty());
    let parts = [&selector.group, &selector.version, &selector.kind, &selector.name, &selector.namespace];
    let has_id = parts.iter().any(|part| !part.is_empty());
    (has_labels && compiled.selects_labels(resource)) || (has_id && ids(resource).any(|id| compiled.selects_id(&id)))
}

/// Writes a value to a field of an object.
fn write(object: &mut Node, field: &str, value: &Node, options: &FieldOptions, origin: Origin) -> Result<(), Failure> {
    let steps = path::split(field, '.');
    let leaf = options.create.then_some(value);
    if structured::write(object, &steps, value, leaf, origin)? {
        return Ok(());
    }
    let missing = |reason: String| {
        let verb = if options.create { "find or create" } else { "find" };
        Failure::Refused(format!("unable to {verb} the field `{field}` of the target{reason}"))
    };
    let found = matcher::find(object, &steps, leaf).map_err(|reason| missing(format!(": {reason}")))?;
    if found.is_empty() {
        return Err(missing(String::new()));
    }
    for found in found {
        // what is found in the text of a scalar is a copy, which kustomize changes in vain
        let Found::At(place) = found else { continue };
        if let Some(target) = matcher::at(object, &place) {
            assign(target, value, options, origin)?;
        }
    }
    Ok(())
}

/// Writes a value over a node: of a scalar only the text is replaced.
fn assign(target: &mut Node, value: &Node, options: &FieldOptions, origin: Origin) -> Result<(), Failure> {
    let text = value.text().filter(|_| !value.is_null() || options.delimiter.is_empty()).unwrap_or_default();
    let text = match (options.delimiter.is_empty(), target.text()) {
        (true, _) => text.to_owned(),
        (false, Some(old)) => spliced(old, text, options),
        (false, None) => return Err(delimited()),
    };
    overwrite(target, value, &text, origin);
    Ok(())
}

/// Replaces the text of a scalar, or the whole of anything else.
pub(super) fn overwrite(target: &mut Node, value: &Node, text: &str, origin: Origin) {
    if target.is_scalar() {
        target.set_text(text);
        target.origin = origin;
    } else {
        target.assign(Node { origin, ..value.clone() });
    }
}

/// Puts a text among the parts of another one.
fn spliced(old: &str, text: &str, options: &FieldOptions) -> String {
    let mut parts: Vec<&str> = old.split(&*options.delimiter).collect();
    match usize::try_from(options.index) {
        Err(_) => parts.insert(0, text),
        Ok(index) => match parts.get_mut(index) {
            Some(part) => *part = text,
            None => parts.push(text),
        },
    }
    parts.join(&options.delimiter)
}
