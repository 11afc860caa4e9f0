//! What the catalog stores of the objects of a kind.

use super::parts::EVERYTHING;
use crate::admission::Path;

/// What the catalog stores of the objects of a kind, besides kind, name and namespace. Readers see nothing of the rest, in
/// live reads too.
#[derive(Debug, Clone, Copy)]
pub enum Storage {
    /// Objects are watched, and stored without `managedFields` and the last applied configuration.
    Whole,
    /// Objects are watched. These paths are stored: those that rules, mutators, controllers, explanations and the indexes
    /// read. [`EVERY`](super::EVERY) in a path stands for every member or item.
    Parts(&'static [Path]),
    /// Objects are not watched. Live reads fetch these paths of an object that a rule names, so that the right to get it
    /// is enough.
    ByName(&'static [Path]),
}

impl Storage {
    /// Reports whether objects are watched.
    pub fn is_watched(self) -> bool {
        !matches!(self, Self::ByName(_))
    }

    /// Returns the paths that readers see.
    pub(super) fn parts(self) -> &'static [Path] {
        match self {
            Self::Whole => EVERYTHING,
            Self::Parts(parts) | Self::ByName(parts) => parts,
        }
    }
}
