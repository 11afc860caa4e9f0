//! Tests with Flux and the configuration `guard: {hold: source}`. With this configuration, Portcullis stops a revision
//! that would delete too many objects: the Flux source keeps its previous artifact until a user approves the revision.

use serde_json::Value;

use crate::context::{Context, has_condition};
use crate::flux::{
    self, KUSTOMIZATIONS, config_map, kustomization, request_reconciliation, source, wait_until_applied,
};
use crate::guard::{self, DELETED_CONFIG_MAPS, uids};
use crate::system::{Scenario, System};

/// The test system: Flux, and Portcullis with the configuration `guard: {hold: source}`.
pub const SYSTEM: System = System {
    name: "held",
    title: || format!("{}, with the guard at the sources", (flux::SYSTEM.title)()),
    configuration: |fixtures| format!("guard: {{hold: source}}\n{}", (guard::SYSTEM.configuration)(fixtures)),
    reconcile: &["--families", "GD,KZ"],
    scenarios: &[Scenario::new("mass", "a mass deletion is stopped at the source until it is approved", mass)],
    ..guard::SYSTEM
};

/// ID of the rule that keeps a new revision of a Flux source from being applied, if it would delete too many objects.
const RULE: &str = "GD002";

/// Commits a ConfigMap for each name in `names` to the folder `app`, and a ConfigMap with the value `value` to the
/// folder `other`. Returns the commit hash.
fn commit(repository: &crate::git::Repository, names: &[&str], value: &str) -> String {
    let maps = names.iter().map(|name| (format!("app/{name}.yaml"), config_map(name, "one")));
    let files: Vec<_> = maps.chain([("other/other.yaml".to_owned(), config_map("other", value))]).collect();
    repository.commit("main", &files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect::<Vec<_>>())
}

/// Waits until the condition `Ready` of the GitRepository reports that `commit` is withheld. Checks that the message of
/// the condition contains the command that approves the revision, and that the GitRepository still has the artifact of
/// the commit `before`.
#[track_caller]
fn wait_until_withheld(ctx: &Context<'_>, commit: &str, before: &str) {
    let namespace = &ctx.namespace;
    let command = format!(
        "kubectl -n {namespace} annotate kustomization app --overwrite portcullis.dev/approve-deletions=main@sha1:{commit}"
    );
    let words = format!("{RULE} status.artifact: Kustomization {namespace}/app: revision main@sha1:{}", &commit[..12]);
    let is_withheld = |object: &Value| {
        let conditions = object["status"]["conditions"].as_array().cloned().unwrap_or_default();
        let ready = conditions.iter().find(|condition| condition["type"] == "Ready").cloned().unwrap_or_default();
        let message = ready["message"].as_str().unwrap_or_default();
        let deletes = "would delete 5 of 6 objects, more than 3";
        ready["status"] == "False"
            && ready["reason"] == "RevisionWithheld"
            && [&words, &command, deletes].iter().all(|part| message.contains(*part))
    };
    let object = ctx.wait_for("gitrepositories", "app", "withholding the revision", is_withheld);
    assert_eq!(object["status"]["artifact"]["revision"], format!("main@sha1:{before}"));
}

/// For each Kustomization that uses the source, checks that `commit` is the last revision that kustomize-controller
/// attempted and the last one that it applied.
#[track_caller]
fn assert_last_attempted(ctx: &Context<'_>, commit: &str) {
    for name in ["app", "other"] {
        let object = ctx.get("kustomizations", name).expect("the object exists");
        let status = &object["status"];
        let revision = format!("main@sha1:{commit}");
        assert_eq!(
            (&status["lastAttemptedRevision"], &status["lastAppliedRevision"]),
            (&revision.clone().into(), &revision.into())
        );
        assert!(has_condition(&object, "Ready", "True"), "{status}");
    }
}

fn approve(ctx: &Context<'_>, commit: &str) {
    let approval = format!("portcullis.dev/approve-deletions=main@sha1:{commit}");
    ctx.kubectl(&["annotate", "--overwrite", KUSTOMIZATIONS, "app", &approval]);
}

/// Publishes a revision without the ConfigMaps [`DELETED_CONFIG_MAPS`], and waits until Flux has applied it. Returns
/// the commit hash of this revision. `before` is the commit hash of the previous revision. The reconciliation requests
/// of this call have the numbers `number` and `number + 1`, so other calls must use other numbers.
///
/// In a run with portcullis, also checks that the source withholds the revision until the deletions are approved. Until
/// then, the Kustomizations `app` and `other` must keep the previous revision. After the approval, the controller
/// manager must request a reconciliation of the source, because the interval of the source is one hour.
fn delete_many(ctx: &Context<'_>, repository: &crate::git::Repository, before: &str, number: usize) -> String {
    let all: Vec<_> = DELETED_CONFIG_MAPS.into_iter().chain(["kept"]).collect();
    let old = uids(ctx, "configmaps", &all);
    let new = commit(repository, &["kept"], &format!("value {number}"));
    request_reconciliation(ctx, "app", number);
    if ctx.has_webhooks() {
        wait_until_withheld(ctx, &new, before);
        let note = ctx.wait_for_event("Kustomization", "app", "RevisionWithheld", &new[..12])["note"].to_string();
        assert!(note.contains(RULE), "{note}");
        approve(ctx, before);
        request_reconciliation(ctx, "app", number + 1);
        let is_reconciled =
            |object: &Value| object["status"]["lastHandledReconcileAt"].as_str() == Some(&(number + 1).to_string());
        ctx.wait_for("gitrepositories", "app", "reconciled after a wrong approval", is_reconciled);
        wait_until_withheld(ctx, &new, before);
        ctx.wait_until_unchanged();
        assert_last_attempted(ctx, before);
        assert_eq!(uids(ctx, "configmaps", &all), old, "no object may be deleted or recreated");
        approve(ctx, &new);
    }
    ["app", "other"].iter().for_each(|name| wait_until_applied(ctx, name, "main", &new));
    DELETED_CONFIG_MAPS.iter().for_each(|name| ctx.wait_until_gone("configmaps", name));
    assert_eq!(uids(ctx, "configmaps", &["kept"]), old[DELETED_CONFIG_MAPS.len()..]);
    if ctx.has_webhooks() {
        let source = ctx.wait_for("gitrepositories", "app", "ready", |object| has_condition(object, "Ready", "True"));
        let requested = source["metadata"]["annotations"]["reconcile.fluxcd.io/requestedAt"].as_str();
        assert!(
            requested.is_some_and(|time| time.contains('T')),
            "the controller manager must request the reconciliation: {requested:?}"
        );
    }
    new
}

/// Checks that an approval applies to one revision only: the next mass deletion needs another approval.
fn mass(ctx: &Context<'_>) {
    let all: Vec<_> = DELETED_CONFIG_MAPS.into_iter().chain(["kept"]).collect();
    let repository = ctx.testbed().fixtures.git.repository(&ctx.namespace);
    let first = commit(&repository, &all, "one");
    let kustomizations = kustomization("app", "app", "./app", "") + &kustomization("other", "app", "./other", "");
    ctx.apply(&(source("app", &repository, "main") + &kustomizations));
    ["app", "other"].iter().for_each(|name| wait_until_applied(ctx, name, "main", &first));
    delete_many(ctx, &repository, &first, 1);
    ctx.snapshot_of("approved", &["configmaps"]);
    let again = commit(&repository, &all, "again");
    request_reconciliation(ctx, "app", 3);
    wait_until_applied(ctx, "app", "main", &again);
    delete_many(ctx, &repository, &again, 4);
    ctx.snapshot_of("approved again", &["configmaps"]);
}
