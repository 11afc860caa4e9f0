//! The owner of a Landscaper object: the Installation or Execution in its owner references.

use serde_json::Value;

use super::api::GROUP;
use crate::admission::Metadata;

/// The kinds of objects that can own a Landscaper object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OwnerKind {
    /// The owner is an Installation.
    Installation,
    /// The owner is an Execution.
    Execution,
}

impl OwnerKind {
    const ALL: [Self; 2] = [Self::Installation, Self::Execution];

    /// Returns the name of the kind, such as `Installation`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Installation => "Installation",
            Self::Execution => "Execution",
        }
    }
}

/// The owner of a Landscaper object, as named in the object's owner references.
#[derive(Debug, Clone, Copy)]
pub struct Owner<'v> {
    /// The kind of the owner: Installation or Execution.
    pub kind: OwnerKind,
    /// The name of the owner, which is in the same namespace as the object.
    pub name: &'v str,
    /// The uid of the owner, if the owner reference has one.
    pub uid: Option<&'v str>,
}

/// Returns the Installation or Execution that owns an object; `None` if the object has no such owner.
///
/// Prefers the controller reference to other owner references.
///
/// Source: `IsRootInstallation` in Landscaper's `pkg/landscaper/installations/helper.go`, which matches owner
/// references by group and kind, in any version.
pub fn owner(object: &Value) -> Option<Owner<'_>> {
    let owners = || {
        Metadata::of(object).owner_references().filter_map(|reference| read(reference).map(|owner| (reference, owner)))
    };
    let controller = owners().find(|(reference, _)| reference.get("controller") == Some(&Value::Bool(true)));
    controller.or_else(|| owners().next()).map(|(_, owner)| owner)
}

fn read(reference: &Value) -> Option<Owner<'_>> {
    let text = |key: &str| reference.get(key).and_then(Value::as_str).filter(|text| !text.is_empty());
    let (group, _) = text("apiVersion")?.split_once('/')?;
    let kind = OwnerKind::ALL.into_iter().find(|kind| Some(kind.name()) == text("kind"))?;
    (group == GROUP).then_some(Owner { kind, name: text("name")?, uid: text("uid") })
}
