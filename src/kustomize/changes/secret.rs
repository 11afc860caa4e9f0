//! Values of Secrets, which are never shown: a keyed hash says whether two are equal.

use std::fmt::Write as _;
use std::sync::LazyLock;

use ring::hmac;
use ring::rand::SystemRandom;

use super::object::Object;
use crate::kustomize::node::{Node, text_of};

/// The key of this process. It is thrown away with it, so that nobody can try values against a hash.
static KEY: LazyLock<Option<hmac::Key>> =
    LazyLock::new(|| hmac::Key::generate(hmac::HMAC_SHA256, &SystemRandom::new()).ok());

/// The fields of a Secret with values that are hidden.
pub(super) const FIELDS: [&str; 2] = ["data", "stringData"];
/// Bytes of the hash that are shown: enough to tell some values apart.
const SHOWN: usize = 4;

/// Returns the text that stands for a value.
pub(super) fn hidden(value: &str) -> String {
    let Some(key) = &*KEY else { return "(hidden)".to_owned() };
    let tag = hmac::sign(key, value.as_bytes());
    let mut text = "(hidden ".to_owned();
    for byte in tag.as_ref().iter().take(SHOWN) {
        let _ = write!(text, "{byte:02x}");
    }
    text + ")"
}

/// Returns the text of an object without the values of a Secret. Their annotations go too: `kubectl apply` keeps a copy of
/// the whole Secret there.
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
