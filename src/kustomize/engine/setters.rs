//! Sets values in YAML nodes, and keeps parts of the old values, such as their style.
//!
//! Source: `FieldSetter` of kyaml, and kustomize's `api/filters/replacement`.

use crate::kustomize::node::{Entry, Kind, Node, Origin, Style};
use crate::yaml;

/// Returns the mapping at a key of `node`. Creates the mapping if the value is missing or null. `None` if the value is
/// not a mapping.
pub(super) fn map_at<'n>(node: &'n mut Node, key: &str) -> Option<&'n mut Node> {
    if node.get(key).is_none_or(Node::is_null) {
        node.set(key, Node::map(Vec::new()));
    }
    node.get_mut(key).filter(|node| node.is_map())
}

/// Sets the value of a key, as kustomize's `FieldSetter` does. An existing scalar keeps its YAML style.
pub(super) fn set_scalar(map: &mut Node, key: &str, value: Node) {
    let value = with_style(value);
    match map.get_mut(key) {
        Some(old) => overwrite(old, value),
        None => {
            if let Some(entries) = map.entries_mut() {
                entries.push(Entry::new(key, value));
            }
        }
    }
}

/// Replaces the value of the scalar `old`, but keeps the YAML style of `old`, such as double quotes. Also replaces the
/// origin, which is the file and line, unless `value` does not come from a file.
pub(super) fn overwrite(old: &mut Node, value: Node) {
    let (style, tagged) = (old.style, old.tagged);
    let origin = if value.origin == Origin::default() { old.origin } else { value.origin };
    old.assign(Node { style, tagged, origin, ..value });
}

/// Returns `value` in double quotes if it is an unquoted string that YAML 1.1 would parse as another type. Otherwise,
/// returns `value` unchanged.
pub(super) fn with_style(mut value: Node) -> Node {
    if let Kind::Scalar(text) = &value.kind
        && value.is_string()
        && value.style == Style::Plain
        && yaml::is_not_string_in_1_1(text)
    {
        value.style = Style::DoubleQuoted;
    }
    value
}

/// Replaces `node` with `value`. If `node` is a scalar, replaces only its text and its origin, and keeps its type and
/// style.
pub(super) fn overwrite_keeping_type(node: &mut Node, value: Node) {
    match node.kind {
        Kind::Scalar(_) => {
            node.set_text(value.text().unwrap_or_default());
            node.origin = value.origin;
        }
        _ => node.assign(value),
    }
}
