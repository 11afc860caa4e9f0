//! Tests of deletions by Flux and Argo CD: the warnings KZ060 to KZ065 about objects that a new revision no longer
//! renders, the Event about a new revision, `portcullis plan`, and the family GD, which denies deletions until they are
//! approved.

use std::path::Path;
use std::process::Command;

use k8s_openapi::api::events::v1::Event;
use kube::api::{Api, ListParams};
use serde_json::{Value, json};

use crate::Case;
use crate::artifacts::packed;
use crate::context::Context;
use crate::controller_manager::Options;
use crate::delivery::{dry_run, dry_run_until, kustomization, set_source};
use crate::kubectl::Output;
use crate::sentences::{accepts, eventually, warns};
use crate::user::User;
use portcullis::kustomize::delivery::Artifact;

/// The tests of this file.
pub const CASES: &[Case] = &[
    ("plans::deletions_are_warned_about", deletions_are_warned_about),
    ("plans::kustomizations_of_a_source_are_compared", kustomizations_are_compared),
    ("plans::warns_if_the_target_namespace_renames_a_namespace", warns_if_the_target_namespace_renames_a_namespace),
    ("plans::warns_if_common_metadata_prevents_pruning", warns_if_common_metadata_prevents_pruning),
    ("plans::a_new_revision_is_reported_on_the_source_too", a_new_revision_is_reported),
    ("plans::a_plan_lists_the_action_for_each_object", a_plan_lists_the_action_for_each_object),
    ("plans::the_guard_denies_deletions_of_flux_until_they_are_approved", the_guard_denies_deletions_of_flux),
    ("plans::the_guard_counts_objects_that_argo_cd_prunes", the_guard_counts_objects_that_argo_cd_prunes),
    ("plans::the_guard_withholds_a_revision_until_it_is_approved", a_revision_is_withheld),
    ("plans::kustomizations_of_two_sources_are_compared", kustomizations_of_two_sources_are_compared),
];

/// The arguments with which kubectl acts as kustomize-controller. In the test cluster, this user has all permissions.
const FLUX: [&str; 2] = ["--as=system:serviceaccount:flux-system:kustomize-controller", "--as-group=system:masters"];
/// The arguments with which kubectl acts as Argo CD's application controller. In the test cluster, this user has all
/// permissions.
const ARGO_CD: [&str; 2] =
    ["--as=system:serviceaccount:argocd:argocd-application-controller", "--as-group=system:masters"];

/// Returns a ConfigMap as YAML. `ns` is its namespace, which only one test uses. With a shared namespace, several tests
/// would render the same object, and Portcullis would report it, because it compares the objects of all Kustomizations
/// in the cluster.
fn config_map(ns: &str, name: &str) -> String {
    format!("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {name}\n  namespace: {ns}\n")
}

/// Writes `ids` as the inventory into the status of a Kustomization, as kustomize-controller does. `ids` contains the
/// identifiers of the applied objects.
fn set_inventory(ctx: &Context, ns: &str, name: &str, ids: &[String]) {
    let entries: Vec<_> = ids.iter().map(|id| json!({"id": id, "v": "v1"})).collect();
    let status = json!({"status": {"inventory": {"entries": entries}}}).to_string();
    let patch = ["patch", "kustomization.kustomize.toolkit.fluxcd.io", name, "--namespace", ns, "--subresource=status"];
    let patch = ctx.cluster.kubectl().args(patch).args(["--type=merge", "-p", &status]);
    patch.run().expect_success();
}

/// Returns a Kustomization whose source is the GitRepository `fleet`. `spec` contains additional fields for its `spec`.
/// Waits until portcullis can read the files of the source.
fn kustomization_with_readable_tree(ctx: &Context, ns: &str, name: &str, spec: Value) -> Value {
    let mut object = kustomization(name, "fleet", name, &[]);
    object["spec"]
        .as_object_mut()
        .expect("the spec is an object")
        .extend(spec.as_object().expect("the spec is an object").clone());
    eventually(|| Some(dry_run(ctx, ns, &object)).filter(|output| !output.stderr.contains("KZ041")));
    object
}

fn apply(ctx: &Context, ns: &str, object: &Value) {
    let apply = ctx.cluster.kubectl().args(["apply", "--namespace", ns, "-f", "-"]);
    apply.stdin(object.to_string()).run().expect_success();
}

fn deletions_are_warned_about(ctx: &Context) {
    let ns = ctx.cluster.namespace("deletes");
    let files = [("former/b.yaml", config_map(&ns, "b")), ("apps/a.yaml", config_map(&ns, "a"))];
    set_source(ctx, &ns, "fleet", &ctx.artifacts.artifact(&packed(files), "main@sha1:1"));
    let mut apps = kustomization_with_readable_tree(ctx, &ns, "apps", json!({"path": "./former"}));
    accepts(ctx, &ns, &apps.to_string());
    set_inventory(ctx, &ns, "apps", &[format!("{ns}_b__ConfigMap"), "_n__Namespace".to_owned()]);
    accepts(ctx, &ns, &apps.to_string());
    apps["spec"]["path"] = "./apps".into();
    let output = dry_run_until(ctx, &ns, &apps, "KZ061");
    let all = "does not render 2 of the 2 objects that this Kustomization applied";
    let protected = "KZ060 spec.path: revision main@sha1:1 does not render Namespace n";
    assert!(output.stderr.contains(protected) && output.stderr.contains(all), "{output}");
    let mut without_pruning = apps.clone();
    without_pruning["spec"]["prune"] = false.into();
    accepts(ctx, &ns, &without_pruning.to_string());
}

fn kustomizations_are_compared(ctx: &Context) {
    let ns = ctx.cluster.namespace("compares");
    let files = [
        ("former/c.yaml", config_map(&ns, "c")),
        ("apps/a.yaml", config_map(&ns, "a")),
        ("web/b.yaml", config_map(&ns, "b")),
        ("both/kustomization.yaml", "resources: [../apps/a.yaml]\n".to_owned()),
    ];
    set_source(ctx, &ns, "fleet", &ctx.artifacts.artifact(&packed(files), "main@sha1:1"));
    accepts(ctx, &ns, &kustomization_with_readable_tree(ctx, &ns, "web", json!({})).to_string());
    let mut apps = kustomization_with_readable_tree(ctx, &ns, "apps", json!({"path": "./former"}));
    accepts(ctx, &ns, &apps.to_string());
    set_inventory(ctx, &ns, "apps", &[format!("{ns}_a__ConfigMap"), format!("{ns}_b__ConfigMap")]);
    apps["spec"]["path"] = "./apps".into();
    dry_run_until(
        ctx,
        &ns,
        &apps,
        &format!("KZ063 spec.path: revision main@sha1:1 moves ConfigMap {ns}/b to Kustomization {ns}/web"),
    );
    apps["spec"]["dependsOn"] = json!([{"name": "web"}]);
    let answer = dry_run(ctx, &ns, &apps);
    assert!(answer.status.success() && !answer.stderr.contains("KZ06"), "{answer}");
    apps["spec"].as_object_mut().expect("the spec is an object").remove("dependsOn");
    warns(ctx, &ns, &apps.to_string(), &["KZ063"]);
    let both = kustomization_with_readable_tree(ctx, &ns, "both", json!({}));
    dry_run_until(ctx, &ns, &both, &format!("Kustomization {ns}/apps renders ConfigMap {ns}/a too"));
    accepts(ctx, &ns, &kustomization_with_readable_tree(ctx, &ns, "former", json!({})).to_string());
}

fn warns_if_the_target_namespace_renames_a_namespace(ctx: &Context) {
    let ns = ctx.cluster.namespace("target");
    let files = [("apps/n.yaml", "apiVersion: v1\nkind: Namespace\nmetadata: {name: develop-test}\n")];
    set_source(ctx, &ns, "fleet", &ctx.artifacts.artifact(&packed(files), "main@sha1:1"));
    let renames = kustomization_with_readable_tree(ctx, &ns, "apps", json!({"targetNamespace": "develop"}));
    dry_run_until(
        ctx,
        &ns,
        &renames,
        "KZ064 spec.targetNamespace: targetNamespace renames Namespace develop-test to develop",
    );
    accepts(
        ctx,
        &ns,
        &kustomization_with_readable_tree(ctx, &ns, "apps", json!({"targetNamespace": "develop-test"})).to_string(),
    );
}

fn warns_if_common_metadata_prevents_pruning(ctx: &Context) {
    let ns = ctx.cluster.namespace("common");
    set_source(
        ctx,
        &ns,
        "fleet",
        &ctx.artifacts.artifact(&packed([("apps/a.yaml", config_map(&ns, "a"))]), "main@sha1:1"),
    );
    let labels = |labels: Value| {
        kustomization_with_readable_tree(ctx, &ns, "apps", json!({"commonMetadata": {"labels": labels}})).to_string()
    };
    let owner = json!({"kustomize.toolkit.fluxcd.io/name": "other"});
    warns(
        ctx,
        &ns,
        &labels(owner),
        &["KZ065 spec.commonMetadata.labels", "recognizes the objects of this Kustomization"],
    );
    accepts(ctx, &ns, &labels(json!({"kustomize.toolkit.fluxcd.io/name": "apps", "team": "a"})));
}

/// Returns the field `note` of each Event in the namespace `ns` that has the reason `reason` and is about an object of
/// the kind `kind`.
fn event_notes(ctx: &Context, ns: &str, kind: &str, reason: &str) -> Vec<String> {
    let events: Api<Event> = Api::namespaced(ctx.cluster.client(), ns);
    let list = ctx.cluster.block_on(events.list(&ListParams::default())).expect("the API server answers");
    let is_match = |event: &Event| {
        event.reason.as_deref() == Some(reason)
            && event.regarding.as_ref().and_then(|object| object.kind.as_deref()) == Some(kind)
    };
    list.items.into_iter().filter(is_match).filter_map(|event| event.note).collect()
}

fn a_new_revision_is_reported(ctx: &Context) {
    let ns = ctx.cluster.namespace("lenient-events");
    let first = [("apps/a.yaml", config_map(&ns, "a")), ("apps/b.yaml", config_map(&ns, "b"))];
    set_source(ctx, &ns, "fleet", &ctx.artifacts.artifact(&packed(first), "main@sha1:1"));
    accepts(ctx, &ns, &kustomization_with_readable_tree(ctx, &ns, "apps", json!({})).to_string());
    set_inventory(ctx, &ns, "apps", &[format!("{ns}_a__ConfigMap"), format!("{ns}_b__ConfigMap")]);
    let config = tempfile::NamedTempFile::new().expect("a temporary file can be created");
    std::fs::write(config.path(), format!("artifactHosts: [\"{}\"]\n", ctx.artifacts.host()))
        .expect("the file can be written");
    let config = config.path().display().to_string();
    let arguments = ["--config", &config];
    let _manager = Options { arguments: &arguments, ..Options::new(&ctx.cluster, &ns) }.start(&ctx.cluster);
    let second = [("apps/c.yaml", config_map(&ns, "c"))];
    set_source(ctx, &ns, "fleet", &ctx.artifacts.artifact(&packed(second), "main@sha1:2"));
    let words = "KZ061 revision main@sha1:2 does not render 2 of the 2 objects";
    let find_note =
        |kind: &str| event_notes(ctx, &ns, kind, "RiskyRevision").into_iter().find(|note| note.contains(words));
    let of_kustomization = eventually(|| find_note("Kustomization"));
    let of_source = eventually(|| find_note("GitRepository"));
    assert_eq!(of_source, format!("Kustomization {ns}/apps: {of_kustomization}"));
    assert!(!event_notes(ctx, &ns, "Kustomization", "RiskyRevision").iter().any(|note| note.contains("main@sha1:1")));
}

/// The name of a generated ConfigMap before its content changes. [`NEW_HASH`] is its name after the change.
const OLD_HASH: &str = "settings-2428d88g5t";
const NEW_HASH: &str = "settings-thf66bgm55";

/// Runs `portcullis plan` for the Kustomization `apps`, and returns its exit code and output. `source` is the folder or
/// archive with the files of the Flux source. `arguments` are additional arguments.
fn plan(ctx: &Context, ns: &str, source: &Path, arguments: &[&str]) -> (Option<i32>, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_portcullis"));
    command.args(["plan", "kustomization/apps", "--namespace", ns, "--source"]).arg(source);
    command.arg("--kubeconfig").arg(ctx.cluster.kubeconfig(User::Admin)).args(arguments);
    let output = command.output().expect("portcullis runs");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code(), text(&output.stdout) + &text(&output.stderr))
}

fn a_plan_lists_the_action_for_each_object(ctx: &Context) {
    let ns = ctx.cluster.namespace("plans");
    let files = [("apps/a.yaml", config_map(&ns, "a")), ("web/w.yaml", config_map(&ns, "w"))];
    set_source(ctx, &ns, "fleet", &ctx.artifacts.artifact(&packed(files), "main@sha1:1"));
    accepts(ctx, &ns, &kustomization_with_readable_tree(ctx, &ns, "apps", json!({})).to_string());
    accepts(ctx, &ns, &kustomization_with_readable_tree(ctx, &ns, "web", json!({})).to_string());
    ["a", "stale", "excluded", "w", OLD_HASH].iter().for_each(|name| create_owned_config_map(ctx, &ns, name));
    apply(ctx, &ns, &json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "taken"}}));
    let exclude =
        ["annotate", "configmap", "excluded", "kustomize.toolkit.fluxcd.io/prune=disabled", "--namespace", &ns];
    ctx.cluster.kubectl().args(exclude).run().expect_success();
    let ids = ["a", "lost", "stale", "excluded", "absent", "w", OLD_HASH].map(|name| format!("{ns}_{name}__ConfigMap"));
    set_inventory(ctx, &ns, "apps", &ids);

    let folder = tempfile::tempdir().expect("a temporary folder can be created");
    let local_config_map = |name: &str| config_map(&ns, name);
    let skipped = local_config_map("skipped") + "  annotations: {kustomize.toolkit.fluxcd.io/ssa: Ignore}\n";
    let files = [
        ("apps/a.yaml", config_map(&ns, "a")),
        ("apps/new.yaml", local_config_map("new")),
        ("apps/lost.yaml", local_config_map("lost")),
        ("apps/hashed.yaml", local_config_map(NEW_HASH)),
        ("apps/taken.yaml", local_config_map("taken")),
        ("apps/skipped.yaml", skipped),
        ("web/w.yaml", local_config_map("w")),
    ];
    for (path, text) in files {
        let path = folder.path().join(path);
        std::fs::create_dir_all(path.parent().expect("the path has a parent folder"))
            .expect("the folder can be created");
        std::fs::write(path, text).expect("the file can be written");
    }
    let (code, text) = plan(ctx, &ns, folder.path(), &["--exit-code"]);
    assert_eq!(code, Some(1), "{text}");
    let expected = [
        format!("  - delete   ConfigMap {ns}/stale\n"),
        format!("  > move     ConfigMap {ns}/w  (to {ns}/web)\n"),
        format!("  ± replace  ConfigMap {ns}/{OLD_HASH} -> {NEW_HASH}\n"),
        format!("  ~ take     ConfigMap {ns}/taken  (it exists, and has no owner)\n"),
        format!("  = skip     ConfigMap {ns}/skipped  (kustomize.toolkit.fluxcd.io/ssa: Ignore)\n"),
        format!("  = keep     ConfigMap {ns}/excluded  (kustomize.toolkit.fluxcd.io/prune: disabled)\n"),
        format!("  = gone     ConfigMap {ns}/absent\n"),
        format!("  + create   ConfigMap {ns}/new\n"),
        format!("  + create   ConfigMap {ns}/lost  (the inventory lists it, but it does not exist)\n"),
        "Plan: 2 to create, 1 to take over, 1 to replace, 1 to delete, 0 possibly, 1 moved, 1 kept, 1 gone already, 1 skipped, \
         1 applied as before\n"
            .to_owned(),
    ];
    for line in expected {
        assert!(text.contains(&line), "{line} is not in\n{text}");
    }
    let (code, text) = plan(ctx, &ns, folder.path(), &["--output", "json"]);
    let report: Value = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"));
    assert_eq!((code, &report["summary"]["delete"], &report["applied"]), (Some(0), &json!(1), &json!(1)), "{report}");

    let remote_cluster = r#"{"spec": {"kubeConfig": {"secretRef": {"name": "other"}}}}"#;
    let patch =
        ["patch", "kustomization.kustomize.toolkit.fluxcd.io", "apps", "--namespace", &ns, "--type=merge", "-p"];
    ctx.cluster.kubectl().args(patch).args([remote_cluster]).run().expect_success();
    let (_, text) = plan(ctx, &ns, folder.path(), &[]);
    let possible = format!("  ? possible ConfigMap {ns}/stale  (it is in the cluster of spec.kubeConfig)\n");
    assert!(text.contains(&possible), "{text}");

    std::fs::write(folder.path().join("apps/new.yaml"), "a: [\n").expect("the file can be written");
    let (code, text) = plan(ctx, &ns, folder.path(), &[]);
    assert!(code == Some(1) && text.contains("cannot be built, so Flux deletes nothing"), "{text}");
}

/// Creates a ConfigMap with the labels that Flux adds to objects of the Kustomization `apps`.
fn create_owned_config_map(ctx: &Context, ns: &str, name: &str) {
    let labels = json!({"kustomize.toolkit.fluxcd.io/name": "apps", "kustomize.toolkit.fluxcd.io/namespace": ns});
    apply(ctx, ns, &json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "labels": labels}}));
}

fn delete(ctx: &Context, ns: &str, user: [&str; 2], object: [&str; 2]) -> Output {
    ctx.cluster.kubectl().args(["delete", "--namespace", ns, "--wait=false"]).args(user).args(object).run()
}

fn approve(ctx: &Context, ns: &str, object: [&str; 2], value: &str) {
    let annotation = format!("portcullis.dev/approve-deletions={value}");
    let annotate = ctx.cluster.kubectl().args(["annotate", "--overwrite", "--namespace", ns]).args(object);
    annotate.args([annotation]).run().expect_success();
}

fn the_guard_denies_deletions_of_flux(ctx: &Context) {
    let ns = ctx.cluster.namespace("guard");
    let revision = |number: usize| {
        let text = format!(
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: kept, namespace: {ns}, labels: {{n: '{number}'}}}}\n"
        );
        ctx.artifacts.artifact(&packed([("apps/a.yaml", text)]), &format!("main@sha1:{number}"))
    };
    set_source(ctx, &ns, "fleet", &revision(1));
    accepts(ctx, &ns, &kustomization_with_readable_tree(ctx, &ns, "apps", json!({})).to_string());
    let ids =
        |count: usize| (0..count).map(|at| format!("{ns}_c{at}__ConfigMap")).chain([format!("{ns}_kept__ConfigMap")]);
    ["c0", "c1", "c2", "c3", "kept"].iter().for_each(|name| create_owned_config_map(ctx, &ns, name));
    let kustomization = ["kustomization.kustomize.toolkit.fluxcd.io", "apps"];

    set_inventory(ctx, &ns, "apps", &ids(9).collect::<Vec<_>>());
    delete(ctx, &ns, FLUX, ["configmap", "c0"]).expect_success();

    set_inventory(ctx, &ns, "apps", &ids(10).collect::<Vec<_>>());
    let denied = delete(ctx, &ns, FLUX, ["configmap", "c1"]);
    let summary = format!("revision main@sha1:1 of Kustomization {ns}/apps deletes 10 of 11 objects, more than 9");
    for words in ["guard.portcullis.dev", "GD001", &summary, "approve-deletions=main@sha1:1", "(Forbidden)"] {
        assert!(!denied.status.success() && denied.stderr.contains(words), "{words}: {denied}");
    }
    let admin = ["--as=admin", "--as-group=system:masters"];
    delete(ctx, &ns, admin, ["configmap", "c1"]).expect_success();

    approve(ctx, &ns, kustomization, "main@sha1:1");
    delete(ctx, &ns, FLUX, ["configmap", "c2"]).expect_success();
    set_source(ctx, &ns, "fleet", &revision(2));
    let next = delete(ctx, &ns, FLUX, ["configmap", "c3"]);
    assert!(!next.status.success() && next.stderr.contains("revision main@sha1:2"), "{next}");

    // Deletions of objects of a protected kind are denied.
    let claim = json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim",
        "metadata": {"name": "data", "labels": {"kustomize.toolkit.fluxcd.io/name": "apps",
                                               "kustomize.toolkit.fluxcd.io/namespace": ns}},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}});
    apply(ctx, &ns, &claim);
    let denied = delete(ctx, &ns, FLUX, ["persistentvolumeclaim", "data"]);
    assert!(!denied.status.success() && denied.stderr.contains("its kind is protected"), "{denied}");
}

/// Merges `status` into the status of the GitRepository `fleet`, as source-controller does. `arguments` are additional
/// arguments of kubectl. Returns the output of kubectl.
fn write_status(ctx: &Context, ns: &str, status: &Value, arguments: &[&str]) -> Output {
    let patch = json!({"status": status}).to_string();
    let kubectl = ctx.cluster.kubectl().args(["patch", "gitrepository", "fleet", "--namespace", ns]);
    kubectl.args(["--subresource=status", "--type=merge", "-p", &patch]).args(arguments).run()
}

fn artifact_status(artifact: &Artifact) -> Value {
    let Artifact { url, digest, revision } = artifact;
    json!({"artifact": {"url": url, "digest": digest, "revision": revision, "path": "gitrepository/x.tar.gz",
                        "lastUpdateTime": "2026-11-20T12:00:00Z"}})
}

/// Publishes an artifact with the same two requests as source-controller: first the conditions, and then the artifact.
/// Returns the GitRepository `fleet`.
fn publish(ctx: &Context, ns: &str, artifact: &Artifact) -> Value {
    let message = format!("stored artifact for revision '{}'", artifact.revision);
    let condition = |kind: &str| {
        json!({"type": kind, "status": "True", "reason": "Succeeded", "message": message,
               "lastTransitionTime": "2026-11-20T12:00:00Z"})
    };
    let conditions = json!({"conditions": [condition("Ready"), condition("ArtifactInStorage")]});
    write_status(ctx, ns, &conditions, &[]).expect_success();
    write_status(ctx, ns, &artifact_status(artifact), &[]).expect_success();
    get_fleet(ctx, ns)
}

fn get_fleet(ctx: &Context, ns: &str) -> Value {
    let get = ["get", "gitrepository", "fleet", "--namespace", ns, "-o", "json"];
    serde_json::from_str(&ctx.cluster.kubectl().args(get).run().expect_success().stdout).expect("kubectl writes JSON")
}

fn a_revision_is_withheld(ctx: &Context) {
    let ns = ctx.cluster.namespace("held");
    let first = [("apps/a.yaml", config_map(&ns, "a"))];
    set_source(ctx, &ns, "fleet", &ctx.artifacts.artifact(&packed(first), "main@sha1:1"));
    accepts(ctx, &ns, &kustomization_with_readable_tree(ctx, &ns, "apps", json!({})).to_string());
    set_inventory(ctx, &ns, "apps", &[format!("{ns}_a__ConfigMap"), "_n__Namespace".to_owned()]);
    let second = [("apps/a.yaml", format!("{}data: {{a: b}}\n", config_map(&ns, "a")))];
    let second = ctx.artifacts.artifact(&packed(second), "main@sha1:2");
    let command =
        format!("kubectl -n {ns} annotate kustomization apps --overwrite portcullis.dev/approve-deletions=main@sha1:2");
    let words =
        format!("GD002 status.artifact: Kustomization {ns}/apps: revision main@sha1:2 would delete Namespace n");
    // The source has no condition `Ready` in which portcullis can write why it withholds a revision. So portcullis
    // denies the request.
    let denied = eventually(|| {
        let output = write_status(ctx, &ns, &artifact_status(&second), &["--dry-run=server"]);
        Some(output).filter(|output| output.stderr.contains(&words))
    });
    assert!(!denied.status.success() && denied.stderr.contains(&command), "{denied}");

    let withheld = publish(ctx, &ns, &second);
    let ready = &withheld["status"]["conditions"][0];
    let message = ready["message"].as_str().unwrap_or_default();
    assert_eq!(
        (&withheld["status"]["artifact"]["revision"], &ready["reason"]),
        (&json!("main@sha1:1"), &json!("RevisionWithheld"))
    );
    assert!(message.contains(&words) && message.contains(&command), "{message}");

    let config = tempfile::NamedTempFile::new().expect("a temporary file can be created");
    let config = config.path().display().to_string();
    let arguments = ["--config", &config, "--families", "GD,KZ"];
    let _manager = Options { arguments: &arguments, ..Options::new(&ctx.cluster, &ns) }.start(&ctx.cluster);
    eventually(|| {
        event_notes(ctx, &ns, "Kustomization", "RevisionWithheld").into_iter().find(|note| note.contains(&words))
    });
    approve(ctx, &ns, ["kustomization.kustomize.toolkit.fluxcd.io", "apps"], "main@sha1:1");
    assert_eq!(publish(ctx, &ns, &second)["status"]["artifact"]["revision"], "main@sha1:1");
    approve(ctx, &ns, ["kustomization.kustomize.toolkit.fluxcd.io", "apps"], "main@sha1:2");
    let requested = |source: &Value| source["metadata"]["annotations"]["reconcile.fluxcd.io/requestedAt"].is_string();
    eventually(|| Some(get_fleet(ctx, &ns)).filter(requested));
    let published = publish(ctx, &ns, &second);
    assert_eq!(published["status"]["artifact"]["revision"], "main@sha1:2");
    assert_eq!(published["status"]["conditions"][0]["status"], "True");
}

fn kustomizations_of_two_sources_are_compared(ctx: &Context) {
    let ns = ctx.cluster.namespace("two-sources");
    let files = [("former/c.yaml", config_map(&ns, "c")), ("apps/a.yaml", config_map(&ns, "a"))];
    set_source(ctx, &ns, "fleet", &ctx.artifacts.artifact(&packed(files), "main@sha1:1"));
    set_source(ctx, &ns, "web", &ctx.artifacts.artifact(&packed([("web/b.yaml", config_map(&ns, "b"))]), "v2@sha1:2"));
    let source = json!({"sourceRef": {"kind": "GitRepository", "name": "web"}});
    accepts(ctx, &ns, &kustomization_with_readable_tree(ctx, &ns, "web", source).to_string());
    let mut apps = kustomization_with_readable_tree(ctx, &ns, "apps", json!({"path": "./former"}));
    accepts(ctx, &ns, &apps.to_string());
    set_inventory(ctx, &ns, "apps", &[format!("{ns}_a__ConfigMap"), format!("{ns}_b__ConfigMap")]);
    apps["spec"]["path"] = "./apps".into();
    let of = format!("in revision v2@sha1:2 of GitRepository {ns}/web");
    let output = dry_run_until(
        ctx,
        &ns,
        &apps,
        &format!("KZ063 spec.path: revision main@sha1:1 moves ConfigMap {ns}/b to Kustomization"),
    );
    assert!(output.stderr.contains(&of) && output.stderr.contains("if this one applied them last"), "{output}");
    set_source(
        ctx,
        &ns,
        "fleet",
        &ctx.artifacts.artifact(&packed([("apps/b.yaml", config_map(&ns, "b"))]), "main@sha1:3"),
    );
    let output = dry_run_until(
        ctx,
        &ns,
        &apps,
        &format!("KZ062 spec.path: revision main@sha1:3 renders ConfigMap {ns}/b, and Kustomization"),
    );
    assert!(output.stderr.contains(&of), "{output}");
}

fn the_guard_counts_objects_that_argo_cd_prunes(ctx: &Context) {
    let ns = ctx.cluster.namespace("guard-argo");
    let id = |name: &str| json!({"argocd.argoproj.io/tracking-id": format!("{ns}_shop:/ConfigMap:{ns}/{name}")});
    for name in ["a", "b"] {
        apply(
            ctx,
            &ns,
            &json!({"apiVersion": "v1", "kind": "ConfigMap",
                                "metadata": {"name": name, "annotations": id(name)}}),
        );
    }
    let resource = |at: usize| {
        json!({"kind": "ConfigMap", "version": "v1", "namespace": ns, "name": format!("c{at}"),
                                      "requiresPruning": true})
    };
    let application = |count: usize| {
        json!({
            "apiVersion": "argoproj.io/v1alpha1", "kind": "Application", "metadata": {"name": "shop"},
            "spec": {"project": "default", "destination": {"namespace": ns, "server": "x"},
                     "source": {"repoURL": "https://github.com/org/fleet", "path": "apps"}},
            "status": {"operationState": {"startedAt": "2026-11-23T12:00:00Z", "phase": "Running",
                                          "operation": {"sync": {}}},
                       "resources": (0..count).map(resource).collect::<Vec<_>>()},
        })
    };
    apply(ctx, &ns, &application(10));
    let denied = delete(ctx, &ns, ARGO_CD, ["configmap", "a"]);
    let summary = format!("the operation of Application {ns}/shop deletes 10 of 10 objects, more than 9");
    assert!(!denied.status.success() && denied.stderr.contains(&summary), "{denied}");
    approve(ctx, &ns, ["application.argoproj.io", "shop"], "2026-11-23T12:00:01Z");
    delete(ctx, &ns, ARGO_CD, ["configmap", "a"]).expect_success();
    approve(ctx, &ns, ["application.argoproj.io", "shop"], "2026-11-22T12:00:01Z");
    apply(ctx, &ns, &application(9));
    delete(ctx, &ns, ARGO_CD, ["configmap", "b"]).expect_success();
}
