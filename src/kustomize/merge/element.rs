//! Finds, replaces and removes list elements that have given values in their key fields.
//!
//! Source: `ElementSetter`, `ElementMatcher` and `FieldMatcher` in `kyaml/yaml/fns.go`.

use super::Problem;
use super::error::kind_name;
use crate::kustomize::node::Node;

/// Replaces each matching element of a list with `element`, or removes it if `element` is `None`. If no element
/// matches, appends `element`. Also removes null elements and empty mappings.
///
/// `keys` and `values` determine which elements match:
///
/// - In a list of mappings, `keys` contains names of fields. An element matches if each of these fields has the value
///   at the same index in `values`. The empty string in `values` stands for any value.
/// - In a list of scalars, `keys` contains only the empty string. An element matches if it equals the value in
///   `values`.
/// - If `values` is empty, all existing elements are removed.
///
/// # Errors
/// If the list contains an element of the wrong type. But if the first key and its value are not empty, elements that
/// are not mappings stay unchanged instead.
pub(super) fn set(
    items: &mut Vec<Node>,
    element: Option<&Node>,
    keys: &[&str],
    values: &[&str],
) -> Result<(), Problem> {
    let is_mapping_setter =
        keys.first().is_some_and(|key| !key.is_empty()) && values.first().is_some_and(|value| !value.is_empty());
    let mut kept = Vec::with_capacity(items.len() + 1);
    let mut is_found = false;
    for item in items.drain(..) {
        if is_empty(&item) {
            continue;
        }
        if !item.is_map() && is_mapping_setter {
            kept.push(item);
        } else if !matches(&item, keys, values)? {
            if !values.is_empty() {
                kept.push(item);
            }
        } else {
            is_found = true;
            kept.extend(element.cloned());
        }
    }
    if let Some(element) = element.filter(|element| !is_found && !element.is_null()) {
        kept.push(element.clone());
    }
    *items = kept;
    Ok(())
}

/// Returns whether an element is null or an empty mapping.
pub(super) fn is_empty(node: &Node) -> bool {
    node.is_null() || (node.is_map() && node.entries().is_empty())
}

/// Returns whether an element has the fields `keys`, each with the value at the same index in `values`. Ignores keys
/// beyond the end of `values`. Returns `false` if `values` is empty.
fn matches(item: &Node, keys: &[&str], values: &[&str]) -> Result<bool, Problem> {
    let mut is_match = false;
    for (at, key) in keys.iter().enumerate() {
        if let Some(value) = values.get(at) {
            is_match = has(item, key, value)?;
        }
        if !is_match {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Returns whether the mapping `item` has the field `key` with the value `value`. An empty `value` stands for any
/// value. If `key` is empty, `item` must be a scalar, and the function returns whether this scalar equals `value`.
fn has(item: &Node, key: &str, value: &str) -> Result<bool, Problem> {
    if key.is_empty() {
        return if item.is_scalar() { Ok(item.text() == Some(value)) } else { Err(wrong_kind("a scalar", item)) };
    }
    if !item.is_map() {
        return Err(wrong_kind("a mapping", item));
    }
    Ok(item.get(key).is_some_and(|found| value.is_empty() || text(found) == value))
}

/// Returns the index of the first element in `items` that has all keys in `keys`, with the values in `values`. If
/// `keys` is empty or its first key is the empty string, the elements are compared as scalars. The function then
/// returns the index of the first scalar that equals the first value.
pub(super) fn find(items: &[Node], keys: &[&str], values: &[&str]) -> Option<usize> {
    if keys.first().is_none_or(|key| key.is_empty()) {
        let value = values.first().copied().unwrap_or_default();
        return items.iter().position(|item| text(item) == value);
    }
    let has_value = |item: &Node, key: &str, value: &str| item.get(key).is_some_and(|found| text(found) == value);
    items.iter().position(|item| {
        item.is_map() && !item.is_null() && keys.iter().zip(values).all(|(key, value)| has_value(item, key, value))
    })
}

/// Returns the text of a scalar; empty for anything else.
pub(super) fn text(node: &Node) -> &str {
    node.text().unwrap_or_default()
}

pub(super) fn wrong_kind(expected: &'static str, found: &Node) -> Problem {
    Problem::WrongKind { expected, found: kind_name(found) }
}
