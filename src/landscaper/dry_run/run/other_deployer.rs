//! Detects that another deployer processes the same DeployItem as the dry-run deployer.
//!
//! The other deployer really deploys the objects. If both deployers continued, each would overwrite the other's changes
//! of the DeployItem's status. Therefore the dry-run deployer stops writing to this DeployItem. Stopping does no harm,
//! because a dry run deploys nothing.

use serde_json::Value;

use super::{FINALIZER, MANAGER, NAME, Stage, finalizers, status};
use crate::admission::Metadata;

/// Evidence that another deployer processes the same DeployItem as the dry-run deployer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OtherDeployer {
    /// `status.deployer` of the DeployItem names a deployer other than the dry-run deployer. Contains the name of that
    /// deployer.
    #[error("status.deployer names {0:?}: that deployer has picked up this item")]
    Deployer(String),
    /// The DeployItem has this finalizer, which belongs neither to Landscaper nor to Kubernetes.
    #[error("the finalizer {0:?} is not Landscaper's: another controller has resources to clean up")]
    Finalizer(String),
    /// A deployer has picked up the job, but `status.deployer` is empty. The string is the phase of the DeployItem.
    #[error("status.phase is {0:?} and status.deployer is empty: another deployer has picked up this job")]
    Phase(String),
    /// `status.providerStatus` of the DeployItem is set. The dry-run deployer never sets this field, so another
    /// deployer did.
    #[error("status.providerStatus is set, which a dry run never sets: another deployer processes this item")]
    ProviderStatus,
    /// A field of the DeployItem's status is owned by a field manager other than the dry-run deployer. A deployer
    /// writes this field when it starts to process a DeployItem. So another deployer has probably started to process
    /// this DeployItem.
    #[error("status.{field} was last written by {manager:?}")]
    Writer {
        /// The path of the field in `status` of the DeployItem, such as `deployer.name`.
        field: &'static str,
        /// The name of the field manager, from `metadata.managedFields`.
        manager: String,
    },
    /// A deployer with this name, other than the dry-run deployer, has reported an Event on the DeployItem. It reported
    /// the Event after Landscaper had requested the current job.
    #[error("{0:?} has reported an Event on this item during the job")]
    Event(String),
}

/// Returns evidence that another deployer processes the DeployItem `item`, such as the finalizer of another controller;
/// `None` if there is no evidence.
///
/// `stage` is the progress of the job of the DeployItem. `reporters` are the controllers that have reported Events on
/// the DeployItem. An Event of another deployer is evidence, too.
pub(super) fn of(item: &Value, stage: Stage, reporters: &[String]) -> Option<OtherDeployer> {
    let name = status::deployer(item);
    if !name.is_empty() && name != NAME {
        return Some(OtherDeployer::Deployer(name.to_owned()));
    }
    if let Some(foreign) = foreign_finalizer(item) {
        return Some(OtherDeployer::Finalizer(foreign.to_owned()));
    }
    if let Some(reporter) = reporters.iter().find(|reporter| is_deployer(reporter)) {
        return Some(OtherDeployer::Event(reporter.clone()));
    }
    if stage == Stage::Waiting {
        return None;
    }
    if name.is_empty() {
        return Some(OtherDeployer::Phase(status::text(item, "phase").to_owned()));
    }
    if has_provider_status(item) {
        return Some(OtherDeployer::ProviderStatus);
    }
    FIELDS.iter().find_map(|(field, pointer)| {
        let writers = writers(item, pointer);
        let is_ours = writers.is_empty() || writers.contains(&MANAGER);
        let manager = writers.first().filter(|_| !is_ours)?;
        Some(OtherDeployer::Writer { field, manager: (*manager).to_owned() })
    })
}

/// The status fields that a deployer writes when it picks up a job, and that Landscaper does not write before the job
/// ends. Each entry has the name of the field, and its JSON pointer in an entry of `metadata.managedFields`.
const FIELDS: [(&str, &str); 3] = [
    ("phase", "/fieldsV1/f:status/f:phase"),
    ("lastReconcileTime", "/fieldsV1/f:status/f:lastReconcileTime"),
    ("deployer.name", "/fieldsV1/f:status/f:deployer/f:name"),
];

/// Returns whether a deployer other than the dry-run deployer has deployed a DeployItem. The evidence is that
/// `status.providerStatus` is set, or that another controller has added a finalizer. Returns true even if the dry-run
/// deployer has also processed the DeployItem.
pub fn shows_deployment(item: &Value) -> bool {
    has_provider_status(item) || foreign_finalizer(item).is_some()
}

/// Reports whether the reporter of an Event has the name of a deployer.
///
/// Source: `Name` in Landscaper's `pkg/deployer/{container,helm,manifest,mock}`, and the default name in
/// `pkg/deployer/lib`.
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

/// Returns the names of the field managers that own a field of the DeployItem `item`. `pointer` is a JSON pointer such
/// as `/fieldsV1/f:status/f:phase`. It selects the field in each entry of `metadata.managedFields`.
fn writers<'v>(item: &'v Value, pointer: &str) -> Vec<&'v str> {
    let entries = Metadata::of(item).managed_fields();
    let wrote = |entry: &&Value| entry.pointer(pointer).is_some();
    entries.filter(wrote).filter_map(|entry| entry.get("manager")?.as_str()).collect()
}
