//! Tests with Flux, with all rules at their default levels.

use std::process::Command;

use serde_json::Value;

use crate::context::{Context, has_condition};
use crate::flux::{self, KUSTOMIZATIONS};
use crate::gate;
use crate::system::{Scenario, System};
use crate::user::User;

/// The test system with Flux and default levels. At these levels, portcullis denies no request of Flux.
pub const SYSTEM: System = System {
    name: "flux-defaults",
    title: || format!("{}, at default levels", (flux::SYSTEM.title)()),
    configuration: flux::artifact_hosts,
    is_active: |cluster| gate::is_warned_about(cluster, "/abs", flux::PROBE),
    scenarios: &[
        Scenario::new("broken", "a revision that does not build, and one that does", broken),
        Scenario::new("deletions", "a new path deletes what was applied", deletions),
        Scenario::new("elsewhere", "objects move to a Kustomization of another source", moved_to_another_source),
    ],
    ..flux::SYSTEM
};

/// Number of broken revisions that the test publishes, one after the other. Portcullis must report all but one of them
/// before Flux does. One exception is permitted, because Flux may be faster on a busy machine.
const BROKEN_REVISIONS: usize = 3;

/// Checks that the controller manager writes an Event about the Kustomization for each revision that does not build
/// (issue 18, Flux 6), and that the Event contains the error. For all but one of the revisions, the controller manager
/// must write the Event before Flux reports the error. `portcullis audit` must report the error too. In a test run
/// without portcullis, only Flux reports the error.
fn broken(ctx: &Context<'_>) {
    let mut broken = flux::break_tree(ctx);
    let mut reported_before_flux = usize::from(is_reported(ctx, &broken));
    for _ in 1..BROKEN_REVISIONS {
        broken = flux::break_tree_again(ctx, broken);
        reported_before_flux += usize::from(is_reported(ctx, &broken));
    }
    if ctx.has_webhooks() {
        eprintln!(
            "systems: {reported_before_flux} of {BROKEN_REVISIONS} Events BrokenRevision were written before Flux's own report"
        );
        assert!(
            reported_before_flux + 1 >= BROKEN_REVISIONS,
            "{reported_before_flux} of {BROKEN_REVISIONS} Events were before Flux's own report"
        );
        let found = audit(ctx, &flux::artifact_hosts(&ctx.testbed().fixtures));
        assert!(found.contains("warned     KZ004") && found.contains("missing.yaml"), "{found}");
        let unreachable = audit(ctx, "");
        assert!(unreachable.contains("KZ041") && unreachable.contains("Kustomization app: "), "{unreachable}");
    }
    ctx.wait_for("kustomizations", "app", "not ready: it cannot be built", |object| {
        has_condition(object, "Ready", "False")
    });
    flux::repair(ctx, &broken);
}

/// Checks that an Event of portcullis contains the error of a broken revision. Returns whether portcullis reported the
/// revision before Flux did. In a test run without portcullis, checks nothing and returns false.
fn is_reported(ctx: &Context<'_>, broken: &flux::Broken) -> bool {
    if !ctx.has_webhooks() {
        return false;
    }
    let event = ctx.wait_for_event("Kustomization", "app", "BrokenRevision", &broken.commit[..7]);
    let note = event["note"].as_str().unwrap_or_default();
    assert!(note.contains("missing.yaml"), "{note}");
    flux::is_reported_before_flux(ctx, broken)
}

/// Returns the output of `portcullis audit` about the kustomize trees in the namespace of the scenario.
fn audit(ctx: &Context<'_>, configuration: &str) -> String {
    let file = tempfile::NamedTempFile::new().expect("a temporary file can be created");
    std::fs::write(file.path(), configuration).expect("the file can be written");
    let mut command = Command::new(env!("CARGO_BIN_EXE_portcullis"));
    command.args(["audit", "--rules", "KZ", "--namespace", &ctx.namespace, "--config"]).arg(file.path());
    command.arg("--kubeconfig").arg(ctx.testbed().cluster.kubeconfig(User::Admin));
    let output = command.output().expect("portcullis runs");
    String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned()
}

/// Checks that the rule KZ061 warns if a change of `spec.path` makes Flux delete objects. Also checks that Flux keeps
/// an object that is excluded from pruning.
fn deletions(ctx: &Context<'_>) {
    let repository = ctx.testbed().fixtures.git.repository(&ctx.namespace);
    let files = ["first", "kept", "other"].map(|name| (format!("{name}/{name}.yaml"), flux::config_map(name, "one")));
    let kustomization = "resources: [../first/first.yaml, ../kept/kept.yaml]\n".to_owned();
    let all = files.iter().chain([&("app/kustomization.yaml".to_owned(), kustomization)]).cloned().collect::<Vec<_>>();
    let all: Vec<_> = all.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
    let commit = repository.commit("main", &all);
    ctx.apply(&(flux::source("app", &repository, "main") + &flux::kustomization("app", "app", "./app", "")));
    flux::wait_until_applied(ctx, "app", "main", &commit);
    ctx.kubectl(&["annotate", "configmap", "kept", "kustomize.toolkit.fluxcd.io/prune=disabled"]);
    let output = ctx.apply(&flux::kustomization("app", "app", "./other", ""));
    if ctx.has_webhooks() {
        let warning = "does not render 2 of the 2 objects that this Kustomization applied";
        assert!(output.stderr.contains("KZ061") && output.stderr.contains(warning), "{output}");
    }
    ctx.wait_for("configmaps", "other", "there", |_| true);
    ctx.wait_until_gone("configmaps", "first");
    assert!(ctx.get("configmaps", "kept").is_some(), "an object that is excluded from pruning must stay");
    ctx.snapshot("pruned");
}

/// Returns the UID of a ConfigMap.
#[track_caller]
fn uid(ctx: &Context<'_>, name: &str) -> Value {
    ctx.get("configmaps", name).expect("the object exists")["metadata"]["uid"].clone()
}

/// Makes Flux reconcile the Kustomization `kustomization`. Waits until the labels of the ConfigMap `name` contain
/// `kustomization` as the owner, and returns the ConfigMap. `number` must differ between calls.
#[track_caller]
fn reconcile_until_owner(ctx: &Context<'_>, kustomization: &str, name: &str, number: usize) -> Value {
    let request = format!("reconcile.fluxcd.io/requestedAt={number}");
    ctx.kubectl(&["annotate", "--overwrite", KUSTOMIZATIONS, kustomization, &request]);
    let is_reconciled =
        |object: &Value| object["status"]["lastHandledReconcileAt"].as_str() == Some(&number.to_string());
    ctx.wait_for("kustomizations", kustomization, "reconciled", is_reconciled);
    let is_owned = |object: &Value| object["metadata"]["labels"]["kustomize.toolkit.fluxcd.io/name"] == kustomization;
    ctx.wait_for("configmaps", name, &format!("owned by {kustomization}"), is_owned)
}

/// Checks what Flux does with an object that leaves the tree of a Kustomization, and that portcullis reports it. The
/// object is also in the tree of another Kustomization, which has another source. The owner of the object is the
/// Kustomization that applied it last. Flux deletes the object only if it leaves the tree of its owner.
fn moved_to_another_source(ctx: &Context<'_>) {
    let git = &ctx.testbed().fixtures.git;
    let (from, to) = (git.repository(&ctx.namespace), git.repository(&format!("{}-to", ctx.namespace)));
    let files = |names: &[&str]| -> Vec<(String, String)> {
        names.iter().map(|name| (format!("app/{name}.yaml"), flux::config_map(name, "one"))).collect()
    };
    let commit = |repository: &crate::git::Repository, names: &[&str]| {
        let files = files(names);
        repository.commit("main", &files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect::<Vec<_>>())
    };
    let (first, other) = (commit(&from, &["kept", "one", "two"]), commit(&to, &["one", "two"]));
    ctx.apply(&(flux::source("app", &from, "main") + &flux::kustomization("app", "app", "./app", "")));
    flux::wait_until_applied(ctx, "app", "main", &first);
    let uids = ["one", "two"].map(|name| uid(ctx, name));
    ctx.apply(&(flux::source("web", &to, "main") + &flux::kustomization("web", "web", "./app", "")));
    flux::wait_until_applied(ctx, "web", "main", &other);
    reconcile_until_owner(ctx, "web", "one", 1);
    reconcile_until_owner(ctx, "app", "one", 1);
    assert_eq!(["one", "two"].map(|name| uid(ctx, name)), uids, "the objects must only change their owners");

    let second = commit(&from, &["kept", "two"]);
    flux::request_reconciliation(ctx, "app", 1);
    wait_until_reported(ctx, &second, "KZ062");
    flux::wait_until_applied(ctx, "app", "main", &second);
    ctx.wait_until_gone("configmaps", "one");
    reconcile_until_owner(ctx, "web", "one", 2);
    reconcile_until_owner(ctx, "web", "two", 3);
    assert_ne!(uid(ctx, "one"), uids[0], "the object must have been deleted and created again");

    let third = commit(&from, &["kept"]);
    flux::request_reconciliation(ctx, "app", 2);
    wait_until_reported(ctx, &third, "if this one applied them last, Flux deletes them");
    flux::wait_until_applied(ctx, "app", "main", &third);
    assert_eq!(uid(ctx, "two"), uids[1], "the object must stay, because its new owner applied it last");
    ctx.snapshot_of("moved", &["configmaps"]);
}

/// Waits for the Event in which the controller manager reports the revision `commit`. Checks that the Event contains
/// `words` and names the GitRepository `web`. Does nothing if the scenario runs without portcullis.
fn wait_until_reported(ctx: &Context<'_>, commit: &str, words: &str) {
    if ctx.has_webhooks() {
        let note = ctx.wait_for_event("Kustomization", "app", "RiskyRevision", &commit[..12])["note"].to_string();
        let of = format!("of GitRepository {}/web", ctx.namespace);
        assert!(note.contains(words) && note.contains(&of), "{note}");
    }
}
