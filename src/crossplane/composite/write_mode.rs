//! Decides whether the mutator writes the values of environment patches into a composite.
//!
//! The decision depends on the software that computes the environment:
//!
//! - Crossplane up to 1.17 with the flag `--enable-environment-configs`: Crossplane itself writes these values when it
//!   reconciles the composite. The mutator writes the same values earlier, at admission.
//! - Composition functions: Crossplane stores only those values that are in `status`, and drops all others. If the
//!   mutator wrote the other values, it would change this behavior. So it writes them only if a user enables this for
//!   the CompositeResourceDefinition.

use super::writes::definition;
use crate::admission::{Metadata, Operation, Request};
use crate::catalog::{Stored, View};
use crate::crossplane::configuration::{Native, section};
use crate::crossplane::environment::Profile;
use crate::crossplane::kinds::{WITH_REFERENCES, WITH_REFERENCES_KEY};

/// Annotation of a CompositeResourceDefinition. With the value `"true"`, it allows the mutator to write into the `spec`
/// and the labels of composites at admission. The mutator then writes the results of the environment patches that
/// Composition functions apply.
pub const WRITES_ANNOTATION: &str = "portcullis.dev/environment-writes";

/// The parts of a composite that the mutator writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WriteMode {
    /// Writes nothing, because Crossplane runs without `--enable-environment-configs`.
    Nothing,
    /// Writes annotations only.
    Annotations,
    /// Writes annotations, `spec` and labels.
    Composite,
}

impl WriteMode {
    /// Decides what the mutating webhook writes into the composite of a request: nothing, only annotations, or also
    /// `spec` and labels.
    pub fn of(request: &Request<'_>, profile: Profile, view: &View<'_>) -> Self {
        let is_on = match profile {
            Profile::Function => {
                definition(request, view).is_some_and(|definition| writes_are_enabled(&definition, view))
            }
            Profile::Native117 => match section(view).native {
                Native::Disabled => return Self::Nothing,
                Native::Enabled => changes_spec(request),
                Native::Detect => changes_spec(request) && was_used(view),
            },
        };
        if is_on { Self::Composite } else { Self::Annotations }
    }
}

/// Returns whether the user allows the mutating webhook to write values from the environment into the composites of a
/// CompositeResourceDefinition. The user allows it with an annotation of the definition, or in the configuration file
/// of Portcullis. The setting matters only if Composition functions compute the environment.
pub fn writes_are_enabled(definition: &Stored, view: &View<'_>) -> bool {
    let annotation = Metadata::of(definition.value()).annotation(WRITES_ANNOTATION);
    annotation == Some("true") || section(view).writes_to.iter().any(|name| name == "*" || name == definition.name())
}

/// Returns whether a request creates a composite or changes its `spec`. If Crossplane itself computes environments, the
/// webhook writes values from the environment into the composite only in these requests. In other requests, such writes
/// would increase `metadata.generation`, and Crossplane writes the values itself at its next reconcile.
fn changes_spec(request: &Request<'_>) -> bool {
    request.operation == Operation::Create || request.object().get("spec") != request.old_object().get("spec")
}

/// Returns whether any composite has references to EnvironmentConfigs. Only Crossplane up to 1.17 with
/// `--enable-environment-configs` writes such references.
fn was_used(view: &View<'_>) -> bool {
    view.declared().iter().any(|kind| view.count(kind, &WITH_REFERENCES, "", WITH_REFERENCES_KEY) > 0)
}
