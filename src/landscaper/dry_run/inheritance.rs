//! Determines the root from which an object inherits its dry-run annotations, and the values that these annotations
//! must have.
//!
//! Admission and the controller manager share this module.

use std::sync::Arc;

use serde_json::Value;

use super::owner_chain::{self, Replaced, Root};
use crate::admission::Metadata;
use crate::catalog::{Reference, Stored, View};
use crate::landscaper::annotations::{CONFIGURATION_ANNOTATION, DRY_RUN_ANNOTATION, ROUTE, TYPE_ANNOTATION};
use crate::landscaper::dry_run_annotations::DryRunAnnotations;
use crate::landscaper::kinds::INSTALLATIONS;

/// The source from which an object inherits its dry-run annotations.
#[derive(Debug, Clone)]
pub enum Inheritance {
    /// The object inherits no annotations, because no Installation or Execution owns it.
    Itself,
    /// The object inherits the dry-run annotations of its root: the last object in its chain of owners, usually an
    /// Installation. Contains the root.
    Root(Arc<Stored>),
    /// It is unknown which annotations the object inherits, because an owner could not be read, or has not been read
    /// yet. Contains a reference to this owner, which is the direct owner of the object, or an owner of its owner.
    Unreadable(Reference),
    /// The object inherits no annotations, because an owner in its chain of owners does not exist. Contains a reference
    /// to this owner.
    Orphan(Reference),
    /// The object inherits no annotations, because an owner in its chain of owners was deleted, and another object now
    /// has the owner's name.
    Replaced(Replaced),
}

/// Determines the root object, usually an Installation, from which an object inherits its dry-run annotations.
/// `namespace` is the namespace of the object. If the result is not certain yet, also returns a reference to the object
/// that must be read from the API server.
///
/// If the root cannot be read from the API server, the cached root is used only if it is in dry run. This is safe,
/// because a dry run deploys nothing.
pub fn inheritance(object: &Value, namespace: &str, view: &View<'_>) -> (Inheritance, Option<Reference>) {
    let (root, wanted) = owner_chain::root(object, namespace, view);
    let inheritance = match root {
        Root::Own => Inheritance::Itself,
        Root::Of(root) if wanted.is_some() && !DryRunAnnotations::of(root.value()).is_dry_run() => {
            Inheritance::Unreadable(Reference::new(&INSTALLATIONS, namespace, root.name()))
        }
        Root::Of(root) => Inheritance::Root(root),
        Root::Unknown(reference) => Inheritance::Unreadable(reference),
        Root::Orphan(reference) => Inheritance::Orphan(reference),
        Root::Replaced(replaced) => Inheritance::Replaced(replaced),
    };
    (inheritance, wanted)
}

/// The required values of an object's annotations, by key; `None` if the annotation must be absent.
pub type WantedAnnotations = Vec<(&'static str, Option<String>)>;

/// Returns the dry-run annotations and the annotation `deployer-type` that an object must have, because it inherits
/// from `root`. The annotation `deployer-type` is only included if it must change.
///
/// `is_routed` says whether the annotation `deployer-type` must route a DeployItem in dry run to the dry-run deployer.
pub fn wanted_annotations(object: &Value, root: &Value, is_routed: bool) -> WantedAnnotations {
    let inherited = DryRunAnnotations::of(root).inherited();
    let mut annotations = vec![
        (DRY_RUN_ANNOTATION, inherited.dry_run.map(str::to_owned)),
        (CONFIGURATION_ANNOTATION, inherited.configuration.map(str::to_owned)),
    ];
    annotations.extend(route(object, inherited.is_dry_run(), is_routed));
    annotations
}

/// Returns the key of the annotation `deployer-type` and its new value; `None` if the annotation need not change.
///
/// - If the DeployItem is in dry run (`is_dry_run`) and `is_routed` is true, the annotation must route it to the
///   dry-run deployer.
/// - If the DeployItem is not in dry run, the annotation must not route it to the dry-run deployer. The new value is
///   then the type of the DeployItem.
pub fn route(object: &Value, is_dry_run: bool, is_routed: bool) -> Option<(&'static str, Option<String>)> {
    let was_routed = Metadata::of(object).annotation(TYPE_ANNOTATION) == Some(ROUTE);
    let of_type = || object.pointer("/spec/type").and_then(Value::as_str).map(str::to_owned);
    match is_dry_run {
        true if is_routed && !was_routed => Some((TYPE_ANNOTATION, Some(ROUTE.to_owned()))),
        false if was_routed => Some((TYPE_ANNOTATION, of_type())),
        _ => None,
    }
}

/// Returns whether the dry-run state of an object is consistent with its root Installation `root`. It is consistent if
/// both conditions are met:
///
/// - The object has the dry-run annotations that it must inherit from `root`.
/// - The object is in dry run, or it is not routed to the dry-run deployer.
pub fn is_consistent(object: &Value, root: &Value) -> bool {
    let inherited = DryRunAnnotations::of(root).inherited();
    DryRunAnnotations::of(object) == inherited && route(object, inherited.is_dry_run(), false).is_none()
}
