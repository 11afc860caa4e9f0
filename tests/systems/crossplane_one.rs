//! Tests with Crossplane 1.17. This version supports claims. If an alpha feature is enabled, it also computes
//! environments without a function.

use std::process::Command;

use serde_json::{Value, json};

use crate::account::CROSSPLANE;
use crate::cluster::Cluster;
use crate::context::{Context, DEADLINE, has_condition};
use crate::crossplane::{self, TRANSFORM, by_composition, environment_config};
use crate::daemon::Daemon;
use crate::gate;
use crate::http;
use crate::programs;
use crate::system::{Kind, Scenario, System, program};
use crate::testbed::Fixtures;

/// The test system with Crossplane 1.17.
pub const SYSTEM: System = System {
    name: "crossplane-1",
    title: || format!("Crossplane {} with native environments", programs::pin(PIN).version().trim_start_matches('v')),
    pins: &[PIN, TRANSFORM],
    prepare: |_| {},
    start,
    configuration: crossplane::configuration,
    is_active: |cluster| gate::is_denied(cluster, "portcullis.dev", PROBE),
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
    is_converged: crossplane::is_converged,
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
/// A Composition that portcullis denies. Tests create it in a dry run to detect that the webhooks are active.
const PROBE: &str = "apiVersion: apiextensions.crossplane.io/v1
kind: Composition
metadata: {name: probe}
spec:
  compositeTypeRef: {apiVersion: probe.example.org/v1, kind: XProbe}
  resources: [{name: probe, base: {apiVersion: v1, kind: ConfigMap}}]
  environment: {patches: [{type: FromCompositeFieldPath, fromFieldPath: 'spec[', toFieldPath: a}]}
";

fn start(cluster: &Cluster, fixtures: &Fixtures) -> Vec<Daemon> {
    crossplane::prepare(cluster, fixtures);
    let mut command = Command::new(program(PIN, "crossplane"));
    command.env("KUBECONFIG", CROSSPLANE.kubeconfig(cluster).expect("the kubeconfig can be written"));
    command.args(["core", "start", "--webhook-enabled=false", crossplane::POLL, "--package-runtime=External"]);
    command.arg("--enable-environment-configs");
    let folder = |name: &str| fixtures.folder.path().join(name).display().to_string();
    command.args([format!("--cache-dir={}", folder("")), format!("--tls-client-certs-dir={}", folder("client"))]);
    let log = cluster.folder().join("crossplane.log");
    let daemon = Daemon::start("crossplane", &mut command, &log).unwrap_or_else(|error| panic!("{error}"));
    // Crossplane 1.17 has no option for this port.
    let ready = daemon.wait_until(DEADLINE, || http::is_ok(&http::get(8081, "/readyz")));
    ready.unwrap_or_else(|error| panic!("{error}"));
    vec![crossplane::start_function(cluster, fixtures, TRANSFORM), daemon]
}

/// Creates the definitions of the scenario: a CompositeResourceDefinition with claims, and the CRD of the composed
/// objects.
fn define(ctx: &Context<'_>) {
    let group = format!("{}.example.org", ctx.namespace);
    let nop = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("nops.{group}")},
        "spec": {"group": group, "scope": "Cluster", "names": {"kind": "Nop", "plural": "nops"},
                 "versions": [{"name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
                               "schema": {"openAPIV3Schema": {"type": "object",
                                          "x-kubernetes-preserve-unknown-fields": true}}}]},
    });
    ctx.apply(&nop.to_string());
    let schema = json!({"type": "object", "properties": {
        "spec": {"type": "object", "properties": {"size": {"type": "string"}, "stage": {"type": "string"},
                                                  "region": {"type": "string"}}},
    }});
    let spec = json!({"group": group, "names": {"kind": "XThing", "plural": "xthings"},
                      "claimNames": {"kind": "Thing", "plural": "things"},
                      "versions": [{"name": "v1", "served": true, "referenceable": true,
                                    "schema": {"openAPIV3Schema": schema}}]});
    crossplane::define(ctx, "apiextensions.crossplane.io/v1", &spec);
}

/// Returns a Composition that composes one object. The object has the name of the composite.
///
/// With a generated name, Crossplane 1.17 may compose a second object: as long as Crossplane's cache does not contain
/// the kind of the object, Crossplane does not find the first object.
fn composition(ctx: &Context<'_>, environment: &Value, patches: &Value) -> Value {
    let mut patches = patches.as_array().expect("the patches are a list").clone();
    patches.push(json!({"type": "FromCompositeFieldPath", "fromFieldPath": "metadata.name",
                        "toFieldPath": "metadata.name"}));
    let group = format!("{}.example.org/v1", ctx.namespace);
    let base = json!({"apiVersion": group, "kind": "Nop", "data": {"fixed": "yes"}});
    json!({
        "apiVersion": "apiextensions.crossplane.io/v1", "kind": "Composition",
        "metadata": {"name": format!("{}-main", ctx.namespace)},
        "spec": {"compositeTypeRef": {"apiVersion": group, "kind": "XThing"}, "environment": environment,
                 "resources": [{"name": "nop", "base": base, "patches": patches,
                                "readinessChecks": [{"type": "None"}]}]},
    })
}

fn reference(ctx: &Context<'_>, name: &str) -> Value {
    json!({"type": "Reference", "ref": {"name": format!("{}-{name}", ctx.namespace)}})
}

fn environment_patch(from: &str, to: &str) -> Value {
    json!({"type": "FromEnvironmentFieldPath", "fromFieldPath": from, "toFieldPath": to})
}

/// Creates a composite with this `spec` in the cluster. Returns its name, which begins with the name of the namespace
/// of the test.
fn composite(ctx: &Context<'_>, name: &str, spec: Value) -> String {
    let full = format!("{}-{name}", ctx.namespace);
    let object = json!({"apiVersion": format!("{}.example.org/v1", ctx.namespace), "kind": "XThing",
                        "metadata": {"name": full}, "spec": by_composition(ctx, spec)});
    ctx.apply(&object.to_string());
    full
}

/// Waits until the object that a composite composes contains exactly `data`.
#[track_caller]
fn wait_until_composed(ctx: &Context<'_>, name: &str, data: &Value) {
    ctx.eventually(&format!("{name} composes {data}"), || {
        let reference = ctx.get("xthings", name)?.pointer("/spec/resourceRefs/0/name")?.clone();
        let found = ctx.get("nops", reference.as_str()?)?;
        (found["data"] == *data).then_some(())
    });
}

fn native(ctx: &Context<'_>) {
    define(ctx);
    environment_config(ctx, "base", &json!({}), &json!({"region": "eu-1", "tier": "small"}));
    environment_config(ctx, "prod", &json!({"stage": "prod"}), &json!({"tier": "large"}));
    let labels = json!([
        {"type": "FromCompositeFieldPath", "key": "stage", "valueFromFieldPath": "spec.stage"},
        {"type": "Value", "key": "scenario", "value": ctx.namespace},
    ]);
    let selector = json!({"type": "Selector", "selector": {"mode": "Single", "matchLabels": labels}});
    let patches = json!([
        {"type": "FromCompositeFieldPath", "fromFieldPath": "spec.size", "toFieldPath": "size"},
        {"type": "ToCompositeFieldPath", "fromFieldPath": "region", "toFieldPath": "spec.region"},
    ]);
    let environment = json!({"environmentConfigs": [reference(ctx, "base"), selector], "patches": patches});
    let patches = ["region", "tier", "size"].map(|key| environment_patch(key, &format!("data.{key}")));
    ctx.apply(&composition(ctx, &environment, &json!(patches)).to_string());
    let thing = composite(ctx, "thing", json!({"stage": "prod", "size": "big"}));
    wait_until_composed(ctx, &thing, &json!({"fixed": "yes", "region": "eu-1", "tier": "large", "size": "big"}));
    ctx.wait_for("xthings", &thing, "patched", |object| object["spec"]["region"] == "eu-1");
    ctx.snapshot("ready");
}

/// Tests environment patches that write to fields which the schema of the composite does not contain. The API server
/// prunes these fields. Checks that this does not cause endless updates.
fn no_such_field(ctx: &Context<'_>) {
    define(ctx);
    environment_config(ctx, "base", &json!({}), &json!({"region": "eu-1"}));
    let patches = json!([{"type": "ToCompositeFieldPath", "fromFieldPath": "region", "toFieldPath": "spec.missing"}]);
    let environment = json!({"environmentConfigs": [reference(ctx, "base")], "patches": patches});
    let patches = json!([environment_patch("region", "data.region")]);
    ctx.apply(&composition(ctx, &environment, &patches).to_string());
    let thing = composite(ctx, "thing", json!({}));
    wait_until_composed(ctx, &thing, &json!({"fixed": "yes", "region": "eu-1"}));
    ctx.snapshot("composed");
}

fn pinned(ctx: &Context<'_>) {
    define(ctx);
    environment_config(ctx, "old", &json!({}), &json!({"region": "old"}));
    environment_config(ctx, "new", &json!({}), &json!({"region": "new"}));
    let patches = json!([environment_patch("region", "data.region")]);
    let composition_with = |config: &str| {
        let policy = json!({"resolution": "Required", "resolve": "Always"});
        let environment = json!({"environmentConfigs": [reference(ctx, config)], "policy": policy});
        composition(ctx, &environment, &patches).to_string()
    };
    ctx.apply(&composition_with("old"));
    let things = [("pinned", "Manual"), ("following", "Automatic")]
        .map(|(name, policy)| composite(ctx, name, json!({"compositionUpdatePolicy": policy})));
    things.iter().for_each(|thing| wait_until_composed(ctx, thing, &json!({"fixed": "yes", "region": "old"})));
    ctx.apply(&composition_with("new"));
    wait_until_composed(ctx, &things[1], &json!({"fixed": "yes", "region": "new"}));
    let resource = format!("xthings.{}.example.org", ctx.namespace);
    for thing in &things {
        ctx.kubectl(&["patch", &resource, thing, "--type=merge", "-p", r#"{"spec":{"size":"large"}}"#]);
    }
    ctx.wait_until_stable();
    wait_until_composed(ctx, &things[0], &json!({"fixed": "yes", "region": "old"}));
    // The composites are not in the snapshot. Crossplane writes their references again until its cache contains its own
    // write, and the number of these writes differs between runs.
    ctx.snapshot_of("pinned", &["nops", "environmentconfigs", "compositions"]);
}

fn optional(ctx: &Context<'_>) {
    define(ctx);
    environment_config(ctx, "base", &json!({}), &json!({"region": "eu-1"}));
    let environment = json!({"environmentConfigs": [reference(ctx, "base"), reference(ctx, "later")],
                             "policy": {"resolution": "Optional"}});
    let mut tier = environment_patch("tier", "data.tier");
    tier["policy"] = json!({"fromFieldPath": "Optional"});
    let patches = json!([environment_patch("region", "data.region"), tier]);
    ctx.apply(&composition(ctx, &environment, &patches).to_string());
    let thing = composite(ctx, "thing", json!({}));
    wait_until_composed(ctx, &thing, &json!({"fixed": "yes", "region": "eu-1"}));
    ctx.snapshot("without");
    environment_config(ctx, "later", &json!({}), &json!({"tier": "late"}));
    wait_until_composed(ctx, &thing, &json!({"fixed": "yes", "region": "eu-1", "tier": "late"}));
    ctx.snapshot("with");
}

/// Checks that a Composition in the mode Pipeline uses another EnvironmentConfig as soon as its reference changes. In
/// this mode, Crossplane does not store references to EnvironmentConfigs in composites.
fn pipeline(ctx: &Context<'_>) {
    define(ctx);
    environment_config(ctx, "base", &json!({}), &json!({"region": "eu-1"}));
    environment_config(ctx, "other", &json!({}), &json!({"region": "eu-2"}));
    let composition_with = |config: &str| {
        let environment = json!({"environmentConfigs": [reference(ctx, config)]});
        let mut composition = composition(ctx, &environment, &json!([environment_patch("region", "data.region")]));
        let resources = composition["spec"].as_object_mut().expect("the spec is an object").remove("resources");
        let input = json!({"apiVersion": "pt.fn.crossplane.io/v1beta1", "kind": "Resources", "resources": resources});
        composition["spec"]["mode"] = "Pipeline".into();
        composition["spec"]["pipeline"] =
            json!([{"step": "resources", "functionRef": {"name": TRANSFORM}, "input": input}]);
        composition.to_string()
    };
    ctx.apply(&composition_with("base"));
    let thing = composite(ctx, "thing", json!({}));
    wait_until_composed(ctx, &thing, &json!({"fixed": "yes", "region": "eu-1"}));
    ctx.apply(&composition_with("other"));
    wait_until_composed(ctx, &thing, &json!({"fixed": "yes", "region": "eu-2"}));
    ctx.snapshot("changed");
}

fn claim(ctx: &Context<'_>) {
    define(ctx);
    environment_config(ctx, "base", &json!({}), &json!({"region": "eu-1"}));
    let environment = json!({"environmentConfigs": [reference(ctx, "base")]});
    let patches = json!([environment_patch("region", "data.region"),
                         {"type": "FromCompositeFieldPath", "fromFieldPath": "spec.size", "toFieldPath": "data.size"}]);
    ctx.apply(&composition(ctx, &environment, &patches).to_string());
    let name = format!("{}-claim", ctx.namespace);
    let object = json!({"apiVersion": format!("{}.example.org/v1", ctx.namespace), "kind": "Thing",
                        "metadata": {"name": name, "namespace": ctx.namespace},
                        "spec": by_composition(ctx, json!({"size": "small"}))});
    ctx.apply(&object.to_string());
    let claim = ctx.wait_for("things", &name, "ready", |object| has_condition(object, "Ready", "True"));
    let composite = claim["spec"]["resourceRef"]["name"].as_str().expect("the claim is bound").to_owned();
    wait_until_composed(ctx, &composite, &json!({"fixed": "yes", "region": "eu-1", "size": "small"}));
    ctx.snapshot("ready");
    ctx.kubectl(&["delete", &format!("things.{}.example.org", ctx.namespace), &name, "--wait=false"]);
    ctx.wait_until_gone("things", &name);
    ctx.wait_until_gone("xthings", &composite);
    ctx.snapshot_of("deleted", &["things", "xthings"]);
}
