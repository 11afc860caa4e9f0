//! Hides the values of Secrets. Reports show a keyed hash instead of each value. Equal values have the same hash.

use std::fmt::Write as _;
use std::sync::LazyLock;

use ring::hmac;
use ring::rand::SystemRandom;

use super::object::Object;
use crate::kustomize::node::{Node, text_of};

/// The random key with which this process hashes hidden values. The key is never stored, so that values cannot be
/// guessed from their hashes. `None` if no random key could be created.
static KEY: LazyLock<Option<hmac::Key>> =
    LazyLock::new(|| hmac::Key::generate(hmac::HMAC_SHA256, &SystemRandom::new()).ok());

/// The fields of a Secret whose values are hidden.
pub(super) const FIELDS: [&str; 2] = ["data", "stringData"];
/// Length, in bytes, of the keyed hash that reports show instead of a value of a Secret.
const SHOWN: usize = 4;

/// Returns the text that replaces the hidden value `value` in reports, such as `(hidden 1f3c09ab)`. The text contains
/// the first bytes of a hash of the value, which is computed with the random key [`KEY`]. It contains no hash if the
/// key could not be created.
pub(super) fn hidden(value: &str) -> String {
    let Some(key) = &*KEY else { return "(hidden)".to_owned() };
    let tag = hmac::sign(key, value.as_bytes());
    let mut text = "(hidden ".to_owned();
    for byte in tag.as_ref().iter().take(SHOWN) {
        let _ = write!(text, "{byte:02x}");
    }
    text + ")"
}

/// Returns the YAML text of an object for reports. Hides the values of a Secret. Also hides the annotations of a
/// Secret, because `kubectl apply` stores a copy of the whole Secret in them.
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
