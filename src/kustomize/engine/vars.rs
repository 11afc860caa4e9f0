//! Finds the values of vars, and replaces the references to vars with these values. A var inserts a value of one object
//! into strings of other objects.
//!
//! Source: kustomize's `api/types/var.go`, `api/internal/accumulator/resaccumulator.go` and `api/filters/refvar`.

use std::collections::BTreeMap;

use super::budget::Budget;
use super::field_spec::FieldError;
use super::path;
use super::resmap::ResMap;
use crate::go::format_float;
use crate::kustomize::file::Var;
use crate::kustomize::finding::Site;
use crate::kustomize::identity::{Gvk, Id};
use crate::kustomize::node::{Kind, Node, Style, Tag};

const DEFAULT_PATH: &str = "metadata.name";

/// The vars of a kustomization and its bases, by name, each with the entry that defines it.
#[derive(Debug, Clone, Default)]
pub(super) struct Vars {
    pub(super) by_name: BTreeMap<String, (Var, Site)>,
}

/// The value of a var, with its type in YAML.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Value {
    Text(String),
    Int(i64),
    Float(f64),
    Bool(bool),
    /// A mapping or sequence, which is not substituted.
    Other,
}

/// Returns the group, version and kind of the object to which a var refers.
fn gvk(var: &Var) -> Gvk<'_> {
    let target = &var.objref;
    let (mut group, mut version) = (target.group.as_str(), target.version.as_str());
    let parts: Vec<&str> = target.api_version.split('/').collect();
    match parts.as_slice() {
        [""] => {}
        [own] => version = own,
        [own_group, own_version] => (group, version) = (own_group, own_version),
        _ => {}
    }
    Gvk { group, version, kind: &target.kind }
}

/// Adds the name of `var` to `Resource::vars` of the object to which the var refers. Does nothing if there is no such
/// object.
///
/// # Errors
///
/// If the var may refer to several objects.
pub(super) fn point(var: &Var, map: &mut ResMap) -> Result<(), &'static str> {
    let wanted = Id { gvk: gvk(var), name: &var.objref.name, namespace: &var.objref.namespace, is_cluster: false };
    let is_such = |id: &Id<'_>| {
        let is_named = id.gvk == wanted.gvk && id.name == wanted.name;
        is_named && (wanted.namespace.is_empty() || id.effective_namespace() == wanted.effective_namespace())
    };
    let found = map.matching_any_id(is_such);
    match found.as_slice() {
        [] => Ok(()),
        [at] => {
            if let Some(resource) = map.resources_mut().get_mut(*at) {
                resource.vars.push(var.name.as_str().into());
            }
            Ok(())
        }
        _ => Err("may select several objects"),
    }
}

/// Returns the value of a var. Before this function, call [`point`], which finds the object to which the var refers.
///
/// # Errors
///
/// - If the var has no object, or the object does not have the field of the var.
/// - If the value is a number that cannot be parsed.
pub(super) fn value_of(var: &Var, map: &ResMap) -> Result<Value, &'static str> {
    let target = map.resources().iter().find(|resource| resource.vars.iter().any(|name| **name == *var.name));
    let target = target.ok_or("selects no object")?;
    let written = var.fieldref.field_path.as_str();
    let steps = path::of_var(if written.is_empty() { DEFAULT_PATH } else { written });
    let node = path::lookup(&target.node, &steps).ok_or("selects a field that its object does not have")?;
    typed(node).ok_or("has a value that does not match its type")
}

fn typed(node: &Node) -> Option<Value> {
    let Some(text) = node.text() else { return Some(Value::Other) };
    Some(match node.tag {
        Tag::Int => Value::Int(text.parse().ok()?),
        Tag::Float => Value::Float(text.parse().ok()?),
        Tag::Bool => Value::Bool(text.eq_ignore_ascii_case("true")),
        _ => Value::Text(text.to_owned()),
    })
}

/// Replaces the references to vars, such as `$(NAME)`, in a string. In a mapping or sequence, replaces the references
/// in its string values. `values` contains the value of each var, by the name of the var.
///
/// # Errors
///
/// - If a mapping has a key that is not a string, or a sequence has an item that is not a string.
/// - If the memory limit of the build is exceeded.
pub(super) fn replace(node: &mut Node, values: &BTreeMap<&str, Value>, budget: &Budget) -> Result<(), FieldError> {
    if node.is_null() {
        return Ok(());
    }
    if node.is_scalar() {
        if node.is_string() {
            expand(node, values, budget)?;
        }
        return Ok(());
    }
    for entry in node.entries_mut().into_iter().flatten() {
        if !matches!(entry.key_tag, Tag::Str | Tag::None) {
            return Err(FieldError::Other(format!("the key {:?} is not a string", entry.key)));
        }
        if entry.value.is_string() {
            expand(&mut entry.value, values, budget)?;
        }
    }
    for item in node.items_mut().into_iter().flatten() {
        if !item.is_string() {
            return Err(FieldError::Other("a value where vars are replaced is not a string".to_owned()));
        }
        expand(item, values, budget)?;
    }
    Ok(())
}

fn expand(node: &mut Node, values: &BTreeMap<&str, Value>, budget: &Budget) -> Result<(), FieldError> {
    let Some(text) = node.text() else { return Ok(()) };
    let longest = values.values().map(Value::len).max().unwrap_or_default();
    // charge the longest value for each reference
    budget.spend((longest as u64).saturating_mul(text.matches("$(").count() as u64))?;
    let (tag, text) = match expanded(text, values) {
        Value::Text(text) => (Tag::Str, text),
        Value::Int(int) => (Tag::Int, int.to_string()),
        Value::Float(float) => (Tag::Float, format!("{float}")),
        Value::Bool(flag) => (Tag::Bool, flag.to_string()),
        Value::Other => return Ok(()),
    };
    (node.kind, node.tag, node.tagged, node.style) = (Kind::Scalar(text.into()), tag, false, Style::Plain);
    Ok(())
}

/// Replaces all references to vars in `text` with the values of the vars, and returns the new text. If `text` consists
/// of a single reference, returns the value of this var with its type.
fn expanded(text: &str, values: &BTreeMap<&str, Value>) -> Value {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('$') {
        out.push_str(&rest[..at]);
        let behind = &rest[at + 1..];
        let Some(next) = behind.chars().next() else {
            out.push('$');
            return Value::Text(out);
        };
        rest = match (next, behind.find(')')) {
            ('$', _) => {
                out.push('$');
                &behind[1..]
            }
            ('(', Some(end)) => {
                let name = &behind[1..end];
                let value = values.get(name).filter(|value| **value != Value::Other);
                match value {
                    Some(value) if text == format!("$({name})") => return value.clone(),
                    Some(value) => out.push_str(&value.text()),
                    None => out.push_str(&format!("$({name})")),
                }
                &behind[end + 1..]
            }
            _ => {
                out.push('$');
                out.push(next);
                &behind[next.len_utf8()..]
            }
        };
    }
    out.push_str(rest);
    Value::Text(out)
}

impl Value {
    /// Returns the length of the value in bytes if it is a text, and 0 if it has another type, such as a number. The
    /// length counts against the memory limit of a build, because each use of the value adds a copy of the text.
    fn len(&self) -> usize {
        if let Self::Text(text) = self { text.len() } else { 0 }
    }

    fn text(&self) -> String {
        match self {
            Self::Text(text) => text.clone(),
            Self::Int(int) => int.to_string(),
            Self::Float(float) => format_float(*float, 'f', None),
            Self::Bool(flag) => flag.to_string(),
            Self::Other => String::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_are_replaced_and_others_stay() {
        let values = BTreeMap::from([("A", Value::Text("x".to_owned())), ("N", Value::Int(80))]);
        let text = |text: &str| expanded(text, &values);
        assert_eq!(text("a $(A) $(B) $$(A) $(A"), Value::Text("a x $(B) $(A) $(A".to_owned()));
        assert_eq!(text("$(N)"), Value::Int(80));
        assert_eq!(text(":$(N)"), Value::Text(":80".to_owned()));
        assert_eq!(text("cost $"), Value::Text("cost $".to_owned()));
    }
}
