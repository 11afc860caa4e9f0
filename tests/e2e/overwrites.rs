//! Tests of the rules and the mutator for ComponentVersionOverwrites. The tests apply and delete objects with kubectl,
//! as a user does.

use std::process::Command;

use serde_json::{Value, json};

use crate::Case;
use crate::context::Context;
use crate::kubectl::Output;
use crate::sentences::{accepts, eventually, patches, rejects, warns};
use crate::unreachable_server::UnreachableServer;
use crate::user::User;

/// The tests of this file.
pub const CASES: &[Case] = &[
    ("overwrites::applies_the_example", applies_the_example),
    ("overwrites::denies_undecodable_overwrites", denies_undecodable_overwrites),
    ("overwrites::warns_about_unreachable_entries", warns_about_unreachable_entries),
    ("overwrites::warns_about_substitutions_without_effect", warns_about_substitutions_without_effect),
    ("overwrites::warns_about_sources_that_match_everything", warns_about_sources_that_match_everything),
    ("overwrites::warns_about_names_of_missing_objects", warns_about_names_of_missing_objects),
    ("overwrites::without_a_server_default_contexts_can_be_written", without_a_server_default_contexts_can_be_written),
    ("overwrites::denies_deletion_of_overwrites_in_use", denies_deletion_of_overwrites_in_use),
    ("overwrites::denies_deletion_of_a_context_in_use", denies_deletion_of_a_context_in_use),
    (
        "overwrites::context_and_overwrites_can_be_deleted_in_one_command",
        context_and_overwrites_can_be_deleted_in_one_command,
    ),
    ("overwrites::deletion_of_a_namespace_is_not_denied", deletion_of_a_namespace_is_not_denied),
    ("overwrites::a_change_names_the_affected_installations", a_change_names_the_affected_installations),
    ("overwrites::warns_while_the_context_is_being_deleted", warns_while_the_context_is_being_deleted),
    ("overwrites::explain_reads_the_cluster", explain_reads_the_cluster),
    ("overwrites::removes_annotations_when_nothing_is_overwritten", removes_annotations_when_nothing_is_overwritten),
];

const PATCH: &str = "/metadata/annotations/portcullis.dev~1overwrite-patch";
const SOURCE: &str = "/metadata/annotations/portcullis.dev~1overwrite-source";

const EXAMPLE_CONTEXT: &str = include_str!("../../examples/landscaper/context.yaml");
const EXAMPLE_OVERWRITES: &str = include_str!("../../examples/landscaper/overwrites.yaml");
const EXAMPLE_INSTALLATION: &str = include_str!("../../examples/landscaper/installation.yaml");

const CONTEXT: &str = "apiVersion: landscaper.gardener.cloud/v1alpha1
kind: Context
metadata: {name: default}
componentVersionOverwrites: my-overwrites
";
const CONTEXT_WITHOUT_OVERWRITES: &str = "apiVersion: landscaper.gardener.cloud/v1alpha1
kind: Context
metadata: {name: default}
";
const INSTALLATION: &str = "apiVersion: landscaper.gardener.cloud/v1alpha1
kind: Installation
metadata: {name: server}
spec:
  componentDescriptor: {ref: {componentName: example.org/server, version: v1.0.0, repositoryContext: {type: x}}}
  blueprint: {ref: {resourceName: blueprint}}
";

/// Returns the YAML of the ComponentVersionOverwrites `my-overwrites`. `entries` is the YAML of the field `overwrites`.
fn overwrites(entries: &str) -> String {
    format!(
        "apiVersion: landscaper.gardener.cloud/v1alpha1\nkind: ComponentVersionOverwrites\nmetadata: {{name: \
         my-overwrites}}\noverwrites:\n{entries}"
    )
}

fn to_version(version: &str) -> String {
    overwrites(&format!("- source: {{componentName: example.org/server}}\n  substitution: {{version: {version}}}\n"))
}

fn in_namespace(yaml: &str, namespace: &str) -> String {
    yaml.replace("namespace: my-namespace", &format!("namespace: {namespace}"))
}

fn delete(ctx: &Context, namespace: &str, objects: &[&str]) -> Output {
    ctx.cluster.kubectl().args(["delete", "--wait=false", "--namespace", namespace]).args(objects).run()
}

fn applies_the_example(ctx: &Context) {
    let ns = ctx.cluster.namespace("seed");
    accepts(ctx, &ns, &in_namespace(EXAMPLE_OVERWRITES, &ns));
    accepts(ctx, &ns, &in_namespace(EXAMPLE_CONTEXT, &ns));
    let installation = in_namespace(EXAMPLE_INSTALLATION, &ns);
    let output = ctx.cluster.kubectl().args(["apply", "-f", "-"]).stdin(&installation).run().expect_success();
    assert_eq!(output.stdout, "installation.landscaper.gardener.cloud/server created\n", "{output}");
    assert_eq!(
        output.stderr,
        "Warning: component overwritten: repositoryContext \
         eu.gcr.io/gardener-project/landscaper/tutorials/components -> example.org/my-own-registry/components \
         (overwrites[0] of my-overwrites)\n\
         Warning: component overwritten: componentName github.com/gardener/landscaper/echo-server -> \
         my-own-echo-server (overwrites[0] of my-overwrites)\n",
        "{output}"
    );
    let stored = stored(ctx, &ns);
    let patch: Value = annotation_json(&stored, PATCH);
    let reference = "/spec/componentDescriptor/ref";
    let context = |url: &str| json!({"baseUrl": url, "type": "ociRegistry"});
    let old = context("eu.gcr.io/gardener-project/landscaper/tutorials/components");
    let new = context("example.org/my-own-registry/components");
    assert_eq!(
        patch,
        json!([
            {"op": "test", "path": format!("{reference}/repositoryContext"), "value": old},
            {"op": "replace", "path": format!("{reference}/repositoryContext"), "value": new},
            {"op": "test", "path": format!("{reference}/componentName"),
             "value": "github.com/gardener/landscaper/echo-server"},
            {"op": "replace", "path": format!("{reference}/componentName"), "value": "my-own-echo-server"},
        ])
    );
    let source: Value = annotation_json(&stored, SOURCE);
    assert_eq!((&source["context"], &source["overwrites"]), (&json!("default"), &json!("my-overwrites")));
    assert_eq!((&source["entries"], &source["generation"]), (&json!([0]), &json!(1)));
    assert_eq!(stored.pointer(&format!("{reference}/version")), Some(&json!("v0.2.0")));
    assert_eq!(stored.pointer(&format!("{reference}/componentName")), source.pointer("/original/componentName"));
}

fn stored(ctx: &Context, namespace: &str) -> Value {
    let get = ["get", "installation", "server", "--namespace", namespace, "-o", "json"];
    let output = ctx.cluster.kubectl().args(get).run().expect_success();
    serde_json::from_str(&output.stdout).expect("kubectl writes JSON when asked to")
}

fn annotation_json(object: &Value, pointer: &str) -> Value {
    let text = object.pointer(pointer).and_then(Value::as_str).expect("the object has the annotation");
    serde_json::from_str(text).expect("the annotation holds JSON")
}

fn denies_undecodable_overwrites(ctx: &Context) {
    let ns = ctx.cluster.namespace("ow001");
    let yaml = overwrites("- source: {componentName: a}\n  substitution: {repositoryContext: example.org/x}\n");
    let apply = ["apply", "--namespace", &ns, "-f", "-"];
    let output = ctx.cluster.kubectl().args(apply).stdin(&yaml).run();
    assert!(!output.status.success(), "{output}");
    assert_eq!(
        output.stderr,
        "Error from server (Forbidden): error when creating \"STDIN\": admission webhook \"validate.portcullis.dev\" \
         denied the request: \nOW001 overwrites[0].substitution.repositoryContext: expected an object, found a \
         string: Landscaper cannot decode this, and fails every Installation that uses it\n  allowed: an object\n  \
         help: write an object, such as {type: ociRegistry, baseUrl: …}\n",
        "{output}"
    );
    rejects(
        ctx,
        &ns,
        &format!("{CONTEXT_WITHOUT_OVERWRITES}repositoryContext: [a]\n"),
        &["OW001 repositoryContext: expected"],
    );
    rejects(
        ctx,
        &ns,
        &format!("{CONTEXT_WITHOUT_OVERWRITES}repositoryContext: {{type: 5}}\n"),
        &["OW001 repositoryContext.type"],
    );
    let good = overwrites("- source: {componentName: a}\n  substitution: {repositoryContext: {type: x}}\n");
    accepts(ctx, &ns, &good);
    rejects(ctx, &ns, &yaml, &["error when applying patch", "OW001"]);
    accepts(ctx, &ns, &format!("{CONTEXT_WITHOUT_OVERWRITES}repositoryContext: {{type: x}}\n"));
}

fn warns_about_unreachable_entries(ctx: &Context) {
    let ns = ctx.cluster.namespace("ow002");
    let general = "- source: {componentName: a}\n  substitution: {version: v2}\n";
    let special = "- source: {componentName: a, version: v1}\n  substitution: {version: v1.0.1}\n";
    warns(ctx, &ns, &overwrites(&format!("{general}{special}")), &["OW002 overwrites[1]: never takes effect"]);
    accepts(ctx, &ns, &overwrites(&format!("{special}{general}")));
}

fn warns_about_substitutions_without_effect(ctx: &Context) {
    let ns = ctx.cluster.namespace("ow003");
    let nothing = "- source: {componentName: a}\n  substitution: {}\n";
    warns(ctx, &ns, &overwrites(nothing), &["OW003 overwrites[0].substitution: sets nothing"]);
    let same = "- source: {componentName: a}\n  substitution: {componentName: a, version: v2}\n";
    warns(
        ctx,
        &ns,
        &overwrites(same),
        &["OW003 overwrites[0].substitution.componentName: sets the value of the source"],
    );
    accepts(ctx, &ns, &overwrites("- source: {componentName: a}\n  substitution: {version: v2}\n"));
}

fn warns_about_sources_that_match_everything(ctx: &Context) {
    let ns = ctx.cluster.namespace("ow004");
    warns(ctx, &ns, &overwrites("- source: {}\n  substitution: {version: v2}\n"), &["OW004 overwrites[0].source"]);
    let empty = "- source: {componentName: \"\"}\n  substitution: {version: v2}\n";
    warns(ctx, &ns, &overwrites(empty), &["OW004", "an empty string means any value"]);
    accepts(ctx, &ns, &overwrites("- source: {componentName: a}\n  substitution: {version: v2}\n"));
}

fn warns_about_names_of_missing_objects(ctx: &Context) {
    let ns = ctx.cluster.namespace("ow005");
    let message = format!(
        "OW005 componentVersionOverwrites: ComponentVersionOverwrites \"my-overwrites\" do not exist in namespace {ns}"
    );
    warns(ctx, &ns, CONTEXT, &[&message]);
    let elsewhere = INSTALLATION.replace("spec:\n", "spec:\n  context: other\n");
    warns(ctx, &ns, &elsewhere, &["OW005 spec.context: Context \"other\" does not exist"]);
    let here = INSTALLATION.replace("name: server", "name: here");
    warns(
        ctx,
        &ns,
        &here,
        &["OW005 spec.context: ComponentVersionOverwrites \"my-overwrites\", which Context \"default\" names"],
    );
    // The objects are applied in quick succession. Portcullis reads objects from the API server that the catalog does
    // not contain yet.
    let ns = ctx.cluster.namespace("ow005");
    accepts(ctx, &ns, &format!("{}---\n{CONTEXT}", to_version("v1.0.0").replace("example.org/server", "other")));
    accepts(ctx, &ns, INSTALLATION);
}

/// Checks that default Contexts without overwrites can be written while portcullis does not answer. Otherwise,
/// Landscaper's context controller would retry the denied write of a default Context every 40 ms.
fn without_a_server_default_contexts_can_be_written(ctx: &Context) {
    let ns = ctx.cluster.namespace("outage");
    let registered = UnreachableServer::register(ctx, "validating", &ns);
    let is_refused = |yaml: &str| {
        let apply = ["--namespace", &ns, "apply", "--dry-run=server", "-f", "-"];
        let output = ctx.cluster.kubectl().args(apply).stdin(yaml).run();
        output.stderr.contains("failed calling webhook \"validate.portcullis.dev\"")
    };
    eventually(|| is_refused(CONTEXT).then_some(()));
    let registry =
        format!("{CONTEXT_WITHOUT_OVERWRITES}repositoryContext: {{type: ociRegistry, baseUrl: example.org}}\n");
    for yaml in [CONTEXT_WITHOUT_OVERWRITES, &registry] {
        accepts(ctx, &ns, yaml);
    }
    assert!(is_refused(CONTEXT), "an update that names overwrites must be denied");
    // The running portcullis also denies this Context, because of rule OW001. The API server returns only the first
    // denial, so retries are needed.
    let undecodable = format!("{CONTEXT_WITHOUT_OVERWRITES}repositoryContext: example.org\n");
    eventually(|| is_refused(&undecodable).then_some(()));
    // A deletion is never denied.
    delete(ctx, &ns, &["context.landscaper.gardener.cloud/default"]).expect_success();
    drop(registered);
}

fn denies_deletion_of_overwrites_in_use(ctx: &Context) {
    let ns = ctx.cluster.namespace("ow006");
    accepts(ctx, &ns, &to_version("v2.0.0"));
    accepts(ctx, &ns, CONTEXT);
    let denied = eventually(|| {
        let output = delete(ctx, &ns, &["cvo/my-overwrites", "--dry-run=server"]);
        (!output.status.success()).then_some(output)
    });
    let expected = "admission webhook \"advise.portcullis.dev\" denied the request: \nOW006 ComponentVersionOverwrites \
                    \"my-overwrites\" is still used by Context \"default\"\n  help: remove \
                    componentVersionOverwrites from that Context first\n";
    assert!(denied.stderr.ends_with(expected), "{denied}");
    let output = delete(ctx, &ns, &["cvo/my-overwrites"]);
    assert!(!output.status.success(), "{output}");
    accepts(ctx, &ns, CONTEXT_WITHOUT_OVERWRITES);
    delete(ctx, &ns, &["cvo/my-overwrites"]).expect_success();
}

fn denies_deletion_of_a_context_in_use(ctx: &Context) {
    let ns = ctx.cluster.namespace("ow006");
    accepts(ctx, &ns, CONTEXT_WITHOUT_OVERWRITES);
    accepts(ctx, &ns, INSTALLATION);
    let denied = eventually(|| {
        let output = delete(ctx, &ns, &["context.landscaper.gardener.cloud/default", "--dry-run=server"]);
        (!output.status.success()).then_some(output)
    });
    assert!(denied.stderr.contains("OW006 Context \"default\" is still used by Installation \"server\""), "{denied}");
    delete(ctx, &ns, &["installation/server"]).expect_success();
    delete(ctx, &ns, &["context.landscaper.gardener.cloud/default"]).expect_success();
}

/// Checks that a Context can be deleted together with its overwrites. The catalog may still contain the deleted
/// Context. So portcullis reads the Context from the API server before it denies the deletion of the overwrites.
fn context_and_overwrites_can_be_deleted_in_one_command(ctx: &Context) {
    for _ in 0..5 {
        let ns = ctx.cluster.namespace("ow006");
        accepts(ctx, &ns, &to_version("v2.0.0"));
        accepts(ctx, &ns, CONTEXT);
        delete(ctx, &ns, &["context.landscaper.gardener.cloud/default", "cvo/my-overwrites"]).expect_success();
    }
}

/// Checks that the objects of a namespace can be deleted by the namespace controller, and by any user while the
/// namespace is being deleted. The cluster has no namespace controller, so the test impersonates it.
fn deletion_of_a_namespace_is_not_denied(ctx: &Context) {
    let ns = ctx.cluster.namespace("ow006");
    accepts(ctx, &ns, &to_version("v2.0.0"));
    accepts(ctx, &ns, CONTEXT);
    accepts_with_warnings(ctx, &ns, INSTALLATION);
    let namespace_controller = "--as=system:serviceaccount:kube-system:namespace-controller";
    let output = delete(ctx, &ns, &["cvo/my-overwrites", "--dry-run=server"]);
    assert!(!output.status.success() || output.stderr.is_empty(), "{output}");
    delete(ctx, &ns, &["cvo/my-overwrites", "--dry-run=server", namespace_controller]).expect_success();
    ctx.cluster.kubectl().args(["delete", "--wait=false", "namespace", &ns]).run().expect_success();
    let everything = ["cvo/my-overwrites", "context.landscaper.gardener.cloud/default", "installation/server"];
    delete(ctx, &ns, &everything).expect_success();
}

fn accepts_with_warnings(ctx: &Context, namespace: &str, yaml: &str) {
    ctx.cluster.kubectl().args(["apply", "--namespace", namespace, "-f", "-"]).stdin(yaml).run().expect_success();
}

fn a_change_names_the_affected_installations(ctx: &Context) {
    let ns = ctx.cluster.namespace("ow007");
    accepts(ctx, &ns, &to_version("v1.0.0"));
    accepts(ctx, &ns, CONTEXT);
    accepts(ctx, &ns, INSTALLATION);
    let change = to_version("v2.0.0");
    let apply = ["apply", "--dry-run=server", "--namespace", &ns, "-f", "-"];
    let warned = eventually(|| {
        let output = ctx.cluster.kubectl().args(apply).stdin(&change).run().expect_success();
        output.stderr.contains("OW007").then_some(output)
    });
    assert_eq!(warned.stderr, "Warning: OW007 overwrites: 1 Installation gets another component: server\n");
    accepts(ctx, &ns, &to_version("v3.0.0").replace("example.org/server", "example.org/other"));
    accepts_with_warnings(ctx, &ns, &change);
    let warned = eventually(|| {
        let output = ctx.cluster.kubectl().args(apply).stdin(CONTEXT_WITHOUT_OVERWRITES).run().expect_success();
        output.stderr.contains("OW007").then_some(output)
    });
    let expected = "Warning: OW007 componentVersionOverwrites: 1 Installation gets another component: server\n";
    assert_eq!(warned.stderr, expected);
}

fn warns_while_the_context_is_being_deleted(ctx: &Context) {
    let ns = ctx.cluster.namespace("ow011");
    let context = ["context.landscaper.gardener.cloud/default"];
    accepts(
        ctx,
        &ns,
        &CONTEXT_WITHOUT_OVERWRITES.replace("{name: default}", "{name: default, finalizers: [example.org/hold]}"),
    );
    delete(ctx, &ns, &context).expect_success();
    let apply = ["apply", "--dry-run=server", "--namespace", &ns, "-f", "-"];
    eventually(|| {
        let output = ctx.cluster.kubectl().args(apply).stdin(INSTALLATION).run().expect_success();
        output.stderr.contains("OW011 spec.context: Context \"default\" has been in deletion since ").then_some(())
    });
    // The catalog may still contain the Context that was deleted, so the rule must read it live.
    let remove_finalizers =
        ["patch", "--namespace", &ns, "--type=merge", "-p", r#"{"metadata": {"finalizers": null}}"#];
    ctx.cluster.kubectl().args(remove_finalizers).args(context).run().expect_success();
    accepts(ctx, &ns, CONTEXT_WITHOUT_OVERWRITES);
    accepts(ctx, &ns, INSTALLATION);
}

fn explain_reads_the_cluster(ctx: &Context) {
    let ns = ctx.cluster.namespace("explain");
    accepts(ctx, &ns, &to_version("v2.0.0"));
    accepts(ctx, &ns, CONTEXT);
    accepts_with_warnings(ctx, &ns, INSTALLATION);
    let output = Command::new(env!("CARGO_BIN_EXE_portcullis"))
        .args(["explain", "overwrites", "server", "--namespace", &ns, "--kubeconfig"])
        .arg(ctx.cluster.kubeconfig(User::Portcullis))
        .output()
        .expect("portcullis runs");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(text.contains(&format!("Installation {ns}/server\n  context     default")), "{text}");
    assert!(text.contains("overwrites[0]  applied: sets version to v2.0.0"), "{text}");
}

fn removes_annotations_when_nothing_is_overwritten(ctx: &Context) {
    let ns = ctx.cluster.namespace("overwrites");
    accepts(ctx, &ns, &to_version("v2.0.0"));
    accepts(ctx, &ns, CONTEXT);
    accepts_with_warnings(ctx, &ns, INSTALLATION);
    assert_eq!(annotation_json(&stored(ctx, &ns), PATCH).as_array().map(Vec::len), Some(2));
    accepts_with_warnings(ctx, &ns, CONTEXT_WITHOUT_OVERWRITES);
    let touch = ["annotate", "--overwrite", "--namespace", &ns, "installation/server"];
    eventually(|| {
        ctx.cluster.kubectl().args(touch).args(["touched=again"]).run().expect_success();
        ctx.cluster.kubectl().args(touch).args(["touched-"]).run().expect_success();
        stored(ctx, &ns).pointer(PATCH).is_none().then_some(())
    });
    let removed = [(PATCH, Value::Null), (SOURCE, Value::Null)];
    patches(ctx, &ns, INSTALLATION, &removed);
}
