//! Which deployer a DeployItem belongs to.
//!
//! Source: `CheckResponsibility` in Landscaper's `pkg/deployer/lib/utils.go`: type and Target are what the annotations
//! say, and what the spec says only where there is no annotation of the type; the Target is looked up in the
//! DeployItem's own namespace; without a Target, or without selectors, the type decides.

use serde_json::Value;

use super::configuration::Deployer;
use super::{NO_TARGET, TARGET_ANNOTATION, TYPE_ANNOTATION};
use crate::admission::Path;
use crate::catalog::{Confirmation, Reference, View};
use crate::landscaper::decode::text;
use crate::landscaper::dry_run::annotations::ROUTE;
use crate::landscaper::kinds::{DEPLOYER_REGISTRATIONS, TARGETS};

/// Where in a DeployItem that is said, besides its annotations.
pub(super) const READ: &[Path] = &[&["spec", "type"], &["spec", "target"]];

/// Where a DeployItem goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Route<'v> {
    /// The type of its deployer; empty without.
    pub type_name: &'v str,
    /// The name of its Target.
    pub target: Option<&'v str>,
}

impl<'v> Route<'v> {
    /// Where deployers see a DeployItem go.
    pub fn of(item: &'v Value) -> Self {
        let annotation = |key| item.pointer("/metadata/annotations").and_then(|annotations| text(annotations, key));
        match annotation(TYPE_ANNOTATION) {
            Some(type_name) => {
                let target = annotation(TARGET_ANNOTATION).filter(|target| *target != NO_TARGET);
                Self { type_name, target }
            }
            None => Self::specified(item),
        }
    }

    /// Where its spec says it goes.
    pub fn specified(item: &'v Value) -> Self {
        let spec = item.get("spec").unwrap_or(&Value::Null);
        let target = spec.get("target").and_then(|target| text(target, "name"));
        Self { type_name: text(spec, "type").unwrap_or_default(), target }
    }
}

/// Whether a DeployItem is a deployer's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Responsible {
    /// It is.
    Yes,
    /// It is of a type that the deployer does not serve.
    OtherType,
    /// Its Target is one that the deployer does not serve.
    OtherTarget,
    /// It depends on an object that is not there, or is not known.
    Unknown,
}

/// Whether a DeployItem in a namespace is a deployer's, and what to read again to be certain that it is not.
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

/// Whether a deployer deploys items in dry run, whatever their Target.
pub fn deploys_any(deployer: &Deployer) -> bool {
    let is_real = |served: &String| served != ROUTE;
    let serves = deployer.types.iter().any(is_real) || !deployer.registrations.is_empty();
    serves && !deployer.honours_dry_run && deployer.target_selectors.is_empty()
}

/// Whether a deployer serves a type, and a registration that might still say so.
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
        let is_certain = matches!(view.confirmation(&reference), Some(Confirmation::Exists(_) | Confirmation::Gone));
        unread = unread.or((!is_certain).then_some(reference));
    }
    (false, unread)
}

/// The types of a DeployerRegistration.
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
    match view.confirmation(&reference) {
        Some(Confirmation::Exists(_)) => (Responsible::OtherTarget, None),
        // A deployer ends the job of a DeployItem whose Target is not there.
        Some(_) => (Responsible::Unknown, None),
        None => (Responsible::Unknown, Some(reference)),
    }
}
