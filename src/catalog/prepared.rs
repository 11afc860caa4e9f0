//! An object that is ready to be stored: its parts are compressed, and its index keys are computed.
//!
//! This is most of the work of storing an object, and is done before the store is locked.

use serde_json::Value;

use super::Kind;
use super::compression::Dictionary;
use super::projection::Projection;
use super::record::Compressed;
use super::stored;

/// An object that is ready to be stored.
#[derive(Debug)]
pub(super) struct Prepared {
    pub(super) object: Projection,
    pub(super) parts: Compressed,
    /// Its keys in each index of its kind.
    pub(super) keys: Vec<Vec<String>>,
}

impl Prepared {
    /// Prepares an object; `None` if it is larger than 4 GiB, which decoders reject.
    pub(super) fn of(kind: &Kind, mut object: Projection, dictionary: Option<&Dictionary>) -> Option<Self> {
        if kind.scope.namespace(&object.namespace).is_empty() {
            object.namespace.clear();
        }
        let parts = Compressed::text(&object.text, dictionary)?;
        let keys = match kind.indexes {
            [] => Vec::new(),
            _ => keys(kind, &stored::value(kind, &object.namespace, &object.name, &object.text)),
        };
        Some(Self { object, parts, keys })
    }
}

/// Returns the keys of an object in each index of its kind.
pub(super) fn keys(kind: &Kind, object: &Value) -> Vec<Vec<String>> {
    kind.indexes.iter().map(|index| (index.keys)(object)).collect()
}
