//! Parses two parts of Kubernetes JSON: the fields of a list response except `items`, and the type of a single object
//! (its `apiVersion` and its `kind`).

use std::borrow::Cow;

use serde::Deserialize;

use crate::admission::scan::Scanner;

/// The fields of a Kubernetes list response, except `items`.
#[derive(Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Envelope {
    /// The `kind` of the list, such as `ContextList`.
    pub kind: String,
    /// The `apiVersion` of the list, such as `v1`.
    #[serde(rename = "apiVersion")]
    pub api_version: String,
    /// The `metadata` of the list, with its resourceVersion and continue token.
    pub metadata: ListMetadata,
    /// Whether the list has the member `items`. The member may be an empty list.
    #[serde(skip)]
    pub has_items: bool,
}

/// The `metadata` of a list. It contains the resourceVersion of the list, and the continue token for the next page.
#[derive(Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ListMetadata {
    /// The resourceVersion of the whole list.
    pub resource_version: String,
    /// The continue token for the next page; empty on the last page.
    pub r#continue: String,
    /// The number of objects on further pages; `None` if the API server does not report it.
    pub remaining_item_count: Option<i64>,
}

/// Returns `apiVersion` and `kind` of an object in JSON text. `None` if one of them is missing, or if the text before
/// them is invalid. Does not parse the text after them.
pub fn type_of(text: &str) -> Option<(Cow<'_, str>, Cow<'_, str>)> {
    let (mut api_version, mut kind) = (None, None);
    let mut scanner = Scanner::new(text);
    scanner.open().ok()?;
    while api_version.is_none() || kind.is_none() {
        match &*scanner.key().ok()?? {
            "apiVersion" => api_version = Some(scanner.string().ok()?),
            "kind" => kind = Some(scanner.string().ok()?),
            _ => {
                scanner.value().ok()?;
            }
        }
    }
    Some((api_version?, kind?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_type_is_found_wherever_it_is() {
        let of = |text: &str| type_of(text).map(|(version, kind)| format!("{version} {kind}"));
        assert_eq!(of(r#"{"kind":"A","spec":{"kind":"B"},"apiVersion":"v1"}"#).as_deref(), Some("v1 A"));
        assert_eq!(of(r#"{"kind":"A"}"#), None);
        assert_eq!(of(r#"{"kind":1,"apiVersion":"v1"}"#), None);
    }
}
