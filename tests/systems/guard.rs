//! Tests with Flux and the rules of the family GD, which deny deletions beyond limits.

use serde_json::Value;

use crate::context::{Context, has_condition};
use crate::flux::{
    self, KUSTOMIZATIONS, config_map, kustomization, request_reconciliation, source, wait_until_applied,
};
use crate::gate;
use crate::git::Repository;
use crate::system::{Kind, Scenario, System};

/// The test system with Flux, the default levels of rules, and limits for deletions.
pub const SYSTEM: System = System {
    name: "guard",
    title: || format!("{}, with the guard of deletions", (flux::SYSTEM.title)()),
    configuration: |fixtures| {
        format!("deletions: {{maxCount: 3, protectedKinds: [Secret]}}\n{}", flux::artifact_hosts(fixtures))
    },
    is_active: |cluster| gate::is_warned_about(cluster, "/abs", flux::PROBE),
    kinds: |namespace| {
        let secrets = Kind::namespaced("v1", "Secret", "secrets");
        (flux::SYSTEM.kinds)(namespace).into_iter().chain([secrets]).collect()
    },
    scenarios: &[
        Scenario {
            denial: Some(RULE),
            ..Scenario::new("mass", "a mass deletion waits for the approval of its revision", mass)
        },
        Scenario {
            denial: Some(RULE),
            ..Scenario::new("protected", "the deletion of a protected kind waits for an approval", protected)
        },
        Scenario::new("within", "a revision deletes as many objects as the guard allows", within),
    ],
    ..flux::SYSTEM
};

/// Name of the scenario in which a revision deletes as many objects as the limit allows.
pub const WITHIN: &str = "within";
/// ID of the rule that denies deletions.
pub const RULE: &str = "GD001";
/// Names of the ConfigMaps that a revision deletes. There are more of them than `maxCount` allows.
pub const DELETED_CONFIG_MAPS: [&str; 5] = ["a", "b", "c", "d", "e"];

/// Commits ConfigMaps with the names in `names`, and the files in `more`. Returns the commit hash.
///
/// If `number` is not 0, also requests an immediate reconciliation by source-controller. `number` is then the value of
/// the annotation `reconcile.fluxcd.io/requestedAt`, so each call needs a different number.
pub fn publish(
    ctx: &Context<'_>,
    repository: &Repository,
    names: &[&str],
    more: &[(&str, &str)],
    number: usize,
) -> String {
    let maps: Vec<_> = names.iter().map(|name| (format!("app/{name}.yaml"), config_map(name, "one"))).collect();
    let maps = maps.iter().map(|(path, text)| (path.as_str(), text.as_str()));
    let files: Vec<_> = maps.chain(more.iter().copied()).collect();
    let commit = repository.commit("main", &files);
    if number > 0 {
        request_reconciliation(ctx, "app", number);
    }
    commit
}

/// Creates a repository with ConfigMaps, and a Flux Kustomization that applies them. Waits until Flux has applied the
/// first revision. `names` are the names of the ConfigMaps. `more` contains additional files of the repository.
///
/// The Kustomization has `force: true`, so Flux recreates objects after some errors. The tests check that Flux does not
/// recreate objects after a denial.
pub fn start_with_applied_tree(ctx: &Context<'_>, names: &[&str], more: &[(&str, &str)]) -> Repository {
    let repository = ctx.testbed().fixtures.git.repository(&ctx.namespace);
    let commit = publish(ctx, &repository, names, more, 0);
    ctx.apply(&(source("app", &repository, "main") + &kustomization("app", "app", "./app", "  force: true\n")));
    wait_until_applied(ctx, "app", "main", &commit);
    repository
}

/// Returns the UIDs of objects. Panics if an object does not exist.
#[track_caller]
pub fn uids(ctx: &Context<'_>, plural: &str, names: &[&str]) -> Vec<Value> {
    let uid = |name: &&str| ctx.get(plural, name).expect("the object exists")["metadata"]["uid"].clone();
    names.iter().map(uid).collect()
}

/// Waits until portcullis has denied the deletions in the revision `commit`. The condition `Ready` of the Kustomization
/// is then `False`, and its message contains `words` and the annotation that approves the deletions. Checks that the
/// message does not look like a conflict or an invalid change, because Flux could then recreate objects.
#[track_caller]
fn wait_until_denied(ctx: &Context<'_>, commit: &str, words: &str) {
    let ready = |object: &Value| -> Option<Value> {
        object["status"]["conditions"].as_array()?.iter().find(|condition| condition["type"] == "Ready").cloned()
    };
    let approval = format!("portcullis.dev/approve-deletions=main@sha1:{commit}");
    let is_denied_with_words = |object: &Value| {
        let message = ready(object).and_then(|ready| ready["message"].as_str().map(str::to_owned)).unwrap_or_default();
        has_condition(object, "Ready", "False") && [RULE, words, &approval].iter().all(|part| message.contains(part))
    };
    let object = ctx.wait_for("kustomizations", "app", "stopped by the guard", is_denied_with_words);
    let condition = ready(&object).expect("the object has the Ready condition");
    assert_eq!(condition["reason"], "PruneFailed", "{condition}");
    let message = condition["message"].as_str().unwrap_or_default().replace(commit, "");
    for word in ["409", "422", "immutable", "Conflict", "Invalid"] {
        assert!(!message.contains(word), "{word}: {message}");
    }
}

/// Approves the deletions of a commit, and waits until Flux has applied the commit.
#[track_caller]
fn approve(ctx: &Context<'_>, commit: &str) {
    let approval = format!("portcullis.dev/approve-deletions=main@sha1:{commit}");
    ctx.kubectl(&["annotate", "--overwrite", KUSTOMIZATIONS, "app", &approval]);
    wait_until_applied(ctx, "app", "main", commit);
}

/// Publishes a revision without the ConfigMaps [`DELETED_CONFIG_MAPS`], and waits until Flux has deleted them. If
/// portcullis is installed, first checks that the revision is denied and that Flux does not delete or recreate any
/// ConfigMap. Then approves the deletions.
fn delete_many(ctx: &Context<'_>, repository: &Repository, number: usize) {
    let all: Vec<_> = DELETED_CONFIG_MAPS.into_iter().chain(["kept"]).collect();
    let before = uids(ctx, "configmaps", &all);
    let commit = publish(ctx, repository, &["kept"], &[], number);
    if ctx.has_webhooks() {
        wait_until_denied(ctx, &commit, "deletes 5 of 6 objects, more than 3");
        assert_eq!(uids(ctx, "configmaps", &all), before, "no object may be deleted or recreated");
        approve(ctx, &commit);
    } else {
        wait_until_applied(ctx, "app", "main", &commit);
    }
    DELETED_CONFIG_MAPS.iter().for_each(|name| ctx.wait_until_gone("configmaps", name));
    assert_eq!(uids(ctx, "configmaps", &["kept"]), before[DELETED_CONFIG_MAPS.len()..]);
}

/// Checks that an approval applies to one revision only: the next mass deletion needs another approval.
fn mass(ctx: &Context<'_>) {
    let all: Vec<_> = DELETED_CONFIG_MAPS.into_iter().chain(["kept"]).collect();
    let repository = start_with_applied_tree(ctx, &all, &[]);
    delete_many(ctx, &repository, 1);
    ctx.snapshot_of("approved", &["configmaps"]);
    let commit = publish(ctx, &repository, &all, &[], 2);
    wait_until_applied(ctx, "app", "main", &commit);
    delete_many(ctx, &repository, 3);
    ctx.snapshot_of("approved again", &["configmaps"]);
}

const SECRET: &str = "apiVersion: v1\nkind: Secret\nmetadata: {name: data}\nstringData: {key: one}\n";

/// Checks that Flux applies the rest of a revision, although the deletion of a protected Secret is denied.
fn protected(ctx: &Context<'_>) {
    let repository = start_with_applied_tree(ctx, &["kept"], &[("app/data.yaml", SECRET)]);
    let before = uids(ctx, "secrets", &["data"]);
    let commit = publish(ctx, &repository, &["kept", "new"], &[], 1);
    if ctx.has_webhooks() {
        wait_until_denied(ctx, &commit, "its kind is protected");
        assert_eq!(uids(ctx, "secrets", &["data"]), before);
        ctx.wait_for("configmaps", "new", "applied before", |_| true);
        approve(ctx, &commit);
    }
    wait_until_applied(ctx, "app", "main", &commit);
    ctx.wait_until_gone("secrets", "data");
    ctx.snapshot_of("approved", &["configmaps", "secrets"]);
}

fn within(ctx: &Context<'_>) {
    let all: Vec<_> = DELETED_CONFIG_MAPS.into_iter().chain(["kept"]).collect();
    let repository = start_with_applied_tree(ctx, &all, &[]);
    let commit = publish(ctx, &repository, &["d", "e", "kept"], &[], 1);
    wait_until_applied(ctx, "app", "main", &commit);
    ["a", "b", "c"].iter().for_each(|name| ctx.wait_until_gone("configmaps", name));
    ctx.snapshot("deleted");
}
