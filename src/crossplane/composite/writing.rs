//! Whether the mutator writes into a composite what its environment patches there.
//!
//! Crossplane up to 1.17 writes it itself, if it runs with `--enable-environment-configs`. Later Crossplane drops what
//! functions write into the composite, but for its status; so writing it at admission is a change of behaviour, which is
//! asked for explicitly.

use super::writes::definition;
use crate::admission::Request;
use crate::catalog::{Stored, View};
use crate::crossplane::configuration::{Native, section};
use crate::crossplane::environment::Profile;
use crate::crossplane::kinds::{WITH_REFERENCES, WITH_REFERENCES_KEY};

/// The annotation of a CompositeResourceDefinition, at `"true"`: what environment patches of functions write into `spec`
/// and labels of its composites is written at admission.
pub const WRITES_ANNOTATION: &str = "portcullis.dev/environment-writes";

/// What the mutator writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Writing {
    /// Nothing: Crossplane computes no environment.
    Nothing,
    /// Annotations.
    Annotations,
    /// The composite itself, and annotations.
    Composite,
}

impl Writing {
    /// Returns what is written into the composite of a request.
    pub fn of(request: &Request<'_>, profile: Profile, view: &View<'_>) -> Self {
        let is_on = match profile {
            Profile::Function => definition(request, view).is_some_and(|definition| is_chosen(&definition, view)),
            Profile::Native117 => match section(view).native {
                Native::Disabled => return Self::Nothing,
                Native::Enabled => true,
                Native::Detect => was_used(view),
            },
        };
        if is_on { Self::Composite } else { Self::Annotations }
    }
}

/// Whether what functions write into composites of a definition is written at admission.
pub fn is_chosen(definition: &Stored, view: &View<'_>) -> bool {
    let annotation = || definition.value().get("metadata")?.get("annotations")?.get(WRITES_ANNOTATION)?.as_str();
    annotation() == Some("true") || section(view).writes_to.iter().any(|name| name == "*" || name == definition.name())
}

/// Whether a composite has references to EnvironmentConfigs, which Crossplane writes only where native environments are on.
fn was_used(view: &View<'_>) -> bool {
    view.declared().iter().any(|kind| view.count(kind, &WITH_REFERENCES, "", WITH_REFERENCES_KEY) > 0)
}
