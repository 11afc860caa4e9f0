//! The phases of DeployItems, Executions and Installations.
//!
//! Source: the phases and their predicates in Landscaper's `apis/core/v1alpha1/types_{deployitem,execution,
//! installation}.go`; the results of running these predicates are recorded in `tests/vectors/landscaper/phases.json`.

use crate::catalog::Kind;
use crate::landscaper::kinds::DEPLOY_ITEMS;

/// A phase of a DeployItem.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Phase {
    /// No deployer has processed the DeployItem.
    Empty,
    /// A deployer has picked up the DeployItem.
    Init,
    /// A deployer processes the DeployItem. Landscaper's documentation calls this phase `Processing`, but the code of
    /// Landscaper and its deployers has always written `Progressing`. Both names are parsed as this phase.
    Progressing,
    /// A phase that Landscaper defines, but that none of its components sets.
    Completing,
    /// A deployer has processed the DeployItem successfully.
    Succeeded,
    /// Processing the DeployItem has failed, for example because no deployer picked it up in time.
    Failed,
    /// A deployer has picked up the DeployItem to uninstall it.
    InitDelete,
    /// A deployer is uninstalling the DeployItem.
    Deleting,
    /// Uninstalling the DeployItem has failed.
    DeleteFailed,
    /// A phase that Landscaper does not define for DeployItems.
    Other,
}

/// The phases of DeployItems, with their names and meanings.
pub static PHASES: [(Phase, &str, &str); 10] = [
    (Phase::Empty, "", "no deployer has processed it"),
    (Phase::Init, "Init", "a deployer has picked it up"),
    (Phase::Progressing, "Progressing", "a deployer processes it"),
    (Phase::Progressing, "Processing", "the same as Progressing, in the spelling of Landscaper's deployer contract"),
    (Phase::Completing, "Completing", "known to Landscaper, but set by none of its components"),
    (Phase::Succeeded, "Succeeded", "the work has succeeded"),
    (Phase::Failed, "Failed", "the work has failed"),
    (Phase::InitDelete, "InitDelete", "a deployer has picked it up to uninstall it"),
    (Phase::Deleting, "Deleting", "a deployer is uninstalling"),
    (Phase::DeleteFailed, "DeleteFailed", "uninstalling has failed"),
];

impl Phase {
    /// Parses the phase of a DeployItem. Letter case and spaces matter. Returns [`Phase::Other`] for an unknown phase.
    pub fn read(text: &str) -> Self {
        PHASES.iter().find(|(_, name, _)| *name == text).map_or(Self::Other, |(phase, ..)| *phase)
    }

    /// Reports whether the phase is final: the job of a DeployItem in this phase has ended.
    pub fn is_final(self) -> bool {
        matches!(self, Self::Succeeded | Self::Failed | Self::DeleteFailed)
    }

    /// Reports whether the phase occurs only during a deletion, such as `Deleting`.
    pub fn is_deletion(self) -> bool {
        matches!(self, Self::InitDelete | Self::Deleting | Self::DeleteFailed)
    }

    /// Reports whether the job of a DeployItem in this phase has failed.
    pub fn is_failed(self) -> bool {
        matches!(self, Self::Failed | Self::DeleteFailed)
    }

    /// Reports whether a deployer works on a DeployItem in this phase. This is the case if the phase is neither empty
    /// nor final.
    pub fn is_working(self) -> bool {
        !self.is_final() && self != Self::Empty
    }
}

/// Reports whether the phase `text` of an object of kind `kind` occurs only during a deletion, such as `Deleting`.
///
/// For Executions and Installations, `TriggerDelete` is also a deletion phase.
pub fn is_deletion_of(kind: &Kind, text: &str) -> bool {
    Phase::read(text).is_deletion() || (text == "TriggerDelete" && kind.plural != DEPLOY_ITEMS.plural)
}

/// Returns the phase that Landscaper sets when a DeployItem fails (`SetDeployItemToFailed`): `DeleteFailed` if the
/// DeployItem is being deleted, otherwise `Failed`.
pub fn failed(is_being_deleted: bool) -> &'static str {
    if is_being_deleted { "DeleteFailed" } else { "Failed" }
}
