//! Crossplane 2 with its functions as processes.
//!
//! The package manager has nothing to do: FunctionRevisions that it is told to leave alone say where the functions are.

use std::fs;
use std::net::TcpStream;
use std::process::Command;
use std::time::Duration;

use serde_json::{Value, json};

use crate::account::CROSSPLANE;
use crate::cluster::Cluster;
use crate::daemon::Daemon;
use crate::gate;
use crate::http;
use crate::pki::Authority;
use crate::programs;
use crate::scene::{DEADLINE, Scene, is};
use crate::stage::Ground;
use crate::system::{Kind, Scenario, System, program};
use crate::user::User;

/// Crossplane 2.
pub const SYSTEM: System = System {
    name: "crossplane",
    title: || {
        let version = |pin| programs::pin(pin).version().trim_start_matches('v');
        format!("Crossplane {} (function-patch-and-transform {})", version(PIN), version(TRANSFORM))
    },
    pins: &[PIN, TRANSFORM],
    prepare: |_| {},
    start,
    configuration,
    in_force: |cluster| gate::refuses(cluster, "portcullis.dev", PROBE),
    reconcile: &["--composites", "--composites-of", "*"],
    kinds: |namespace| {
        let composites = format!("{namespace}.example.org/v1");
        vec![
            Kind::namespaced(&composites, "XThing", "xthings"),
            Kind::of_cluster("apiextensions.crossplane.io/v1", "Composition", "compositions"),
            Kind::of_cluster("apiextensions.crossplane.io/v1", "CompositionRevision", "compositionrevisions"),
            Kind::of_cluster("apiextensions.crossplane.io/v1beta1", "EnvironmentConfig", "environmentconfigs"),
            Kind::namespaced("v1", "ConfigMap", "configmaps"),
        ]
    },
    is_settled,
    scenarios: &[
        Scenario::new("patches", "a composite's fields are patched into what it composes", patches),
        Scenario::new("no-such-field", "an environment patch writes to a field that the schema lacks", no_such_field),
        needing("references", "EnvironmentConfigs by reference and by selector", references),
        needing("pinned", "a pinned CompositionRevision keeps its environment", pinned),
        needing("optional", "an optional reference that comes later", optional),
        needing("changed", "an EnvironmentConfig changes", changed),
        Scenario::new("update", "the composite and its Composition change", update),
        Scenario::new("delete", "a composite is deleted", delete),
    ],
};

const fn needing(name: &'static str, words: &'static str, play: fn(&Scene<'_>)) -> Scenario {
    Scenario { needs: Some(ENVIRONMENTS), ..Scenario::new(name, words, play) }
}

const PIN: &str = "crossplane-2";
pub const TRANSFORM: &str = "function-patch-and-transform";
const ENVIRONMENTS: &str = "function-environment-configs";
const FUNCTIONS: [&str; 2] = [TRANSFORM, ENVIRONMENTS];
/// How soon Crossplane looks at a composite again that nothing has changed about.
pub const POLL: &str = "--poll-interval=3s";
/// Refused once the webhooks are in force.
const PROBE: &str = "apiVersion: apiextensions.crossplane.io/v1
kind: Composition
metadata: {name: probe}
spec:
  compositeTypeRef: {apiVersion: probe.example.org/v1, kind: XProbe}
  mode: Pipeline
  pipeline:
  - step: environment
    functionRef: {name: function-environment-configs}
    input:
      apiVersion: environmentconfigs.fn.crossplane.io/v1beta1
      kind: Input
      spec: {environmentConfigs: [{type: Selector, selector: {mode: Multiple, maxMatch: many, matchLabels: [{type: Value, key: a, value: b}]}}]}
";

pub fn configuration(_: &Ground) -> String {
    "environmentConfigs: {onChange: deny}\ncomposites: [\"*\"]\n".to_owned()
}

/// Whether Crossplane is done with a composite or a claim. A write on an outdated version makes it try again after one
/// second, then two, then four: nothing changes meanwhile, and conditions are still missing. A composite whose status Crossplane
/// cannot write at all has none, and stays so.
pub fn is_settled(object: &Value) -> bool {
    let is_reconciled = ["XThing", "Thing"].iter().any(|kind| object["kind"] == *kind);
    !is_reconciled
        || object["status"].is_null()
        || ["Synced", "Ready"].iter().all(|condition| is(object, condition, "True"))
}

fn start(cluster: &Cluster, ground: &Ground) -> Vec<Daemon> {
    prepare(cluster, ground);
    let functions = FUNCTIONS.into_iter().filter(|name| programs::pin(name).is_built());
    let mut daemons: Vec<_> = functions.map(|name| function(cluster, ground, name)).collect();
    daemons.push(crossplane(cluster, ground));
    daemons
}

/// Writes the certificates that Crossplane and its functions show each other.
pub fn prepare(cluster: &Cluster, ground: &Ground) {
    cluster.kubectl().args(["create", "namespace", CROSSPLANE.namespace]).run().expect_success();
    let authority = Authority::new();
    let folder = |name: &str| ground.folder.path().join(name);
    for (name, leaf) in [("server", authority.leaf()), ("client", authority.client("crossplane", &[]))] {
        fs::create_dir_all(folder(name)).expect("there is room");
        for (file, text) in [("tls.crt", leaf.chain), ("tls.key", leaf.key), ("ca.crt", authority.root_pem())] {
            fs::write(folder(name).join(file), text).expect("there is room");
        }
    }
}

/// Starts a function, and tells Crossplane where it is.
pub fn function(cluster: &Cluster, ground: &Ground, name: &'static str) -> Daemon {
    let port = ground.port(name);
    let mut command = Command::new(program(name, name));
    command.arg(format!("--address=127.0.0.1:{port}"));
    command.env("TLS_SERVER_CERTS_DIR", ground.folder.path().join("server"));
    let log = cluster.folder().join(format!("{name}.log"));
    let daemon = Daemon::start(name, &mut command, &log).unwrap_or_else(|error| panic!("{error}"));
    let listens = || TcpStream::connect(("127.0.0.1", port)).is_ok();
    daemon.wait_until(Duration::from_secs(30), listens).unwrap_or_else(|error| panic!("{error}"));
    let revision = json!({
        "apiVersion": "pkg.crossplane.io/v1", "kind": "FunctionRevision",
        "metadata": {"name": format!("{name}-1"), "labels": {"pkg.crossplane.io/package": name},
                     "annotations": {"crossplane.io/paused": "true"}},
        "spec": {"desiredState": "Active", "image": "example.org/function:v1", "revision": 1},
    });
    let apply = ["apply", "--server-side", "-f", "-"];
    cluster.kubectl().args(apply).stdin(revision.to_string()).run().expect_success();
    let status = json!({"status": {"endpoint": format!("127.0.0.1:{port}"), "capabilities": ["composition"]}});
    let patch = ["patch", "functionrevision.pkg.crossplane.io", &format!("{name}-1"), "--subresource=status"];
    cluster.kubectl().args(patch).args(["--type=merge", "-p", &status.to_string()]).run().expect_success();
    daemon
}

fn crossplane(cluster: &Cluster, ground: &Ground) -> Daemon {
    let health = ground.port("crossplane-health");
    let mut command = Command::new(program(PIN, "crossplane"));
    command.env("KUBECONFIG", CROSSPLANE.kubeconfig(cluster).expect("there is room"));
    command.args(["core", "start", "--enable-webhooks=false", POLL, "--package-runtime=External"]);
    command.args([format!("--health-probe-port={health}"), format!("--metrics-port={}", ground.port("metrics"))]);
    let folder = |name: &str| ground.folder.path().join(name).display().to_string();
    command.args([format!("--xpkg-cache-dir={}", folder("")), format!("--tls-client-certs-dir={}", folder("client"))]);
    let log = cluster.folder().join("crossplane.log");
    let daemon = Daemon::start("crossplane", &mut command, &log).unwrap_or_else(|error| panic!("{error}"));
    let ready = daemon.wait_until(DEADLINE, || http::is_ok(&http::get(health, "/readyz")));
    ready.unwrap_or_else(|error| panic!("{error}"));
    daemon
}

/// Defines the scenario's own kind of composites.
fn define_things(scene: &Scene<'_>) {
    let schema = json!({"type": "object", "properties": {
        "spec": {"type": "object", "properties": {"size": {"type": "string"}, "stage": {"type": "string"}}},
        "status": {"type": "object", "properties": {"region": {"type": "string"}}},
    }});
    let group = format!("{}.example.org", scene.namespace);
    let spec = json!({"scope": "Namespaced", "group": group, "names": {"kind": "XThing", "plural": "xthings"},
                      "versions": [{"name": "v1", "served": true, "referenceable": true,
                                    "schema": {"openAPIV3Schema": schema}}]});
    define(scene, "apiextensions.crossplane.io/v2", &spec);
}

/// Applies the definition of a kind of composites, and waits until Crossplane serves it and portcullis looks at it.
pub fn define(scene: &Scene<'_>, api_version: &str, spec: &Value) {
    let group = format!("{}.example.org", scene.namespace);
    let definition = json!({"apiVersion": api_version, "kind": "CompositeResourceDefinition", "spec": spec,
                            "metadata": {"name": format!("xthings.{group}")}});
    // Nothing aggregates ClusterRoles here, so the right that the page asks for is bound as it is.
    let role = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": group},
        "rules": [{"apiGroups": [group], "resources": ["*"], "verbs": ["get", "list", "watch"]}],
    });
    let subject = |user: User| json!({"kind": "User", "name": user.name(), "apiGroup": "rbac.authorization.k8s.io"});
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": group},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": group},
        "subjects": [subject(User::Portcullis), subject(User::ControllerManager)],
    });
    scene.apply(&format!("{role}\n---\n{binding}\n---\n{definition}"));
    let established = ["wait", "--for=condition=Established", "--timeout=150s", "compositeresourcedefinition"];
    scene.kubectl(&[&established[..], &[&format!("xthings.{group}")]].concat());
    if scene.has_webhooks() {
        scene.eventually("the webhooks name the composites", || {
            let get = ["get", "mutatingwebhookconfiguration", "portcullis-composites", "-o", "json"];
            scene.kubectl(&get).stdout.contains(&group).then_some(())
        });
    }
}

/// Returns a Composition of one ConfigMap, with the EnvironmentConfigs and the patches that it names.
fn composition(scene: &Scene<'_>, name: &str, configs: &Value, environment: &Value, patches: &Value) -> Value {
    let resources = json!({
        "apiVersion": "pt.fn.crossplane.io/v1beta1", "kind": "Resources", "environment": {"patches": environment},
        "resources": [{"name": "settings", "patches": patches, "readinessChecks": [{"type": "None"}],
                       "base": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {}, "data": {"fixed": "yes"}}}],
    });
    let input = json!({"apiVersion": "environmentconfigs.fn.crossplane.io/v1beta1", "kind": "Input",
                       "spec": {"environmentConfigs": configs}});
    let steps = [(ENVIRONMENTS, input, configs != &json!([])), (TRANSFORM, resources, true)];
    let steps = steps.into_iter().filter(|(.., wanted)| *wanted);
    let pipeline: Vec<_> =
        steps.map(|(name, input, _)| json!({"step": name, "functionRef": {"name": name}, "input": input})).collect();
    json!({
        "apiVersion": "apiextensions.crossplane.io/v1", "kind": "Composition",
        "metadata": {"name": format!("{}-{name}", scene.namespace)},
        "spec": {"compositeTypeRef": {"apiVersion": format!("{}.example.org/v1", scene.namespace), "kind": "XThing"},
                 "mode": "Pipeline", "pipeline": pipeline},
    })
}

pub fn environment_config(scene: &Scene<'_>, name: &str, labels: &Value, data: &Value) {
    let mut labels = labels.clone();
    labels["scene"] = (*scene.namespace).into();
    let version = scene.kind("environmentconfigs").resource.api_version;
    let config = json!({
        "apiVersion": version, "kind": "EnvironmentConfig", "data": data,
        "metadata": {"name": format!("{}-{name}", scene.namespace), "labels": labels},
    });
    scene.apply(&config.to_string());
}

fn reference(scene: &Scene<'_>, name: &str) -> Value {
    json!({"type": "Reference", "ref": {"name": format!("{}-{name}", scene.namespace)}})
}

/// Returns a composite, with what Crossplane itself reads.
fn composite(scene: &Scene<'_>, name: &str, spec: &Value) -> Value {
    json!({"apiVersion": format!("{}.example.org/v1", scene.namespace), "kind": "XThing", "spec": spec,
           "metadata": {"name": name, "namespace": scene.namespace}})
}

pub fn by_composition(scene: &Scene<'_>, more: Value) -> Value {
    let mut spec = json!({"compositionRef": {"name": format!("{}-main", scene.namespace)}});
    json_patch::merge(&mut spec, &more);
    spec
}

#[track_caller]
fn ready(scene: &Scene<'_>, name: &str) -> Value {
    scene.wait("xthings", name, "ready", |object| is(object, "Ready", "True") && is(object, "Synced", "True"))
}

/// Waits until what a composite composes holds these values.
#[track_caller]
fn composed(scene: &Scene<'_>, name: &str, data: &Value) {
    scene.eventually(&format!("{name} composes {data}"), || {
        let reference = scene.get("xthings", name)?.pointer("/spec/crossplane/resourceRefs/0/name")?.clone();
        let found = scene.get("configmaps", reference.as_str()?)?;
        (found["data"] == *data).then_some(())
    });
}

fn from_composite() -> Value {
    json!({"type": "FromCompositeFieldPath", "fromFieldPath": "spec.size", "toFieldPath": "data.size"})
}

fn from_environment(from: &str, to: &str) -> Value {
    json!({"type": "FromEnvironmentFieldPath", "fromFieldPath": from, "toFieldPath": to})
}

fn patches(scene: &Scene<'_>) {
    define_things(scene);
    scene.apply(&composition(scene, "main", &json!([]), &json!([]), &json!([from_composite()])).to_string());
    let spec = json!({"size": "small", "crossplane": by_composition(scene, json!({}))});
    scene.apply(&composite(scene, "thing", &spec).to_string());
    ready(scene, "thing");
    composed(scene, "thing", &json!({"fixed": "yes", "size": "small"}));
    scene.snapshot("ready");
}

/// The API server prunes what is written there: whoever writes it again at every update never comes to rest.
fn no_such_field(scene: &Scene<'_>) {
    define_things(scene);
    let environment = json!([
        {"type": "FromCompositeFieldPath", "fromFieldPath": "spec.size", "toFieldPath": "size"},
        {"type": "ToCompositeFieldPath", "fromFieldPath": "size", "toFieldPath": "spec.missing"},
        {"type": "ToCompositeFieldPath", "fromFieldPath": "size", "toFieldPath": "status.missing"},
    ]);
    let patches = json!([from_environment("size", "data.size")]);
    scene.apply(&composition(scene, "main", &json!([]), &environment, &patches).to_string());
    let spec = json!({"size": "small", "crossplane": by_composition(scene, json!({}))});
    scene.apply(&composite(scene, "thing", &spec).to_string());
    composed(scene, "thing", &json!({"fixed": "yes", "size": "small"}));
    scene.snapshot("composed");
    scene.kubectl(&[
        "patch",
        &format!("xthings.{}.example.org", scene.namespace),
        "thing",
        "--type=merge",
        "-p",
        r#"{"spec":{"size":"large"}}"#,
    ]);
    composed(scene, "thing", &json!({"fixed": "yes", "size": "large"}));
    scene.snapshot("changed");
}

fn references(scene: &Scene<'_>) {
    define_things(scene);
    environment_config(scene, "base", &json!({}), &json!({"region": "eu-1", "tier": "small"}));
    environment_config(scene, "prod", &json!({"stage": "prod"}), &json!({"tier": "large"}));
    environment_config(scene, "dev", &json!({"stage": "dev"}), &json!({"tier": "tiny"}));
    let labels = json!([
        {"type": "FromCompositeFieldPath", "key": "stage", "valueFromFieldPath": "spec.stage"},
        {"type": "Value", "key": "scene", "value": scene.namespace},
    ]);
    let selector = json!({"type": "Selector", "selector": {"mode": "Single", "matchLabels": labels}});
    let configs = json!([reference(scene, "base"), selector]);
    let environment =
        json!([{"type": "ToCompositeFieldPath", "fromFieldPath": "region", "toFieldPath": "status.region"}]);
    let patches = json!([from_environment("region", "data.region"), from_environment("tier", "data.tier")]);
    scene.apply(&composition(scene, "main", &configs, &environment, &patches).to_string());
    for stage in ["prod", "dev"] {
        let spec = json!({"stage": stage, "crossplane": by_composition(scene, json!({}))});
        scene.apply(&composite(scene, stage, &spec).to_string());
    }
    composed(scene, "prod", &json!({"fixed": "yes", "region": "eu-1", "tier": "large"}));
    composed(scene, "dev", &json!({"fixed": "yes", "region": "eu-1", "tier": "tiny"}));
    scene.wait("xthings", "prod", "told its region", |object| object["status"]["region"] == "eu-1");
    scene.snapshot("ready");
}

/// One composite keeps the revision that it was created with, the other one follows the Composition.
fn pinned(scene: &Scene<'_>) {
    define_things(scene);
    environment_config(scene, "old", &json!({}), &json!({"region": "old"}));
    environment_config(scene, "new", &json!({}), &json!({"region": "new"}));
    let patches = json!([from_environment("region", "data.region")]);
    let with = |config: &str| composition(scene, "main", &json!([reference(scene, config)]), &json!([]), &patches);
    scene.apply(&with("old").to_string());
    for (name, policy) in [("pinned", "Manual"), ("following", "Automatic")] {
        let crossplane = by_composition(scene, json!({"compositionUpdatePolicy": policy}));
        scene.apply(&composite(scene, name, &json!({"crossplane": crossplane})).to_string());
        composed(scene, name, &json!({"fixed": "yes", "region": "old"}));
    }
    scene.apply(&with("new").to_string());
    composed(scene, "following", &json!({"fixed": "yes", "region": "new"}));
    let resource = format!("xthings.{}.example.org", scene.namespace);
    for name in ["pinned", "following"] {
        scene.kubectl(&["patch", &resource, name, "--type=merge", "-p", r#"{"spec":{"size":"large"}}"#]);
    }
    scene.rest();
    composed(scene, "pinned", &json!({"fixed": "yes", "region": "old"}));
    scene.snapshot("pinned");
}

fn optional(scene: &Scene<'_>) {
    define_things(scene);
    environment_config(scene, "base", &json!({}), &json!({"region": "eu-1"}));
    let configs = json!([reference(scene, "base"), reference(scene, "later")]);
    let patches = json!([from_environment("region", "data.region"), from_environment("tier", "data.tier")]);
    let mut composition = composition(scene, "main", &configs, &json!([]), &patches);
    composition["spec"]["pipeline"][0]["input"]["spec"]["policy"] = json!({"resolution": "Optional"});
    scene.apply(&composition.to_string());
    let spec = json!({"crossplane": by_composition(scene, json!({}))});
    scene.apply(&composite(scene, "thing", &spec).to_string());
    composed(scene, "thing", &json!({"fixed": "yes", "region": "eu-1"}));
    scene.snapshot("without");
    environment_config(scene, "later", &json!({}), &json!({"tier": "late"}));
    composed(scene, "thing", &json!({"fixed": "yes", "region": "eu-1", "tier": "late"}));
    scene.snapshot("with");
}

fn changed(scene: &Scene<'_>) {
    define_things(scene);
    environment_config(scene, "base", &json!({}), &json!({"region": "eu-1"}));
    let patches = json!([from_environment("region", "data.region")]);
    let configs = json!([reference(scene, "base")]);
    scene.apply(&composition(scene, "main", &configs, &json!([]), &patches).to_string());
    let spec = json!({"crossplane": by_composition(scene, json!({}))});
    scene.apply(&composite(scene, "thing", &spec).to_string());
    composed(scene, "thing", &json!({"fixed": "yes", "region": "eu-1"}));
    environment_config(scene, "base", &json!({}), &json!({"region": "eu-2"}));
    composed(scene, "thing", &json!({"fixed": "yes", "region": "eu-2"}));
    scene.snapshot("changed");
}

fn update(scene: &Scene<'_>) {
    define_things(scene);
    scene.apply(&composition(scene, "main", &json!([]), &json!([]), &json!([from_composite()])).to_string());
    let thing = |size: &str| {
        composite(scene, "thing", &json!({"size": size, "crossplane": by_composition(scene, json!({}))})).to_string()
    };
    scene.apply(&thing("small"));
    composed(scene, "thing", &json!({"fixed": "yes", "size": "small"}));
    scene.apply(&thing("large"));
    composed(scene, "thing", &json!({"fixed": "yes", "size": "large"}));
    let upper = json!({"type": "FromCompositeFieldPath", "fromFieldPath": "spec.size", "toFieldPath": "data.size",
                       "transforms": [{"type": "string", "string": {"type": "Convert", "convert": "ToUpper"}}]});
    scene.apply(&composition(scene, "main", &json!([]), &json!([]), &json!([upper])).to_string());
    composed(scene, "thing", &json!({"fixed": "yes", "size": "LARGE"}));
    scene.snapshot("changed");
}

/// Nothing collects garbage here, so what was composed stays.
fn delete(scene: &Scene<'_>) {
    define_things(scene);
    scene.apply(&composition(scene, "main", &json!([]), &json!([]), &json!([from_composite()])).to_string());
    let spec = json!({"size": "small", "crossplane": by_composition(scene, json!({}))});
    scene.apply(&composite(scene, "thing", &spec).to_string());
    composed(scene, "thing", &json!({"fixed": "yes", "size": "small"}));
    scene.kubectl(&["delete", &format!("xthings.{}.example.org", scene.namespace), "thing", "--wait=false"]);
    scene.wait_gone("xthings", "thing");
    scene.snapshot("deleted");
}
