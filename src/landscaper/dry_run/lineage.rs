//! From an object up to its root, whose word counts for all below it.
//!
//! What belongs to what does not change while objects live, so any copy of them tells. What the root says does change:
//! for that the API server is asked. Only where it does not answer is an old copy believed, and only one that says "dry
//! run": nothing is deployed by that.

use std::sync::Arc;

use serde_json::Value;

use super::mark::{self, Mark, Owner};
use crate::catalog::{Confirmation, Reference, Stored, View};

/// Sub-installations in sub-installations: far more than anybody nests, and an end for a circle.
const MAX_LEVELS: usize = 64;

/// What stands at the top of an object.
#[derive(Debug, Clone)]
pub enum Root {
    /// The object itself.
    Own,
    /// An Installation, or an Execution that belongs to none.
    Of(Arc<Stored>),
    /// An owner on the way up does not exist.
    Orphan(Reference),
    /// An owner on the way up was deleted, and another object has its name now.
    Replaced(Replaced),
    /// Something on the way up could not be read.
    Unknown(Reference),
}

/// What is at the top of an object, as far as it is known; and what must be read to be certain.
pub fn root(object: &Value, namespace: &str, view: &View<'_>) -> (Root, Option<Reference>) {
    let Some(owner) = mark::owner(object) else { return (Root::Own, None) };
    let mut step = Step::of(&owner, namespace);
    for _ in 0..MAX_LEVELS {
        let Step { reference, .. } = &step;
        let asked = view.confirmation(reference);
        let found = view.find(reference.kind, namespace, &reference.name).filter(|found| step.is(found));
        let Some(found) = found else {
            return match asked {
                Some(Confirmation::Unknown(_)) => (Root::Unknown(reference.clone()), None),
                Some(Confirmation::Exists(now)) => (Root::Replaced(step.replaced_by(now)), None),
                Some(_) => (Root::Orphan(reference.clone()), None),
                None => (Root::Unknown(reference.clone()), Some(reference.clone())),
            };
        };
        let above = mark::owner(found.value()).map(|owner| Step::of(&owner, namespace));
        let Some(above) = above else {
            return match asked {
                None => (Root::Of(found), Some(reference.clone())),
                Some(Confirmation::Exists(_)) => (Root::Of(found), None),
                Some(_) if Mark::of(found.value()).is_dry_run() => (Root::Of(found), None),
                Some(_) => (Root::Unknown(reference.clone()), None),
            };
        };
        step = above;
    }
    (Root::Unknown(step.reference), None)
}

/// An owner that was deleted, while another object has its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Replaced {
    /// The present object.
    pub by: Reference,
    /// The uid of the deleted object, as the owner reference says.
    pub uid: String,
    /// The uid of the present object.
    pub present: String,
}

/// A step up.
struct Step {
    reference: Reference,
    uid: Option<String>,
}

impl Step {
    fn of(owner: &Owner<'_>, namespace: &str) -> Self {
        Self { reference: owner.reference(namespace), uid: owner.uid.map(str::to_owned) }
    }

    fn replaced_by(&self, now: &Stored) -> Replaced {
        let present = now.value().pointer("/metadata/uid").and_then(Value::as_str).unwrap_or_default().to_owned();
        Replaced { by: self.reference.clone(), uid: self.uid.clone().unwrap_or_default(), present }
    }

    /// Whether an object is the one that is meant, and not another that got its name since.
    fn is(&self, found: &Stored) -> bool {
        let uid = found.value().pointer("/metadata/uid").and_then(Value::as_str);
        self.uid.is_none() || uid.is_none() || self.uid.as_deref() == uid
    }
}
