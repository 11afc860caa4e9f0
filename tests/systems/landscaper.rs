//! Tests with Landscaper, its manifest deployer, and its mock deployer, which deploys nothing.

use std::process::Command;

use serde_json::{Value, json};

use crate::account::{Account, LANDSCAPER, MANIFEST_DEPLOYER, MOCK_DEPLOYER};
use crate::cluster::Cluster;
use crate::context::Context;
use crate::daemon::Daemon;
use crate::gate;
use crate::programs;
use crate::push::{Packing, Pusher, v2};
use crate::system::{Kind, Scenario, System, program};
use crate::testbed::Fixtures;
use crate::user::User;

/// The test system with Landscaper.
pub const SYSTEM: System = System {
    name: "landscaper",
    title: || format!("Landscaper {}", programs::pin(PIN).version().trim_start_matches('v')),
    pins: &[PIN],
    prepare: publish_components,
    start,
    configuration,
    is_active: |cluster| gate::is_denied(cluster, "portcullis.dev", PROBE),
    reconcile: &["--dry-run-deployer"],
    kinds: |_| {
        let of_landscaper = [
            ("Installation", "installations"),
            ("Execution", "executions"),
            ("DeployItem", "deployitems"),
            ("DataObject", "dataobjects"),
            ("Context", "contexts"),
        ];
        let of_landscaper = of_landscaper.map(|(kind, plural)| Kind::namespaced(VERSION, kind, plural));
        let others = [("ConfigMap", "configmaps"), ("Secret", "secrets")];
        let others = others.map(|(kind, plural)| Kind::namespaced("v1", kind, plural));
        of_landscaper.into_iter().chain(others).collect()
    },
    // The scenarios themselves wait for the expected phases.
    is_converged: |_| true,
    scenarios: &[
        Scenario::new("plain", "an Installation deploys a manifest and exports a value", plain),
        Scenario::new("mock", "an Installation with the mock deployer", mock),
        Scenario::new("update", "the Installation changes what it deploys", update),
        Scenario::new("overwrites", "a component's version is overwritten", overwrites),
        Scenario::new("dry-then-real", "a dry run, and a real run after it with updateOnChangeOnly", dry_then_real),
        Scenario::new("dry-beside", "a dry run beside the real deployer deploys nothing", dry_beside),
        Scenario::new("failing", "a deployment fails, and succeeds when it is repaired", failing),
        Scenario::new("subinstallations", "sub-installations hand on an export", subinstallations),
        Scenario::new("delete", "an Installation is deleted with what it deployed", delete),
    ],
};

const PIN: &str = "landscaper";
const VERSION: &str = "landscaper.gardener.cloud/v1alpha1";
const MANIFEST: &str = "landscaper.gardener.cloud/kubernetes-manifest";
const MOCK: &str = "landscaper.gardener.cloud/mock";
const DRY_RUN: &str = "landscaper.gardener.cloud/dry-run";
const DRY_RUN_CONFIGURATION: &str = "landscaper.gardener.cloud/dry-run-configuration";
/// An object of the kind ComponentVersionOverwrites that portcullis denies. Tests create it in a dry run to detect that
/// the webhooks are active.
const PROBE: &str = "apiVersion: landscaper.gardener.cloud/v1alpha1
kind: ComponentVersionOverwrites
metadata: {name: probe, namespace: default}
overwrites: [{source: {}, substitution: {repositoryContext: none}}]
";

fn publish_components(fixtures: &Fixtures) {
    let url = fixtures.registry.as_ref().expect("the system has a registry").url();
    let pusher = Pusher::new(&url, None, None);
    for version in ["v1.0.0", "v2.0.0"] {
        let mut descriptor = v2("example.org/app", version, &[]);
        // Landscaper rejects a component descriptor without a repository context.
        descriptor["component"]["repositoryContexts"] = json!([{"type": "ociRegistry", "baseUrl": url}]);
        pusher.component("", &descriptor, Packing::Archive);
    }
}

fn configuration(_: &Fixtures) -> String {
    json!({
        "rules": {"DP": "deny", "DR": "deny", "LS": "deny", "OW": "deny"},
        "mutators": {"dry-run": "apply"},
        "deployers": {
            "landscaper": {"users": [LANDSCAPER.user()]},
            "identities": [
                {"users": [MANIFEST_DEPLOYER.user()], "types": [MANIFEST]},
                {"users": [MOCK_DEPLOYER.user()], "types": [MOCK]},
                {"users": [User::ControllerManager.name()], "types": ["portcullis.dev/dry-run"]},
            ],
        },
    })
    .to_string()
}

fn start(cluster: &Cluster, fixtures: &Fixtures) -> Vec<Daemon> {
    cluster.kubectl().args(["create", "namespace", LANDSCAPER.namespace]).run().expect_success();
    let file = fixtures.folder.path().join("landscaper.yaml");
    let text = "apiVersion: config.landscaper.gardener.cloud/v1alpha1\nkind: LandscaperConfiguration\nregistry: {oci: \
                {allowPlainHttp: true, insecureSkipVerify: true}}\nlsDeployments: {lsController: landscaper, \
                lsMainController: landscaper-main, webHook: none, deploymentsNamespace: ls-system, lsHealthCheckName: \
                health}\n";
    std::fs::write(&file, text).expect("the file can be written");
    let config = format!("--config={}", file.display());
    vec![
        start_controller(cluster, fixtures, LANDSCAPER, "landscaper-controller", "central-landscaper", &[&config]),
        start_controller(cluster, fixtures, LANDSCAPER, "landscaper-controller", "main-landscaper", &[&config]),
        start_controller(
            cluster,
            fixtures,
            MANIFEST_DEPLOYER,
            "manifest-deployer-controller",
            "manifest-deployer",
            &[],
        ),
        start_controller(cluster, fixtures, MOCK_DEPLOYER, "mock-deployer-controller", "mock-deployer", &[]),
    ]
}

fn start_controller(
    cluster: &Cluster,
    fixtures: &Fixtures,
    account: Account,
    file: &str,
    name: &'static str,
    arguments: &[&str],
) -> Daemon {
    let mut command = Command::new(program(PIN, file));
    command.env("KUBECONFIG", account.kubeconfig(cluster).expect("the kubeconfig can be written"));
    command.env("LANDSCAPER_MODE", name).env("MY_POD_NAME", name).env("MY_POD_NAMESPACE", account.namespace);
    command.env("TMPDIR", fixtures.folder.path()).env("HOME", fixtures.folder.path()).args(arguments);
    let log = cluster.folder().join(format!("{name}.log"));
    Daemon::start(name, &mut command, &log).unwrap_or_else(|error| panic!("{error}"))
}

/// Waits until Landscaper has created the default Context, and then creates the Target `cluster`, which refers to this
/// cluster.
fn create_target(ctx: &Context<'_>) {
    ctx.wait_for("contexts", "default", "there", |_| true);
    let kubeconfig =
        std::fs::read_to_string(ctx.testbed().cluster.kubeconfig(User::Admin)).expect("the file can be read");
    // The CA certificate must be inlined, because a Target contains a complete kubeconfig.
    let authority = std::fs::read(ctx.testbed().cluster.folder().join("tls.crt")).expect("the file can be read");
    let path = ctx.testbed().cluster.folder().join("tls.crt");
    let inline = base64::Engine::encode(&base64::engine::general_purpose::STANDARD, authority);
    let from = format!("certificate-authority: \"{}\"", path.display());
    let kubeconfig = kubeconfig.replace(&from, &format!("certificate-authority-data: \"{inline}\""));
    let target = json!({
        "apiVersion": VERSION, "kind": "Target", "metadata": {"name": "cluster", "namespace": ctx.namespace},
        "spec": {"type": "landscaper.gardener.cloud/kubernetes-cluster", "config": {"kubeconfig": kubeconfig}},
    });
    ctx.apply(&target.to_string());
}

/// A builder for the Installation `root` of a scenario.
struct Installation<'a> {
    blueprint: Value,
    /// The template in `deployExecutions` of the blueprint, as text. The text `$NS` stands for the namespace.
    items: &'a str,
    annotations: Vec<(&'a str, &'a str)>,
    spec: Value,
}

impl<'a> Installation<'a> {
    fn new(items: &'a str) -> Self {
        let import = json!([{"name": "cluster", "type": "target",
                             "targetType": "landscaper.gardener.cloud/kubernetes-cluster"}]);
        let export = json!([{"name": "value", "type": "data", "schema": {"type": "string"}}]);
        let exports = "exports:\n  value: {{ index .values.deployitems.item.value }}\n";
        let blueprint = json!({
            "apiVersion": VERSION, "kind": "Blueprint", "jsonSchema": "https://json-schema.org/draft/2019-09/schema",
            "imports": import, "exports": export,
            "exportExecutions": [{"name": "default", "type": "GoTemplate", "template": exports}],
        });
        let spec = json!({
            "context": "default",
            "imports": {"targets": [{"name": "cluster", "target": "cluster"}]},
            "exports": {"data": [{"name": "value", "dataRef": "value"}]},
        });
        Self { blueprint, items, annotations: Vec::new(), spec }
    }

    fn object(&self, namespace: &str) -> Value {
        let mut blueprint = self.blueprint.clone();
        let items = self.items.replace("$NS", namespace);
        blueprint["deployExecutions"] = json!([{"name": "default", "type": "GoTemplate", "template": items}]);
        let mut spec = self.spec.clone();
        spec["blueprint"] = json!({"inline": {"filesystem": {"blueprint.yaml": blueprint.to_string()}}});
        let mut annotations = json!({"landscaper.gardener.cloud/operation": "reconcile"});
        for (key, value) in &self.annotations {
            annotations[*key] = (*value).into();
        }
        json!({"apiVersion": VERSION, "kind": "Installation", "spec": spec,
               "metadata": {"name": "root", "namespace": namespace, "annotations": annotations}})
    }

    /// Applies the Installation, and waits until Landscaper has finished a new job, and the Installation has the phase
    /// `phase`. Returns the Installation.
    #[track_caller]
    fn process(&self, ctx: &Context<'_>, phase: &str) -> Value {
        let job = |object: &Value| object["status"]["jobIDFinished"].clone();
        let before = ctx.get("installations", "root").map(|object| job(&object)).unwrap_or_default();
        ctx.apply(&self.object(&ctx.namespace).to_string());
        let is_expected = |object: &Value| {
            let (status, annotations) = (&object["status"], &object["metadata"]["annotations"]);
            status["phase"] == phase
                && status["jobID"] == status["jobIDFinished"]
                && job(object) != before
                && annotations["landscaper.gardener.cloud/operation"].is_null()
        };
        ctx.wait_for("installations", "root", &format!("{phase} with a new job"), is_expected)
    }
}

/// Returns a template with one DeployItem. The item deploys a ConfigMap that contains `value`, and exports this value.
/// `more` contains additional lines of the item.
fn manifest(value: &str, more: &str) -> String {
    format!(
        "deployItems:
- name: item
  type: {MANIFEST}
  target: {{import: cluster}}
{more}  config:
    apiVersion: manifest.deployer.landscaper.gardener.cloud/v1alpha2
    kind: ProviderConfiguration
    updateStrategy: update
    manifests:
    - policy: manage
      manifest:
        apiVersion: v1
        kind: ConfigMap
        metadata: {{name: deployed, namespace: $NS}}
        data: {{key: {value}}}
    exports:
      exports:
      - key: value
        fromResource: {{apiVersion: v1, kind: ConfigMap, name: deployed, namespace: $NS}}
        jsonPath: .data.key
"
    )
}

#[track_caller]
fn wait_until_deployed(ctx: &Context<'_>, value: &str) {
    ctx.wait_for("configmaps", "deployed", &format!("deployed with {value}"), |object| object["data"]["key"] == value);
}

fn plain(ctx: &Context<'_>) {
    create_target(ctx);
    Installation::new(&manifest("one", "")).process(ctx, "Succeeded");
    wait_until_deployed(ctx, "one");
    ctx.snapshot("succeeded");
}

fn mock(ctx: &Context<'_>) {
    create_target(ctx);
    let items = format!(
        "deployItems:\n- name: item\n  type: {MOCK}\n  target: {{import: cluster}}\n  config:\n    apiVersion: \
         mock.deployer.landscaper.gardener.cloud/v1alpha1\n    kind: ProviderConfiguration\n    phase: Succeeded\n    \
         export: {{value: mocked}}\n"
    );
    Installation::new(&items).process(ctx, "Succeeded");
    ctx.snapshot("succeeded");
}

fn update(ctx: &Context<'_>) {
    create_target(ctx);
    let only_changes = "  updateOnChangeOnly: true\n";
    Installation::new(&manifest("one", only_changes)).process(ctx, "Succeeded");
    wait_until_deployed(ctx, "one");
    Installation::new(&manifest("one", only_changes)).process(ctx, "Succeeded");
    Installation::new(&manifest("two", only_changes)).process(ctx, "Succeeded");
    wait_until_deployed(ctx, "two");
    ctx.snapshot("updated");
}

fn repository_context(ctx: &Context<'_>) -> Value {
    let registry = ctx.testbed().fixtures.registry.as_ref().expect("the system has a registry");
    json!({"type": "ociRegistry", "baseUrl": registry.url()})
}

/// Checks that Landscaper uses the component version from the overwrites. The blueprint deploys a ConfigMap that
/// contains the version of its component.
fn overwrites(ctx: &Context<'_>) {
    create_target(ctx);
    let overwrites = json!({
        "apiVersion": VERSION, "kind": "ComponentVersionOverwrites",
        "metadata": {"name": "overwrites", "namespace": ctx.namespace},
        "overwrites": [{"source": {"componentName": "example.org/app", "version": "v1.0.0"},
                        "substitution": {"version": "v2.0.0"}}],
    });
    ctx.apply(&overwrites.to_string());
    let object = json!({"apiVersion": VERSION, "kind": "Context", "repositoryContext": repository_context(ctx),
                        "metadata": {"name": "overwritten", "namespace": ctx.namespace},
                        "componentVersionOverwrites": "overwrites"});
    ctx.apply(&object.to_string());
    let items = manifest("{{ .cd.component.version }}", "");
    let mut installation = Installation::new(&items);
    installation.spec["context"] = "overwritten".into();
    installation.spec["componentDescriptor"] =
        json!({"ref": {"componentName": "example.org/app", "version": "v1.0.0"}});
    installation.process(ctx, "Succeeded");
    wait_until_deployed(ctx, "v2.0.0");
    ctx.snapshot("succeeded");
}

fn dry_run_configuration(ctx: &Context<'_>) {
    let configuration = json!({
        "apiVersion": VERSION, "kind": "DryRunConfiguration",
        "metadata": {"name": "exports", "namespace": ctx.namespace},
        "spec": {"exports": [{"apiVersion": "v1", "kind": "ConfigMap", "data": {"key": "from the dry run"},
                              "metadata": {"name": "deployed", "namespace": ctx.namespace}}]},
    });
    ctx.apply(&configuration.to_string());
}

/// Processes an Installation with the DeployItem template `items` as a dry run. Callers ensure that portcullis runs.
/// Checks that nothing is deployed, and that the value of the export comes from the DryRunConfiguration.
fn dry_run(ctx: &Context<'_>, items: &str) {
    dry_run_configuration(ctx);
    let mut installation = Installation::new(items);
    installation.annotations = vec![(DRY_RUN, "true"), (DRY_RUN_CONFIGURATION, "exports")];
    installation.process(ctx, "Succeeded");
    ctx.wait_until_stable();
    assert!(ctx.get("configmaps", "deployed").is_none(), "a dry run must not deploy anything");
    let value = ctx.get("dataobjects", "value").map(|object| object["data"].clone());
    assert_eq!(value, Some(json!("from the dry run")));
}

/// Processes an Installation first as a dry run, and then as a real run. Without portcullis, only the real run takes
/// place, because dry runs need portcullis. So only the results of the real run are compared.
fn dry_then_real(ctx: &Context<'_>) {
    create_target(ctx);
    let items = manifest("one", "  updateOnChangeOnly: true\n");
    if ctx.has_webhooks() {
        dry_run(ctx, &items);
        let remove = [format!("{DRY_RUN}-"), format!("{DRY_RUN_CONFIGURATION}-")];
        ctx.kubectl(&["annotate", "installation", "root", &remove[0], &remove[1]]);
    }
    Installation::new(&items).process(ctx, "Succeeded");
    wait_until_deployed(ctx, "one");
    ctx.wait_for("dataobjects", "value", "what was deployed", |object| object["data"] == "one");
    ctx.snapshot_of("real run", &["configmaps"]);
}

/// Checks that a dry run deploys nothing while the real deployer runs. The later deletion of the Installation must not
/// deploy anything either.
fn dry_beside(ctx: &Context<'_>) {
    create_target(ctx);
    if ctx.has_webhooks() {
        dry_run(ctx, &manifest("one", ""));
        ctx.kubectl(&["delete", "installation", "root", "--wait=false"]);
        ctx.wait_until_gone("installations", "root");
        assert!(ctx.get("configmaps", "deployed").is_none(), "the deletion of a dry run must not deploy anything");
    }
    ctx.snapshot_of("nothing", &["configmaps", "installations", "executions", "deployitems"]);
}

fn failing(ctx: &Context<'_>) {
    create_target(ctx);
    let items = manifest("one", "  timeout: 5s\n").replacen("kind: ConfigMap", "kind: NoSuchKind", 1);
    Installation::new(&items).process(ctx, "Failed");
    ctx.snapshot_of("failed", &["configmaps", "dataobjects"]);
    Installation::new(&manifest("one", "")).process(ctx, "Succeeded");
    wait_until_deployed(ctx, "one");
    ctx.snapshot("repaired");
}

fn subinstallations(ctx: &Context<'_>) {
    create_target(ctx);
    let items = manifest("one", "");
    let first = Installation::new(&items);
    let second = format!(
        "deployItems:\n- name: item\n  type: {MOCK}\n  target: {{import: cluster}}\n  config:\n    apiVersion: \
         mock.deployer.landscaper.gardener.cloud/v1alpha1\n    kind: ProviderConfiguration\n    phase: Succeeded\n    \
         export: {{value: \"{{{{ .imports.input }}}} again\"}}\n"
    );
    let mut second = Installation::new(&second);
    let inputs = second.blueprint["imports"].as_array_mut().expect("the blueprint has imports");
    inputs.push(json!({"name": "input", "type": "data", "schema": {"type": "string"}}));
    let filesystem = |installation: &Installation<'_>| {
        let object = installation.object(&ctx.namespace);
        object["spec"]["blueprint"]["inline"]["filesystem"].clone()
    };
    let template = |name: &str, installation: &Installation<'_>, imports: Value, export: &str| {
        let imports = json!({"targets": [{"name": "cluster", "target": "cluster"}], "data": imports});
        json!({"apiVersion": VERSION, "kind": "InstallationTemplate", "name": name, "imports": imports,
               "exports": {"data": [{"name": "value", "dataRef": export}]},
               "blueprint": {"filesystem": filesystem(installation)}})
    };
    let input = json!([{"name": "input", "dataRef": "between"}]);
    let mut root = Installation::new("deployItems: []\n");
    root.blueprint["subinstallations"] =
        json!([template("first", &first, json!([]), "between"), template("second", &second, input, "last")]);
    let exports = "exports:\n  value: {{ index .values.dataobjects.last }}\n";
    // Without a component reference, Landscaper writes an empty one into sub-installations. Its own webhook server
    // rejects such sub-installations too.
    root.spec["componentDescriptor"] = json!({"ref": {"repositoryContext": repository_context(ctx),
                                                      "componentName": "example.org/app", "version": "v1.0.0"}});
    root.blueprint["exportExecutions"] = json!([{"name": "default", "type": "GoTemplate", "template": exports}]);
    root.process(ctx, "Succeeded");
    wait_until_deployed(ctx, "one");
    // DataObjects are not in the snapshot, because their names are digests of generated names.
    ctx.snapshot_of("succeeded", &["configmaps", "installations", "executions", "deployitems"]);
}

fn delete(ctx: &Context<'_>) {
    create_target(ctx);
    Installation::new(&manifest("one", "")).process(ctx, "Succeeded");
    wait_until_deployed(ctx, "one");
    ctx.kubectl(&["delete", "installation", "root", "--wait=false"]);
    ctx.wait_until_gone("installations", "root");
    ctx.wait_until_gone("configmaps", "deployed");
    ctx.snapshot_of("deleted", &["configmaps", "installations", "executions", "deployitems", "dataobjects"]);
}
