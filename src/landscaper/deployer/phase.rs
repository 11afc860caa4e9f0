//! Phases: where the work on a DeployItem, an Execution or an Installation is.
//!
//! Source: the phases and their predicates in Landscaper's `apis/core/v1alpha1/types_{deployitem,execution,
//! installation}.go`; executed cases in `tests/vectors/landscaper/phases.json`.

use crate::catalog::Kind;
use crate::landscaper::kinds::DEPLOY_ITEMS;

/// A phase of a DeployItem: what the text of it means.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Phase {
    /// Nobody has worked on it.
    Empty,
    /// A deployer has taken it.
    Init,
    /// A deployer is at work. The contract's prose says `Processing`; no code ever wrote that.
    Progressing,
    /// Known to Landscaper; nothing that comes with it sets it.
    Completing,
    /// The work has succeeded.
    Succeeded,
    /// The work has failed.
    Failed,
    /// A deployer has taken it, to uninstall.
    InitDelete,
    /// A deployer is uninstalling.
    Deleting,
    /// Uninstalling has failed.
    DeleteFailed,
    /// A text that Landscaper gives no meaning for DeployItems.
    Other,
}

/// The phases of DeployItems, with what they say.
pub static PHASES: [(Phase, &str, &str); 10] = [
    (Phase::Empty, "", "nobody has worked on it"),
    (Phase::Init, "Init", "a deployer has taken it"),
    (Phase::Progressing, "Progressing", "a deployer is at work"),
    (Phase::Progressing, "Processing", "the same, as the contract's prose spells it"),
    (Phase::Completing, "Completing", "known to Landscaper, set by nothing that comes with it"),
    (Phase::Succeeded, "Succeeded", "the work has succeeded"),
    (Phase::Failed, "Failed", "the work has failed"),
    (Phase::InitDelete, "InitDelete", "a deployer has taken it, to uninstall"),
    (Phase::Deleting, "Deleting", "a deployer is uninstalling"),
    (Phase::DeleteFailed, "DeleteFailed", "uninstalling has failed"),
];

impl Phase {
    /// What a text means; letters and blanks count.
    pub fn read(text: &str) -> Self {
        PHASES.iter().find(|(_, name, _)| *name == text).map_or(Self::Other, |(phase, ..)| *phase)
    }

    /// Whether the work is over.
    pub fn is_final(self) -> bool {
        matches!(self, Self::Succeeded | Self::Failed | Self::DeleteFailed)
    }

    /// Whether it is about uninstalling.
    pub fn is_deletion(self) -> bool {
        matches!(self, Self::InitDelete | Self::Deleting | Self::DeleteFailed)
    }

    /// Whether the work has failed.
    pub fn is_failed(self) -> bool {
        matches!(self, Self::Failed | Self::DeleteFailed)
    }

    /// Whether somebody is at work.
    pub fn is_working(self) -> bool {
        !self.is_final() && self != Self::Empty
    }
}

/// Whether a phase of an object of `kind` is about deletion: Executions and Installations know one more such phase than
/// DeployItems.
pub fn is_deletion_of(kind: &Kind, text: &str) -> bool {
    Phase::read(text).is_deletion() || (text == "TriggerDelete" && kind.plural != DEPLOY_ITEMS.plural)
}

/// The phase of a DeployItem that has failed, as Landscaper sets it (`SetDeployItemToFailed`).
pub fn failed(is_being_deleted: bool) -> &'static str {
    if is_being_deleted { "DeleteFailed" } else { "Failed" }
}
