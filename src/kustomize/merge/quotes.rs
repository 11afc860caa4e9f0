//! Quotes strings that YAML 1.1 would parse as another type, such as `yes`.
//!
//! Source: `FieldSetter` in `kyaml/yaml/fns.go`. It quotes such strings in each field of a merged mapping.

use crate::kustomize::node::{Node, Style};
use crate::yaml;

/// Returns `value`, with quotes if it is a string that YAML 1.1 would parse as another type.
pub(super) fn with_quotes(mut value: Node) -> Node {
    quote(&mut value);
    value
}

/// Quotes a string that YAML 1.1 would parse as another type. The quotes stay if the field gets another value later.
pub(super) fn quote(value: &mut Node) {
    if needs_quotes(value) {
        value.style = Style::DoubleQuoted;
    }
}

/// Returns whether YAML 1.1 would parse a string without quotes as another type.
pub(super) fn needs_quotes(value: &Node) -> bool {
    value.style == Style::Plain && value.is_string() && !value.text().is_none_or(yaml::is_plain_string)
}
