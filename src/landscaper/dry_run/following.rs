//! Whose word an object follows, and what its annotations are to say: one answer, for admission and for the companion.

use std::sync::Arc;

use serde_json::Value;

use super::lineage::{self, Root};
use super::mark::Mark;
use super::{CONFIGURATION_ANNOTATION, DRY_RUN_ANNOTATION};
use crate::catalog::{Reference, Stored, View};
use crate::landscaper::kinds::INSTALLATIONS;

/// Whose word an object follows.
#[derive(Debug, Clone)]
pub enum Following {
    /// Its own: it is a root.
    Itself,
    /// That of its root.
    Root(Arc<Stored>),
    /// That of something which could not be read: perhaps a dry run.
    Unreadable(Reference),
    /// That of something which does not exist.
    Orphan(Reference),
}

/// Whose word an object follows, as far as it is known; and what must be read to be certain.
///
/// A copy that says "dry run" is believed where the API server does not answer: nothing is deployed by that.
pub fn following(object: &Value, namespace: &str, view: &View<'_>) -> (Following, Option<Reference>) {
    let (root, wanted) = lineage::root(object, namespace, view);
    let following = match root {
        Root::Own => Following::Itself,
        Root::Of(root) if wanted.is_some() && !Mark::of(root.value()).is_dry_run() => {
            Following::Unreadable(Reference::new(&INSTALLATIONS, namespace, root.name()))
        }
        Root::Of(root) => Following::Root(root),
        Root::Unknown(reference) => Following::Unreadable(reference),
        Root::Orphan(reference) => Following::Orphan(reference),
    };
    (following, wanted)
}

/// What the annotations of everything below a root say; `None` for those that are not there.
pub fn annotations(root: &Value) -> [(&'static str, Option<&str>); 2] {
    let mark = Mark::of(root).inherited();
    [(DRY_RUN_ANNOTATION, mark.dry_run), (CONFIGURATION_ANNOTATION, mark.configuration)]
}

/// Whether an object's annotations say what they are to say.
pub fn agrees(object: &Value, root: &Value) -> bool {
    Mark::of(object) == Mark::of(root).inherited()
}
