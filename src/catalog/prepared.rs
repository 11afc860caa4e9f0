//! Objects that are ready to be stored. Their parts are compressed, and their index keys are computed.
//!
//! This preparation is most of the work of storing an object. It is done before the store is locked.

use std::hash::{BuildHasher, RandomState};
use std::ops::Range;
use std::sync::Arc;

use serde_json::{Map, Value};

use super::compression::{self, Dictionary, Form};
use super::parts::Selection;
use super::projection::Projection;
use super::record::Compressed;
use super::{Kind, stored};

/// Size at which a batch of objects is full, in bytes of names and compressed objects. One thread fills a batch, and
/// another thread stores its objects. With smaller batches, these threads would synchronize more often. With larger
/// batches, it would take longer until the memory of a batch can be reused.
const BATCH_BYTES: usize = 16 * 1024;
/// Number of objects at which a batch is full. Batches of typical objects have about as many objects when they reach
/// [`BATCH_BYTES`]. So the memory for a full batch can be reserved at once.
const BATCH_OBJECTS: usize = 128;
/// Number of objects without a compression dictionary at which a batch is full. The dictionary of a kind is created
/// when its first objects are stored. With small batches, it exists before many objects are compressed without it.
const FIRST_OBJECTS: usize = 16;
/// Typical length of the namespace and the name of an object, in bytes. The memory for a batch is reserved accordingly.
const NAMES_BYTES: usize = 32;

/// The field paths, compression dictionary and hash seed that are needed to prepare objects of one kind for storing.
#[derive(Debug)]
pub(super) struct Preparation {
    pub(super) selection: Arc<Selection>,
    pub(super) dictionary: Option<Arc<Dictionary>>,
    /// The random seed of the hash function for index keys.
    pub(super) seed: RandomState,
}

/// A key under which an object is found in an index, such as an index by label. Only the hash of the key is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct IndexKey {
    /// The index that contains this key, as a position in [`Kind::indexes`].
    pub(super) index: usize,
    /// The hash of two strings: the namespace of an object, and the object's key in the index. Objects are looked up by
    /// this hash, and the two strings are not stored.
    pub(super) hash: u64,
}

/// An object that is ready to be stored. It is compressed, and its index keys are computed.
#[derive(Debug)]
pub(super) struct Prepared<'b> {
    pub(super) namespace: &'b str,
    pub(super) name: &'b str,
    pub(super) parts: Compressed<'b>,
    /// The keys under which the object is found in the indexes of its kind, such as an index by label.
    pub(super) keys: &'b [IndexKey],
}

/// A batch of objects that are ready to be stored.
///
/// All objects of a batch share a few buffers, instead of an allocation for each object. One thread creates a batch and
/// another thread frees it. If the batch consisted of many small allocations, the allocator would be slow to reuse
/// their memory.
#[derive(Debug, Default)]
pub(super) struct Batch {
    /// What is needed to prepare objects of a kind, with the number of the kind. All objects of a batch share it, so
    /// that threads need not lock the store for each object.
    preparations: Vec<(usize, Arc<Preparation>)>,
    entries: Vec<Entry>,
    /// The namespaces and names of all objects, concatenated.
    names: String,
    /// The compressed JSON texts of all objects, concatenated. The text of an object contains only the fields to store.
    parts: Vec<u8>,
    keys: Vec<IndexKey>,
}

/// The data of one object in a `Batch`. The ranges say which parts of the batch's shared buffers belong to this object.
#[derive(Debug)]
struct Entry {
    /// The number with which the caller identifies the object's kind.
    kind: usize,
    form: Form,
    text_length: u32,
    namespace: Range<usize>,
    name: Range<usize>,
    parts: Range<usize>,
    keys: Range<usize>,
}

impl Batch {
    /// Returns what is needed to prepare objects of the kind with this number. Calls `make` when the batch gets its
    /// first object of the kind. `None` if `make` returns `None`.
    pub(super) fn preparation(
        &mut self,
        number: usize,
        make: impl FnOnce() -> Option<Preparation>,
    ) -> Option<Arc<Preparation>> {
        if let Some((_, known)) = self.preparations.iter().find(|(known, _)| *known == number) {
            return Some(Arc::clone(known));
        }
        let made = Arc::new(make()?);
        self.preparations.push((number, Arc::clone(&made)));
        Some(made)
    }

    /// Compresses an object, computes its index keys, and adds it to the batch. Skips an object of more than 4 GiB.
    ///
    /// - `number`: the number with which the caller identifies `kind`. [`Batch::objects`] returns it with the object.
    /// - `with`: the compression dictionary and the hash seed.
    pub(super) fn add(&mut self, number: usize, kind: &Kind, object: Projection<'_>, with: &Preparation) {
        let Ok(text_length) = u32::try_from(object.text.len()) else { return };
        let namespace = kind.scope.namespace(&object.namespace);
        let [names, parts, keys] = [self.names.len(), self.parts.len(), self.keys.len()];
        self.names.extend([namespace, &object.name]);
        let form = compression::compress(&object.text, with.dictionary.as_deref(), &mut self.parts);
        index_keys(kind, with, namespace, &object.name, object.indexed, &mut self.keys);
        self.entries.push(Entry {
            kind: number,
            form,
            text_length,
            namespace: names..names + namespace.len(),
            name: names + namespace.len()..self.names.len(),
            parts: parts..self.parts.len(),
            keys: keys..self.keys.len(),
        });
    }

    /// Reserves memory for a full batch, if the batch is still empty. Without this, the buffers would double their size
    /// several times. The allocator would keep the memory of the smaller buffers.
    pub(super) fn reserve(&mut self) {
        if self.entries.is_empty() {
            self.entries.reserve_exact(BATCH_OBJECTS);
            self.keys.reserve_exact(BATCH_OBJECTS);
            self.names.reserve_exact(BATCH_OBJECTS * NAMES_BYTES);
            // The last object may exceed the size of a full batch.
            self.parts.reserve_exact(BATCH_BYTES + BATCH_BYTES / 4);
        }
    }

    /// Returns whether the batch is full, so that the caller should start another batch.
    pub(super) fn is_full(&self) -> bool {
        let lacks_dictionary = self.preparations.iter().any(|(_, with)| with.dictionary.is_none());
        let most_objects = if lacks_dictionary { FIRST_OBJECTS } else { BATCH_OBJECTS };
        self.names.len() + self.parts.len() >= BATCH_BYTES || self.entries.len() >= most_objects
    }

    /// Returns the objects in the order in which they were added. Each object is returned with the number that the
    /// caller passed to [`Batch::add`].
    pub(super) fn objects(&self) -> impl Iterator<Item = (usize, Prepared<'_>)> {
        self.entries.iter().map(|entry| (entry.kind, self.object(entry)))
    }

    fn object(&self, entry: &Entry) -> Prepared<'_> {
        let name = |range: &Range<usize>| self.names.get(range.clone()).unwrap_or_default();
        let stored = self.parts.get(entry.parts.clone()).unwrap_or_default();
        Prepared {
            namespace: name(&entry.namespace),
            name: name(&entry.name),
            parts: Compressed { form: entry.form, text_length: entry.text_length, stored: stored.into() },
            keys: self.keys.get(entry.keys.clone()).unwrap_or_default(),
        }
    }
}

/// Returns the hash of an index key and its namespace.
pub(super) fn hash(seed: &RandomState, namespace: &str, key: &str) -> u64 {
    seed.hash_one((namespace, key))
}

/// Computes the keys of an object in all indexes of its kind, and appends them to `out`. `fields` are the fields that
/// the indexes read, without name and namespace.
pub(super) fn index_keys(
    kind: &Kind,
    with: &Preparation,
    namespace: &str,
    name: &str,
    mut fields: Map<String, Value>,
    out: &mut Vec<IndexKey>,
) {
    if kind.indexes.is_empty() {
        return;
    }
    if let Some(metadata) = with.selection.indexed.member("metadata") {
        let texts = [("name", name), ("namespace", namespace)].into_iter();
        stored::add_metadata(&mut fields, texts.filter(|(key, _)| metadata.member(key).is_some()));
    }
    let object = Value::Object(fields);
    for (number, index) in kind.indexes.iter().enumerate() {
        let keys = (index.keys)(&object);
        out.extend(keys.iter().map(|key| IndexKey { index: number, hash: hash(&with.seed, namespace, key) }));
    }
}
