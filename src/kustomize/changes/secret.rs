//! Hides values of Secrets: reports show a keyed hash, which is the same for equal values.

use std::fmt::Write as _;
use std::sync::LazyLock;

use ring::hmac;
use ring::rand::SystemRandom;

use super::object::Object;
use crate::kustomize::node::{Node, text_of};

/// The random key of this process. It is never stored, so that values cannot be guessed from their hashes.
static KEY: LazyLock<Option<hmac::Key>> =
    LazyLock::new(|| hmac::Key::generate(hmac::HMAC_SHA256, &SystemRandom::new()).ok());

/// The fields of a Secret with values that are hidden.
pub(super) const FIELDS: [&str; 2] = ["data", "stringData"];
/// Number of bytes of the keyed hash that replaces a value of a Secret in reports.
const SHOWN: usize = 4;

/// Returns the text that replaces a hidden value, such as `(hidden 1f3c09ab)`.
pub(super) fn hidden(value: &str) -> String {
    let Some(key) = &*KEY else { return "(hidden)".to_owned() };
    let tag = hmac::sign(key, value.as_bytes());
    let mut text = "(hidden ".to_owned();
    for byte in tag.as_ref().iter().take(SHOWN) {
        let _ = write!(text, "{byte:02x}");
    }
    text + ")"
}

/// Returns the text of an object; for a Secret, with its values hidden. Its annotations are hidden too: `kubectl apply`
/// stores a copy of the whole Secret there.
pub(super) fn shown(object: &Object) -> String {
    if !object.is_secret() {
        return object.text.clone();
    }
    let mut node = object.node.clone();
    for field in FIELDS {
        for entry in node.get_mut(field).and_then(Node::entries_mut).into_iter().flatten() {
            entry.value = Node::string(hidden(entry.value.text().unwrap_or_default()));
        }
    }
    let annotations = node.get_mut("metadata").and_then(|metadata| metadata.get_mut("annotations"));
    for entry in annotations.and_then(Node::entries_mut).into_iter().flatten() {
        entry.value = Node::string(hidden(entry.value.text().unwrap_or_default()));
    }
    text_of(&node)
}
