//! Detects keys with which an object cannot be written.
//!
//! Source: `RNode.MarshalJSON` in kyaml. Before kustomize writes an object, or applies a JSON patch to it, go-yaml v3
//! decodes it again: duplicate keys are errors, and a mapping with a key that is not a string has no JSON. Before that,
//! a patch may still remove such a key.

use std::sync::Arc;

use crate::admission::FieldPath;
use crate::admission::field::Segment;
use crate::kustomize::finding::Site;
use crate::yaml::{Document, Place};

/// The mapping whose keys are always written without quotes.
pub const ANNOTATIONS: &str = "/metadata/annotations";

/// The error of a key, as the end of a sentence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum KeyFault {
    /// It is a number, a Boolean, a date, or something else that is not a string.
    #[error("is not a string")]
    NotText,
    /// Its mapping has it twice.
    #[error("is there twice")]
    Twice,
}

/// A key of a manifest with which its object cannot be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadKey {
    /// Its path in the object.
    pub path: FieldPath,
    /// Its position in the file.
    pub place: Place,
    /// The problem.
    pub fault: KeyFault,
}

/// Such a key of an object on its way through a build.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unwritable {
    /// Its JSON pointer in the object.
    pub pointer: String,
    /// The problem.
    pub fault: KeyFault,
    /// The field that added it.
    pub site: Arc<Site>,
}

/// Returns the bad keys of a document, duplicates first. A key of the first level may be a number.
pub fn of(document: &Document) -> Vec<BadKey> {
    let twice = document.duplicates().into_iter();
    let twice = twice.map(|found| BadKey { path: found.path, place: found.kept, fault: KeyFault::Twice });
    let odd = document.odd_keys().into_iter().filter(|(path, _)| path.segments().len() > 1);
    twice.chain(odd.map(|(path, place)| BadKey { path, place, fault: KeyFault::NotText })).collect()
}

/// Returns the bad keys of a list that is expanded: a second `items` is ignored.
pub fn opened(mut keys: Vec<BadKey>) -> Vec<BadKey> {
    let is_items = |key: &&BadKey| matches!(key.path.segments(), [Segment::Key(items)] if items == "items");
    if let Some(second) = keys.iter().filter(is_items).map(|key| key.place.start).min() {
        keys.retain(|key| !key.starts_with("items") || key.place.start < second);
    }
    keys
}

impl Unwritable {
    /// Returns the key itself.
    pub fn name(&self) -> Option<String> {
        let (_, name) = self.pointer.rsplit_once('/')?;
        Some(name.replace("~1", "/").replace("~0", "~"))
    }
}

impl BadKey {
    /// Returns whether kustomize sometimes uses the first and sometimes the second key, so that the object is not
    /// known.
    pub fn decides(&self) -> bool {
        let decides = match self.path.segments() {
            [Segment::Key(key)] => matches!(&**key, "apiVersion" | "kind"),
            [Segment::Key(metadata), Segment::Key(field), Segment::Key(_)] => {
                metadata == "metadata" && matches!(&**field, "labels" | "annotations")
            }
            _ => false,
        };
        decides && self.fault == KeyFault::Twice
    }

    /// Returns whether the object has annotations twice, which both count.
    pub fn is_more_annotations(&self) -> bool {
        self.fault == KeyFault::Twice && pointer(&self.path) == ANNOTATIONS
    }

    /// Returns whether it is in this field of the first level, or is it.
    pub fn starts_with(&self, field: &str) -> bool {
        matches!(self.path.segments().first(), Some(Segment::Key(key)) if key == field)
    }

    /// Returns the same key in the object that is item `at` of the list that it is in.
    pub fn within_item(&self, at: usize) -> Option<Self> {
        match self.path.segments() {
            [Segment::Key(items), Segment::Index(index), rest @ ..] if items == "items" && *index == at => {
                let path = rest.iter().fold(FieldPath::root(), |path, segment| match segment {
                    Segment::Key(key) => path.key(key),
                    Segment::Index(index) => path.index(*index),
                });
                (self.fault == KeyFault::Twice || path.segments().len() > 1).then(|| Self { path, ..self.clone() })
            }
            _ => None,
        }
    }
}

/// Returns the JSON pointer of a field.
pub fn pointer(path: &FieldPath) -> String {
    path.segments().iter().fold(String::new(), |pointer, segment| match segment {
        Segment::Key(key) => below(&pointer, key),
        Segment::Index(index) => format!("{pointer}/{index}"),
    })
}

/// Returns the JSON pointer of a member of what another one points to.
pub fn below(pointer: &str, key: &str) -> String {
    format!("{pointer}/{}", key.replace('~', "~0").replace('/', "~1"))
}
