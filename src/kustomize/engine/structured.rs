//! Replaces values within a text that contains JSON or YAML.
//!
//! Source: `setValueInStructuredData` and `serializeStructuredData` in kustomize's `api/filters/replacement`.

use super::json;
use super::matcher::{self, Create};
use super::path;
use super::setters::overwrite_keeping_type;
use crate::go::json::{marshal, marshal_indent};
use crate::kustomize::node::{Node, commented_text};

/// Writes `value` to a field inside a string of `node` that contains JSON or YAML. The first elements of the path
/// `steps` lead to the string, and the other elements lead to the field inside the string. If `create` is set, creates
/// missing fields inside the string. Returns `false` if the path does not lead to such a field, or if the changed JSON
/// cannot be written.
///
/// # Errors
///
/// If the string is YAML with comments or anchors, and Portcullis cannot keep them in the same way as kustomize.
pub(super) fn set(node: &mut Node, value: &Node, steps: &[String], create: Option<Create>) -> Result<bool, String> {
    for count in 1..steps.len() {
        let (outer, inner) = steps.split_at(count);
        if outer.iter().any(|step| step == "*") {
            return Ok(false);
        }
        let Some(text) = path::lookup(node, outer).and_then(Node::text) else { continue };
        let Some(parsed) = matcher::parsed(text) else { continue };
        let Some(mut parsed) = parsed else { return Ok(false) };
        let text = text.to_owned();
        return match matcher::find(&mut parsed, inner, create) {
            Ok(found) if !found.is_empty() => write(node, outer, &text, parsed, found, value),
            _ => Ok(false),
        };
    }
    Ok(false)
}

fn write(
    node: &mut Node,
    outer: &[String],
    text: &str,
    mut parsed: Node,
    found: Vec<Option<matcher::Way>>,
    value: &Node,
) -> Result<bool, String> {
    for way in found.into_iter().flatten() {
        if let Some(inner) = matcher::node_mut(&mut parsed, &way) {
            let origin = inner.origin;
            overwrite_keeping_type(inner, value.clone());
            inner.origin = origin;
        }
    }
    let new = match text.trim_start().starts_with(['{', '[']) {
        true => match json_text(&parsed, text) {
            Some(new) => new,
            None => return Ok(false),
        },
        false => Some(&parsed)
            .filter(|parsed| !parsed.is_null() || is_plain(text))
            .and_then(|parsed| commented_text(parsed, text))
            .ok_or_else(|| {
                "the comments and anchors of YAML in a string are not preserved here as kustomize preserves them"
                    .to_owned()
            })?,
    };
    let way = path::place(node, outer);
    if let Some(field) = way.and_then(|way| matcher::node_mut(node, &way)) {
        field.set_text(new.trim());
    }
    Ok(true)
}

/// Returns whether a YAML text contains no anchor (`&`), tag (`!`), directive (`%`) or document end marker (`...`).
/// Only searches for these characters, so it can return `false` for a text that contains them in a string.
fn is_plain(text: &str) -> bool {
    !text.contains(['&', '!', '%']) && !text.contains("...")
}

/// Formats a changed document as JSON. Indents the JSON if the old text is indented. `None` if the document cannot be
/// converted to JSON.
fn json_text(parsed: &Node, text: &str) -> Option<String> {
    let value = json::of_node(parsed).ok()?;
    let has_lines = text.contains('\n') && text.contains("  ");
    Some(if has_lines { marshal_indent(&value) } else { marshal(&value) })
}
