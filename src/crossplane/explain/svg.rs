//! Draws the layers of a merged environment as SVG. Each key has a row, and each layer has a column. The last column on
//! the right is the merged environment. Replaced values are struck through.

use serde_json::Value;

use super::{Explanation, Leaf, leaves};
use crate::admission::Segment;
use crate::crossplane::environment::{ActionOutcome, Layer, Merged};
use crate::go::json::marshal;

/// Maximum number of keys that are drawn, so that the drawing stays readable. Further keys are only counted.
const MAX_ROWS: usize = 400;
/// Maximum number of columns for the layers of an environment. Each layer, such as an EnvironmentConfig, has one
/// column. Further layers are not drawn.
const MAX_COLUMNS: usize = 40;
const ROW: usize = 24;
const COLUMN: usize = 190;
const KEYS: usize = 280;
/// Number of characters that fit into a cell, if each character is seven pixels wide.
const CELL: usize = 25;
const KEY: usize = 38;

pub(super) fn svg(explanation: &Explanation) -> String {
    let merged = explanation.computation.steps.iter().rev().find_map(|step| match &step.action {
        ActionOutcome::Selected { merged: Some(merged), .. } => Some(merged),
        _ => None,
    });
    let nothing = Merged::default();
    let merged = merged.unwrap_or(&nothing);
    let title = format!("{}, by Composition {}", explanation.name(), explanation.composition);
    drawn(merged, &title)
}

fn drawn(merged: &Merged, title: &str) -> String {
    let rows = leaves(merged);
    let layers = &merged.layers[..merged.layers.len().min(MAX_COLUMNS)];
    let (width, height) = (KEYS + (layers.len() + 1) * COLUMN, (rows.len().min(MAX_ROWS) + 4) * ROW);
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
         font-family=\"monospace\" font-size=\"12\">\n<rect width=\"{width}\" height=\"{height}\" fill=\"white\"/>\n"
    );
    out.push_str(&cell(8, 1, title, width / 7, "font-weight=\"bold\""));
    for (at, layer) in layers.iter().enumerate() {
        out.push_str(&cell(KEYS + at * COLUMN, 2, &layer.name.to_string(), CELL, "fill=\"#555\""));
    }
    out.push_str(&cell(KEYS + layers.len() * COLUMN, 2, "environment", CELL, "font-weight=\"bold\""));
    for (at, leaf) in rows.iter().take(MAX_ROWS).enumerate() {
        out.push_str(&row(at, leaf, layers));
    }
    if rows.len() > MAX_ROWS {
        let more = format!("and {} more keys", rows.len() - MAX_ROWS);
        out.push_str(&cell(8, MAX_ROWS + 3, &more, KEY, ""));
    }
    out.push_str("</svg>\n");
    out
}

fn row(at: usize, leaf: &Leaf<'_>, layers: &[Layer]) -> String {
    let mut out = String::new();
    if at.is_multiple_of(2) {
        let top = (at + 2) * ROW + ROW / 2;
        out.push_str(&format!("<rect x=\"0\" y=\"{top}\" width=\"100%\" height=\"{ROW}\" fill=\"#f4f4f8\"/>\n"));
    }
    let row = at + 3;
    out.push_str(&cell(8, row, &leaf.path.to_string(), KEY, ""));
    for (column, layer) in layers.iter().enumerate() {
        let Some(value) = value_at(layer, leaf) else { continue };
        let style = match column == leaf.layer {
            true => "fill=\"#06610b\"",
            false => "fill=\"#999\" text-decoration=\"line-through\"",
        };
        out.push_str(&cell(KEYS + column * COLUMN, row, &marshal(value), CELL, style));
    }
    let left = KEYS + layers.len() * COLUMN;
    out.push_str(&cell(left, row, &marshal(leaf.value), CELL, "font-weight=\"bold\""));
    out
}

/// Returns the value that `layer` has at the path of `leaf`. A layer is data that is merged into an environment, such
/// as the data of an EnvironmentConfig. `leaf` is a key of the merged environment. `None` if the layer lacks the key.
fn value_at<'l>(layer: &'l Layer, leaf: &Leaf<'_>) -> Option<&'l Value> {
    let mut members = Some(&layer.data);
    let mut found = None;
    for segment in leaf.path.segments() {
        let Segment::Key(key) = segment else { return None };
        found = members?.get(key);
        members = found.and_then(Value::as_object);
    }
    found
}

fn cell(left: usize, row: usize, text: &str, longest: usize, style: &str) -> String {
    let mut shown: String = text.chars().take(longest).collect();
    if text.chars().count() > longest {
        shown.pop();
        shown.push('…');
    }
    let baseline = row * ROW + 4;
    format!("<text x=\"{left}\" y=\"{baseline}\" {style}>{}<title>{}</title></text>\n", escaped(&shown), escaped(text))
}

fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            '"' => out.push_str("&quot;"),
            c if c < ' ' => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}
