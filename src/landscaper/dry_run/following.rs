//! Whose word an object follows, and what its annotations are to say: one answer, for admission and for the companion.

use std::sync::Arc;

use serde_json::Value;

use super::lineage::{self, Replaced, Root};
use super::mark::{Mark, ROUTE};
use super::{CONFIGURATION_ANNOTATION, DRY_RUN_ANNOTATION};
use crate::catalog::{Reference, Stored, View};
use crate::landscaper::deployer::TYPE_ANNOTATION;
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
    /// That of something which was deleted, while another object has its name.
    Replaced(Replaced),
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
        Root::Replaced(replaced) => Following::Replaced(replaced),
    };
    (following, wanted)
}

/// What an object's annotations are to say; `None` for those that are not to be there.
pub type Annotations = Vec<(&'static str, Option<String>)>;

/// What the annotations of an object say below a root. `keeps_away` has deployers kept off a DeployItem in dry run, by the
/// annotation in which they look for their type.
pub fn annotations(object: &Value, root: &Value, keeps_away: bool) -> Annotations {
    let mark = Mark::of(root).inherited();
    let mut annotations = vec![
        (DRY_RUN_ANNOTATION, mark.dry_run.map(str::to_owned)),
        (CONFIGURATION_ANNOTATION, mark.configuration.map(str::to_owned)),
    ];
    annotations.extend(route(object, mark.is_dry_run(), keeps_away));
    annotations
}

/// The annotation that says whose a DeployItem is, where it is to change. After a dry run it is again its type's deployer's.
pub fn route(object: &Value, is_dry_run: bool, keeps_away: bool) -> Option<(&'static str, Option<String>)> {
    let routed = object.pointer("/metadata/annotations").and_then(|annotations| annotations.get(TYPE_ANNOTATION));
    let is_away = routed.is_some_and(|routed| routed == ROUTE);
    let of_type = || object.pointer("/spec/type").and_then(Value::as_str).map(str::to_owned);
    match is_dry_run {
        true if keeps_away && !is_away => Some((TYPE_ANNOTATION, Some(ROUTE.to_owned()))),
        false if is_away => Some((TYPE_ANNOTATION, of_type())),
        _ => None,
    }
}

/// Whether an object's annotations say what they are to say.
pub fn agrees(object: &Value, root: &Value) -> bool {
    let mark = Mark::of(root).inherited();
    Mark::of(object) == mark && route(object, mark.is_dry_run(), false).is_none()
}
