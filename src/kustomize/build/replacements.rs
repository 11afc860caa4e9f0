//! The transformer of `replacements`: copies values of one object to fields of others.
//!
//! Source: kustomize's `api/filters/replacement`.

use serde::Deserialize;
use serde_json::Value;

use super::budget::Budget;
use super::id::{Gvk, Id, Scope};
use super::matcher::{self, Create};
use super::path;
use super::resmap::ResMap;
use super::resource::Resource;
use super::select::Compiled;
use super::stop::Failed;
use super::structured;
use crate::kustomize::file::{Replacement, Selector, Source, Target};
use crate::kustomize::node::{Kind, Node};

const DEFAULT_PATH: &str = "metadata.name";

/// `options` of a source or target.
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

/// Does all replacements, one after another.
///
/// # Errors
///
/// If a source or a field does not exist. The index is that of the replacement.
pub(super) fn apply(map: &mut ResMap, replacements: &[Replacement], budget: &Budget) -> Result<(), (usize, Failed)> {
    for (index, replacement) in replacements.iter().enumerate() {
        one(map, replacement, budget).map_err(|failed| (index, failed))?;
    }
    Ok(())
}

fn one(map: &mut ResMap, replacement: &Replacement, budget: &Budget) -> Result<(), Failed> {
    let Some(targets) = &replacement.targets else {
        return Err("replacements must specify a source and at least one target".to_owned().into());
    };
    let value = match (&replacement.source_value, &replacement.source) {
        (None, None) => return Err("replacements must specify a source and at least one target".to_owned().into()),
        (Some(_), Some(_)) => {
            return Err("value and resource selectors are mutually exclusive".to_owned().into());
        }
        (Some(text), None) => Node::scalar(text.as_str()),
        (None, Some(source)) => value_of(map, source)?,
    };
    targets.iter().try_for_each(|target| copy(map, &value, target, budget))
}

/// Returns the identities of an object, the present one first. Which kinds are in no namespace plays no part.
fn ids(resource: &Resource) -> impl Iterator<Item = Id<'_>> {
    let now = Id { is_cluster: false, ..resource.id(&Scope::default()) };
    std::iter::once(now).chain(resource.previous_ids())
}

fn value_of(map: &ResMap, source: &Source) -> Result<Node, Failed> {
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
    let mut found = map.resources().iter().filter(|resource| ids(resource).any(is_wanted));
    let one = found.next().ok_or_else(|| format!("nothing selected by {wanted}"))?;
    if found.next().is_some() {
        return Err(format!("multiple matches for selector {wanted}").into());
    }
    let field = if source.field_path.is_empty() { DEFAULT_PATH } else { &source.field_path };
    let node = path::lookup(&one.node, &path::split(field, '.')).filter(|node| !node.is_null_or_empty());
    let node = node.ok_or_else(|| format!("fieldPath `{field}` is missing for replacement source {wanted}"))?;
    refined(node, &FieldOptions::of(source.options.as_ref()))
}

/// Returns the part of a value that the options of its source name.
fn refined(node: &Node, options: &FieldOptions) -> Result<Node, Failed> {
    let mut value = node.clone();
    if options.delimiter.is_empty() {
        return Ok(value);
    }
    let text = node.text().ok_or_else(|| "delimiter option can only be used with scalar nodes".to_owned())?;
    let part = usize::try_from(options.index).ok().and_then(|index| text.split(options.delimiter.as_str()).nth(index));
    let part = part.ok_or_else(|| format!("options.index {} is out of bounds for value {text}", options.index))?;
    value.set_text(part);
    Ok(value)
}

fn copy(map: &mut ResMap, value: &Node, target: &Target, budget: &Budget) -> Result<(), Failed> {
    let Some(select) = &target.select else {
        return Err("target must specify resources to select".to_owned().into());
    };
    let compiled = |selector: &Selector| Compiled::new(selector).map_err(|part| format!("`{part}` is no selector"));
    let select = compiled(select)?;
    let rejects =
        target.reject.iter().map(|reject| Ok((reject, compiled(reject)?))).collect::<Result<Vec<_>, String>>()?;
    let options = FieldOptions::of(target.options.as_ref());
    budget.steps(map.resources().len())?;
    for at in 0..map.resources().len() {
        let is_target = map.resources().get(at).is_some_and(|resource| is_target(resource, &select, &rejects));
        if is_target && let Some(resource) = map.resources_mut().get_mut(at) {
            fields(resource, value, &target.field_paths, &options, budget)?;
        }
    }
    Ok(())
}

fn is_target(resource: &Resource, select: &Compiled, rejects: &[(&Selector, Compiled)]) -> bool {
    let is_rejected = |(selector, compiled): &(&Selector, Compiled)| {
        let by_labels = !selector.annotation_selector.is_empty() || !selector.label_selector.is_empty();
        let parts = [&selector.group, &selector.version, &selector.kind, &selector.name, &selector.namespace];
        let by_id = parts.iter().any(|part| !part.is_empty());
        (by_labels && compiled.selects_labels(resource))
            || (by_id && ids(resource).any(|id| compiled.selects_written(&id)))
    };
    select.selects_labels(resource)
        && !rejects.iter().any(is_rejected)
        && ids(resource).any(|id| select.selects_written(&id))
}

fn fields(
    resource: &mut Resource,
    value: &Node,
    paths: &[String],
    options: &FieldOptions,
    budget: &Budget,
) -> Result<(), Failed> {
    let default = [DEFAULT_PATH.to_owned()];
    let create = options.create.then(|| Create::like(value));
    for field in if paths.is_empty() { &default } else { paths } {
        let steps = path::split(field, '.');
        budget.node(value)?;
        if structured::set(&mut resource.node, value, &steps, create).map_err(Failed::Unknown)? {
            continue;
        }
        let missing = || match create {
            Some(_) => format!("unable to find or create field {field:?} in replacement target"),
            None => format!("unable to find field {field:?} in replacement target"),
        };
        let found =
            matcher::find(&mut resource.node, &steps, create).map_err(|error| format!("{}: {error}", missing()))?;
        if found.is_empty() {
            return Err(missing().into());
        }
        for at in found.into_iter().flatten() {
            if let Some(node) = matcher::node_mut(&mut resource.node, &at) {
                budget.node(value)?;
                set(node, value, options, budget)?;
            }
        }
        resource.spread();
    }
    Ok(())
}

/// Writes a value over a field. A scalar keeps its type and its quotes.
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
    overwrite(node, value);
    Ok(())
}

/// Writes a value over a node: only the text, if the node is a scalar.
pub(super) fn overwrite(node: &mut Node, value: Node) {
    match node.kind {
        Kind::Scalar(_) => {
            node.set_text(value.text().unwrap_or_default());
            node.origin = value.origin;
        }
        _ => node.assign(value),
    }
}
