//! What an object says of dry runs, and what it belongs to.

use serde_json::Value;

use super::{CONFIGURATION_ANNOTATION, DRY_RUN_ANNOTATION};
use crate::admission::FieldPath;
use crate::catalog::{Kind, Reference};
use crate::landscaper::kinds::{EXECUTIONS, GROUP, INSTALLATIONS};

/// The deployer type that admission writes into the annotation of items in dry run, where it is to keep others away: those
/// look for theirs there, and `spec.type` stays as it is.
pub const ROUTE: &str = "portcullis.dev/dry-run";

/// What an object's annotations say of dry runs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Mark<'v> {
    /// The value of [`DRY_RUN_ANNOTATION`].
    pub dry_run: Option<&'v str>,
    /// The value of [`CONFIGURATION_ANNOTATION`].
    pub configuration: Option<&'v str>,
}

impl<'v> Mark<'v> {
    /// Reads an object's annotations.
    pub fn of(object: &'v Value) -> Self {
        let annotations = object.get("metadata").and_then(|meta| meta.get("annotations"));
        let text = |key: &str| annotations.and_then(|annotations| annotations.get(key)?.as_str());
        Self { dry_run: text(DRY_RUN_ANNOTATION), configuration: text(CONFIGURATION_ANNOTATION) }
    }

    /// Whether it is a dry run. Landscaper's annotations of this kind count at `"true"` and nothing else.
    pub fn is_dry_run(&self) -> bool {
        self.dry_run == Some("true")
    }

    /// What objects below one with this mark say: all of a dry run, and nothing of any other.
    #[must_use]
    pub fn inherited(self) -> Self {
        if self.is_dry_run() { self } else { Self::default() }
    }
}

/// The place of an annotation.
pub(super) fn annotation(key: &str) -> FieldPath {
    FieldPath::of(["metadata", "annotations", key])
}

/// The object that an object belongs to.
#[derive(Debug, Clone, Copy)]
pub struct Owner<'v> {
    /// Its kind: Installation or Execution.
    pub kind: &'static Kind,
    /// Its name; it is in the same namespace.
    pub name: &'v str,
    /// Its uid, where one is said.
    pub uid: Option<&'v str>,
}

impl Owner<'_> {
    /// Names it.
    pub fn reference(&self, namespace: &str) -> Reference {
        Reference::new(self.kind, namespace, self.name)
    }
}

/// The Installation or Execution that owns an object: by its controller reference or, where that is another's, by the
/// first reference to one. `None` for a root.
///
/// Source: `IsRootInstallation` in Landscaper's `pkg/landscaper/installations/helper.go` looks at any owner reference of
/// its group and kind, whatever the version.
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
