//! Reads the status of a DeployItem in dry run, and computes patches of this status. The status shows how far the
//! dry-run deployer has processed the DeployItem. Each patch records the next step, such as a new `status.phase`.

use serde_json::{Value, json};

use super::{Deployer, NAME, RunError, Stage, version};
use crate::admission::Metadata;
use crate::landscaper::deployer::status::Status;

/// Returns the string field `key` of the status of a DeployItem; empty if the field is missing.
pub(super) fn text<'v>(item: &'v Value, key: &str) -> &'v str {
    item.get("status").and_then(|status| status.get(key)?.as_str()).unwrap_or_default()
}

/// Returns the deployer's name from `status.deployer` of a DeployItem. If the name is missing, returns the identity
/// from `status.deployer`. Empty if both are missing.
pub(super) fn deployer(item: &Value) -> &str {
    let of = |key| item.pointer(key).and_then(Value::as_str).filter(|text| !text.is_empty());
    of("/status/deployer/name").or_else(|| of("/status/deployer/identity")).unwrap_or_default()
}

/// The `observedGeneration` that a dry run writes. It never equals the generation of an object, because generations
/// start at 1. With `updateOnChangeOnly`, a deployer skips a DeployItem if the last phase is `Succeeded` and
/// `observedGeneration` equals the generation of the DeployItem. A dry run deploys nothing, so the deployer must not
/// skip the next real run. Source: `reconcilePrivate` in Landscaper's `pkg/deployer/lib/controller.go`.
const NEVER_OBSERVED: i64 = 0;

/// Reports whether the status of a DeployItem claims that the DeployItem was deployed, although a dry run wrote the
/// status last. The claim is an `observedGeneration` other than [`NEVER_OBSERVED`].
///
/// Versions of the dry-run deployer before 0.2 wrote such a status.
pub(super) fn claims_generation(item: &Value) -> bool {
    let observed = item.pointer("/status/observedGeneration").and_then(Value::as_i64).unwrap_or(NEVER_OBSERVED);
    deployer(item) == NAME && observed != NEVER_OBSERVED && stage(item) == Stage::Waiting
}

/// Returns a patch that sets `status.observedGeneration` of a DeployItem to [`NEVER_OBSERVED`]. It corrects a status
/// from an old version of the dry-run deployer, which wrote the current generation, as if it had deployed the
/// DeployItem. Because of this wrong value, another deployer could skip the DeployItem after the dry run.
pub(super) fn retract_claim(item: &Value) -> Value {
    json!({"metadata": {"resourceVersion": version(item)}, "status": {"observedGeneration": NEVER_OBSERVED}})
}

/// Returns the progress of a DeployItem's open job, as `status.phase` shows it. If the phase is empty or is still the
/// final phase of the previous job, the result is [`Stage::Waiting`].
pub(super) fn stage(item: &Value) -> Stage {
    match text(item, "phase") {
        _ if !Status::of(item).phase.is_working() => Stage::Waiting,
        "Init" | "InitDelete" => Stage::Init,
        _ => Stage::Working,
    }
}

/// Returns the patch of a DeployItem's status with which the dry-run deployer picks up a job. `is_deletion` says
/// whether the job deletes the DeployItem, and `now` is the current time.
///
/// The new `lastReconcileTime` is never before the generation time of the job or the old `lastReconcileTime`.
/// Otherwise, if the clock of the dry-run deployer is behind that of Landscaper, the job would look as if no deployer
/// had picked it up.
pub(super) fn pick_up(deployer: &Deployer, item: &Value, is_deletion: bool, now: &str) -> Value {
    let time = [now, text(item, "jobIDGenerationTime"), text(item, "lastReconcileTime")].into_iter().max();
    let (phase, old) = if is_deletion { ("InitDelete", "Deleting") } else { ("Init", "Progressing") };
    let status = json!({
        "phase": phase,
        "lastReconcileTime": time,
        "observedGeneration": NEVER_OBSERVED,
        "deployer": {"identity": deployer.identity, "name": NAME, "version": env!("CARGO_PKG_VERSION")},
        "lastError": null,
        "lastErrors": null,
        "firstError": null,
        "transitionTimes": {"initTime": now, "finishedTime": null},
    });
    patch(deployer, item, status, old)
}

/// Returns a patch that sets `status.phase` of a DeployItem to `phase` while a job is in progress. `phase` is
/// `Progressing` or `Deleting`.
pub(super) fn work(deployer: &Deployer, item: &Value, phase: &str) -> Value {
    patch(deployer, item, json!({"phase": phase}), phase)
}

/// Returns the patch of a DeployItem's status that finishes a job. It sets the final phase, `jobIDFinished` and the
/// result in one write.
///
/// `secret` is the name of the Secret with the exported values, `None` if there are no exported values, or the error of
/// a failed dry run.
pub(super) fn finish(deployer: &Deployer, item: &Value, secret: Result<Option<&str>, &RunError>, now: &str) -> Value {
    let mut status = json!({
        "jobIDFinished": text(item, "jobID"),
        "observedGeneration": NEVER_OBSERVED,
        "transitionTimes": {"finishedTime": now},
    });
    let phase = match secret {
        Ok(secret) => {
            if let Some(name) = secret {
                status["exportRef"] = json!({"name": name, "namespace": Metadata::of(item).namespace()});
            }
            "Succeeded"
        }
        Err(error) => {
            let error = error_entry(error, now);
            status["lastErrors"] = json!([error]);
            status["firstError"] = error.clone();
            status["lastError"] = error;
            "Failed"
        }
    };
    status["phase"] = phase.into();
    patch(deployer, item, status, phase)
}

/// Returns the value of `status.lastError` for a failed dry run, with a code that Landscaper does not treat as
/// temporary.
fn error_entry(error: &RunError, now: &str) -> Value {
    json!({
        "operation": "DryRun",
        "reason": error.reason(),
        "message": error.to_string(),
        "codes": ["ERR_CONFIGURATION_PROBLEM"],
        "lastTransitionTime": now,
        "lastUpdateTime": now,
    })
}

fn patch(deployer: &Deployer, item: &Value, mut status: Value, old_phase: &str) -> Value {
    if deployer.has_old_phase || !text(item, "deployItemPhase").is_empty() {
        status["deployItemPhase"] = old_phase.into();
    }
    json!({"metadata": {"resourceVersion": version(item)}, "status": status})
}
