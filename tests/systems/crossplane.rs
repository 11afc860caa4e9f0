//! Tests with Crossplane 2. The Composition functions run as processes on this machine.
//!
//! Crossplane's package manager does not install the functions. Instead, the tests create a FunctionRevision for each
//! function, which contains the address of its process. The package manager ignores these FunctionRevisions.

use std::fs;
use std::net::TcpStream;
use std::process::Command;
use std::time::Duration;

use serde_json::{Value, json};

use crate::account::CROSSPLANE;
use crate::cluster::Cluster;
use crate::context::{Context, DEADLINE, has_condition};
use crate::daemon::Daemon;
use crate::gate;
use crate::http;
use crate::pki::Authority;
use crate::programs;
use crate::system::{Kind, Scenario, System, program};
use crate::testbed::Fixtures;
use crate::user::User;

/// The test system with Crossplane 2.
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
    is_active: |cluster| gate::is_denied(cluster, "portcullis.dev", PROBE),
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
    is_converged,
    scenarios: &[
        Scenario::new("patches", "a composite's fields are patched into what it composes", patches),
        Scenario::new("no-such-field", "an environment patch writes to a field that the schema lacks", no_such_field),
        scenario_with_environments("references", "EnvironmentConfigs by reference and by selector", references),
        scenario_with_environments("pinned", "a pinned CompositionRevision keeps its environment", pinned),
        scenario_with_environments("optional", "an optional reference that comes later", optional),
        scenario_with_environments("changed", "an EnvironmentConfig changes", changed),
        Scenario::new("update", "the composite and its Composition change", update),
        Scenario::new("delete", "a composite is deleted", delete),
    ],
};

const fn scenario_with_environments(
    name: &'static str,
    description: &'static str,
    steps: fn(&Context<'_>),
) -> Scenario {
    Scenario { needs: Some(ENVIRONMENTS), ..Scenario::new(name, description, steps) }
}

const PIN: &str = "crossplane-2";
pub const TRANSFORM: &str = "function-patch-and-transform";
const ENVIRONMENTS: &str = "function-environment-configs";
const FUNCTIONS: [&str; 2] = [TRANSFORM, ENVIRONMENTS];
/// The argument that sets how often Crossplane reconciles a composite that has not changed.
pub const POLL: &str = "--poll-interval=3s";
/// A Composition that portcullis denies. Tests create it repeatedly in a dry run, to detect when the webhooks are
/// active.
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

pub fn configuration(_: &Fixtures) -> String {
    "environmentConfigs: {onChange: deny}\ncomposites: [\"*\"]\n".to_owned()
}

/// Returns whether Crossplane has finished processing a composite or claim: both `Synced` and `Ready` are true. It is
/// not sufficient to wait until the object stays unchanged, because Crossplane retries with increasing delays after a
/// conflict. An object without a status counts as finished, because Crossplane cannot write the status of some
/// composites.
pub fn is_converged(object: &Value) -> bool {
    let is_reconciled = ["XThing", "Thing"].iter().any(|kind| object["kind"] == *kind);
    !is_reconciled
        || object["status"].is_null()
        || ["Synced", "Ready"].iter().all(|condition| has_condition(object, condition, "True"))
}

fn start(cluster: &Cluster, fixtures: &Fixtures) -> Vec<Daemon> {
    prepare(cluster, fixtures);
    let functions = FUNCTIONS.into_iter().filter(|name| programs::pin(name).is_built());
    let mut daemons: Vec<_> = functions.map(|name| start_function(cluster, fixtures, name)).collect();
    daemons.push(start_crossplane(cluster, fixtures));
    daemons
}

/// Creates the namespace of Crossplane. Writes the TLS certificates with which Crossplane and its functions
/// authenticate each other.
pub fn prepare(cluster: &Cluster, fixtures: &Fixtures) {
    cluster.kubectl().args(["create", "namespace", CROSSPLANE.namespace]).run().expect_success();
    let authority = Authority::new();
    let folder = |name: &str| fixtures.folder.path().join(name);
    for (name, leaf) in [("server", authority.leaf()), ("client", authority.client("crossplane", &[]))] {
        fs::create_dir_all(folder(name)).expect("the folder can be created");
        for (file, text) in [("tls.crt", leaf.chain), ("tls.key", leaf.key), ("ca.crt", authority.root_pem())] {
            fs::write(folder(name).join(file), text).expect("the file can be written");
        }
    }
}

/// Starts a Composition function as a process. Creates a FunctionRevision that contains the address of this process.
pub fn start_function(cluster: &Cluster, fixtures: &Fixtures, name: &'static str) -> Daemon {
    let port = fixtures.port(name);
    let mut command = Command::new(program(name, name));
    command.arg(format!("--address=127.0.0.1:{port}"));
    command.env("TLS_SERVER_CERTS_DIR", fixtures.folder.path().join("server"));
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

fn start_crossplane(cluster: &Cluster, fixtures: &Fixtures) -> Daemon {
    let health = fixtures.port("crossplane-health");
    let mut command = Command::new(program(PIN, "crossplane"));
    command.env("KUBECONFIG", CROSSPLANE.kubeconfig(cluster).expect("the kubeconfig can be written"));
    command.args(["core", "start", "--enable-webhooks=false", POLL, "--package-runtime=External"]);
    command.args([format!("--health-probe-port={health}"), format!("--metrics-port={}", fixtures.port("metrics"))]);
    let folder = |name: &str| fixtures.folder.path().join(name).display().to_string();
    command.args([format!("--xpkg-cache-dir={}", folder("")), format!("--tls-client-certs-dir={}", folder("client"))]);
    let log = cluster.folder().join("crossplane.log");
    let daemon = Daemon::start("crossplane", &mut command, &log).unwrap_or_else(|error| panic!("{error}"));
    let ready = daemon.wait_until(DEADLINE, || http::is_ok(&http::get(health, "/readyz")));
    ready.unwrap_or_else(|error| panic!("{error}"));
    daemon
}

/// Creates a CompositeResourceDefinition for the kind `XThing`. The name of the API group contains the namespace of the
/// scenario.
fn define_things(ctx: &Context<'_>) {
    let schema = json!({"type": "object", "properties": {
        "spec": {"type": "object", "properties": {"size": {"type": "string"}, "stage": {"type": "string"}}},
        "status": {"type": "object", "properties": {"region": {"type": "string"}}},
    }});
    let group = format!("{}.example.org", ctx.namespace);
    let spec = json!({"scope": "Namespaced", "group": group, "names": {"kind": "XThing", "plural": "xthings"},
                      "versions": [{"name": "v1", "served": true, "referenceable": true,
                                    "schema": {"openAPIV3Schema": schema}}]});
    define(ctx, "apiextensions.crossplane.io/v2", &spec);
}

/// Applies a CompositeResourceDefinition with this `spec`. Waits until Crossplane has established the kind of the
/// composite, and until the webhooks of portcullis include this kind.
pub fn define(ctx: &Context<'_>, api_version: &str, spec: &Value) {
    let group = format!("{}.example.org", ctx.namespace);
    let definition = json!({"apiVersion": api_version, "kind": "CompositeResourceDefinition", "spec": spec,
                            "metadata": {"name": format!("xthings.{group}")}});
    // The cluster has no controller that aggregates ClusterRoles. So the rights that the documentation asks for are
    // bound directly.
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
    ctx.apply(&format!("{role}\n---\n{binding}\n---\n{definition}"));
    let established = ["wait", "--for=condition=Established", "--timeout=150s", "compositeresourcedefinition"];
    ctx.kubectl(&[&established[..], &[&format!("xthings.{group}")]].concat());
    if ctx.has_webhooks() {
        ctx.eventually("the webhooks name the composites", || {
            let get = ["get", "mutatingwebhookconfiguration", "portcullis-composites", "-o", "json"];
            ctx.kubectl(&get).stdout.contains(&group).then_some(())
        });
    }
}

/// Returns a Composition that composes one ConfigMap. `configs` selects the EnvironmentConfigs. `environment` contains
/// the patches that copy values between the environment and the composite. `patches` contains the patches for the
/// ConfigMap.
fn composition(ctx: &Context<'_>, name: &str, configs: &Value, environment: &Value, patches: &Value) -> Value {
    let resources = json!({
        "apiVersion": "pt.fn.crossplane.io/v1beta1", "kind": "Resources", "environment": {"patches": environment},
        "resources": [{"name": "settings", "patches": patches, "readinessChecks": [{"type": "None"}],
                       "base": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {}, "data": {"fixed": "yes"}}}],
    });
    let input = json!({"apiVersion": "environmentconfigs.fn.crossplane.io/v1beta1", "kind": "Input",
                       "spec": {"environmentConfigs": configs}});
    let steps = [(ENVIRONMENTS, input, configs != &json!([])), (TRANSFORM, resources, true)];
    let steps = steps.into_iter().filter(|(.., is_needed)| *is_needed);
    let pipeline: Vec<_> =
        steps.map(|(name, input, _)| json!({"step": name, "functionRef": {"name": name}, "input": input})).collect();
    json!({
        "apiVersion": "apiextensions.crossplane.io/v1", "kind": "Composition",
        "metadata": {"name": format!("{}-{name}", ctx.namespace)},
        "spec": {"compositeTypeRef": {"apiVersion": format!("{}.example.org/v1", ctx.namespace), "kind": "XThing"},
                 "mode": "Pipeline", "pipeline": pipeline},
    })
}

pub fn environment_config(ctx: &Context<'_>, name: &str, labels: &Value, data: &Value) {
    let mut labels = labels.clone();
    labels["scenario"] = (*ctx.namespace).into();
    let version = ctx.kind("environmentconfigs").resource.api_version;
    let config = json!({
        "apiVersion": version, "kind": "EnvironmentConfig", "data": data,
        "metadata": {"name": format!("{}-{name}", ctx.namespace), "labels": labels},
    });
    ctx.apply(&config.to_string());
}

fn reference(ctx: &Context<'_>, name: &str) -> Value {
    json!({"type": "Reference", "ref": {"name": format!("{}-{name}", ctx.namespace)}})
}

/// Returns a composite with this `spec`. The field `spec.crossplane` contains the settings for Crossplane.
fn composite(ctx: &Context<'_>, name: &str, spec: &Value) -> Value {
    json!({"apiVersion": format!("{}.example.org/v1", ctx.namespace), "kind": "XThing", "spec": spec,
           "metadata": {"name": name, "namespace": ctx.namespace}})
}

pub fn by_composition(ctx: &Context<'_>, settings: Value) -> Value {
    let mut spec = json!({"compositionRef": {"name": format!("{}-main", ctx.namespace)}});
    json_patch::merge(&mut spec, &settings);
    spec
}

#[track_caller]
fn wait_until_ready(ctx: &Context<'_>, name: &str) -> Value {
    ctx.wait_for("xthings", name, "ready", |object| {
        has_condition(object, "Ready", "True") && has_condition(object, "Synced", "True")
    })
}

/// Waits until the ConfigMap that a composite composes contains exactly `data`.
#[track_caller]
fn wait_until_composed(ctx: &Context<'_>, name: &str, data: &Value) {
    ctx.eventually(&format!("{name} composes {data}"), || {
        let reference = ctx.get("xthings", name)?.pointer("/spec/crossplane/resourceRefs/0/name")?.clone();
        let found = ctx.get("configmaps", reference.as_str()?)?;
        (found["data"] == *data).then_some(())
    });
}

fn from_composite() -> Value {
    json!({"type": "FromCompositeFieldPath", "fromFieldPath": "spec.size", "toFieldPath": "data.size"})
}

fn from_environment(from: &str, to: &str) -> Value {
    json!({"type": "FromEnvironmentFieldPath", "fromFieldPath": from, "toFieldPath": to})
}

fn patches(ctx: &Context<'_>) {
    define_things(ctx);
    ctx.apply(&composition(ctx, "main", &json!([]), &json!([]), &json!([from_composite()])).to_string());
    let spec = json!({"size": "small", "crossplane": by_composition(ctx, json!({}))});
    ctx.apply(&composite(ctx, "thing", &spec).to_string());
    wait_until_ready(ctx, "thing");
    wait_until_composed(ctx, "thing", &json!({"fixed": "yes", "size": "small"}));
    ctx.snapshot("ready");
}

/// Tests environment patches that write to fields which the schema of the composite does not contain. The API server
/// prunes these fields. Checks that this does not cause endless updates.
fn no_such_field(ctx: &Context<'_>) {
    define_things(ctx);
    let environment = json!([
        {"type": "FromCompositeFieldPath", "fromFieldPath": "spec.size", "toFieldPath": "size"},
        {"type": "ToCompositeFieldPath", "fromFieldPath": "size", "toFieldPath": "spec.missing"},
        {"type": "ToCompositeFieldPath", "fromFieldPath": "size", "toFieldPath": "status.missing"},
    ]);
    let patches = json!([from_environment("size", "data.size")]);
    ctx.apply(&composition(ctx, "main", &json!([]), &environment, &patches).to_string());
    let spec = json!({"size": "small", "crossplane": by_composition(ctx, json!({}))});
    ctx.apply(&composite(ctx, "thing", &spec).to_string());
    wait_until_composed(ctx, "thing", &json!({"fixed": "yes", "size": "small"}));
    ctx.snapshot("composed");
    ctx.kubectl(&[
        "patch",
        &format!("xthings.{}.example.org", ctx.namespace),
        "thing",
        "--type=merge",
        "-p",
        r#"{"spec":{"size":"large"}}"#,
    ]);
    wait_until_composed(ctx, "thing", &json!({"fixed": "yes", "size": "large"}));
    ctx.snapshot("changed");
}

fn references(ctx: &Context<'_>) {
    define_things(ctx);
    environment_config(ctx, "base", &json!({}), &json!({"region": "eu-1", "tier": "small"}));
    environment_config(ctx, "prod", &json!({"stage": "prod"}), &json!({"tier": "large"}));
    environment_config(ctx, "dev", &json!({"stage": "dev"}), &json!({"tier": "tiny"}));
    let labels = json!([
        {"type": "FromCompositeFieldPath", "key": "stage", "valueFromFieldPath": "spec.stage"},
        {"type": "Value", "key": "scenario", "value": ctx.namespace},
    ]);
    let selector = json!({"type": "Selector", "selector": {"mode": "Single", "matchLabels": labels}});
    let configs = json!([reference(ctx, "base"), selector]);
    let environment =
        json!([{"type": "ToCompositeFieldPath", "fromFieldPath": "region", "toFieldPath": "status.region"}]);
    let patches = json!([from_environment("region", "data.region"), from_environment("tier", "data.tier")]);
    ctx.apply(&composition(ctx, "main", &configs, &environment, &patches).to_string());
    for stage in ["prod", "dev"] {
        let spec = json!({"stage": stage, "crossplane": by_composition(ctx, json!({}))});
        ctx.apply(&composite(ctx, stage, &spec).to_string());
    }
    wait_until_composed(ctx, "prod", &json!({"fixed": "yes", "region": "eu-1", "tier": "large"}));
    wait_until_composed(ctx, "dev", &json!({"fixed": "yes", "region": "eu-1", "tier": "tiny"}));
    ctx.wait_for("xthings", "prod", "annotated with its region", |object| object["status"]["region"] == "eu-1");
    ctx.snapshot("ready");
}

/// Checks that a composite with the update policy `Manual` keeps its CompositionRevision, and that a composite with the
/// policy `Automatic` uses the new revision.
fn pinned(ctx: &Context<'_>) {
    define_things(ctx);
    environment_config(ctx, "old", &json!({}), &json!({"region": "old"}));
    environment_config(ctx, "new", &json!({}), &json!({"region": "new"}));
    let patches = json!([from_environment("region", "data.region")]);
    let composition_with =
        |config: &str| composition(ctx, "main", &json!([reference(ctx, config)]), &json!([]), &patches);
    ctx.apply(&composition_with("old").to_string());
    for (name, policy) in [("pinned", "Manual"), ("following", "Automatic")] {
        let crossplane = by_composition(ctx, json!({"compositionUpdatePolicy": policy}));
        ctx.apply(&composite(ctx, name, &json!({"crossplane": crossplane})).to_string());
        wait_until_composed(ctx, name, &json!({"fixed": "yes", "region": "old"}));
    }
    ctx.apply(&composition_with("new").to_string());
    wait_until_composed(ctx, "following", &json!({"fixed": "yes", "region": "new"}));
    let resource = format!("xthings.{}.example.org", ctx.namespace);
    for name in ["pinned", "following"] {
        ctx.kubectl(&["patch", &resource, name, "--type=merge", "-p", r#"{"spec":{"size":"large"}}"#]);
    }
    ctx.wait_until_stable();
    wait_until_composed(ctx, "pinned", &json!({"fixed": "yes", "region": "old"}));
    ctx.snapshot("pinned");
}

fn optional(ctx: &Context<'_>) {
    define_things(ctx);
    environment_config(ctx, "base", &json!({}), &json!({"region": "eu-1"}));
    let configs = json!([reference(ctx, "base"), reference(ctx, "later")]);
    let patches = json!([from_environment("region", "data.region"), from_environment("tier", "data.tier")]);
    let mut composition = composition(ctx, "main", &configs, &json!([]), &patches);
    composition["spec"]["pipeline"][0]["input"]["spec"]["policy"] = json!({"resolution": "Optional"});
    ctx.apply(&composition.to_string());
    let spec = json!({"crossplane": by_composition(ctx, json!({}))});
    ctx.apply(&composite(ctx, "thing", &spec).to_string());
    wait_until_composed(ctx, "thing", &json!({"fixed": "yes", "region": "eu-1"}));
    ctx.snapshot("without");
    environment_config(ctx, "later", &json!({}), &json!({"tier": "late"}));
    wait_until_composed(ctx, "thing", &json!({"fixed": "yes", "region": "eu-1", "tier": "late"}));
    ctx.snapshot("with");
}

fn changed(ctx: &Context<'_>) {
    define_things(ctx);
    environment_config(ctx, "base", &json!({}), &json!({"region": "eu-1"}));
    let patches = json!([from_environment("region", "data.region")]);
    let configs = json!([reference(ctx, "base")]);
    ctx.apply(&composition(ctx, "main", &configs, &json!([]), &patches).to_string());
    let spec = json!({"crossplane": by_composition(ctx, json!({}))});
    ctx.apply(&composite(ctx, "thing", &spec).to_string());
    wait_until_composed(ctx, "thing", &json!({"fixed": "yes", "region": "eu-1"}));
    environment_config(ctx, "base", &json!({}), &json!({"region": "eu-2"}));
    wait_until_composed(ctx, "thing", &json!({"fixed": "yes", "region": "eu-2"}));
    ctx.snapshot("changed");
}

fn update(ctx: &Context<'_>) {
    define_things(ctx);
    ctx.apply(&composition(ctx, "main", &json!([]), &json!([]), &json!([from_composite()])).to_string());
    let thing = |size: &str| {
        composite(ctx, "thing", &json!({"size": size, "crossplane": by_composition(ctx, json!({}))})).to_string()
    };
    ctx.apply(&thing("small"));
    wait_until_composed(ctx, "thing", &json!({"fixed": "yes", "size": "small"}));
    ctx.apply(&thing("large"));
    wait_until_composed(ctx, "thing", &json!({"fixed": "yes", "size": "large"}));
    let upper = json!({"type": "FromCompositeFieldPath", "fromFieldPath": "spec.size", "toFieldPath": "data.size",
                       "transforms": [{"type": "string", "string": {"type": "Convert", "convert": "ToUpper"}}]});
    ctx.apply(&composition(ctx, "main", &json!([]), &json!([]), &json!([upper])).to_string());
    wait_until_composed(ctx, "thing", &json!({"fixed": "yes", "size": "LARGE"}));
    ctx.snapshot("changed");
}

/// Deletes a composite. The composed ConfigMap stays, because the cluster has no garbage collector.
fn delete(ctx: &Context<'_>) {
    define_things(ctx);
    ctx.apply(&composition(ctx, "main", &json!([]), &json!([]), &json!([from_composite()])).to_string());
    let spec = json!({"size": "small", "crossplane": by_composition(ctx, json!({}))});
    ctx.apply(&composite(ctx, "thing", &spec).to_string());
    wait_until_composed(ctx, "thing", &json!({"fixed": "yes", "size": "small"}));
    ctx.kubectl(&["delete", &format!("xthings.{}.example.org", ctx.namespace), "thing", "--wait=false"]);
    ctx.wait_until_gone("xthings", "thing");
    ctx.snapshot("deleted");
}
