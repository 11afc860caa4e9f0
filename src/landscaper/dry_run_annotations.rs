//! The dry-run annotations of an object, and the owner that it inherits them from.

use serde_json::Value;

use super::{CONFIGURATION_ANNOTATION, DRY_RUN_ANNOTATION};
use crate::admission::FieldPath;
use crate::catalog::{Kind, Reference};
use crate::landscaper::kinds::{EXECUTIONS, GROUP, INSTALLATIONS};

/// The deployer type that routes DeployItems in dry run to the dry-run deployer.
///
/// Admission writes it into the annotation `deployer-type`, which deployers compare with their own type. `spec.type`
/// stays unchanged.
pub const ROUTE: &str = "portcullis.dev/dry-run";

/// The values of the dry-run annotations of an object.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DryRunAnnotations<'v> {
    /// The value of [`DRY_RUN_ANNOTATION`].
    pub dry_run: Option<&'v str>,
    /// The value of [`CONFIGURATION_ANNOTATION`].
    pub configuration: Option<&'v str>,
}

impl<'v> DryRunAnnotations<'v> {
    /// Reads the annotations of an object.
    pub fn of(object: &'v Value) -> Self {
        let annotations = object.get("metadata").and_then(|meta| meta.get("annotations"));
        let text = |key: &str| annotations.and_then(|annotations| annotations.get(key)?.as_str());
        Self { dry_run: text(DRY_RUN_ANNOTATION), configuration: text(CONFIGURATION_ANNOTATION) }
    }

    /// Reports whether the object is in dry run: only the value `"true"` counts, as for Landscaper's own annotations.
    pub fn is_dry_run(&self) -> bool {
        self.dry_run == Some("true")
    }

    /// Returns the annotations that owned objects inherit: both in a dry run, none otherwise.
    #[must_use]
    pub fn inherited(self) -> Self {
        if self.is_dry_run() { self } else { Self::default() }
    }
}

/// Returns the field path of an annotation.
pub(in crate::landscaper) fn annotation(key: &str) -> FieldPath {
    FieldPath::of(["metadata", "annotations", key])
}

/// The owner of an object, as named in its owner references.
#[derive(Debug, Clone, Copy)]
pub struct Owner<'v> {
    /// Installation or Execution.
    pub kind: &'static Kind,
    /// The name. Owners are in the same namespace.
    pub name: &'v str,
    /// The uid, if the owner reference has one.
    pub uid: Option<&'v str>,
}

impl Owner<'_> {
    /// Returns a catalog reference to the owner.
    pub fn reference(&self, namespace: &str) -> Reference {
        Reference::new(self.kind, namespace, self.name)
    }
}

/// Returns the Installation or Execution that owns an object; `None` for a root.
///
/// Prefers the controller reference to other owner references.
///
/// Source: `IsRootInstallation` in Landscaper's `pkg/landscaper/installations/helper.go`, which matches owner
/// references by group and kind, in any version.
pub fn owner(object: &Value) -> Option<Owner<'_>> {
    let references = object.get("metadata")?.get("ownerReferences")?.as_array()?;
    let owners = || references.iter().filter_map(|reference| read(reference).map(|owner| (reference, owner)));
    let controller = owners().find(|(reference, _)| reference.get("controller") == Some(&Value::Bool(true)));
    controller.or_else(|| owners().next()).map(|(_, owner)| owner)
}

fn read(reference: &Value) -> Option<Owner<'_>> {
    let text = |key: &str| reference.get(key).and_then(Value::as_str).filter(|text| !text.is_empty());
    let (group, _) = text("apiVersion")?.split_once('/')?;
    let kind = [&INSTALLATIONS, &EXECUTIONS].into_iter().find(|kind| Some(kind.kind) == text("kind"))?;
    (group == GROUP).then_some(Owner { kind, name: text("name")?, uid: text("uid") })
}
