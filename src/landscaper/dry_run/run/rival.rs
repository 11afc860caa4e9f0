//! Another deployer at work on the same item. It deploys for real, and two would undo each other's status for ever: the one
//! that can do no harm by waiting steps back.

use serde_json::Value;

use super::{FINALIZER, MANAGER, NAME, Stage, finalizers, status};

/// How another deployer shows.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Rival {
    /// `status.deployer` names it.
    #[error("status.deployer names {0:?}: that deployer has taken this item")]
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
    /// It wrote a field last that deployers write, after the dry-run deployer had written it.
    #[error("status.{field} was last written by {manager:?}")]
    Writer {
        /// The field of the status.
        field: &'static str,
        /// Who wrote it, as `metadata.managedFields` says.
        manager: String,
    },
    /// It reported an Event on the item during the job.
    #[error("{0:?} has reported an Event on this item during the job")]
    Event(String),
}

/// The other deployer, if one shows.
pub(super) fn of(item: &Value, stage: Stage, reporters: &[String]) -> Option<Rival> {
    let name = status::deployer(item);
    if !name.is_empty() && name != NAME {
        return Some(Rival::Deployer(name.to_owned()));
    }
    if let Some(foreign) = foreign_finalizer(item) {
        return Some(Rival::Finalizer(foreign.to_owned()));
    }
    if let Some(reporter) = reporters.iter().find(|reporter| is_deployer(reporter)) {
        return Some(Rival::Event(reporter.clone()));
    }
    if stage == Stage::Waiting {
        return None;
    }
    if name.is_empty() {
        return Some(Rival::Phase(status::text(item, "phase").to_owned()));
    }
    if has_provider_status(item) {
        return Some(Rival::ProviderStatus);
    }
    FIELDS.iter().find_map(|(field, pointer)| {
        let writers = writers(item, pointer);
        let is_ours = writers.is_empty() || writers.contains(&MANAGER);
        let manager = writers.first().filter(|_| !is_ours)?;
        Some(Rival::Writer { field, manager: (*manager).to_owned() })
    })
}

/// Fields of the status that a deployer writes when it takes a job, and Landscaper does not write before the job ends.
const FIELDS: [(&str, &str); 3] = [
    ("phase", "/fieldsV1/f:status/f:phase"),
    ("lastReconcileTime", "/fieldsV1/f:status/f:lastReconcileTime"),
    ("deployer.name", "/fieldsV1/f:status/f:deployer/f:name"),
];

/// Whether an item that the dry-run deployer processed shows that another deployer has deployed it.
pub fn shows_deployment(item: &Value) -> bool {
    has_provider_status(item) || foreign_finalizer(item).is_some()
}

/// Whether who reports an Event has the name of a deployer.
///
/// Source: `Name` in Landscaper's `pkg/deployer/{container,helm,manifest,mock}`, and the default of `pkg/deployer/lib`.
fn is_deployer(reporter: &str) -> bool {
    reporter.ends_with(".deployer.landscaper.gardener.cloud") || reporter == "generic-deployer-library"
}

fn has_provider_status(item: &Value) -> bool {
    item.pointer("/status/providerStatus").is_some_and(|status| !status.is_null())
}

fn foreign_finalizer(item: &Value) -> Option<&str> {
    // A finalizer without a domain is Kubernetes' own, such as foregroundDeletion.
    let is_foreign = |name: &&str| *name != FINALIZER && name.contains('/');
    finalizers(item).into_iter().find(is_foreign)
}

/// Who wrote a field last, by what the API server keeps; nobody where it keeps nothing.
fn writers<'v>(item: &'v Value, pointer: &str) -> Vec<&'v str> {
    let entries = item.pointer("/metadata/managedFields").and_then(Value::as_array);
    let wrote = |entry: &&Value| entry.pointer(pointer).is_some();
    entries.into_iter().flatten().filter(wrote).filter_map(|entry| entry.get("manager")?.as_str()).collect()
}
