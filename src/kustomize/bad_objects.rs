//! The error for files and texts without valid Kubernetes objects.

use super::node::{Origin, Unprintable};
use crate::yaml::YamlError;

/// The reason why a text does not contain valid objects. The message completes a sentence whose subject is the text,
/// such as `the entry is UTF-16`.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub(super) enum BadObjects {
    /// The text is not YAML, or Portcullis cannot parse it. Contains the error.
    #[error("cannot be read: {0}")]
    Yaml(YamlError),
    /// The text has bytes that YAML does not allow. Contains the offset of the first invalid byte.
    #[error("cannot be read: byte {0} is not UTF-8, or a control character")]
    Encoding(usize),
    /// The text is UTF-16, which Portcullis does not support.
    #[error("is UTF-16")]
    Utf16,
    /// A YAML document is not a Kubernetes object. Contains the file and line of the document.
    #[error("holds something that is not a Kubernetes object")]
    NoObject(Origin),
    /// An object has no kind. Contains the file and line of the object.
    #[error("holds an object without a kind")]
    NoKind(Origin),
    /// An object has no name.
    #[error("holds an object of kind {kind} without metadata.name")]
    NoName {
        /// The kind of the object.
        kind: String,
        /// The file and line of the object.
        origin: Origin,
    },
    /// The `items` of a List object are not a sequence. Contains the kind of the List, and the file and line of the
    /// `items`.
    #[error("holds a {0} whose items are not a list")]
    Items(String, Origin),
    /// An object has duplicate keys, and it is unknown which of their values kustomize uses. Contains a description of
    /// the keys, and the file and line of the object.
    #[error("holds an object with {0}; it is unknown which value kustomize uses")]
    Ambiguous(&'static str, Origin),
    /// A List object cannot be split into items, because a part of it cannot be converted to JSON. For example, a key
    /// occurs twice.
    #[error("holds a List that cannot be split into its items: {0}")]
    Unprintable(Unprintable),
}

impl BadObjects {
    /// Returns the line number of the error in the text that contains the objects.
    pub(super) fn line(&self) -> u32 {
        match self {
            Self::Yaml(error) => error.place.line,
            Self::Encoding(_) | Self::Utf16 => 1,
            Self::NoObject(origin)
            | Self::NoKind(origin)
            | Self::NoName { origin, .. }
            | Self::Items(_, origin)
            | Self::Ambiguous(_, origin) => origin.line,
            Self::Unprintable(unprintable) => unprintable.origin.line,
        }
    }

    /// Returns whether kustomize may accept the text, although Portcullis returns this error. For example, the text is
    /// UTF-16, or it contains YAML that parsers interpret differently. If the result is false, kustomize rejects the
    /// text too.
    pub(super) fn is_open(&self) -> bool {
        match self {
            Self::Yaml(error) => error.problem.is_open(),
            Self::Utf16 | Self::Ambiguous(..) => true,
            _ => false,
        }
    }
}
