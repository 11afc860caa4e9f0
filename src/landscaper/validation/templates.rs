//! The templates of an Execution, plain or compressed, with their places.

use std::borrow::Cow;

use serde_json::Value;

use crate::admission::FieldPath;
use crate::landscaper::execution;

/// A template.
pub(super) struct Template<'t> {
    /// The template as it is written; Landscaper reads its members whatever the case of their letters.
    pub(super) value: &'t Value,
    /// Where it stands: compressed templates have no place of their own.
    pub(super) place: FieldPath,
    /// Where all of them stand.
    pub(super) list: FieldPath,
    at: usize,
    is_compressed: bool,
}

/// The templates in a list that [`execution::list`] has read.
pub(super) fn of<'t>((list, is_compressed): &'t (Option<Cow<'_, Value>>, bool)) -> Vec<Template<'t>> {
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
    /// A text of it, empty without.
    pub(super) fn text(&self, key: &str) -> &'t str {
        text(self.value, key)
    }

    /// Where a member of it stands.
    pub(super) fn field(&self, keys: &[&str]) -> FieldPath {
        let keys = if self.is_compressed { &[] } else { keys };
        keys.iter().fold(self.place.clone(), |place, key| place.key(key))
    }

    /// A message about it, with what its place does not say.
    pub(super) fn message(&self, text: &str) -> String {
        match (self.text("name"), self.is_compressed) {
            ("", true) => format!("template {}: {text}", self.at),
            ("", false) => text.to_owned(),
            (name, _) => format!("template {name:?}: {text}"),
        }
    }
}

/// A text of an object in a template, empty without.
pub(super) fn text<'v>(object: &'v Value, key: &str) -> &'v str {
    execution::member(object, key).and_then(Value::as_str).unwrap_or_default()
}
