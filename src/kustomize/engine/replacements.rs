//! The transformer for the field `replacements` of a kustomization. It copies values of one object to fields of other
//! objects.
//!
//! Source: kustomize's `api/filters/replacement`.

use serde::Deserialize;
use serde_json::Value;

use super::budget::Budget;
use super::lost::Lost;
use super::matcher::{self, Create, Way};
use super::path;
use super::resmap::ResMap;
use super::resource::Resource;
use super::run::Run;
use super::select::{BadSelector, Compiled};
use super::setters::overwrite_keeping_type;
use super::stop::{Failed, Step, Stop};
use super::structured;
use crate::kustomize::file::{Replacement, Selector, Source, Target};
use crate::kustomize::finding::Site;
use crate::kustomize::identity::{Gvk, Id, Scope};
use crate::kustomize::node::Node;
use crate::kustomize::rules::{kz017, kz030};

const DEFAULT_PATH: &str = "metadata.name";

/// The value that a replacement copies.
struct Copied {
    node: Node,
    /// The place from which the value is copied: the index of the source object, and the path of the value in this
    /// object. kustomize reads the value again for each target field, because the source object may have changed.
    /// `None` if the value is not read again, for example because it is only a part of a string.
    place: Option<(usize, Way)>,
}

impl Copied {
    /// Reads the copied value again from `object`, if the value comes from this object. The value may have changed,
    /// because a replacement can write to the object from which it copies. `at` is the index of `object` in the list of
    /// all objects.
    fn read(&mut self, at: usize, object: &Node) {
        let way = self.place.as_ref().filter(|(source, _)| *source == at).map(|(_, way)| way);
        if let Some(node) = way.and_then(|way| matcher::node(object, way)) {
            self.node = node.clone();
        }
    }

    /// Stops reading this value again from its source field, if the next write removes that field. The value then keeps
    /// its current content.
    ///
    /// The next write replaces the node at the path `replaced`, in the object with the index `at`. It removes all
    /// fields inside this node.
    fn keep(&mut self, at: usize, replaced: &[usize]) {
        let is_above = |way: &Way| way.len() > replaced.len() && way.starts_with(replaced);
        self.place = self.place.take().filter(|(source, way)| *source != at || !is_above(way));
    }
}

/// The field `options` of the source or a target of a replacement.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct FieldOptions {
    delimiter: String,
    index: i64,
    create: bool,
}

impl FieldOptions {
    fn of(options: Option<&Value>) -> Self {
        options.and_then(|options| serde_json::from_value(options.clone()).ok()).unwrap_or_default()
    }
}

/// A replacement, with the position of the kustomization entry or object that configures it.
#[derive(Debug, Clone)]
pub(super) struct Sited {
    pub replacement: Replacement,
    /// The position of the entry of `replacements`, or of the object that configures a `ReplacementTransformer`.
    pub site: Site,
}

impl Sited {
    /// Copies a value to the fields of all targets. The value is a field of the source object, or the text
    /// `sourceValue`.
    ///
    /// # Errors
    ///
    /// - If the replacement has no targets, or has not exactly one of `source` and `sourceValue`.
    /// - If no object or more than one object matches the source, or the field of the source cannot be read.
    /// - If a limit is exceeded.
    /// - In a build that stops at its first error: if a target is invalid, or a target field does not exist or cannot
    ///   be set. Other builds record these errors and continue.
    pub(super) fn apply(&self, run: &Run<'_>, map: &mut ResMap) -> Step<()> {
        let Replacement { source, source_value, targets, .. } = &self.replacement;
        let Some(targets) = targets else { return Err(self.refused("needs a source and at least one target")) };
        let mut value = match (source_value, source) {
            (None, None) => return Err(self.refused("needs a source and at least one target")),
            (Some(_), Some(_)) => return Err(self.refused("has both a source and a sourceValue")),
            (Some(text), None) => Copied { node: Node::scalar(text.as_str()), place: None },
            (None, Some(source)) => self.value_of(map, source)?,
        };
        for target in targets {
            let copied = self.copy(run, map, &mut value, target);
            run.recover(&mut map.lost, Lost::Nothing, copied)?;
        }
        Ok(())
    }

    fn refused(&self, why: &str) -> Stop {
        Stop::refused(kz017::invalid_replacement(self.site.clone(), why))
    }

    fn value_of(&self, map: &ResMap, source: &Source) -> Step<Copied> {
        let (at, one) = self.source(map, source)?;
        let field = if source.field_path.is_empty() { DEFAULT_PATH } else { &source.field_path };
        let takes = || format!("takes {field} of {}", one.id(&map.scope).words());
        let steps = path::split(field, '.');
        let node = path::lookup(&one.node, &steps).filter(|node| !node.is_null_or_empty());
        let options = FieldOptions::of(source.options.as_ref());
        let value = match node {
            None => Err(format!("{}, which has no such field", takes()).into()),
            Some(node) if options.delimiter.is_empty() => {
                let place = path::place(&one.node, &steps).map(|way| (at, way));
                Ok(Copied { node: node.clone(), place })
            }
            Some(node) => {
                let part = part_of(node, &options).map(|node| Copied { node, place: None });
                part.map_err(|failed| failed.within(&takes()))
            }
        };
        value.map_err(|failed| match failed.by(self.site.clone(), kz017::invalid_replacement) {
            // an earlier step failed on the source object, and could have set the field
            Stop::Refused(refusal) if one.lost == Lost::Changes => Stop::of_absence(refusal.finding),
            stop => stop,
        })
    }

    /// Returns the only object that the source of a replacement selects, with its index. It is an error if the source
    /// selects no object or several objects.
    fn source<'m>(&self, map: &'m ResMap, source: &Source) -> Step<(usize, &'m Resource)> {
        let wanted = Id {
            gvk: Gvk { group: &source.group, version: &source.version, kind: &source.kind },
            name: &source.name,
            namespace: &source.namespace,
            is_cluster: false,
        };
        let is_wanted = |id: Id<'_>| {
            (wanted.name.is_empty() || wanted.name == id.name)
                && (wanted.namespace.is_empty() || wanted.effective_namespace() == id.effective_namespace())
                && id.gvk.is_selected(&wanted.gvk)
        };
        let mut found = map.resources().iter().enumerate().filter(|(_, resource)| ids(resource).any(is_wanted));
        match (found.next(), found.next()) {
            (Some(one), None) => Ok(one),
            (None, _) => Err(Stop::of_absence(kz030::no_source(self.site.clone(), &source_words(source)))),
            _ => Err(Stop::of_content(kz030::several_sources(self.site.clone(), &source_words(source)))),
        }
    }

    fn copy(&self, run: &Run<'_>, map: &mut ResMap, value: &mut Copied, target: &Target) -> Step<()> {
        let Some(select) = &target.select else {
            return Err(self.refused("has a target that selects nothing: `select` is missing"));
        };
        let compiled = |selector: &Selector| Compiled::new(selector).map_err(|bad| bad.at(self.site.clone()));
        let select = compiled(select)?;
        let rejects = target.reject.iter().map(|reject| Ok((reject, compiled(reject)?))).collect::<Step<Vec<_>>>()?;
        let steps = run.budget.steps(map.resources().len());
        steps.map_err(|exceeded| Stop::limit(self.site.clone(), exceeded))?;
        let (scope, lost) = (map.scope.clone(), map.lost);
        for at in 0..map.resources().len() {
            let is_target = map.resources().get(at).map(|resource| is_target(resource, &select, &rejects));
            let is_target = is_target.unwrap_or(Ok(false)).map_err(|bad| bad.at(self.site.clone()))?;
            if is_target && let Some(resource) = map.resources_mut().get_mut(at) {
                self.fields(run, (at, resource), value, target, (&scope, lost))?;
            }
        }
        Ok(())
    }

    fn fields(
        &self,
        run: &Run<'_>,
        (at, resource): (usize, &mut Resource),
        value: &mut Copied,
        target: &Target,
        (scope, lost): (&Scope, Lost),
    ) -> Step<()> {
        let default = [DEFAULT_PATH.to_owned()];
        let options = FieldOptions::of(target.options.as_ref());
        let paths = if target.field_paths.is_empty() { &default[..] } else { &target.field_paths };
        for path in paths {
            let written = field((at, resource), value, path, &options, &run.budget).map_err(|failed| {
                let sets = format!("sets {path} of {}", resource.id(scope).words());
                let failed = match failed {
                    Failed::Refused(why) if why.is_empty() => format!("{sets}, which has no such field").into(),
                    failed => failed.within(&sets),
                };
                failed.by(self.site.clone(), kz017::invalid_replacement)
            });
            run.recover(&mut lost.max(resource.lost), Lost::Nothing, written)?;
        }
        Ok(())
    }
}

/// Returns the kind, name and namespace of a replacement's source, for use in error messages. For example, returns
/// `Service web` if the source has no namespace.
fn source_words(source: &Source) -> String {
    let parts = [&source.kind, &source.name, &source.namespace];
    let written: Vec<_> = parts.into_iter().filter(|part| !part.is_empty()).map(String::as_str).collect();
    written.join(" ")
}

/// Returns the current identity of an object, and then its previous identities. As in kustomize, replacements do not
/// check whether the kind is cluster-scoped. So an object without a namespace counts as an object in the namespace
/// `default`.
fn ids(resource: &Resource) -> impl Iterator<Item = Id<'_>> {
    let now = Id { is_cluster: false, ..resource.id(&Scope::default()) };
    std::iter::once(now).chain(resource.previous_ids())
}

/// Returns one part of a scalar's text. The fields `delimiter` and `index` of `options` select the part. It is an error
/// if the node is not a scalar, or if there is no part with this index.
fn part_of(node: &Node, options: &FieldOptions) -> Result<Node, Failed> {
    let mut value = node.clone();
    let text = node.text().ok_or_else(|| "delimiter option can only be used with scalar nodes".to_owned())?;
    let part = usize::try_from(options.index).ok().and_then(|index| text.split(options.delimiter.as_str()).nth(index));
    let part = part.ok_or_else(|| format!("options.index {} is out of bounds for value {text}", options.index))?;
    value.set_text(part);
    Ok(value)
}

/// Returns whether an object is a target of a replacement: `select` matches it, and no selector in `rejects` does.
///
/// # Errors
///
/// If a label or annotation selector is invalid, or if the labels or annotations of the object cannot be read.
fn is_target(resource: &Resource, select: &Compiled, rejects: &[(&Selector, Compiled)]) -> Result<bool, BadSelector> {
    if !select.selects_labels(resource)? {
        return Ok(false);
    }
    for (selector, compiled) in rejects {
        let has_labels = !selector.annotation_selector.is_empty() || !selector.label_selector.is_empty();
        if has_labels && compiled.selects_labels(resource)? {
            return Ok(false);
        }
    }
    let is_rejected = |(selector, compiled): &(&Selector, Compiled)| {
        let parts = [&selector.group, &selector.version, &selector.kind, &selector.name, &selector.namespace];
        let has_id = parts.iter().any(|part| !part.is_empty());
        has_id && ids(resource).any(|id| compiled.selects_written(&id))
    };
    Ok(!rejects.iter().any(is_rejected) && ids(resource).any(|id| select.selects_written(&id)))
}

/// Writes the copied value to the field at `path` of the object `resource`. `at` is the index of this object in the
/// list of all objects.
///
/// # Errors
///
/// If the field does not exist or cannot be set, or if the memory limit of the build is exceeded. For a field that does
/// not exist, the error message is empty, and the caller writes the message.
fn field(
    (at, resource): (usize, &mut Resource),
    value: &mut Copied,
    path: &str,
    options: &FieldOptions,
    budget: &Budget,
) -> Result<(), Failed> {
    let create = options.create.then(|| Create::like(&value.node));
    let steps = path::split(path, '.');
    budget.node(&value.node)?;
    if structured::set(&mut resource.node, &value.node, &steps, create).map_err(Failed::Unknown)? {
        value.read(at, &resource.node);
        return Ok(());
    }
    let found = matcher::find(&mut resource.node, &steps, create)?;
    if found.is_empty() {
        return Err("".into());
    }
    for way in found.into_iter().flatten() {
        value.read(at, &resource.node);
        value.keep(at, &way);
        if let Some(node) = matcher::node_mut(&mut resource.node, &way) {
            budget.node(&value.node)?;
            set(node, &value.node, options, budget)?;
        }
    }
    resource.spread();
    value.read(at, &resource.node);
    Ok(())
}

/// Replaces the value of a field. If `options` select a part of its text, replaces only this part. A scalar keeps its
/// type and quotes.
fn set(node: &mut Node, value: &Node, options: &FieldOptions, budget: &Budget) -> Result<(), Failed> {
    let mut value = value.clone();
    if !options.delimiter.is_empty() {
        let text = node.text().ok_or_else(|| "delimiter option can only be used with scalar nodes".to_owned())?;
        let own = value.text().filter(|_| !value.is_null()).unwrap_or_default();
        let mut parts: Vec<&str> = text.split(options.delimiter.as_str()).collect();
        match usize::try_from(options.index) {
            Err(_) => parts.insert(0, own),
            Ok(index) => match parts.get_mut(index) {
                Some(part) => *part = own,
                None => parts.push(own),
            },
        }
        let joined = parts.join(&options.delimiter);
        budget.text(&joined)?;
        value.set_text(joined);
    }
    overwrite_keeping_type(node, value);
    Ok(())
}
