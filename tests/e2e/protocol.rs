//! Tests of the kinds of requests that the webhooks get, and of the responses that clients get.

use kube::api::{DynamicObject, PostParams};
use kube::core::GroupVersionKind;
use kube::discovery::ApiResource;
use kube::{Api, Error};
use serde_json::json;

use crate::Case;
use crate::context::Context;
use crate::sentences::{accepts, eventually};

/// The tests of this file.
pub const CASES: &[Case] = &[
    ("protocol::a_denial_contains_the_causes", a_denial_contains_the_causes),
    ("protocol::server_side_apply_is_judged", server_side_apply_is_judged),
    ("protocol::a_dry_run_is_judged_and_stores_nothing", a_dry_run_is_judged_and_stores_nothing),
    ("protocol::an_object_with_a_generated_name_is_patched", an_object_with_a_generated_name_is_patched),
    ("protocol::an_update_is_judged", an_update_is_judged),
    ("protocol::finalizers_can_be_removed_from_invalid_objects", finalizers_can_be_removed_from_invalid_objects),
    ("protocol::decisions_are_counted", decisions_are_counted),
    ("protocol::probes_answer", probes_answer),
];

const BAD: &str = "apiVersion: landscaper.gardener.cloud/v1alpha1
kind: ComponentVersionOverwrites
metadata: {name: bad}
overwrites:
- {source: {componentName: a}, substitution: {repositoryContext: x}}
- {source: {repositoryContext: []}, substitution: {version: b}}
";
const GOOD: &str = "apiVersion: landscaper.gardener.cloud/v1alpha1
kind: ComponentVersionOverwrites
metadata: {name: my-overwrites}
overwrites: [{source: {componentName: example.org/server}, substitution: {version: v2.0.0}}]
";
const CONTEXT: &str = "apiVersion: landscaper.gardener.cloud/v1alpha1
kind: Context
metadata: {name: default}
componentVersionOverwrites: my-overwrites
";

fn a_denial_contains_the_causes(ctx: &Context) {
    let ns = ctx.cluster.namespace("causes");
    let kind = GroupVersionKind::gvk("landscaper.gardener.cloud", "v1alpha1", "ComponentVersionOverwrites");
    let resource = ApiResource::from_gvk_with_plural(&kind, "componentversionoverwrites");
    let api: Api<DynamicObject> = Api::namespaced_with(ctx.cluster.client(), &ns, &resource);
    let object: DynamicObject = serde_json::from_value(json!({
        "apiVersion": "landscaper.gardener.cloud/v1alpha1", "kind": "ComponentVersionOverwrites",
        "metadata": {"name": "bad"},
        "overwrites": [{"source": {"componentName": "a"}, "substitution": {"repositoryContext": "x"}},
                       {"source": {"repositoryContext": []}, "substitution": {"version": "b"}}],
    }))
    .expect("the object is valid");
    let answer = ctx.cluster.block_on(api.create(&PostParams::default(), &object));
    let Err(Error::Api(status)) = answer else { panic!("{answer:?}") };
    assert_eq!((status.code, status.reason.as_str()), (403, "Forbidden"));
    let details = status.details.as_ref().expect("a denial has details");
    assert_eq!((details.name.as_str(), details.kind.as_str()), ("bad", "ComponentVersionOverwrites"));
    let fields: Vec<_> = details.causes.iter().map(|cause| cause.field.as_str()).collect();
    assert_eq!(fields, ["overwrites[0].substitution.repositoryContext", "overwrites[1].source.repositoryContext"]);
    assert!(details.causes.iter().all(|cause| cause.message.starts_with("OW001: ")), "{details:?}");
}

fn server_side_apply_is_judged(ctx: &Context) {
    let ns = ctx.cluster.namespace("ssa");
    let apply = ["apply", "--server-side", "--namespace", &ns, "-f", "-"];
    let output = ctx.cluster.kubectl().args(apply).stdin(BAD).run();
    assert!(!output.status.success() && output.stderr.contains("OW001 overwrites[0]"), "{output}");
    ctx.cluster.kubectl().args(apply).stdin(GOOD).run().expect_success();
}

fn a_dry_run_is_judged_and_stores_nothing(ctx: &Context) {
    let ns = ctx.cluster.namespace("dry-run");
    let apply = ["apply", "--dry-run=server", "--namespace", &ns, "-f", "-"];
    let output = ctx.cluster.kubectl().args(apply).stdin(BAD).run();
    assert!(!output.status.success() && output.stderr.contains("OW001"), "{output}");
    ctx.cluster.kubectl().args(apply).stdin(GOOD).run().expect_success();
    let list = ["get", "cvo", "--namespace", &ns, "-o", "name"];
    assert_eq!(ctx.cluster.kubectl().args(list).run().expect_success().stdout, "");
}

fn an_object_with_a_generated_name_is_patched(ctx: &Context) {
    let ns = ctx.cluster.namespace("generated");
    accepts(ctx, &ns, GOOD);
    accepts(ctx, &ns, CONTEXT);
    let installation = "apiVersion: landscaper.gardener.cloud/v1alpha1
kind: Installation
metadata: {generateName: server-}
spec:
  componentDescriptor: {ref: {componentName: example.org/server, version: v1.0.0, repositoryContext: {type: x}}}
  blueprint: {ref: {resourceName: blueprint}}
";
    let create = ["create", "--namespace", &ns, "-f", "-", "-o", "json"];
    let patched = eventually(|| {
        let output = ctx.cluster.kubectl().args(create).stdin(installation).run().expect_success();
        output.stdout.contains("portcullis.dev/overwrite-patch").then_some(output)
    });
    assert!(patched.stderr.contains("component overwritten: version v1.0.0 -> v2.0.0"), "{patched}");
}

fn an_update_is_judged(ctx: &Context) {
    let ns = ctx.cluster.namespace("update");
    accepts(ctx, &ns, GOOD);
    let patch = r#"{"overwrites":[{"source":{"componentName":"a"},"substitution":{"repositoryContext":7}}]}"#;
    let args = ["patch", "cvo/my-overwrites", "--namespace", &ns, "--type=merge", "-p", patch];
    let output = ctx.cluster.kubectl().args(args).run();
    let expected = "Error from server (Forbidden): admission webhook \"validate.portcullis.dev\" denied the request: \n\
                    OW001 overwrites[0].substitution.repositoryContext: expected an object, found a number";
    assert!(!output.status.success() && output.stderr.starts_with(expected), "{output}");
}

/// Checks that the finalizer of an object that is being deleted can be removed, although the object is invalid. An
/// invalid object may have been stored before the webhooks were registered.
fn finalizers_can_be_removed_from_invalid_objects(ctx: &Context) {
    let ns = ctx.cluster.namespace("finalizer");
    let with_finalizer = GOOD.replace("{name: my-overwrites}", "{name: my-overwrites, finalizers: [example.org/held]}");
    accepts(ctx, &ns, &with_finalizer);
    let kubectl = |args: &[&str]| ctx.cluster.kubectl().args(["--namespace", &ns]).args(args).run();
    kubectl(&["delete", "--wait=false", "cvo/my-overwrites"]).expect_success();
    let bad = r#"{"metadata":{"finalizers":null},"overwrites":[{"source":{},"substitution":{"repositoryContext":7}}]}"#;
    kubectl(&["patch", "cvo/my-overwrites", "--type=merge", "-p", bad]).expect_success();
    let output = kubectl(&["get", "cvo/my-overwrites"]);
    assert!(output.stderr.contains("not found"), "{output}");
}

fn decisions_are_counted(ctx: &Context) {
    let ns = ctx.cluster.namespace("metrics");
    accepts(ctx, &ns, GOOD);
    let metrics =
        ctx.gate.as_ref().expect("portcullis runs in these tests").admin("/metrics").expect("portcullis answers");
    for line in ["portcullis_decisions_total{", "portcullis_findings_total{", "portcullis_certificate_expiry"] {
        assert!(metrics.contains(line), "{line} is not in\n{metrics}");
    }
}

fn probes_answer(ctx: &Context) {
    let gate = ctx.gate.as_ref().expect("portcullis runs in these tests");
    for path in ["/livez", "/readyz"] {
        let answer = gate.admin(path).expect("portcullis answers");
        assert!(answer.starts_with("HTTP/1.1 200 "), "{path}: {answer}");
    }
}
