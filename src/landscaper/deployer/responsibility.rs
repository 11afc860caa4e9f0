//! Determines whether a deployer is responsible for a DeployItem.
//!
//! Source: `CheckResponsibility` in Landscaper's `pkg/deployer/lib/utils.go`. The type and the Target are read from the
//! annotations. If the type annotation is missing, both are read from the spec. The Target is looked up in the
//! namespace of the DeployItem. If the DeployItem has no Target, or the deployer has no selectors, only the type is
//! compared.

use serde_json::Value;

use super::NO_TARGET;
use super::configuration::Deployer;
use crate::admission::{Metadata, Path};
use crate::catalog::{LiveRead, Reference, View};
use crate::landscaper::annotations::{ROUTE, TARGET_ANNOTATION, TYPE_ANNOTATION};
use crate::landscaper::decode::text;
use crate::landscaper::kinds::{DEPLOYER_REGISTRATIONS, TARGETS};

/// Paths of the `spec` fields of a DeployItem that determine which deployer is responsible for the DeployItem. The list
/// does not contain the annotations that override these fields.
pub(in crate::landscaper) const READ: &[Path] = &[&["spec", "type"], &["spec", "target"]];

/// The type and the Target of a DeployItem. Deployers use both to decide whether they are responsible for the
/// DeployItem.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Route<'v> {
    /// The type of the DeployItem; empty if it is missing.
    pub type_name: &'v str,
    /// The name of the Target; `None` for a DeployItem without a Target.
    pub target: Option<&'v str>,
}

impl<'v> Route<'v> {
    /// Returns the type and the Target that deployers use. If [`TYPE_ANNOTATION`] is set, both come from the
    /// annotations. Otherwise, both come from the spec.
    pub fn of(item: &'v Value) -> Self {
        let annotation = |key| Metadata::of(item).annotation(key);
        match annotation(TYPE_ANNOTATION) {
            Some(type_name) => {
                let target = annotation(TARGET_ANNOTATION).filter(|target| *target != NO_TARGET);
                Self { type_name, target }
            }
            None => Self::specified(item),
        }
    }

    /// Returns the type and the Target in the `spec` of a DeployItem. Ignores the annotations that can override them.
    pub fn specified(item: &'v Value) -> Self {
        let spec = item.get("spec").unwrap_or(&Value::Null);
        let target = spec.get("target").and_then(|target| text(target, "name"));
        Self { type_name: text(spec, "type").unwrap_or_default(), target }
    }
}

/// Whether a deployer is responsible for a DeployItem.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Responsible {
    /// The deployer is responsible for the DeployItem.
    Yes,
    /// The deployer does not serve the type of the DeployItem.
    OtherType,
    /// The deployer does not serve the Target of the DeployItem.
    OtherTarget,
    /// It is unknown whether the deployer is responsible for the DeployItem. The reason is that the Target does not
    /// exist, or that the Target or a DeployerRegistration has not been read successfully from the API server.
    Unknown,
}

/// Determines whether a deployer is responsible for a DeployItem with the type and Target in `route`. `namespace` is
/// the namespace of the DeployItem. If the cached objects do not suffice, also returns a reference to the Target or
/// DeployerRegistration that must be read from the API server.
pub fn of(
    deployer: &Deployer,
    route: &Route<'_>,
    namespace: &str,
    view: &View<'_>,
) -> (Responsible, Option<Reference>) {
    match serves(deployer, route.type_name, view) {
        (true, _) => targets(deployer, route, namespace, view),
        (false, None) => (Responsible::OtherType, None),
        (false, Some(unread)) => (Responsible::Unknown, Some(unread)),
    }
}

/// Returns whether a deployer would deploy DeployItems that are in dry run, regardless of their Targets.
///
/// This is the case if all of these conditions hold:
/// - The deployer ignores the dry-run annotation.
/// - The deployer has no Target selectors, so it accepts every Target.
/// - The configuration of the deployer names a type of DeployItems or a DeployerRegistration. The type
///   `portcullis.dev/dry-run` does not count, because it is used only for dry runs.
pub fn deploys_any(deployer: &Deployer) -> bool {
    let is_real = |served: &String| served != ROUTE;
    let serves = deployer.types.iter().any(is_real) || !deployer.registrations.is_empty();
    serves && !deployer.honours_dry_run && deployer.target_selectors.is_empty()
}

/// Returns whether a deployer processes DeployItems of the type `type_name`. The configuration of the deployer lists
/// its types, and names DeployerRegistration objects that list more types.
///
/// Also returns a reference to a DeployerRegistration if the result is `false` only according to its cached copy, which
/// may be outdated. The caller must then read this object from the API server.
fn serves(deployer: &Deployer, type_name: &str, view: &View<'_>) -> (bool, Option<Reference>) {
    if deployer.types.iter().any(|served| served == type_name) {
        return (true, None);
    }
    let mut unread = None;
    for name in &deployer.registrations {
        let found = view.find(&DEPLOYER_REGISTRATIONS, "", name);
        if found.is_some_and(|found| registered(found.value()).any(|served| served == type_name)) {
            return (true, None);
        }
        let reference = Reference::new(&DEPLOYER_REGISTRATIONS, "", name);
        let is_certain = matches!(view.live_read(&reference), Some(LiveRead::Exists(_) | LiveRead::Gone));
        unread = unread.or((!is_certain).then_some(reference));
    }
    (false, unread)
}

/// Returns the types of DeployItems that a DeployerRegistration lists.
pub fn registered(registration: &Value) -> impl Iterator<Item = &str> {
    let types = registration.pointer("/spec/types").and_then(Value::as_array);
    types.into_iter().flatten().filter_map(Value::as_str)
}

fn targets(
    deployer: &Deployer,
    route: &Route<'_>,
    namespace: &str,
    view: &View<'_>,
) -> (Responsible, Option<Reference>) {
    let Some(name) = route.target else { return (Responsible::Yes, None) };
    let selectors = &deployer.target_selectors;
    let found = view.find(&TARGETS, namespace, name);
    if selectors.is_empty()
        || found.as_ref().is_some_and(|found| selectors.iter().any(|one| one.selects(found.value())))
    {
        return (Responsible::Yes, None);
    }
    let reference = Reference::new(&TARGETS, namespace, name);
    match view.live_read(&reference) {
        Some(LiveRead::Exists(_)) => (Responsible::OtherTarget, None),
        // A deployer may end the job of a DeployItem whose Target does not exist.
        Some(_) => (Responsible::Unknown, None),
        None => (Responsible::Unknown, Some(reference)),
    }
}
