//! The DeployItem templates of an Execution, plain or compressed, with their field paths.

use std::borrow::Cow;

use serde_json::Value;

use crate::admission::FieldPath;
use crate::landscaper::execution;

/// A DeployItem template of an Execution, with its field path.
pub(in crate::landscaper) struct Template<'t> {
    /// The template as written. Landscaper ignores letter case in the names of its fields.
    pub(in crate::landscaper) value: &'t Value,
    /// The field path of the template, such as `spec.deployItems[0]`; `spec.deployItemsCompressed` if the templates are
    /// compressed.
    pub(in crate::landscaper) place: FieldPath,
    /// The field path of the list that contains the template: `spec.deployItems` or `spec.deployItemsCompressed`.
    pub(in crate::landscaper) list: FieldPath,
    at: usize,
    is_compressed: bool,
}

/// Returns the DeployItem templates of an Execution. The parameter is the result of [`execution::list`]: the templates
/// as JSON, and whether they were compressed.
pub(in crate::landscaper) fn of<'t>((list, is_compressed): &'t (Option<Cow<'_, Value>>, bool)) -> Vec<Template<'t>> {
    let items = list.as_deref().and_then(Value::as_array).into_iter().flatten().enumerate();
    let key = if *is_compressed { "deployItemsCompressed" } else { "deployItems" };
    let place = FieldPath::of(["spec", key]);
    let template = |(at, value)| {
        let own = if *is_compressed { place.clone() } else { place.index(at) };
        Template { value, place: own, list: place.clone(), at, is_compressed: *is_compressed }
    };
    items.map(template).collect()
}

impl<'t> Template<'t> {
    /// Returns the string in the field `key` of the template; empty if the field is missing.
    pub(in crate::landscaper) fn text(&self, key: &str) -> &'t str {
        text(self.value, key)
    }

    /// Returns the field path of a field of the template, as findings show it. `keys` is the path of the field inside
    /// the template. If the templates are compressed, the result is always `spec.deployItemsCompressed`.
    pub(in crate::landscaper) fn field(&self, keys: &[&str]) -> FieldPath {
        let keys = if self.is_compressed { &[] } else { keys };
        keys.iter().fold(self.place.clone(), |place, key| place.key(key))
    }

    /// Returns the message `text` with the name of the template before it. If the template has no name, its index is
    /// used instead, unless the field path already shows the index.
    pub(in crate::landscaper) fn message(&self, text: &str) -> String {
        match (self.text("name"), self.is_compressed) {
            ("", true) => format!("template {}: {text}", self.at),
            ("", false) => text.to_owned(),
            (name, _) => format!("template {name:?}: {text}"),
        }
    }
}

/// Returns the string field `key` of an object inside a template; empty if the field is missing. Letter case in the
/// names of fields is ignored.
pub(in crate::landscaper) fn text<'v>(object: &'v Value, key: &str) -> &'v str {
    execution::member(object, key).and_then(Value::as_str).unwrap_or_default()
}
