//! Tests the rules of the family GD, which deny deletions beyond limits, with a kustomize-controller before version
//! 1.9. If the deletion of an object is denied, such a controller nevertheless removes the object from its inventory.

use serde_json::Value;

use crate::context::Context;
use crate::flux::{self, KUSTOMIZATIONS, wait_until_applied};
use crate::guard::{self, DELETED_CONFIG_MAPS, RULE, publish, start_with_applied_tree, uids};
use crate::programs;
use crate::system::{Scenario, System};

/// The test system with Flux, an older kustomize-controller, and limits for deletions.
pub const SYSTEM: System = System {
    name: "orphans",
    title: || {
        let version = programs::pin(PIN).version().trim_start_matches('v');
        format!("Flux (kustomize-controller {version}), with the guard of deletions")
    },
    pins: &[flux::SOURCE_PIN, PIN],
    start: |cluster, fixtures| flux::start_with(cluster, fixtures, PIN, &[]),
    scenarios: &[Scenario {
        denial: Some(RULE),
        ..Scenario::new("mass", "objects of a denied mass deletion are forgotten", mass)
    }],
    ..guard::SYSTEM
};

const PIN: &str = "flux-kustomize-controller-1.7";

/// Checks that an approval has no effect if the mass deletion was denied before. Although the deletion was denied, the
/// controller has removed the objects from its inventory. So it does not try to delete them again, and a user must
/// delete them.
fn mass(ctx: &Context<'_>) {
    let all: Vec<_> = DELETED_CONFIG_MAPS.into_iter().chain(["kept"]).collect();
    let repository = start_with_applied_tree(ctx, &all, &[]);
    let since = resource_version(ctx);
    let before = uids(ctx, "configmaps", &all);
    let commit = publish(ctx, &repository, &["kept"], &[], 1);
    wait_until_applied(ctx, "app", "main", &commit);
    if ctx.has_webhooks() {
        let denied = |object: &Value| condition(object).is_some_and(|ready| ready["reason"] == "PruneFailed");
        let history = ctx.history("kustomizations", "app", &since);
        let message = history.iter().filter(|object| denied(object)).find_map(condition).map(Value::to_string);
        assert!(message.as_ref().is_some_and(|message| message.contains(RULE)), "{message:?}");
        assert_eq!(inventory(ctx), 1, "the inventory must not contain the other objects any more");
        assert_eq!(uids(ctx, "configmaps", &all), before, "no object may be deleted or recreated");
        let approval = format!("portcullis.dev/approve-deletions=main@sha1:{commit}");
        ctx.kubectl(&["annotate", KUSTOMIZATIONS, "app", &approval, "reconcile.fluxcd.io/requestedAt=1"]);
        let is_reconciled = |object: &Value| object["status"]["lastHandledReconcileAt"] == "1";
        ctx.wait_for("kustomizations", "app", "reconciled after the approval", is_reconciled);
        assert_eq!(uids(ctx, "configmaps", &all), before, "an approval after the denial must have no effect");
        ctx.kubectl(&[&["delete", "configmap"], &DELETED_CONFIG_MAPS[..]].concat());
    }
    DELETED_CONFIG_MAPS.iter().for_each(|name| ctx.wait_until_gone("configmaps", name));
    ctx.snapshot_of("deleted", &["configmaps"]);
}

fn resource_version(ctx: &Context<'_>) -> String {
    let object = ctx.get("kustomizations", "app").expect("the object exists");
    object["metadata"]["resourceVersion"].as_str().unwrap_or_default().to_owned()
}

fn condition(object: &Value) -> Option<&Value> {
    object["status"]["conditions"].as_array()?.iter().find(|condition| condition["type"] == "Ready")
}

/// Returns the number of objects in the inventory of the Kustomization.
fn inventory(ctx: &Context<'_>) -> usize {
    let object = ctx.get("kustomizations", "app").expect("the object exists");
    object["status"]["inventory"]["entries"].as_array().map_or(0, Vec::len)
}
