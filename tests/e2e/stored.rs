//! Tests of the objects that a real API server stores. The API server must prune unknown fields and set defaults in the
//! same way as the tests without a cluster assume. An update without changes must not change the stored object.

use std::fs;

use serde_json::{Map, Value, json};

use crate::Case;
use crate::cases::structural::{example_schema, examples, stored};
use crate::cases::{objects, schemas};
use crate::context::Context;
use crate::crossplane::{composite, composition, environment_config, prepare_composites};
use crate::sentences::{accepts, eventually};

/// The tests of this file that do not need portcullis.
pub const WITHOUT_GATE: &[Case] = &[
    ("stored::an_api_server_prunes_and_defaults_as_expected", an_api_server_prunes_and_defaults_as_expected),
    ("stored::landscapers_kinds_have_the_expected_fields", landscapers_kinds_have_the_expected_fields),
];

/// The tests of this file that need portcullis.
pub const CASES: &[Case] = &[
    ("stored::an_installation_sent_again_is_not_written", an_installation_sent_again_is_not_written),
    ("stored::a_dry_run_sent_again_is_not_written", a_dry_run_sent_again_is_not_written),
    ("stored::a_composite_sent_again_is_not_written", a_composite_sent_again_is_not_written),
];

fn an_api_server_prunes_and_defaults_as_expected(ctx: &Context) {
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "samples.structural.test"},
        "spec": {
            "group": "structural.test", "scope": "Namespaced",
            "names": {"kind": "Sample", "plural": "samples", "singular": "sample", "listKind": "SampleList"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": example_schema()}}],
        },
    });
    let apply = ["apply", "--server-side", "-f", "-"];
    ctx.cluster.kubectl().args(apply).stdin(definition.to_string()).run().expect_success();
    let namespace = ctx.cluster.namespace("structural");
    for (at, (sent, expected)) in examples().into_iter().enumerate() {
        let object = json!({"apiVersion": "structural.test/v1", "kind": "Sample",
                            "metadata": {"name": format!("sample-{at}"), "namespace": namespace}, "spec": sent});
        let create = ["create", "--validate=false", "-o", "json", "-f", "-"];
        // The API server serves a kind a moment after its CRD is stored.
        let output = eventually(|| {
            let output = ctx.cluster.kubectl().args(create).stdin(object.to_string()).run();
            let is_served = !output.stderr.contains("no matches for kind") && !output.stderr.contains("NotFound");
            is_served.then_some(output)
        });
        let kept: Value = serde_json::from_str(&output.expect_success().stdout).expect("kubectl writes JSON");
        assert_eq!(kept["spec"], expected, "the API server stores {object}");
        assert_eq!(kept["spec"], stored(&object, &example_schema())["spec"], "{object}");
    }
}

/// Returns the parts of a schema that affect pruning and defaulting.
fn outline(schema: &Value) -> Value {
    let mut outline = Map::new();
    let flags = ["x-kubernetes-preserve-unknown-fields", "x-kubernetes-embedded-resource", "default"];
    for key in flags.into_iter().filter(|key| schema.get(key).is_some()) {
        outline.insert(key.to_owned(), schema[key].clone());
    }
    if let Some(fields) = schema.get("properties").and_then(Value::as_object) {
        outline.insert(
            "properties".to_owned(),
            fields.iter().map(|(name, field)| (name.clone(), self::outline(field))).collect::<Map<_, _>>().into(),
        );
    }
    for key in ["items", "additionalProperties"] {
        if let Some(inner) = schema.get(key) {
            outline.insert(key.to_owned(), self::outline(inner));
        }
    }
    outline.into()
}

fn landscapers_kinds_have_the_expected_fields(ctx: &Context) {
    let folder = fs::read_dir(&ctx.cluster.assets().crds[0]).expect("the folder with the CRDs can be read");
    let texts = folder
        .map(|entry| fs::read_to_string(entry.expect("the folder can be listed").path()).expect("the file is text"));
    let definitions: Vec<Value> = texts.flat_map(|text| objects(&text)).collect();
    for kind in schemas::LANDSCAPER_KINDS {
        let definition = definitions.iter().find(|definition| definition["spec"]["names"]["kind"] == kind);
        let real = &definition.expect("Landscaper has the CRD")["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
        let expected = schemas::landscaper(kind).expect("the kind has a schema");
        let spec = |schema: &Value| outline(&schema["properties"]["spec"]);
        assert_eq!(spec(real), spec(&expected), "{kind}");
    }
}

/// Returns the arguments of `kubectl create` for a namespace. The tests do not use `kubectl apply`, because this
/// command adds an annotation that contains the applied manifest. Each `kubectl replace` would then change this
/// annotation.
fn create(namespace: &str) -> [&str; 5] {
    ["create", "--namespace", namespace, "-f", "-"]
}

/// Sends the stored object in an update without changes, and asserts that the API server does not write it.
#[track_caller]
fn assert_not_written(ctx: &Context, namespace: &str, object: &str) {
    let get = ["get", "--namespace", namespace, object, "-o", "json"];
    let before = ctx.cluster.kubectl().args(get).run().expect_success().stdout;
    let replace = ["replace", "--namespace", namespace, "-o", "json", "-f", "-"];
    let after = ctx.cluster.kubectl().args(replace).stdin(before.clone()).run().expect_success().stdout;
    let metadata = |text: &str| -> Value {
        let object: Value = serde_json::from_str(text).expect("kubectl writes JSON");
        object["metadata"].clone()
    };
    let (before, after) = (metadata(&before), metadata(&after));
    assert_eq!(before["resourceVersion"], after["resourceVersion"], "{object}: {before:#}\n{after:#}");
    assert_eq!(before["generation"], after["generation"], "{object}");
}

fn an_installation_sent_again_is_not_written(ctx: &Context) {
    let namespace = ctx.cluster.namespace("sent-again");
    let own = |text: &str| text.replace("namespace: my-namespace", &format!("namespace: {namespace}"));
    accepts(ctx, &namespace, &own(include_str!("../../examples/landscaper/overwrites.yaml")));
    accepts(ctx, &namespace, &own(include_str!("../../examples/landscaper/context.yaml")));
    let installation = own(include_str!("../../examples/landscaper/installation.yaml"));
    let output = ctx.cluster.kubectl().args(create(&namespace)).stdin(installation).run().expect_success();
    assert!(output.stderr.contains("component overwritten"), "{output}");
    assert_not_written(ctx, &namespace, "installation/server");
}

fn a_dry_run_sent_again_is_not_written(ctx: &Context) {
    let namespace = ctx.cluster.namespace("sent-again-dry");
    let root = "apiVersion: landscaper.gardener.cloud/v1alpha1
kind: Installation
metadata: {name: root, annotations: {landscaper.gardener.cloud/dry-run: \"true\"}}
spec: {blueprint: {ref: {resourceName: blueprint}}}
";
    ctx.cluster.kubectl().args(create(&namespace)).stdin(root).run().expect_success();
    let uid = ["get", "--namespace", &namespace, "installation/root", "-o", "jsonpath={.metadata.uid}"];
    let uid = ctx.cluster.kubectl().args(uid).run().expect_success().stdout;
    let child = format!(
        "apiVersion: landscaper.gardener.cloud/v1alpha1
kind: Execution
metadata:
  name: child
  ownerReferences:
    - {{apiVersion: landscaper.gardener.cloud/v1alpha1, kind: Installation, name: root, uid: {uid}, controller: true}}
spec: {{}}
"
    );
    ctx.cluster.kubectl().args(create(&namespace)).stdin(child).run().expect_success();
    let get = ["get", "--namespace", &namespace, "execution/child", "-o", "jsonpath={.metadata.annotations}"];
    let annotations = ctx.cluster.kubectl().args(get).run().expect_success().stdout;
    assert!(annotations.contains("landscaper.gardener.cloud/dry-run"), "{annotations}");
    assert_not_written(ctx, &namespace, "installation/root");
    assert_not_written(ctx, &namespace, "execution/child");
}

/// Checks that the API server writes nothing if a client sends a stored composite again. One of the patches writes
/// `spec.zone`. The schema of the composite does not contain this field, so the API server removes the field before it
/// stores the composite.
fn a_composite_sent_again_is_not_written(ctx: &Context) {
    prepare_composites(ctx);
    accepts(ctx, "default", &environment_config("v1beta1", "sent-again", "", "{region: eu-5, zone: a}"));
    let environment = "environmentConfigs: [{ref: {name: sent-again}}]\npatches:
  - {type: ToCompositeFieldPath, fromFieldPath: region, toFieldPath: spec.region}
  - {type: ToCompositeFieldPath, fromFieldPath: zone, toFieldPath: spec.zone}\n";
    let apply = ["apply", "-f", "-"];
    let composition = composition("sent-again", environment);
    ctx.cluster.kubectl().args(apply).stdin(composition).run().expect_success();
    let yaml = composite("sent-again", "sent-again", "");
    eventually(|| {
        let create = ["create", "--dry-run=server", "-o", "json", "-f", "-"];
        ctx.cluster.kubectl().args(create).stdin(&yaml).run().stdout.contains("environmentConfigRefs").then_some(())
    });
    ctx.cluster.kubectl().args(create("default")).stdin(&yaml).run().expect_success();
    assert_not_written(ctx, "default", "xexample/sent-again");
}
