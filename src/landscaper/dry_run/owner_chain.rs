//! Follows the owner references from an object to its root Installation. These references form the owner chain of the
//! object.
//!
//! Owner references do not change while an object exists, so it is enough to follow them in cached objects. The
//! annotations of the root can change, so the root is also read from the API server. If this read fails, the cached
//! root is used only if it is in dry run. This is safe, because a dry run deploys nothing.

use std::sync::Arc;

use serde_json::Value;

use crate::admission::Metadata;
use crate::catalog::{LiveRead, Reference, Stored, View};
use crate::landscaper::dry_run_annotations::DryRunAnnotations;
use crate::landscaper::kinds::owner_reference;
use crate::landscaper::owner::{self, Owner};

/// Maximum length of an owner chain. Real sub-installations are never nested this deep. The limit also stops cycles.
const MAX_LEVELS: usize = 64;

/// The result of following the owner chain of an object to its root.
#[derive(Debug, Clone)]
pub enum Root {
    /// The object has no owner, so it is itself the root of its owner chain.
    Own,
    /// The owner chain of the object ends at this Installation or Execution, which has no owner.
    Of(Arc<Stored>),
    /// The object has no root, because an owner in its owner chain does not exist. Contains the reference to this
    /// owner.
    Orphan(Reference),
    /// An owner in the owner chain was deleted, and another object now has the owner's name.
    Replaced(Replaced),
    /// The root of the object is unknown, because an owner in its owner chain could not be read, or has not been read
    /// yet. Contains the reference to this owner. Also used if the owner chain is too long.
    Unknown(Reference),
}

/// Follows the owner references of an object up to its root, usually an Installation. `namespace` is the namespace of
/// the object. If the result is not certain yet, also returns a reference to the object that must be read from the API
/// server.
pub fn root(object: &Value, namespace: &str, view: &View<'_>) -> (Root, Option<Reference>) {
    let Some(owner) = owner::owner(object) else { return (Root::Own, None) };
    let mut step = Step::of(&owner, namespace);
    for _ in 0..MAX_LEVELS {
        let Step { reference, .. } = &step;
        let asked = view.live_read(reference);
        let found = view.find(reference.kind, namespace, &reference.name).filter(|found| step.is(found));
        let Some(found) = found else {
            return match asked {
                Some(LiveRead::Unknown(_)) => (Root::Unknown(reference.clone()), None),
                Some(LiveRead::Exists(now)) => (Root::Replaced(step.replaced_by(now)), None),
                Some(_) => (Root::Orphan(reference.clone()), None),
                None => (Root::Unknown(reference.clone()), Some(reference.clone())),
            };
        };
        let above = owner::owner(found.value()).map(|owner| Step::of(&owner, namespace));
        let Some(above) = above else {
            return match asked {
                None => (Root::Of(found), Some(reference.clone())),
                Some(LiveRead::Exists(_)) => (Root::Of(found), None),
                Some(_) if DryRunAnnotations::of(found.value()).is_dry_run() => (Root::Of(found), None),
                Some(_) => (Root::Unknown(reference.clone()), None),
            };
        };
        step = above;
    }
    (Root::Unknown(step.reference), None)
}

/// A deleted owner, and the object that now has its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Replaced {
    /// The reference to the object that now has the name of the deleted owner.
    pub by: Reference,
    /// The uid of the deleted owner, from the owner reference.
    pub uid: String,
    /// The uid of the object that has the owner's name now.
    pub present: String,
}

/// An owner reference in the chain from an object to its root.
struct Step {
    reference: Reference,
    uid: Option<String>,
}

impl Step {
    fn of(owner: &Owner<'_>, namespace: &str) -> Self {
        Self { reference: owner_reference(owner, namespace), uid: owner.uid.map(str::to_owned) }
    }

    fn replaced_by(&self, now: &Stored) -> Replaced {
        let present = Metadata::of(now.value()).uid().unwrap_or_default().to_owned();
        Replaced { by: self.reference.clone(), uid: self.uid.clone().unwrap_or_default(), present }
    }

    /// Reports whether `found` is the owner that the owner reference names, and not a later object with the same name.
    /// Compares the uids. If a uid is unknown, returns true.
    fn is(&self, found: &Stored) -> bool {
        let uid = Metadata::of(found.value()).uid();
        self.uid.is_none() || uid.is_none() || self.uid.as_deref() == uid
    }
}
