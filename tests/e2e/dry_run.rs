//! Tests of dry runs. Some requests are sent as a user of kubectl would send them, others as Landscaper would.

use portcullis::landscaper::export_path::{Class, Path};
use serde_json::{Value, json};

use crate::Case;
use crate::context::Context;
use crate::kubectl::Output;
use crate::sentences::{accepts, eventually, patches, rejects, warns};
use crate::unreachable_server::UnreachableServer;

/// The tests of this file.
pub const CASES: &[Case] = &[
    ("dry_run::the_example_is_accepted", the_example_is_accepted),
    ("dry_run::every_level_inherits_annotations_from_the_root", every_level_inherits_annotations_from_the_root),
    ("dry_run::restores_annotations_that_landscaper_removes", restores_annotations_that_landscaper_removes),
    ("dry_run::removes_annotations_after_the_dry_run", removes_annotations_after_the_dry_run),
    ("dry_run::denies_items_whose_owner_does_not_exist", denies_items_whose_owner_does_not_exist),
    ("dry_run::deletion_is_not_blocked", deletion_is_not_blocked),
    ("dry_run::without_dry_run_nothing_changes", without_dry_run_nothing_changes),
    ("dry_run::without_a_server_only_roots_can_be_written", without_a_server_only_roots_can_be_written),
    ("dry_run::denies_invalid_annotation_values", denies_invalid_annotation_values),
    ("dry_run::fragments_must_name_their_objects", fragments_must_name_their_objects),
    ("dry_run::exports_need_their_fragments", exports_need_their_fragments),
    ("dry_run::exports_need_a_configuration", exports_need_a_configuration),
    ("dry_run::denies_a_configuration_without_a_dry_run", denies_a_configuration_without_a_dry_run),
    ("dry_run::denies_exports_that_cannot_work", denies_exports_that_cannot_work),
    ("dry_run::denies_dry_runs_of_deployed_items", denies_dry_runs_of_deployed_items),
    ("dry_run::denies_real_runs_during_a_dry_run", denies_real_runs_during_a_dry_run),
    ("dry_run::denies_deletion_of_a_configuration_in_use", denies_deletion_of_a_configuration_in_use),
    (
        "dry_run::warns_about_one_object_that_is_read_from_two_targets",
        warns_about_one_object_that_is_read_from_two_targets,
    ),
    ("dry_run::paths_find_the_same_values_as_kubectl", paths_find_the_same_values_as_kubectl),
];

const EXAMPLE_CONTEXT: &str = include_str!("../../examples/dry-run/context.yaml");
const EXAMPLE_CONFIGURATION: &str = include_str!("../../examples/dry-run/configuration.yaml");
const EXAMPLE_INSTALLATION: &str = include_str!("../../examples/dry-run/installation.yaml");

const CONTEXT: &str = "apiVersion: landscaper.gardener.cloud/v1alpha1\nkind: Context\nmetadata: {name: default}\n";
const DRY_RUN_ANNOTATIONS: &str = "landscaper.gardener.cloud/dry-run: \"true\", landscaper.gardener.cloud/dry-run-configuration: \
                     test-dry-run";
const REAL_RUN_ANNOTATION: &str = "landscaper.gardener.cloud/dry-run: \"false\"";
const DRY_RUN: &str = "/metadata/annotations/landscaper.gardener.cloud~1dry-run";
const CONFIGURATION: &str = "/metadata/annotations/landscaper.gardener.cloud~1dry-run-configuration";

const SECRET: &str =
    "{apiVersion: v1, kind: Secret, metadata: {name: test-secret, namespace: example}, data: {token: x}}";

fn configuration(fragments: &[&str]) -> String {
    let list: String = fragments.iter().map(|fragment| format!("  - {fragment}\n")).collect();
    format!(
        "apiVersion: landscaper.gardener.cloud/v1alpha1\nkind: DryRunConfiguration\nmetadata: {{name: \
         test-dry-run}}\nspec:\n  exports:\n{list}"
    )
}

/// Returns an object of one of Landscaper's kinds as YAML. `annotations` is the content of a YAML mapping. `owner` is
/// an owner reference as YAML, or empty.
fn object(kind: &str, name: &str, annotations: &str, owner: &str, spec: &str) -> String {
    format!(
        "apiVersion: landscaper.gardener.cloud/v1alpha1\nkind: {kind}\nmetadata:\n  name: {name}\n  annotations: \
         {{{annotations}}}\n  ownerReferences: [{owner}]\nspec: {spec}\n"
    )
}

fn installation(name: &str, annotations: &str, owner: &str) -> String {
    object("Installation", name, annotations, owner, "{blueprint: {ref: {resourceName: blueprint}}}")
}

fn item(name: &str, annotations: &str, owner: &str, exports: &str) -> String {
    let spec = format!(
        "{{type: landscaper.gardener.cloud/kubernetes-manifest, config: {{apiVersion: \
         manifest.deployer.landscaper.gardener.cloud/v1alpha2, kind: ProviderConfiguration, exports: {{exports: \
         [{exports}]}}}}}}"
    );
    object("DeployItem", name, annotations, owner, &spec)
}

fn export(path: &str) -> String {
    format!(
        "{{key: test-token, jsonPath: {path}, fromResource: {{apiVersion: v1, kind: Secret, name: test-secret, \
         namespace: example}}}}"
    )
}

/// Returns an owner reference as YAML. It refers to a stored object of the kind `kind` with the name `name`.
fn owner_reference(ctx: &Context, ns: &str, kind: &str, name: &str) -> String {
    let get = ["get", kind, name, "--namespace", ns, "-o", "jsonpath={.metadata.uid}"];
    let uid = ctx.cluster.kubectl().args(get).run().expect_success().stdout;
    owner_reference_with_uid(kind, name, &uid)
}

fn owner_reference_with_uid(kind: &str, name: &str, uid: &str) -> String {
    format!(
        "{{apiVersion: landscaper.gardener.cloud/v1alpha1, kind: {kind}, name: {name}, uid: {uid}, controller: true, \
         blockOwnerDeletion: true}}"
    )
}

fn kubectl(ctx: &Context, ns: &str, args: &[&str]) -> Output {
    ctx.cluster.kubectl().args(["--namespace", ns]).args(args).run()
}

fn in_namespace(yaml: &str, ns: &str) -> String {
    yaml.replace("namespace: cu-example", &format!("namespace: {ns}"))
}

fn create_namespace(ctx: &Context) -> String {
    let ns = ctx.cluster.namespace("dry");
    accepts(ctx, &ns, CONTEXT);
    ns
}

fn the_example_is_accepted(ctx: &Context) {
    let ns = ctx.cluster.namespace("seed-dry");
    for yaml in [EXAMPLE_CONTEXT, EXAMPLE_CONFIGURATION, EXAMPLE_INSTALLATION] {
        accepts(ctx, &ns, &in_namespace(yaml, &ns));
    }
    let output = kubectl(ctx, &ns, &["get", "drc"]).expect_success().stdout;
    assert!(output.contains("Secret") && output.contains("test-secret"), "{output}");
}

/// Creates a root Installation with `annotations`, a sub-installation and an Execution, each after its owner. Returns
/// an owner reference to each of them, in this order.
fn create_chain(ctx: &Context, ns: &str, annotations: &str) -> [String; 3] {
    accepts(ctx, ns, &installation("root", annotations, ""));
    let root = owner_reference(ctx, ns, "Installation", "root");
    accepts(ctx, ns, &installation("sub", "", &root));
    let sub = owner_reference(ctx, ns, "Installation", "sub");
    accepts(ctx, ns, &object("Execution", "sub", "", &sub, "{}"));
    [root, sub, owner_reference(ctx, ns, "Execution", "sub")]
}

fn assert_inherits_annotations(ctx: &Context, ns: &str, yaml: &str) {
    patches(ctx, ns, yaml, &[(DRY_RUN, json!("true")), (CONFIGURATION, json!("test-dry-run"))]);
}

fn every_level_inherits_annotations_from_the_root(ctx: &Context) {
    let ns = create_namespace(ctx);
    accepts(ctx, &ns, &configuration(&[SECRET]));
    let [root, sub, execution] = create_chain(ctx, &ns, DRY_RUN_ANNOTATIONS);
    assert_inherits_annotations(ctx, &ns, &installation("sub", "", &root));
    assert_inherits_annotations(ctx, &ns, &object("Execution", "sub", "", &sub, "{}"));
    assert_inherits_annotations(ctx, &ns, &item("item", "", &execution, &export(".data.token")));
}

fn restores_annotations_that_landscaper_removes(ctx: &Context) {
    let ns = create_namespace(ctx);
    accepts(ctx, &ns, &configuration(&[SECRET]));
    create_chain(ctx, &ns, DRY_RUN_ANNOTATIONS);
    let replace_annotations = r#"[{"op": "replace", "path": "/metadata/annotations", "value": {"a": "b"}}]"#;
    let output =
        kubectl(ctx, &ns, &["patch", "installation", "sub", "--type=json", "-p", replace_annotations, "-o", "json"]);
    let stored: Value = serde_json::from_str(&output.expect_success().stdout).expect("kubectl writes JSON");
    assert_eq!((stored.pointer(DRY_RUN), &stored["metadata"]["annotations"]["a"]), (Some(&json!("true")), &json!("b")));
}

fn removes_annotations_after_the_dry_run(ctx: &Context) {
    let ns = create_namespace(ctx);
    accepts(ctx, &ns, &configuration(&[SECRET]));
    let [_, _, execution] = create_chain(ctx, &ns, DRY_RUN_ANNOTATIONS);
    assert_inherits_annotations(ctx, &ns, &item("item", "", &execution, ""));
    accepts(ctx, &ns, &installation("root", REAL_RUN_ANNOTATION, ""));
    for object in ["installation/sub", "execution/sub", "deployitem/item"] {
        eventually(|| {
            let written = kubectl(ctx, &ns, &["label", "--overwrite", object, "pass=1", "-o", "json"]).expect_success();
            let stored: Value = serde_json::from_str(&written.stdout).expect("kubectl writes JSON");
            let is_gone = stored.pointer(DRY_RUN).is_none() && stored.pointer(CONFIGURATION).is_none();
            // The label is removed again, because kubectl sends no request for a label that is already set.
            kubectl(ctx, &ns, &["label", object, "pass-"]).expect_success();
            is_gone.then_some(())
        });
    }
}

fn denies_items_whose_owner_does_not_exist(ctx: &Context) {
    let ns = create_namespace(ctx);
    let missing_owner = owner_reference_with_uid("Execution", "nobody", "7b5d2f0e-0000-4000-8000-000000000001");
    let expected = ["DR metadata.ownerReferences: the owner, Execution \"nobody\", does not exist", "help:"];
    rejects(ctx, &ns, &item("item", "", &missing_owner, ""), &expected);
    accepts(ctx, &ns, &item("item", "", "", ""));
}

fn deletion_is_not_blocked(ctx: &Context) {
    let ns = create_namespace(ctx);
    let [_, _, execution] = create_chain(ctx, &ns, "");
    accepts(ctx, &ns, &item("item", "", &execution, ""));
    let finalizer = r#"{"metadata": {"finalizers": ["example.org/hold"]}}"#;
    kubectl(ctx, &ns, &["patch", "deployitem", "item", "--type=merge", "-p", finalizer]).expect_success();
    kubectl(ctx, &ns, &["delete", "--wait=false", "installation/root", "installation/sub", "execution/sub"])
        .expect_success();
    let annotate = ["annotate", "deployitem", "item", "landscaper.gardener.cloud/delete-without-uninstall=true"];
    kubectl(ctx, &ns, &annotate).expect_success();
    kubectl(ctx, &ns, &["delete", "--wait=false", "deployitem/item"]).expect_success();
    let remove_finalizers = r#"{"metadata": {"finalizers": null}}"#;
    kubectl(ctx, &ns, &["patch", "deployitem", "item", "--type=merge", "-p", remove_finalizers]).expect_success();
    eventually(|| (!kubectl(ctx, &ns, &["get", "deployitem", "item"]).status.success()).then_some(()));
}

fn without_dry_run_nothing_changes(ctx: &Context) {
    let ns = create_namespace(ctx);
    let [_, _, execution] = create_chain(ctx, &ns, "");
    patches(ctx, &ns, &item("item", "", &execution, ""), &[(DRY_RUN, Value::Null), (CONFIGURATION, Value::Null)]);
}

/// Checks which objects can be written while portcullis does not answer: root Installations can be written, but not the
/// objects that they own. The test registers additional webhooks for its own namespace. No server exists for these
/// webhooks.
fn without_a_server_only_roots_can_be_written(ctx: &Context) {
    let ns = create_namespace(ctx);
    let [root, ..] = create_chain(ctx, &ns, "");
    let registered = UnreachableServer::register(ctx, "mutating", &ns);
    eventually(|| {
        let write = item("probe", "", "", "");
        let apply = ["--namespace", &ns, "apply", "--dry-run=server", "-f", "-"];
        let output = ctx.cluster.kubectl().args(apply).stdin(write).run();
        output.stderr.contains("failed calling webhook \"require.portcullis.dev\"").then_some(())
    });
    accepts(ctx, &ns, &installation("another-root", "", ""));
    accepts(ctx, &ns, &installation("root", REAL_RUN_ANNOTATION, ""));
    let foreign_owner = "{apiVersion: example.org/v1, kind: Installation, name: a, uid: 1-2, controller: true}";
    accepts(ctx, &ns, &installation("of-another-system", "", foreign_owner));
    for below in [installation("another-sub", "", &root), installation("sub", "a: b", &root)] {
        rejects(ctx, &ns, &below, &["failed calling webhook \"require.portcullis.dev\""]);
    }
    drop(registered);
}

fn denies_invalid_annotation_values(ctx: &Context) {
    let ns = create_namespace(ctx);
    let typo = installation("root", "landscaper.gardener.cloud/dry-run: \"True\"", "");
    rejects(
        ctx,
        &ns,
        &typo,
        &["DR001 metadata.annotations[landscaper.gardener.cloud/dry-run]: \"True\" is not a dry run"],
    );
    accepts(ctx, &ns, &installation("root", "landscaper.gardener.cloud/dry-run: \"true\"", ""));
}

fn fragments_must_name_their_objects(ctx: &Context) {
    let ns = create_namespace(ctx);
    let without_namespace = "{apiVersion: v1, kind: Secret, metadata: {name: a}}";
    rejects(ctx, &ns, &configuration(&[without_namespace]), &["DR002 spec.exports[0].metadata.namespace: is missing"]);
    let unknown = "{apiVersion: example.org/v1, kind: Thing, metadata: {name: a}}";
    warns(ctx, &ns, &configuration(&[unknown]), &["DR002", "if kind \"Thing\" is namespaced"]);
    rejects(
        ctx,
        &ns,
        &configuration(&[SECRET, SECRET]),
        &["DR003 spec.exports[1]: is ignored: spec.exports[0] is already a fragment for Secret example/test-secret"],
    );
    rejects(
        ctx,
        &ns,
        &configuration(&["{apiVersion: v1, kind: Secret}"]),
        &["spec.exports[0].metadata", "Required value"],
    );
    accepts(ctx, &ns, &configuration(&[SECRET]));
}

fn exports_need_their_fragments(ctx: &Context) {
    let ns = create_namespace(ctx);
    accepts(ctx, &ns, &configuration(&[SECRET]));
    let wrong = item("item", DRY_RUN_ANNOTATIONS, "", &export(".data.tokn"));
    rejects(ctx, &ns, &wrong, &["DR004 spec.config.exports.exports[0].jsonPath: tokn is not found at character 7"]);
    let missing = item("item", DRY_RUN_ANNOTATIONS, "", &export(".data.token").replace("test-secret", "other"));
    let fragment = r#"{"apiVersion":"v1","kind":"Secret","metadata":{"name":"other","namespace":"example"}}"#;
    rejects(ctx, &ns, &missing, &["DR005", "has no fragment of Secret example/other (v1)", fragment]);
    accepts(ctx, &ns, &item("item", DRY_RUN_ANNOTATIONS, "", &export(".data.token")));
    let other = SECRET.replace("test-secret", "other");
    eventually(|| {
        let apply = ["apply", "--dry-run=server", "-f", "-"];
        let kubectl = ctx.cluster.kubectl().args(["--namespace", &ns]).args(apply);
        let reported = kubectl.stdin(configuration(&[&other])).run().expect_success().stderr;
        reported.contains("DR005 spec.exports: there is no fragment of Secret example/test-secret").then_some(())
    });
}

fn exports_need_a_configuration(ctx: &Context) {
    let ns = create_namespace(ctx);
    let exported = export(".data.token");
    let does_not_exist = "DryRunConfiguration \"test-dry-run\" does not exist";
    warns(ctx, &ns, &installation("root", DRY_RUN_ANNOTATIONS, ""), &["DR006", does_not_exist]);
    rejects(ctx, &ns, &item("item", DRY_RUN_ANNOTATIONS, "", &exported), &["DR006", does_not_exist]);
    let unnamed = item("item", "landscaper.gardener.cloud/dry-run: \"true\"", "", &exported);
    rejects(ctx, &ns, &unnamed, &["DR006", "is missing: this object exports values"]);
    accepts(ctx, &ns, &item("item", "landscaper.gardener.cloud/dry-run: \"true\"", "", ""));
    accepts(ctx, &ns, &configuration(&[SECRET]));
    accepts(ctx, &ns, &item("other", DRY_RUN_ANNOTATIONS, "", &exported));
}

fn denies_a_configuration_without_a_dry_run(ctx: &Context) {
    let ns = create_namespace(ctx);
    accepts(ctx, &ns, &configuration(&[SECRET]));
    let only = "landscaper.gardener.cloud/dry-run-configuration: test-dry-run";
    rejects(ctx, &ns, &installation("root", only, ""), &["DR007", "everything is deployed"]);
    accepts(ctx, &ns, &installation("root", &format!("{REAL_RUN_ANNOTATION}, {only}"), ""));
}

fn denies_exports_that_cannot_work(ctx: &Context) {
    let ns = create_namespace(ctx);
    let braces = item("item", "", "", &export("'{.data.token}'"));
    rejects(ctx, &ns, &braces, &["DR008", "unrecognized character in action", "remove the braces"]);
    let twice = item("item", "", "", &[export(".data.token"), export(".data.user")].join(", "));
    warns(ctx, &ns, &twice, &["DR008", "writes its value to the same place as exports.exports[0]"]);
    accepts(ctx, &ns, &item("other", "", "", &export(".data.token")));
}

fn set_status(ctx: &Context, ns: &str, object: &str, status: &str) {
    let patch = format!("{{\"status\": {status}}}");
    kubectl(ctx, ns, &["patch", object, "--subresource=status", "--type=merge", "-p", &patch]).expect_success();
}

const RUNNING_STATUS: &str = r#"{"phase": "Progressing", "jobID": "b", "observedGeneration": 1,
    "lastReconcileTime": "2026-01-01T12:00:00Z"}"#;
const FINISHED_STATUS: &str = r#"{"phase": "Succeeded", "jobID": "b", "jobIDFinished": "b", "observedGeneration": 1}"#;

/// Repeats `kubectl apply --dry-run=server` for the object `yaml` until the error output contains `words`.
fn wait_until_denied(ctx: &Context, ns: &str, yaml: &str, words: &str) {
    eventually(|| {
        let apply = ["--namespace", ns, "apply", "--dry-run=server", "-f", "-"];
        ctx.cluster.kubectl().args(apply).stdin(yaml).run().stderr.contains(words).then_some(())
    });
}

fn denies_dry_runs_of_deployed_items(ctx: &Context) {
    let ns = create_namespace(ctx);
    let dry = "landscaper.gardener.cloud/dry-run: \"true\"";
    accepts(ctx, &ns, &installation("nothing-below", REAL_RUN_ANNOTATION, ""));
    accepts(ctx, &ns, &installation("nothing-below", dry, ""));
    let [_, _, execution] = create_chain(ctx, &ns, REAL_RUN_ANNOTATION);
    accepts(ctx, &ns, &item("item", "", &execution, ""));
    set_status(ctx, &ns, "deployitem/item", FINISHED_STATUS);
    let words = "DR009 metadata.annotations[landscaper.gardener.cloud/dry-run]: DeployItem \"item\" is deployed";
    wait_until_denied(ctx, &ns, &installation("root", dry, ""), words);
}

fn denies_real_runs_during_a_dry_run(ctx: &Context) {
    let ns = create_namespace(ctx);
    accepts(ctx, &ns, &configuration(&[SECRET]));
    accepts(ctx, &ns, &installation("root", DRY_RUN_ANNOTATIONS, ""));
    set_status(ctx, &ns, "installation/root", RUNNING_STATUS);
    rejects(ctx, &ns, &installation("root", REAL_RUN_ANNOTATION, ""), &["DR009", "its dry run is under way"]);
    set_status(ctx, &ns, "installation/root", FINISHED_STATUS);
    accepts(ctx, &ns, &installation("root", REAL_RUN_ANNOTATION, ""));
}

fn denies_deletion_of_a_configuration_in_use(ctx: &Context) {
    let ns = create_namespace(ctx);
    accepts(ctx, &ns, &configuration(&[SECRET]));
    accepts(ctx, &ns, &item("item", DRY_RUN_ANNOTATIONS, "", &export(".data.token")));
    set_status(ctx, &ns, "deployitem/item", RUNNING_STATUS);
    let delete = ["delete", "--wait=false", "drc", "test-dry-run"];
    eventually(|| {
        let output = kubectl(ctx, &ns, &[&delete[..], &["--dry-run=server"]].concat());
        output
            .stderr
            .contains("DR010 DryRunConfiguration \"test-dry-run\" is used by DeployItem \"item\"")
            .then_some(())
    });
    assert!(!kubectl(ctx, &ns, &delete).status.success());
    set_status(ctx, &ns, "deployitem/item", FINISHED_STATUS);
    kubectl(ctx, &ns, &delete).expect_success();
}

fn warns_about_one_object_that_is_read_from_two_targets(ctx: &Context) {
    let ns = create_namespace(ctx);
    accepts(ctx, &ns, &configuration(&[SECRET]));
    let other = export(".data.token").replace("key: test-token", "key: other, targetName: other-cluster");
    let two_targets = item("item", DRY_RUN_ANNOTATIONS, "", &[export(".data.token"), other].join(", "));
    warns(ctx, &ns, &two_targets, &["DR011", "is read from two targets"]);
}

/// Export paths that both portcullis and kubectl evaluate, to compare the results. If a path finds no value, kubectl
/// succeeds with an empty result, and portcullis returns an error.
const PATHS: &[&str] = &[
    ".data.token",
    ".data.tls\\.crt",
    ".data['token']",
    ".data.missing",
    ".missing.deeper",
    ".list[0]",
    ".list[-1]",
    ".list[1:3]",
    ".list[0:3:2]",
    ".list[9]",
    ".list[1,2]",
    ".list[*]",
    ".items[?(@.name==\"b\")].n",
    ".items[?(@.n>1)].name",
    ".items[?(@.n>=2)].name",
    ".items[?(@.ready)].name",
    ".items[?(@.name=='zzz')].n",
    ".items[*].name",
    ".items[1]['name','n']",
    ".nested.only.*",
    ".nested..deep",
    ".list[x]",
    ".list[0",
    ".items[?(@.name==]",
    ".data.token.x",
    ".kind",
];

fn paths_find_the_same_values_as_kubectl(ctx: &Context) {
    let ns = create_namespace(ctx);
    let fragment = r#"{"apiVersion": "example.org/v1", "kind": "Thing", "metadata": {"name": "a", "namespace": "b"},
        "data": {"token": "x", "tls.crt": "y"}, "list": [10, 20, 30], "nested": {"only": {"deep": 1}},
        "items": [{"name": "a", "n": 1, "ready": true}, {"name": "b", "n": 2}]}"#;
    let object: Value = serde_json::from_str(fragment).expect("the text is JSON");
    accepts(ctx, &ns, &configuration(&[&object.to_string()]));
    for path in PATHS {
        let template = format!("jsonpath-as-json={{.spec.exports[0]{path}}}");
        let theirs = kubectl(ctx, &ns, &["get", "drc", "test-dry-run", "-o", &template]);
        let ours = Path::parse(path).and_then(|path| path.find(&object));
        match (&ours, theirs.status.success()) {
            (Ok(value), true) => {
                let found: Vec<Value> = serde_json::from_str(&theirs.stdout).expect("kubectl writes JSON");
                assert_eq!(found.first(), Some(value), "{path}");
            }
            (Ok(value), false) => panic!("{path}: {value}, but kubectl fails: {theirs}"),
            (Err(error), true) => assert_ne!(error.class(), Class::Parse, "{path}: {error}, but {theirs}"),
            (Err(_), false) => {}
        }
    }
}
