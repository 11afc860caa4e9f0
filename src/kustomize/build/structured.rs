//! Values within the text of a scalar: JSON or YAML in a ConfigMap.
//!
//! Source: `setValueInStructuredData` in kustomize's `api/filters/replacement`.

use super::json;
use super::matcher::{self, Found};
use super::path;
use super::replacements::{Failure, overwrite};
use crate::kustomize::node::{Node, Origin};

/// Writes a value to a field in the text of a scalar. Returns whether there is such a scalar and field.
///
/// # Errors
///
/// When the text would have to be written as YAML, in the style in which it is.
pub(super) fn write(
    object: &mut Node,
    steps: &[String],
    value: &Node,
    leaf: Option<&Node>,
    origin: Origin,
) -> Result<bool, Failure> {
    let Some((at, mut document)) = scalar(object, steps) else { return Ok(false) };
    let (outer, inner) = steps.split_at(at);
    let found = matcher::find(&mut document, inner, leaf).unwrap_or_default();
    if found.is_empty() {
        return Ok(false);
    }
    for found in found {
        let Found::At(place) = found else { continue };
        if let Some(target) = matcher::at(&mut document, &place) {
            overwrite(target, value, value.text().unwrap_or_default(), origin);
        }
    }
    let Some(scalar) = at_path(object, outer) else { return Ok(false) };
    let Some(text) = serialized(&document, scalar.text().unwrap_or_default())? else { return Ok(false) };
    scalar.set_text(text);
    scalar.origin = origin;
    Ok(true)
}

/// How many steps lead to a scalar whose text is YAML, and what is in it.
fn scalar(object: &Node, steps: &[String]) -> Option<(usize, Node)> {
    (1..steps.len()).find_map(|at| {
        let has_wildcard = steps[..at].iter().any(|step| step == "*");
        let node = path::lookup(object, &steps[..at]).filter(|node| node.is_scalar() && !has_wildcard)?;
        Some((at, matcher::document(node.text()?)?))
    })
}

fn at_path<'n>(object: &'n mut Node, steps: &[String]) -> Option<&'n mut Node> {
    let place = path::place(object, steps)?;
    matcher::at(object, &place)
}

/// The new text; nothing if it cannot be written. JSON keeps its lines or has none.
fn serialized(document: &Node, before: &str) -> Result<Option<String>, Failure> {
    if !before.trim_start().starts_with(['{', '[']) {
        return Err(Failure::Unknown("a replacement within a text of YAML is not rendered".to_owned()));
    }
    let Ok(value) = json::of_node(document) else { return Ok(None) };
    let is_pretty = before.contains('\n') && before.contains("  ");
    let text = if is_pretty { serde_json::to_string_pretty(&value) } else { serde_json::to_string(&value) };
    Ok(text.ok().map(|text| escaped(&text)))
}

/// Go's JSON escapes what could end a script in HTML.
fn escaped(text: &str) -> String {
    let mut escaped = text.to_owned();
    for (from, to) in
        [("<", "\\u003c"), (">", "\\u003e"), ("&", "\\u0026"), ("\u{2028}", "\\u2028"), ("\u{2029}", "\\u2029")]
    {
        escaped = escaped.replace(from, to);
    }
    escaped
}
