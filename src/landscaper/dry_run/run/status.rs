//! The status of a DeployItem: how far its job is, and the patches that carry it on.

use serde_json::{Value, json};

use super::{Deployer, NAME, Stage, Trouble, version};
use crate::landscaper::deployer::status::Status;

/// A text of the status, empty where there is none.
pub(super) fn text<'v>(item: &'v Value, key: &str) -> &'v str {
    item.get("status").and_then(|status| status.get(key)?.as_str()).unwrap_or_default()
}

/// Who says that he deploys it, empty where nobody does.
pub(super) fn deployer(item: &Value) -> &str {
    let of = |key| item.pointer(key).and_then(Value::as_str).filter(|text| !text.is_empty());
    of("/status/deployer/name").or_else(|| of("/status/deployer/identity")).unwrap_or_default()
}

/// The `observedGeneration` of a dry run. Generations begin with 1.
///
/// A deployer skips an item with `updateOnChangeOnly` whose last phase is `Succeeded` and whose `observedGeneration` is its
/// generation. A dry run deploys nothing, so the next real run must not be skipped.
///
/// Source: `reconcilePrivate` in Landscaper's `pkg/deployer/lib/controller.go`.
const NEVER_OBSERVED: i64 = 0;

/// Whether the status of an item claims that its present generation was deployed, although a dry run wrote it last.
/// Versions of this deployer before 0.2 wrote such a status.
pub(super) fn claims_generation(item: &Value) -> bool {
    let observed = item.pointer("/status/observedGeneration").and_then(Value::as_i64).unwrap_or(NEVER_OBSERVED);
    deployer(item) == NAME && observed != NEVER_OBSERVED && stage(item) == Stage::Waiting
}

/// Takes the claim of [`claims_generation`] back.
pub(super) fn disclaim(item: &Value) -> Value {
    json!({"metadata": {"resourceVersion": version(item)}, "status": {"observedGeneration": NEVER_OBSERVED}})
}

/// How far the job is. What ended before, ended for the job before.
pub(super) fn stage(item: &Value) -> Stage {
    match text(item, "phase") {
        _ if !Status::of(item).phase.is_working() => Stage::Waiting,
        "Init" | "InitDelete" => Stage::Init,
        _ => Stage::Working,
    }
}

/// Takes a job up. The time is never before the job's, nor does it go back: a clock behind Landscaper's would look as if
/// nobody had taken it up.
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

/// Says that the job is being done.
pub(super) fn work(deployer: &Deployer, item: &Value, phase: &str) -> Value {
    patch(deployer, item, json!({"phase": phase}), phase)
}

/// Ends the job: the phase, that it is finished and what came of it are one write.
pub(super) fn finish(deployer: &Deployer, item: &Value, secret: Result<Option<&str>, &Trouble>, now: &str) -> Value {
    let mut status = json!({
        "jobIDFinished": text(item, "jobID"),
        "observedGeneration": NEVER_OBSERVED,
        "transitionTimes": {"finishedTime": now},
    });
    let phase = match secret {
        Ok(secret) => {
            if let Some(name) = secret {
                status["exportRef"] = json!({"name": name, "namespace": item.pointer("/metadata/namespace")});
            }
            "Succeeded"
        }
        Err(trouble) => {
            let error = error(trouble, now);
            status["lastErrors"] = json!([error]);
            status["firstError"] = error.clone();
            status["lastError"] = error;
            "Failed"
        }
    };
    status["phase"] = phase.into();
    patch(deployer, item, status, phase)
}

/// With a code that Landscaper does not take for something that passes by itself.
fn error(trouble: &Trouble, now: &str) -> Value {
    json!({
        "operation": "DryRun",
        "reason": trouble.reason(),
        "message": trouble.to_string(),
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
