//! Crossplane 1.17, which computes environments itself where its alpha flag is on, and has claims.

use std::process::Command;

use serde_json::{Value, json};

use crate::account::CROSSPLANE;
use crate::cluster::Cluster;
use crate::crossplane::{self, TRANSFORM, by_composition, environment_config};
use crate::daemon::Daemon;
use crate::gate;
use crate::http;
use crate::programs;
use crate::scene::{DEADLINE, Scene, is};
use crate::stage::Ground;
use crate::system::{Kind, Scenario, System, program};

/// Crossplane 1.17.
pub const SYSTEM: System = System {
    name: "crossplane-1",
    title: || format!("Crossplane {} with native environments", programs::pin(PIN).version().trim_start_matches('v')),
    pins: &[PIN, TRANSFORM],
    prepare: |_| {},
    start,
    configuration: crossplane::configuration,
    in_force: |cluster| gate::refuses(cluster, "portcullis.dev", PROBE),
    reconcile: &["--composites", "--composites-of", "*"],
    kinds: |namespace| {
        let own = format!("{namespace}.example.org/v1");
        vec![
            Kind::of_cluster(&own, "XThing", "xthings"),
            Kind::namespaced(&own, "Thing", "things"),
            Kind::of_cluster(&own, "Nop", "nops"),
            Kind::of_cluster("apiextensions.crossplane.io/v1", "Composition", "compositions"),
            Kind::of_cluster("apiextensions.crossplane.io/v1", "CompositionRevision", "compositionrevisions"),
            Kind::of_cluster("apiextensions.crossplane.io/v1alpha1", "EnvironmentConfig", "environmentconfigs"),
        ]
    },
    is_settled: crossplane::is_settled,
    scenarios: &[
        Scenario::new("native", "a native environment by reference and by selector", native),
        Scenario::new(
            "no-such-field",
            "a native environment patch writes to a field that the schema lacks",
            no_such_field,
        ),
        Scenario::new("pinned", "a pinned CompositionRevision keeps its native environment", pinned),
        Scenario::new("optional", "an optional reference of a native environment that comes later", optional),
        Scenario::new("pipeline", "a native environment in mode Pipeline", pipeline),
        Scenario::new("claim", "a claim, its composite, and its deletion", claim),
    ],
};

const PIN: &str = "crossplane-1";
/// Refused once the webhooks are in force.
const PROBE: &str = "apiVersion: apiextensions.crossplane.io/v1
kind: Composition
metadata: {name: probe}
spec:
  compositeTypeRef: {apiVersion: probe.example.org/v1, kind: XProbe}
  resources: [{name: probe, base: {apiVersion: v1, kind: ConfigMap}}]
  environment: {patches: [{type: FromCompositeFieldPath, fromFieldPath: 'spec[', toFieldPath: a}]}
";

fn start(cluster: &Cluster, ground: &Ground) -> Vec<Daemon> {
    crossplane::prepare(cluster, ground);
    let mut command = Command::new(program(PIN, "crossplane"));
    command.env("KUBECONFIG", CROSSPLANE.kubeconfig(cluster).expect("there is room"));
    command.args(["core", "start", "--webhook-enabled=false", crossplane::POLL, "--package-runtime=External"]);
    command.arg("--enable-environment-configs");
    let folder = |name: &str| ground.folder.path().join(name).display().to_string();
    command.args([format!("--cache-dir={}", folder("")), format!("--tls-client-certs-dir={}", folder("client"))]);
    let log = cluster.folder().join("crossplane.log");
    let daemon = Daemon::start("crossplane", &mut command, &log).unwrap_or_else(|error| panic!("{error}"));
    // The port cannot be chosen.
    let ready = daemon.wait_until(DEADLINE, || http::is_ok(&http::get(8081, "/readyz")));
    ready.unwrap_or_else(|error| panic!("{error}"));
    vec![crossplane::function(cluster, ground, TRANSFORM), daemon]
}

/// Defines the scenario's own composites, with claims, and what they compose.
fn define(scene: &Scene<'_>) {
    let group = format!("{}.example.org", scene.namespace);
    let nop = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("nops.{group}")},
        "spec": {"group": group, "scope": "Cluster", "names": {"kind": "Nop", "plural": "nops"},
                 "versions": [{"name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
                               "schema": {"openAPIV3Schema": {"type": "object",
                                          "x-kubernetes-preserve-unknown-fields": true}}}]},
    });
    scene.apply(&nop.to_string());
    let schema = json!({"type": "object", "properties": {
        "spec": {"type": "object", "properties": {"size": {"type": "string"}, "stage": {"type": "string"},
                                                  "region": {"type": "string"}}},
    }});
    let spec = json!({"group": group, "names": {"kind": "XThing", "plural": "xthings"},
                      "claimNames": {"kind": "Thing", "plural": "things"},
                      "versions": [{"name": "v1", "served": true, "referenceable": true,
                                    "schema": {"openAPIV3Schema": schema}}]});
    crossplane::define(scene, "apiextensions.crossplane.io/v1", &spec);
}

/// What is composed has the composite's name: Crossplane 1.17 may look for it before its cache knows the kind, does not find
/// it, and would compose another one under another generated name.
fn composition(scene: &Scene<'_>, environment: &Value, patches: &Value) -> Value {
    let mut patches = patches.as_array().expect("it is a list").clone();
    patches.push(json!({"type": "FromCompositeFieldPath", "fromFieldPath": "metadata.name",
                        "toFieldPath": "metadata.name"}));
    let group = format!("{}.example.org/v1", scene.namespace);
    let base = json!({"apiVersion": group, "kind": "Nop", "data": {"fixed": "yes"}});
    json!({
        "apiVersion": "apiextensions.crossplane.io/v1", "kind": "Composition",
        "metadata": {"name": format!("{}-main", scene.namespace)},
        "spec": {"compositeTypeRef": {"apiVersion": group, "kind": "XThing"}, "environment": environment,
                 "resources": [{"name": "nop", "base": base, "patches": patches,
                                "readinessChecks": [{"type": "None"}]}]},
    })
}

fn reference(scene: &Scene<'_>, name: &str) -> Value {
    json!({"type": "Reference", "ref": {"name": format!("{}-{name}", scene.namespace)}})
}

fn environment_patch(from: &str, to: &str) -> Value {
    json!({"type": "FromEnvironmentFieldPath", "fromFieldPath": from, "toFieldPath": to})
}

/// Applies a composite. Returns its name.
fn composite(scene: &Scene<'_>, name: &str, spec: Value) -> String {
    let full = format!("{}-{name}", scene.namespace);
    let object = json!({"apiVersion": format!("{}.example.org/v1", scene.namespace), "kind": "XThing",
                        "metadata": {"name": full}, "spec": by_composition(scene, spec)});
    scene.apply(&object.to_string());
    full
}

/// Waits until what a composite composes holds these values.
#[track_caller]
fn composed(scene: &Scene<'_>, name: &str, data: &Value) {
    scene.eventually(&format!("{name} composes {data}"), || {
        let reference = scene.get("xthings", name)?.pointer("/spec/resourceRefs/0/name")?.clone();
        let found = scene.get("nops", reference.as_str()?)?;
        (found["data"] == *data).then_some(())
    });
}

fn native(scene: &Scene<'_>) {
    define(scene);
    environment_config(scene, "base", &json!({}), &json!({"region": "eu-1", "tier": "small"}));
    environment_config(scene, "prod", &json!({"stage": "prod"}), &json!({"tier": "large"}));
    let labels = json!([
        {"type": "FromCompositeFieldPath", "key": "stage", "valueFromFieldPath": "spec.stage"},
        {"type": "Value", "key": "scene", "value": scene.namespace},
    ]);
    let selector = json!({"type": "Selector", "selector": {"mode": "Single", "matchLabels": labels}});
    let patches = json!([
        {"type": "FromCompositeFieldPath", "fromFieldPath": "spec.size", "toFieldPath": "size"},
        {"type": "ToCompositeFieldPath", "fromFieldPath": "region", "toFieldPath": "spec.region"},
    ]);
    let environment = json!({"environmentConfigs": [reference(scene, "base"), selector], "patches": patches});
    let patches = ["region", "tier", "size"].map(|key| environment_patch(key, &format!("data.{key}")));
    scene.apply(&composition(scene, &environment, &json!(patches)).to_string());
    let thing = composite(scene, "thing", json!({"stage": "prod", "size": "big"}));
    composed(scene, &thing, &json!({"fixed": "yes", "region": "eu-1", "tier": "large", "size": "big"}));
    scene.wait("xthings", &thing, "patched", |object| object["spec"]["region"] == "eu-1");
    scene.snapshot("ready");
}

/// The API server prunes what is written there: whoever writes it again at every update never comes to rest.
fn no_such_field(scene: &Scene<'_>) {
    define(scene);
    environment_config(scene, "base", &json!({}), &json!({"region": "eu-1"}));
    let patches = json!([{"type": "ToCompositeFieldPath", "fromFieldPath": "region", "toFieldPath": "spec.missing"}]);
    let environment = json!({"environmentConfigs": [reference(scene, "base")], "patches": patches});
    let patches = json!([environment_patch("region", "data.region")]);
    scene.apply(&composition(scene, &environment, &patches).to_string());
    let thing = composite(scene, "thing", json!({}));
    composed(scene, &thing, &json!({"fixed": "yes", "region": "eu-1"}));
    scene.snapshot("composed");
}

fn pinned(scene: &Scene<'_>) {
    define(scene);
    environment_config(scene, "old", &json!({}), &json!({"region": "old"}));
    environment_config(scene, "new", &json!({}), &json!({"region": "new"}));
    let patches = json!([environment_patch("region", "data.region")]);
    let with = |config: &str| {
        let policy = json!({"resolution": "Required", "resolve": "Always"});
        let environment = json!({"environmentConfigs": [reference(scene, config)], "policy": policy});
        composition(scene, &environment, &patches).to_string()
    };
    scene.apply(&with("old"));
    let things = [("pinned", "Manual"), ("following", "Automatic")]
        .map(|(name, policy)| composite(scene, name, json!({"compositionUpdatePolicy": policy})));
    things.iter().for_each(|thing| composed(scene, thing, &json!({"fixed": "yes", "region": "old"})));
    scene.apply(&with("new"));
    composed(scene, &things[1], &json!({"fixed": "yes", "region": "new"}));
    let resource = format!("xthings.{}.example.org", scene.namespace);
    for thing in &things {
        scene.kubectl(&["patch", &resource, thing, "--type=merge", "-p", r#"{"spec":{"size":"large"}}"#]);
    }
    scene.rest();
    composed(scene, &things[0], &json!({"fixed": "yes", "region": "old"}));
    // How often Crossplane writes the references anew until it sees its own write differs in every run.
    scene.snapshot_of("pinned", &["nops", "environmentconfigs", "compositions"]);
}

fn optional(scene: &Scene<'_>) {
    define(scene);
    environment_config(scene, "base", &json!({}), &json!({"region": "eu-1"}));
    let environment = json!({"environmentConfigs": [reference(scene, "base"), reference(scene, "later")],
                             "policy": {"resolution": "Optional"}});
    let mut tier = environment_patch("tier", "data.tier");
    tier["policy"] = json!({"fromFieldPath": "Optional"});
    let patches = json!([environment_patch("region", "data.region"), tier]);
    scene.apply(&composition(scene, &environment, &patches).to_string());
    let thing = composite(scene, "thing", json!({}));
    composed(scene, &thing, &json!({"fixed": "yes", "region": "eu-1"}));
    scene.snapshot("without");
    environment_config(scene, "later", &json!({}), &json!({"tier": "late"}));
    composed(scene, &thing, &json!({"fixed": "yes", "region": "eu-1", "tier": "late"}));
    scene.snapshot("with");
}

/// In this mode Crossplane stores no references, so a change of a reference's config counts at once.
fn pipeline(scene: &Scene<'_>) {
    define(scene);
    environment_config(scene, "base", &json!({}), &json!({"region": "eu-1"}));
    environment_config(scene, "other", &json!({}), &json!({"region": "eu-2"}));
    let with = |config: &str| {
        let environment = json!({"environmentConfigs": [reference(scene, config)]});
        let mut composition = composition(scene, &environment, &json!([environment_patch("region", "data.region")]));
        let resources = composition["spec"].as_object_mut().expect("it is an object").remove("resources");
        let input = json!({"apiVersion": "pt.fn.crossplane.io/v1beta1", "kind": "Resources", "resources": resources});
        composition["spec"]["mode"] = "Pipeline".into();
        composition["spec"]["pipeline"] =
            json!([{"step": "resources", "functionRef": {"name": TRANSFORM}, "input": input}]);
        composition.to_string()
    };
    scene.apply(&with("base"));
    let thing = composite(scene, "thing", json!({}));
    composed(scene, &thing, &json!({"fixed": "yes", "region": "eu-1"}));
    scene.apply(&with("other"));
    composed(scene, &thing, &json!({"fixed": "yes", "region": "eu-2"}));
    scene.snapshot("changed");
}

fn claim(scene: &Scene<'_>) {
    define(scene);
    environment_config(scene, "base", &json!({}), &json!({"region": "eu-1"}));
    let environment = json!({"environmentConfigs": [reference(scene, "base")]});
    let patches = json!([environment_patch("region", "data.region"),
                         {"type": "FromCompositeFieldPath", "fromFieldPath": "spec.size", "toFieldPath": "data.size"}]);
    scene.apply(&composition(scene, &environment, &patches).to_string());
    let name = format!("{}-claim", scene.namespace);
    let object = json!({"apiVersion": format!("{}.example.org/v1", scene.namespace), "kind": "Thing",
                        "metadata": {"name": name, "namespace": scene.namespace},
                        "spec": by_composition(scene, json!({"size": "small"}))});
    scene.apply(&object.to_string());
    let claim = scene.wait("things", &name, "ready", |object| is(object, "Ready", "True"));
    let composite = claim["spec"]["resourceRef"]["name"].as_str().expect("it is bound").to_owned();
    composed(scene, &composite, &json!({"fixed": "yes", "region": "eu-1", "size": "small"}));
    scene.snapshot("ready");
    scene.kubectl(&["delete", &format!("things.{}.example.org", scene.namespace), &name, "--wait=false"]);
    scene.wait_gone("things", &name);
    scene.wait_gone("xthings", &composite);
    scene.snapshot_of("deleted", &["things", "xthings"]);
}
