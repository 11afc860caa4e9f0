//! Another deployer at work on the same item. It deploys for real, and two would undo each other's status for ever: the one
//! that can do no harm by waiting steps back.

use serde_json::Value;

use super::{FINALIZER, MANAGER, NAME, Stage, finalizers, status};

/// How another deployer shows.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Rival {
    /// `status.deployer` names it.
    #[error("status.deployer names {0:?}: it has deployed this item, or is about to")]
    Deployer(String),
    /// It holds a finalizer.
    #[error("the finalizer {0:?} is not Landscaper's: somebody else has something to clear away")]
    Finalizer(String),
    /// It took the job up without saying its name.
    #[error("status.phase is {0:?} and status.deployer names nobody: somebody else has taken this job up")]
    Phase(String),
    /// It reports what it deployed.
    #[error("status.providerStatus is set, which a dry run has none of: somebody else is at work")]
    ProviderStatus,
    /// It wrote the phase last.
    #[error("status.phase was last written by {0:?}")]
    Writer(String),
}

/// The other deployer, if one shows.
pub(super) fn of(item: &Value, stage: Stage) -> Option<Rival> {
    let name = status::deployer(item);
    if !name.is_empty() && name != NAME {
        return Some(Rival::Deployer(name.to_owned()));
    }
    // A finalizer without a domain is Kubernetes' own, such as foregroundDeletion.
    let is_foreign = |name: &&str| *name != FINALIZER && name.contains('/');
    if let Some(foreign) = finalizers(item).into_iter().find(is_foreign) {
        return Some(Rival::Finalizer(foreign.to_owned()));
    }
    if stage == Stage::Waiting {
        return None;
    }
    let has_provider_status = item.pointer("/status/providerStatus").is_some_and(|status| !status.is_null());
    if name.is_empty() {
        return Some(Rival::Phase(status::text(item, "phase").to_owned()));
    }
    if has_provider_status {
        return Some(Rival::ProviderStatus);
    }
    let writers = phase_writers(item);
    let is_ours = writers.is_empty() || writers.contains(&MANAGER);
    writers.first().filter(|_| !is_ours).map(|writer| Rival::Writer((*writer).to_owned()))
}

/// Who wrote the phase last, by what the API server keeps; nobody where it keeps nothing.
fn phase_writers(item: &Value) -> Vec<&str> {
    let entries = item.pointer("/metadata/managedFields").and_then(Value::as_array);
    let wrote = |entry: &&Value| entry.pointer("/fieldsV1/f:status/f:phase").is_some();
    entries.into_iter().flatten().filter(wrote).filter_map(|entry| entry.get("manager")?.as_str()).collect()
}
