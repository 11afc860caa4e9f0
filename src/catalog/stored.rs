//! An object of the catalog, with read access for rules. The catalog stores only the fields that rules need, and
//! compresses them. The fields are decompressed and parsed when a rule first reads them.

use std::any::Any;
use std::sync::{Arc, OnceLock};

use serde_json::{Map, Value};

use super::Kind;
use super::compression::Dictionary;
use super::parts::{Part, Selection};
use super::projection::{Projection, Undecodable};
use super::record::Record;
use super::records::Id;
use crate::admission::{Metadata, TypedView, json};

/// An object of the catalog. It contains the fields that the catalog stores for its kind ([`Kind::storage`]). The
/// fields are parsed on first use. The first typed view that is computed from the fields is cached ([`Stored::view`]).
#[derive(Debug)]
pub struct Stored {
    source: Source,
    value: OnceLock<Value>,
    view: TypedView,
}

#[derive(Debug)]
enum Source {
    /// The object was created from a parsed JSON value, and not from a stored record.
    Value,
    Held(Held),
}

/// A copy of the stored record of an object, with its kind and the dictionary to decompress it.
#[derive(Debug, Clone)]
pub(super) struct Held {
    pub(super) kind: &'static Kind,
    pub(super) namespace: Arc<str>,
    /// The id of the record. After the object is removed, another object can get the same id.
    pub(super) id: Id,
    pub(super) bytes: Box<[u8]>,
    pub(super) dictionary: Option<Arc<Dictionary>>,
}

impl Held {
    pub(super) fn record(&self) -> Option<Record<'_>> {
        Record::read(&self.bytes)
    }

    /// Returns `metadata.name`.
    pub(super) fn name(&self) -> &str {
        self.record().map_or("", |record| record.name)
    }

    /// Returns the JSON text of the fields that the catalog stores for the object.
    pub(super) fn text(&self) -> String {
        self.record().map_or_else(String::new, |record| record.text(self.dictionary.as_deref()))
    }

    /// Parses the stored fields of the object, and adds `apiVersion`, `kind`, name and namespace.
    pub(super) fn value(&self) -> Value {
        value(self.kind, &self.namespace, self.name(), &self.text())
    }

    /// Returns whether two records contain the same object with the same content.
    pub(super) fn is_same_as(&self, other: &Self) -> bool {
        std::ptr::eq(self.kind, other.kind) && self.bytes == other.bytes && self.namespace == other.namespace
    }
}

/// Parses the stored fields of an object in `text`, and adds `apiVersion`, `kind`, name and namespace.
fn value(kind: &Kind, namespace: &str, name: &str, text: &str) -> Value {
    // The text was decoded before, so it is a JSON object.
    let mut object = if let Ok(Value::Object(fields)) = json::parse(text) { fields } else { Map::new() };
    add_metadata(&mut object, [("name", name), ("namespace", namespace)]);
    object.entry("apiVersion").or_insert_with(|| kind.api_version().into());
    object.insert("kind".to_owned(), kind.kind.into());
    Value::Object(object)
}

/// Adds texts such as the name to the metadata of an object. Omits empty texts.
pub(super) fn add_metadata<'t>(
    object: &mut Map<String, Value>,
    texts: impl IntoIterator<Item = (&'static str, &'t str)>,
) {
    let metadata = object.entry("metadata").or_insert_with(|| Map::new().into());
    if let Some(metadata) = metadata.as_object_mut() {
        for (key, text) in texts.into_iter().filter(|(_, text)| !text.is_empty()) {
            metadata.insert(key.to_owned(), text.into());
        }
    }
}

impl Stored {
    /// Creates an object from a parsed value, with all its fields.
    pub fn new(value: Value) -> Self {
        Self { source: Source::Value, value: OnceLock::from(value), view: TypedView::default() }
    }

    /// Creates an object from JSON text, with only the fields that the catalog stores for its kind.
    ///
    /// # Errors
    ///
    /// If the text is not a JSON object, is nested too deep, or has a name that is too long.
    pub fn projected(kind: &'static Kind, text: &str) -> Result<Self, Undecodable> {
        let selection = Selection { stored: Part::of(kind.storage.parts()), indexed: Part::of(&[]) };
        let Projection { namespace, name, text, .. } = Projection::of(kind, &selection, text)?;
        Ok(Self::new(value(kind, &namespace, &name, &text)))
    }

    pub(super) fn held(held: Held) -> Self {
        Self { source: Source::Held(held), value: OnceLock::new(), view: TypedView::default() }
    }

    /// Returns the catalog's record of this object. `None` if the object does not come from a catalog.
    pub(super) fn as_held(&self) -> Option<&Held> {
        if let Source::Held(held) = &self.source { Some(held) } else { None }
    }

    /// Returns whether this object and the catalog record `held` have the same content. If so, the caller can use this
    /// object, and need not parse `held`. Returns `false` if this object does not come from a catalog.
    pub(super) fn is_of(&self, held: &Held) -> bool {
        self.as_held().is_some_and(|known| known.is_same_as(held))
    }

    /// Returns the object as JSON.
    ///
    /// An object from the catalog contains `apiVersion`, `kind`, name and namespace. In addition, it contains the
    /// fields that the catalog stores for its kind ([`Kind::storage`]).
    pub fn value(&self) -> &Value {
        self.value.get_or_init(|| match &self.source {
            Source::Value => Value::Null,
            Source::Held(held) => held.value(),
        })
    }

    /// Returns `metadata.name`.
    pub fn name(&self) -> &str {
        match &self.source {
            Source::Held(held) => held.name(),
            Source::Value => Metadata::of(self.value()).name(),
        }
    }

    /// Returns `metadata.namespace`.
    pub fn namespace(&self) -> &str {
        match &self.source {
            Source::Held(held) => &held.namespace,
            Source::Value => Metadata::of(self.value()).namespace(),
        }
    }

    /// Returns the typed view of the object, which is a value that `make` computes from the fields of the object. The
    /// view is computed on the first call and cached. Only one view is cached: a view of another type is computed on
    /// each call.
    pub fn view<T: Any + Send + Sync + Clone>(&self, make: fn(&Value) -> T) -> T {
        self.view.get_or_compute(|| make(self.value()))
    }
}
