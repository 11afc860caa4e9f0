//! The deployer of dry runs: from a DeployItem as it is stored to the next write, and no further.
//!
//! It keeps the contract of a deployer to the letter, touches no target, waits for no readiness, and reads exports from the
//! DryRunConfiguration. Whatever was written before is seen in what is stored, so a run goes on from wherever the last
//! one was stopped:
//!
//! ```text
//! a job is to be done ─► Init ─► finalizer ─► Progressing ─► export Secret ─► Succeeded or Failed, and the job is finished
//! … of a deletion     ─► InitDelete ─► Deleting ─► the finalizer is taken away
//! ```
//!
//! Source: `controller.Reconcile` and `CreateOrUpdateExport` in Landscaper's `pkg/deployer/lib`, of both generations: the
//! one with `status.phase` alone, and the one before, whose word is `status.deployItemPhase`.

mod exports;
mod rival;
mod secret;
mod status;

use serde_json::{Value, json};

use super::mark::{Mark, ROUTE};
use crate::landscaper::annotations::{self, DELETE_WITHOUT_UNINSTALL};
use crate::landscaper::deployer::status::{Job, Status};
use crate::landscaper::deployer::{FINALIZER, TYPE_ANNOTATION};

pub use exports::{Configuration, Trouble};
pub use rival::{Rival, shows_deployment};
pub use secret::reference as secret_reference;

/// How this deployer calls itself in `status.deployer`. It deploys nothing; whether another deployer has deployed the same
/// item, its status may not show.
pub const NAME: &str = "portcullis.dev/dry-run";
/// Who writes the status, in `metadata.managedFields`.
pub const MANAGER: &str = "portcullis-dry-run-deployer";
/// The types of DeployItems whose exports are known.
pub const TYPES: [&str; 2] = ["landscaper.gardener.cloud/kubernetes-manifest", "landscaper.gardener.cloud/helm"];

/// A deployer.
#[derive(Debug, Clone)]
pub struct Deployer {
    /// The types of DeployItems that it is responsible for.
    pub types: Vec<String>,
    /// Which instance it is.
    pub identity: String,
    /// Whether it writes `status.deployItemPhase` too, for a Landscaper before v0.52; where an item has one, it always does.
    pub has_old_phase: bool,
}

/// What there is besides the item when its next write is decided.
#[derive(Debug, Clone, Copy)]
pub struct Surroundings<'v> {
    /// The DryRunConfiguration that it names.
    pub configuration: Configuration<'v>,
    /// The Secret of its [`secret_reference`], if there is one.
    pub secret: Option<&'v Value>,
    /// Who has reported Events on the item since its job was generated.
    pub reporters: &'v [String],
    /// The time, as `2026-01-31T12:00:00Z`.
    pub now: &'v str,
}

/// The next write. Patches are JSON merge patches that name the resourceVersion of what they were decided on.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// There is nothing to do.
    Nothing,
    /// Another deployer is at work: hands off.
    StepBack(Rival),
    /// A patch of the item.
    Item(Value),
    /// A patch of its status.
    Status(Value),
    /// A patch of its status that ends the job; what it ended with.
    Finish(Value, Result<(), Trouble>),
    /// A Secret to be created.
    CreateSecret(Value),
    /// A patch of the Secret.
    Secret(Value),
}

/// How far a job is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// Nobody has taken it up.
    Waiting,
    /// It is taken up.
    Init,
    /// It is being done.
    Working,
}

/// Whether admission has routed an item past its deployer, to the dry-run deployer.
pub fn is_routed(item: &Value) -> bool {
    annotations::text(item, TYPE_ANNOTATION) == Some(ROUTE)
}

/// Whether an item has a job to be done; most often it has none, and nothing else must be read.
pub fn has_job(item: &Value) -> bool {
    let status = Status::of(item);
    status.job() == Job::Open && !status.job.is_empty()
}

/// Whether the status of an item would make a deployer skip its next real run (`updateOnChangeOnly`), although only a dry
/// run has processed it.
pub fn claims_deployment(item: &Value) -> bool {
    status::claims_generation(item)
}

impl Deployer {
    /// Whether an item is in dry run, and of a type that this deployer processes or routed to it. An item that is routed
    /// here has no other deployer, so that its job would never end and its finalizer would stay.
    pub fn is_responsible(&self, item: &Value) -> bool {
        Mark::of(item).is_dry_run() && (self.processes(item) || is_routed(item))
    }

    fn processes(&self, item: &Value) -> bool {
        let of = item.pointer("/spec/type").and_then(Value::as_str).unwrap_or_default();
        self.types.iter().any(|held| held == of)
    }

    /// Whether there may be something to write, judged by the item alone.
    pub fn is_wanted(&self, item: &Value) -> bool {
        claims_deployment(item) || self.has_dry_run(item)
    }

    /// Whether an item has an open job that is this deployer's.
    pub fn has_dry_run(&self, item: &Value) -> bool {
        self.is_responsible(item) && has_job(item)
    }

    /// Whether the next write depends on more than the item.
    pub fn reads(&self, item: &Value) -> bool {
        status::stage(item) == Stage::Working && !is_going(item) && has_finalizer(item)
    }

    /// The next write for an item.
    pub fn next(&self, item: &Value, surroundings: &Surroundings<'_>) -> Step {
        if claims_deployment(item) {
            return Step::Status(status::disclaim(item));
        }
        if !self.has_dry_run(item) {
            return Step::Nothing;
        }
        let stage = status::stage(item);
        if let Some(rival) = rival::of(item, stage, surroundings.reporters) {
            return Step::StepBack(rival);
        }
        let is_deletion = is_going(item);
        match stage {
            Stage::Waiting => Step::Status(status::pick_up(self, item, is_deletion, surroundings.now)),
            _ if is_deletion => self.delete(item),
            _ if !has_finalizer(item) => Step::Item(with_finalizers(item, |finalizers| finalizers.push(FINALIZER))),
            Stage::Init => Step::Status(status::work(self, item, "Progressing")),
            Stage::Working => self.finish(item, surroundings),
        }
    }

    /// There is nothing on a target to be taken away.
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

    fn finish(&self, item: &Value, surroundings: &Surroundings<'_>) -> Step {
        let end = |result: Result<Option<&str>, Trouble>| {
            let patch = status::finish(self, item, result.as_ref().map(|secret| *secret), surroundings.now);
            Step::Finish(patch, result.map(|_| ()))
        };
        if !self.processes(item) {
            let of = item.pointer("/spec/type").and_then(Value::as_str).unwrap_or_default();
            return end(Err(Trouble::Type(of.to_owned())));
        }
        let values = match exports::values(item, surroundings.configuration) {
            Ok(None) => return end(Ok(None)),
            Ok(Some(values)) => values,
            Err(trouble) => return end(Err(trouble)),
        };
        let name = secret::name(item);
        match surroundings.secret {
            None => Step::CreateSecret(secret::manifest(item, &name, &values)),
            Some(secret) if !secret::belongs_to(secret, item) => end(Err(Trouble::SecretOfOthers(name))),
            Some(secret) if !secret::holds(secret, &values) => Step::Secret(secret::patch(secret, &values)),
            Some(_) => end(Ok(Some(&name))),
        }
    }
}

fn is_going(item: &Value) -> bool {
    item.pointer("/metadata/deletionTimestamp").is_some_and(|at| !at.is_null())
}

fn finalizers(item: &Value) -> Vec<&str> {
    let list = item.pointer("/metadata/finalizers").and_then(Value::as_array);
    list.into_iter().flatten().filter_map(Value::as_str).collect()
}

fn has_finalizer(item: &Value) -> bool {
    finalizers(item).contains(&FINALIZER)
}

/// A list is replaced whole by a merge patch; the resourceVersion sees to it that nothing is lost.
fn with_finalizers<'v>(item: &'v Value, change: impl FnOnce(&mut Vec<&'v str>)) -> Value {
    let mut finalizers = finalizers(item);
    change(&mut finalizers);
    json!({"metadata": {"resourceVersion": version(item), "finalizers": finalizers}})
}

fn version(object: &Value) -> &Value {
    object.pointer("/metadata/resourceVersion").unwrap_or(&Value::Null)
}
