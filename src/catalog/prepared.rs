//! An object that is ready to be stored: its parts are compressed, and its index keys are computed.
//!
//! This is most of the work of storing an object, and is done before the store is locked.

use std::sync::Arc;

use super::Kind;
use super::compression::Dictionary;
use super::parts::Part;
use super::projection::Projection;
use super::record::Compressed;
use super::stored;

/// What preparing objects of a kind needs to know.
#[derive(Debug)]
pub(super) struct Preparation {
    pub(super) dictionary: Option<Arc<Dictionary>>,
    /// The parts that the indexes of the kind read.
    pub(super) indexed: Arc<Part>,
}

/// An object that is ready to be stored.
#[derive(Debug)]
pub(super) struct Prepared {
    pub(super) namespace: String,
    pub(super) name: String,
    pub(super) parts: Compressed,
    /// Its keys in each index of its kind.
    pub(super) keys: Vec<Vec<String>>,
}

impl Prepared {
    /// Prepares an object; `None` if it is larger than 4 GiB, which decoders reject.
    pub(super) fn of(kind: &Kind, object: Projection, with: &Preparation) -> Option<Self> {
        let Projection { mut namespace, name, text, .. } = object;
        if kind.scope.namespace(&namespace).is_empty() {
            namespace.clear();
        }
        let parts = Compressed::text(&text, with.dictionary.as_deref())?;
        let keys = keys(kind, &with.indexed, &namespace, &name, &text);
        Some(Self { namespace, name, parts, keys })
    }
}

/// Returns the keys of an object in each index of its kind. Parses only the parts that the indexes read.
pub(super) fn keys(kind: &Kind, indexed: &Part, namespace: &str, name: &str, text: &str) -> Vec<Vec<String>> {
    if kind.indexes.is_empty() {
        return Vec::new();
    }
    // What was decoded before can be decoded again.
    let parts = Projection::of(kind, indexed, text).map(|parts| parts.text).unwrap_or_default();
    let object = stored::value(kind, namespace, name, &parts);
    kind.indexes.iter().map(|index| (index.keys)(&object)).collect()
}
