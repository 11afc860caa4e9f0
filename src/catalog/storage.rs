//! Says for each kind which fields of its objects the catalog stores, and whether the objects are watched.

use super::parts::EVERYTHING;
use crate::admission::Path;

/// How the catalog stores the objects of a kind: which fields are stored, and whether the objects are watched. Kind,
/// name and namespace are always stored. A rule can read only the stored fields. This also applies to objects that are
/// read from the API server for a single request.
#[derive(Debug, Clone, Copy)]
pub enum Storage {
    /// Objects are watched, and stored whole. Only `managedFields` and the last applied configuration are omitted.
    Whole,
    /// The kind is watched, and only the fields at these paths are stored. These are the fields that rules, mutators,
    /// controllers, explanations and indexes read. In a path, [`EVERY`](super::EVERY) matches every member or item.
    Parts(&'static [Path]),
    /// Objects are not watched. When an object is needed, it is read from the API server by its name. Only the fields
    /// at these paths are kept. The permission `get` is needed only in the namespaces from which such objects are read.
    ByName(&'static [Path]),
    /// Objects are not watched. When an object is needed, it is read from the API server by its name, in any namespace.
    /// Only the fields at these paths are kept. The permission `get` is needed in all namespaces.
    Live(&'static [Path]),
}

impl Storage {
    /// Returns whether the objects of the kind are watched.
    pub fn is_watched(self) -> bool {
        !matches!(self, Self::ByName(_) | Self::Live(_))
    }

    /// Returns the paths of the fields that are kept. The catalog stores only these fields, and live reads return only
    /// these fields.
    pub(super) fn parts(self) -> &'static [Path] {
        match self {
            Self::Whole => EVERYTHING,
            Self::Parts(parts) | Self::ByName(parts) | Self::Live(parts) => parts,
        }
    }
}
