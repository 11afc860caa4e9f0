//! Computes what the dry-run deployer must write next for a DeployItem.
//!
//! The dry-run deployer follows Landscaper's contract for deployers. But it does not access targets, does not wait for
//! readiness, and reads exports from the DryRunConfiguration.
//!
//! Landscaper starts a dry run when it requests a job, which is an attempt to process the DeployItem. The dry-run
//! deployer then makes these writes, one after the other:
//!
//! 1. It sets `status.phase` to `Init`.
//! 2. It adds Landscaper's finalizer to the DeployItem, if it is missing.
//! 3. It sets `status.phase` to `Progressing`.
//! 4. It writes a Secret with the exported values, if the DeployItem has exports.
//! 5. It sets `status.phase` to `Succeeded` or `Failed`, and `status.jobIDFinished` to the id of the job.
//!
//! If the DeployItem is being deleted, the dry-run deployer sets `status.phase` to `InitDelete` and then to `Deleting`.
//! After that, it removes the finalizer. If the DeployItem has the annotation `delete-without-uninstall`, the phase
//! `Deleting` is left out.
//!
//! All state of a dry run is in the stored objects. So another process can continue an interrupted dry run.
//!
//! Source: `controller.Reconcile` and `CreateOrUpdateExport` in Landscaper's `pkg/deployer/lib`, in two versions: the
//! current one, which uses only `status.phase`, and the previous one, which reads `status.deployItemPhase`.

mod exports;
mod other_deployer;
mod secret;
mod status;

use serde_json::{Value, json};

use crate::admission::Metadata;
use crate::landscaper::annotations::{self, DELETE_WITHOUT_UNINSTALL};
use crate::landscaper::annotations::{ROUTE, TYPE_ANNOTATION};
use crate::landscaper::deployer::FINALIZER;
use crate::landscaper::deployer::status::{Job, Status};
use crate::landscaper::dry_run_annotations::DryRunAnnotations;

pub use exports::{Configuration, RunError};
pub use other_deployer::{OtherDeployer, shows_deployment};
pub use secret::reference as secret_reference;

/// The name that the dry-run deployer writes into `status.deployer` of a DeployItem. The name does not prove that the
/// DeployItem was never deployed: another deployer may have deployed it before.
pub const NAME: &str = "portcullis.dev/dry-run";
/// The field manager of the dry-run deployer in `metadata.managedFields`.
pub const MANAGER: &str = "portcullis-dry-run-deployer";
/// Default types of DeployItems that the dry-run deployer processes. Portcullis can read the exports of these types.
pub const TYPES: [&str; 2] = ["landscaper.gardener.cloud/kubernetes-manifest", "landscaper.gardener.cloud/helm"];

/// An instance of the dry-run deployer.
#[derive(Debug, Clone)]
pub struct Deployer {
    /// The types of DeployItems that the deployer processes.
    pub types: Vec<String>,
    /// The identity of this instance. It is written into the field `status.deployer.identity` of DeployItems.
    pub identity: String,
    /// Whether the deployer always writes `status.deployItemPhase`, for Landscaper before v0.52. Otherwise, the
    /// deployer only updates this field if the field already has a value.
    pub has_old_phase: bool,
}

/// The inputs of [`Deployer::next`], in addition to the DeployItem.
#[derive(Debug, Clone, Copy)]
pub struct Inputs<'v> {
    /// The DryRunConfiguration that the DeployItem names, or the reason why there is none.
    pub configuration: Configuration<'v>,
    /// The Secret that [`secret_reference`] names for the DeployItem, if it exists.
    pub secret: Option<&'v Value>,
    /// The controllers that have reported Events on the DeployItem since its job was generated.
    pub reporters: &'v [String],
    /// The current time, such as `2026-01-31T12:00:00Z`.
    pub now: &'v str,
}

/// The next write of the dry-run deployer for a DeployItem. Patches are JSON merge patches, with the resourceVersion of
/// the object from which they were computed.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// No write is needed.
    Nothing,
    /// Another deployer processes the DeployItem, so the dry-run deployer does not write.
    Yield(OtherDeployer),
    /// Patches the DeployItem.
    Item(Value),
    /// Patches the status of the DeployItem.
    Status(Value),
    /// Patches the status of the DeployItem, so that its current job ends. A job is an attempt to process the
    /// DeployItem. The first value is the patch. The second value is the outcome of the dry run, for the log and an
    /// Event.
    Finish(Value, Result<(), RunError>),
    /// Creates the Secret with the exported values.
    CreateSecret(Value),
    /// Patches the existing Secret with the exported values.
    Secret(Value),
}

/// The progress of the dry run of a DeployItem, according to its `status.phase`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// No deployer has picked up the job yet.
    Waiting,
    /// A deployer has picked up the job, but does not process it yet.
    Init,
    /// A deployer is processing the job.
    Working,
}

/// Reports whether admission has routed a DeployItem to the dry-run deployer.
pub fn is_routed(item: &Value) -> bool {
    annotations::text(item, TYPE_ANNOTATION) == Some(ROUTE)
}

/// Reports whether a DeployItem has an open job: Landscaper has requested a job, and it is not finished. Callers check
/// this before they read other objects, because most DeployItems have no open job.
pub fn has_job(item: &Value) -> bool {
    let status = Status::of(item);
    status.job() == Job::Open && !status.job.is_empty()
}

/// Reports whether the status of a DeployItem looks as if a real deployment had been made, although a dry run wrote the
/// status. If `updateOnChangeOnly` is set in the DeployItem, its deployer would skip the next real run because of this
/// status.
pub fn claims_deployment(item: &Value) -> bool {
    status::claims_generation(item)
}

impl Deployer {
    /// Reports whether this deployer is responsible for a DeployItem. The DeployItem must be in dry run, and one of
    /// these two conditions must be met: its `spec.type` is one of the types that this deployer processes, or admission
    /// has routed it to the dry-run deployer.
    ///
    /// No other deployer processes a routed DeployItem. Without this deployer, the job of a routed DeployItem would
    /// never end, and the finalizer would never be removed.
    pub fn is_responsible(&self, item: &Value) -> bool {
        DryRunAnnotations::of(item).is_dry_run() && (self.processes(item) || is_routed(item))
    }

    fn processes(&self, item: &Value) -> bool {
        let of = item.pointer("/spec/type").and_then(Value::as_str).unwrap_or_default();
        self.types.iter().any(|held| held == of)
    }

    /// Returns whether the dry-run deployer may have to write a DeployItem: to process an open job, or to correct a
    /// status that an earlier dry run wrote. This check reads no other object.
    pub fn is_wanted(&self, item: &Value) -> bool {
        claims_deployment(item) || self.has_dry_run(item)
    }

    /// Reports whether a DeployItem has an open job that the dry-run deployer must process.
    pub fn has_dry_run(&self, item: &Value) -> bool {
        self.is_responsible(item) && has_job(item)
    }

    /// Reports whether the next write for a DeployItem depends on the DryRunConfiguration and the Secret in [`Inputs`],
    /// so that the caller must read them.
    pub fn reads(&self, item: &Value) -> bool {
        status::stage(item) == Stage::Working && !Metadata::of(item).is_deleting() && has_finalizer(item)
    }

    /// Returns the next write of the dry-run deployer for a DeployItem.
    pub fn next(&self, item: &Value, inputs: &Inputs<'_>) -> Step {
        if claims_deployment(item) {
            return Step::Status(status::retract_claim(item));
        }
        if !self.has_dry_run(item) {
            return Step::Nothing;
        }
        let stage = status::stage(item);
        if let Some(other) = other_deployer::of(item, stage, inputs.reporters) {
            return Step::Yield(other);
        }
        let is_deletion = Metadata::of(item).is_deleting();
        match stage {
            Stage::Waiting => Step::Status(status::pick_up(self, item, is_deletion, inputs.now)),
            _ if is_deletion => self.delete(item),
            _ if !has_finalizer(item) => Step::Item(with_finalizers(item, |finalizers| finalizers.push(FINALIZER))),
            Stage::Init => Step::Status(status::work(self, item, "Progressing")),
            Stage::Working => self.finish(item, inputs),
        }
    }

    /// Returns the next write for a DeployItem that is being deleted. A dry run has deployed nothing, so there is
    /// nothing to remove from the target.
    fn delete(&self, item: &Value) -> Step {
        match status::text(item, "phase") {
            "Deleting" => {}
            "InitDelete" if annotations::is_set(item, DELETE_WITHOUT_UNINSTALL) => {}
            _ => return Step::Status(status::work(self, item, "Deleting")),
        }
        match has_finalizer(item) {
            true => Step::Item(with_finalizers(item, |finalizers| finalizers.retain(|name| *name != FINALIZER))),
            false => Step::Nothing,
        }
    }

    fn finish(&self, item: &Value, inputs: &Inputs<'_>) -> Step {
        let end = |result: Result<Option<&str>, RunError>| {
            let patch = status::finish(self, item, result.as_ref().map(|secret| *secret), inputs.now);
            Step::Finish(patch, result.map(|_| ()))
        };
        if !self.processes(item) {
            let of = item.pointer("/spec/type").and_then(Value::as_str).unwrap_or_default();
            return end(Err(RunError::Type(of.to_owned())));
        }
        let values = match exports::values(item, inputs.configuration) {
            Ok(None) => return end(Ok(None)),
            Ok(Some(values)) => values,
            Err(error) => return end(Err(error)),
        };
        let name = secret::name(item);
        match inputs.secret {
            None => Step::CreateSecret(secret::manifest(item, &name, &values)),
            Some(secret) if !secret::belongs_to(secret, item) => end(Err(RunError::SecretOfOthers(name))),
            Some(secret) if !secret::holds(secret, &values) => Step::Secret(secret::patch(secret, &values)),
            Some(_) => end(Ok(Some(&name))),
        }
    }
}

fn finalizers(item: &Value) -> Vec<&str> {
    Metadata::of(item).finalizers().collect()
}

fn has_finalizer(item: &Value) -> bool {
    finalizers(item).contains(&FINALIZER)
}

/// Returns a JSON merge patch that changes the finalizers of a DeployItem. The patch replaces the whole list. It
/// contains the resourceVersion of `item`, so that the API server rejects the patch if the DeployItem has changed
/// since.
fn with_finalizers<'v>(item: &'v Value, change: impl FnOnce(&mut Vec<&'v str>)) -> Value {
    let mut finalizers = finalizers(item);
    change(&mut finalizers);
    json!({"metadata": {"resourceVersion": version(item), "finalizers": finalizers}})
}

fn version(object: &Value) -> Option<&str> {
    Metadata::of(object).resource_version()
}
