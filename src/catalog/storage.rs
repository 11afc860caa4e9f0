//! The part of a kind's objects that the catalog stores.

use super::parts::EVERYTHING;
use crate::admission::Path;

/// The part of a kind's objects that the catalog stores, besides kind, name and namespace. Readers see only this part,
/// even if an object is read from the API server for one request.
#[derive(Debug, Clone, Copy)]
pub enum Storage {
    /// Objects are watched, and stored whole. Only `managedFields` and the last applied configuration are omitted.
    Whole,
    /// The kind is watched, and only the fields at these paths are stored. These are the fields that rules, mutators,
    /// controllers, explanations and indexes read. In a path, [`EVERY`](super::EVERY) matches every member or item.
    Parts(&'static [Path]),
    /// Objects are not watched, but read from the API server one at a time. Only the fields at these paths are kept.
    /// The permission `get` is needed only in the namespaces of these objects.
    ByName(&'static [Path]),
    /// Objects are not watched, but read from the API server one at a time. Only the fields at these paths are kept.
    /// The permission `get` is needed in all namespaces.
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
