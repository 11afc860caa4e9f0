//! The part of a kind's objects that the catalog stores.

use super::parts::EVERYTHING;
use crate::admission::Path;

/// The part of a kind's objects that the catalog stores, besides kind, name and namespace. Readers see only this part,
/// also in live reads.
#[derive(Debug, Clone, Copy)]
pub enum Storage {
    /// Objects are watched and stored whole, without `managedFields` and the last applied configuration.
    Whole,
    /// Objects are watched, and only the fields at these paths are stored: those that rules, mutators, controllers,
    /// explanations and indexes read. [`EVERY`](super::EVERY) in a path matches every member or item.
    Parts(&'static [Path]),
    /// Objects are not watched. A live read fetches one object, and only the fields at these paths are kept. The
    /// permission `get` in the namespaces of these objects is enough.
    ByName(&'static [Path]),
    /// Objects are not watched. A live read fetches one object, and only the fields at these paths are kept. It needs
    /// the permission `get` in all namespaces.
    Live(&'static [Path]),
}

impl Storage {
    /// Returns whether the objects of the kind are watched.
    pub fn is_watched(self) -> bool {
        !matches!(self, Self::ByName(_) | Self::Live(_))
    }

    /// Returns the paths of the fields that the catalog stores and that live reads keep.
    pub(super) fn parts(self) -> &'static [Path] {
        match self {
            Self::Whole => EVERYTHING,
            Self::Parts(parts) | Self::ByName(parts) | Self::Live(parts) => parts,
        }
    }
}
