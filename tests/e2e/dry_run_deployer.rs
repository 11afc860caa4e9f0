//! Tests of the dry-run deployer: it processes dry runs completely, including exports, without a real deployer or
//! Target in the cluster.

use std::process::Command;
use std::sync::{Arc, Mutex, PoisonError};

use futures::StreamExt as _;
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::api::events::v1::Event;
use kube::api::{Api, DynamicObject, ListParams, Patch};
use kube::runtime::watcher;
use portcullis::landscaper::annotations::ROUTE;
use serde_json::{Value, json};

use crate::Case;
use crate::context::Context;
use crate::controller_manager::{Options, RELEASE_LEASE_LOCK};
use crate::helm::NAMESPACE;
use crate::landscaper::{Landscaper, Template, name};
use crate::proxy::{Proxy, StopPoint};
use crate::sentences::{accepts, eventually};
use crate::user::User;

/// The tests of this file.
pub const CASES: &[Case] = &[
    ("dry_run_deployer::a_complete_dry_run_succeeds_with_the_exports_of_the_example", a_complete_dry_run_succeeds),
    ("dry_run_deployer::the_commands_of_the_example_work", the_commands_of_the_example_work),
    (
        "dry_run_deployer::a_wrong_export_path_fails_at_the_first_attempt",
        a_wrong_export_path_fails_at_the_first_attempt,
    ),
    ("dry_run_deployer::recovers_from_a_kill_at_any_write", recovers_from_a_kill_at_any_write),
    ("dry_run_deployer::passes_the_conformance_test", passes_the_conformance_test),
    ("dry_run_deployer::does_not_process_items_of_another_deployer", does_not_process_items_of_another_deployer),
];

const EXAMPLE_CONFIGURATION: &str = include_str!("../../examples/dry-run/configuration.yaml");
const EXAMPLE_INSTALLATION: &str = include_str!("../../examples/dry-run/installation.yaml");
const EXAMPLE_CONTEXT: &str = include_str!("../../examples/dry-run/context.yaml");
const MANIFEST: &str = "landscaper.gardener.cloud/kubernetes-manifest";
const HELM: &str = "landscaper.gardener.cloud/helm";
const DRY_RUN_ANNOTATIONS: [(&str, &str); 2] = [
    ("landscaper.gardener.cloud/dry-run", "true"),
    ("landscaper.gardener.cloud/dry-run-configuration", "test-dry-run"),
];

/// Returns the configuration of a DeployItem with the export of the example in `examples/dry-run`.
fn config_with_export() -> Value {
    json!({
        "apiVersion": "manifest.deployer.landscaper.gardener.cloud/v1alpha2", "kind": "ProviderConfiguration",
        "exports": {"exports": [{"key": "test-token", "jsonPath": ".data.token", "fromResource":
            {"apiVersion": "v1", "kind": "Secret", "name": "test-secret", "namespace": "example"}}]},
    })
}

fn chart_config() -> Value {
    json!({
        "apiVersion": "helm.deployer.landscaper.gardener.cloud/v1alpha1", "kind": "ProviderConfiguration",
        "chart": {"ref": "example.org/charts/nginx:1.0.0"}, "name": "nginx", "namespace": "example",
    })
}

fn create_namespace(ctx: &Context) -> String {
    prepare_namespace(ctx, "deployer")
}

fn prepare_namespace(ctx: &Context, prefix: &str) -> String {
    let ns = ctx.cluster.namespace(prefix);
    for yaml in [EXAMPLE_CONTEXT, EXAMPLE_CONFIGURATION] {
        accepts(ctx, &ns, &yaml.replace("namespace: cu-example", &format!("namespace: {ns}")));
    }
    ns
}

/// Creates a DeployItem in dry run that has no owner. Returns the stored object.
fn create_item(landscaper: &Landscaper<'_>, config: &Value) -> Value {
    let annotations: serde_json::Map<_, _> =
        DRY_RUN_ANNOTATIONS.map(|(key, text)| (key.to_owned(), text.into())).into_iter().collect();
    let metadata = json!({"name": "item", "annotations": annotations});
    landscaper.create("DeployItem", json!({"metadata": metadata, "spec": {"type": MANIFEST, "config": config}}))
}

fn read_exports(ctx: &Context, ns: &str, item: &Value) -> Value {
    let reference = &item["status"]["exportRef"];
    assert_eq!(reference["namespace"], ns, "{item:#}");
    let secrets: Api<Secret> = Api::namespaced(ctx.cluster.client(), ns);
    let secret = ctx.cluster.block_on(secrets.get(reference["name"].as_str().expect("the reference has a name")));
    let secret = secret.expect("the Secret exists");
    let owners = secret.metadata.owner_references.expect("the Secret has an owner");
    assert_eq!(json!(owners[0].uid), item["metadata"]["uid"]);
    let data = secret.data.expect("the Secret has data");
    assert_eq!(data.keys().collect::<Vec<_>>(), ["config"]);
    serde_json::from_slice(&data["config"].0).expect("the text is JSON")
}

/// Checks that a dry run of the example succeeds twice, and exports the expected values. The controller manager of this
/// test uses the same Lease as the Helm release, so the test holds a lock to exclude other tests that use this Lease.
fn a_complete_dry_run_succeeds(ctx: &Context) {
    let _lock = RELEASE_LEASE_LOCK.lock().unwrap_or_else(PoisonError::into_inner);
    let ns = create_namespace(ctx);
    accepts(ctx, &ns, &EXAMPLE_INSTALLATION.replace("namespace: cu-example", &format!("namespace: {ns}")));
    let landscaper = Landscaper { cluster: &ctx.cluster, namespace: &ns };
    let manager = Options { lease_namespace: NAMESPACE, ..Options::new(&ctx.cluster, &ns) }.start(&ctx.cluster);
    let history = History::of_deploy_items(ctx, &landscaper);
    let subs: [(&str, Vec<Template>); 2] = [
        ("exports", vec![("test-item", MANIFEST, config_with_export()), ("other", MANIFEST, config_with_export())]),
        ("charts", vec![("chart", HELM, chart_config())]),
    ];
    for job in ["job-1", "job-2"] {
        let items = landscaper.process("test-installation", &subs, job);
        assert_eq!(items.len(), 3);
        let is_rerouted =
            |item: &Value| item["metadata"]["annotations"]["landscaper.gardener.cloud/deployer-type"] == ROUTE;
        assert!(items.iter().all(is_rerouted), "every DeployItem must be routed to the dry-run deployer: {items:#?}");
        for item in &items {
            assert_eq!(item["status"]["phase"], "Succeeded", "{item:#}\n{}", manager.log());
            match item["spec"]["type"] == MANIFEST {
                true => assert_eq!(read_exports(ctx, &ns, item), json!({"test-token": "dG9rZW4="})),
                false => assert_eq!(item["status"]["exportRef"], Value::Null),
            }
        }
    }
    assert_eq!(landscaper.get("Installation", "test-installation").unwrap()["status"]["phase"], "Succeeded");
    assert_eq!(landscaper.list("Target"), [] as [Value; 0]);
    assert_eq!(events(ctx, &ns, "DryRunSucceeded"), 3);
    assert_is_explained(ctx, &ns);
    for item in landscaper.list("DeployItem") {
        landscaper.delete_item(&item, "job-3");
    }
    eventually(|| landscaper.list("DeployItem").is_empty().then_some(()));
    history.check_contract();
}

/// Runs the commands in `examples/dry-run/README.md` while a controller manager runs. Checks that their output is the
/// output that the README shows.
fn the_commands_of_the_example_work(ctx: &Context) {
    const README: &str = include_str!("../../examples/dry-run/README.md");
    const EXAMPLE: &str = "cu-example";
    let manager = Options { lease_namespace: "default", ..Options::new(&ctx.cluster, EXAMPLE) };
    let manager = manager.start(&ctx.cluster);
    eventually(|| manager.is_leader().then_some(()));
    let blocks: Vec<_> = README.split("\n```").collect();
    let commands: Vec<_> = blocks.iter().filter_map(|block| block.strip_prefix("sh\n")).collect();
    let outputs: Vec<_> = blocks.iter().filter_map(|block| block.strip_prefix("console\n")).skip(1).collect();
    // The first block installs portcullis, so it is not run.
    let output = run_shell(ctx, &commands[1..].join("\n"));
    let text = String::from_utf8_lossy(&output.stdout);
    let log = || format!("{text}\n{}\n{}", String::from_utf8_lossy(&output.stderr), manager.log());
    assert!(output.status.success(), "{}", log());
    assert_eq!((commands.len(), outputs.len()), (5, 3), "the page has an unexpected number of blocks");
    for part in outputs {
        assert!(text.contains(part.trim()), "the output does not contain:\n{part}\n{}", log());
    }
}

/// Runs a shell script in the root folder of the repository, with kubectl and the administrator's kubeconfig. Returns
/// the output of the script.
fn run_shell(ctx: &Context, script: &str) -> std::process::Output {
    let kubectl = ctx.cluster.assets().program("kubectl");
    let programs = kubectl.parent().expect("the path has a parent folder").to_owned();
    let path = std::env::var_os("PATH").unwrap_or_default();
    let paths = std::iter::once(programs).chain(std::env::split_paths(&path));
    let mut command = Command::new("sh");
    command.args(["-e", "-c", script]).current_dir(env!("CARGO_MANIFEST_DIR"));
    command.env("PATH", std::env::join_paths(paths).expect("the folders can be joined"));
    command.env("KUBECONFIG", ctx.cluster.kubeconfig(User::Admin)).env("HOME", ctx.cluster.folder());
    command.output().expect("sh runs")
}

fn assert_is_explained(ctx: &Context, ns: &str) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_portcullis"));
    command.args(["explain", "dry-run", "--namespace", ns, "test-installation"]);
    let output =
        command.arg("--kubeconfig").arg(ctx.cluster.kubeconfig(User::Admin)).output().expect("portcullis runs");
    let text = String::from_utf8_lossy(&output.stdout);
    let reported = ["dry run        yes", "configuration  test-dry-run", "= \"dG9rZW4=\"", "in dry run"];
    assert!(reported.iter().all(|part| text.contains(part)), "{text}\n{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(text.matches("DeployItem ").count(), 3, "{text}");
}

fn a_wrong_export_path_fails_at_the_first_attempt(ctx: &Context) {
    let ns = create_namespace(ctx);
    let landscaper = Landscaper { cluster: &ctx.cluster, namespace: &ns };
    let item = create_item(&landscaper, &config_with_export());
    let manager = Options::new(&ctx.cluster, &ns).start(&ctx.cluster);
    eventually(|| manager.is_leader().then_some(()));
    // Admission denies a path that finds no value. So the test removes the value from the fragment after it has created
    // the DeployItem.
    let exports = json!([{"apiVersion": "v1", "kind": "Secret", "data": {"tokn": "x"},
        "metadata": {"name": "test-secret", "namespace": "example"}}]);
    landscaper.patch("DryRunConfiguration", "test-dry-run", "", &Patch::Merge(json!({"spec": {"exports": exports}})));
    landscaper.trigger(&item, "job-1");
    let failed = landscaper.finished_items("job-1").remove(0);
    assert_eq!(failed["status"]["phase"], "Failed");
    let error = &failed["status"]["lastError"];
    assert_eq!(
        (&error["codes"], &error["reason"]),
        (&json!(["ERR_CONFIGURATION_PROBLEM"]), &json!("ExportWithoutValue"))
    );
    let message = error["message"].as_str().expect("the message is a string");
    assert!(
        message.starts_with("spec.config.exports.exports[0].jsonPath: token is not found at character 7"),
        "{message}"
    );
    assert_eq!(events(ctx, &ns, "ExportWithoutValue"), 1);
    let secrets: Api<Secret> = Api::namespaced(ctx.cluster.client(), &ns);
    assert!(ctx.cluster.block_on(secrets.get_opt("item-export")).unwrap().is_none());
}

fn events(ctx: &Context, ns: &str, reason: &str) -> usize {
    eventually(|| {
        let events: Api<Event> = Api::namespaced(ctx.cluster.client(), ns);
        let list = ctx.cluster.block_on(events.list(&ListParams::default())).expect("the API server answers");
        let count = list.items.iter().filter(|event| event.reason.as_deref() == Some(reason)).count();
        (count > 0).then_some(count)
    })
}

/// Checks that a job and a deletion complete if the controller manager is killed before or after any of its writes.
fn recovers_from_a_kill_at_any_write(ctx: &Context) {
    const AT_ONCE: usize = 3;
    let mut first = 0;
    loop {
        let stop_points: Vec<_> =
            (first..first + AT_ONCE).flat_map(|at| [(at, StopPoint::Before), (at, StopPoint::After)]).collect();
        let was_stopped: Vec<bool> = std::thread::scope(|scope| {
            let running: Vec<_> = stop_points
                .iter()
                .map(|(at, stop_point)| scope.spawn(|| completes_after_a_kill_at_write(ctx, *at, *stop_point)))
                .collect();
            running.into_iter().map(|thread| thread.join().expect("the thread must not panic")).collect()
        });
        first += AT_ONCE;
        if !was_stopped.iter().any(|was_stopped| *was_stopped) {
            // The writes for the job are: pickup, finalizer, start, Secret, end. The writes for the deletion are:
            // pickup, start, finalizer.
            assert!(first > 8, "only {first} writes were interrupted");
            return;
        }
    }
}

/// Creates and deletes a DeployItem. Kills the controller manager before or after write number `at`, and checks that
/// another controller manager completes the work. Returns whether there was a write with this number.
fn completes_after_a_kill_at_write(ctx: &Context, at: usize, stop_point: StopPoint) -> bool {
    let ns = create_namespace(ctx);
    let landscaper = Landscaper { cluster: &ctx.cluster, namespace: &ns };
    let proxy = Proxy::start(&ctx.cluster, at, stop_point);
    let kubeconfig = proxy.kubeconfig(&ctx.cluster).expect("a file can be written");
    let mut manager = Options { kubeconfig, ..Options::new(&ctx.cluster, &ns) }.start(&ctx.cluster);
    let (history, secrets) = (History::of_deploy_items(ctx, &landscaper), History::of_secrets(ctx, &ns));
    let item = create_item(&landscaper, &config_with_export());
    let mut was_stopped = false;
    let mut wait_across_restart = |is_done: &dyn Fn() -> bool| {
        if !was_stopped && proxy.wait_until_stopped_or(is_done) {
            was_stopped = true;
            // This assignment drops the first controller manager, and so kills it.
            manager = Options::new(&ctx.cluster, &ns).start(&ctx.cluster);
        }
        eventually(|| is_done().then_some(()));
    };
    landscaper.trigger(&item, "job-1");
    let is_finished =
        || landscaper.get("DeployItem", "item").is_some_and(|item| item["status"]["jobIDFinished"] == "job-1");
    wait_across_restart(&is_finished);
    let finished = landscaper.get("DeployItem", "item").expect("the object exists");
    assert_eq!(finished["status"]["phase"], "Succeeded", "at {at}, {stop_point:?}: {finished:#}");
    assert_eq!(read_exports(ctx, &ns, &finished), json!({"test-token": "dG9rZW4="}));
    landscaper.delete_item(&finished, "job-2");
    wait_across_restart(&|| landscaper.get("DeployItem", "item").is_none());
    assert_eq!(
        history.check_contract(),
        ["Init", "Progressing", "Succeeded", "InitDelete", "Deleting"],
        "at {at}, {stop_point:?}"
    );
    assert_eq!(secrets.versions().len(), 1, "at {at}, {stop_point:?}: the Secret is written once");
    was_stopped
}

/// Checks that the dry-run deployer meets all requirements of `portcullis conformance deployer`.
fn passes_the_conformance_test(ctx: &Context) {
    // The kit writes a DeployItem of another type, which DR012 denies, except in namespaces that begin with `kit-`.
    let ns = prepare_namespace(ctx, "kit");
    let manager = Options::new(&ctx.cluster, &ns).start(&ctx.cluster);
    eventually(|| manager.is_leader().then_some(()));
    let file = |name: &str, config: &Value| {
        let path = ctx.cluster.folder().join(format!("{ns}-{name}.yaml"));
        std::fs::write(&path, config.to_string()).expect("a file can be written");
        path
    };
    let mut failing = chart_config();
    failing["exports"] = json!({"exports": [{"key": "port", "jsonPath": "Values.port"}]});
    let mut command = Command::new(env!("CARGO_BIN_EXE_portcullis"));
    command.args(["conformance", "deployer", "--type", HELM, "--namespace", &ns, "--quiet", "1s", "--output", "json"]);
    command.arg("--config").arg(file("config", &chart_config())).arg("--failing-config").arg(file("failing", &failing));
    command.args(DRY_RUN_ANNOTATIONS.map(|(key, text)| format!("--annotation={key}={text}")));
    let output =
        command.arg("--kubeconfig").arg(ctx.cluster.kubeconfig(User::Admin)).output().expect("portcullis runs");
    let report: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"));
    let requirements = report["requirements"].as_array().expect("the requirements are a list");
    let met_count = requirements.iter().filter(|requirement| requirement["verdict"] == "met").count();
    assert!(output.status.success() && met_count == requirements.len(), "{report:#}\n{}", manager.log());
}

fn does_not_process_items_of_another_deployer(ctx: &Context) {
    let ns = create_namespace(ctx);
    let landscaper = Landscaper { cluster: &ctx.cluster, namespace: &ns };
    create_item(&landscaper, &config_with_export());
    let deployer = json!({"identity": "helm-1", "name": "helm.deployer.landscaper.gardener.cloud", "version": "v1"});
    let item = landscaper.set_status(
        "DeployItem",
        "item",
        json!({"observedGeneration": 1, "deployer": deployer, "phase": "Succeeded"}),
    );
    let _manager = Options::new(&ctx.cluster, &ns).start(&ctx.cluster);
    landscaper.trigger(&item, "job-1");
    assert_eq!(events(ctx, &ns, "AnotherDeployer"), 1);
    let untouched = landscaper.get("DeployItem", "item").expect("the object exists");
    assert_eq!((&untouched["status"]["phase"], &untouched["status"]["deployer"]), (&json!("Succeeded"), &deployer));
    assert_eq!(untouched["status"]["jobIDFinished"], Value::Null);
}

/// A watch that collects all versions of the watched objects.
struct History {
    versions: Arc<Mutex<Vec<Value>>>,
    task: tokio::task::JoinHandle<()>,
}

impl History {
    fn of_deploy_items(ctx: &Context, landscaper: &Landscaper<'_>) -> Self {
        Self::watch(ctx, landscaper.api("DeployItem"))
    }

    fn of_secrets(ctx: &Context, ns: &str) -> Self {
        let resource = kube::api::ApiResource::erase::<Secret>(&());
        Self::watch(ctx, Api::namespaced_with(ctx.cluster.client(), ns, &resource))
    }

    fn watch(ctx: &Context, api: Api<DynamicObject>) -> Self {
        let versions = Arc::new(Mutex::new(Vec::new()));
        let (received, (ready, started)) = (Arc::clone(&versions), tokio::sync::oneshot::channel());
        let task = async move {
            let mut ready = Some(ready);
            let mut events = watcher(api, watcher::Config::default()).boxed();
            while let Some(event) = events.next().await {
                match event.expect("the watch must not fail") {
                    watcher::Event::Apply(object) | watcher::Event::InitApply(object) => {
                        received
                            .lock()
                            .unwrap()
                            .push(serde_json::to_value(object).expect("the object can be serialized"));
                    }
                    watcher::Event::InitDone => drop(ready.take().map(|ready| ready.send(()))),
                    watcher::Event::Init | watcher::Event::Delete(_) => {}
                }
            }
        };
        ctx.cluster.block_on(async {
            let task = tokio::spawn(task);
            started.await.expect("the watch must start");
            Self { versions, task }
        })
    }

    fn versions(&self) -> Vec<Value> {
        self.versions.lock().unwrap().clone()
    }

    /// Checks that the deployer contract permits every change of a status. Returns the phases of the first DeployItem,
    /// in order.
    #[track_caller]
    fn check_contract(&self) -> Vec<String> {
        let versions = self.versions();
        let names: std::collections::BTreeSet<_> = versions.iter().map(name).collect();
        let phases: Vec<_> = names
            .iter()
            .map(|of| check_status_changes(&versions.iter().filter(|item| name(item) == *of).collect::<Vec<_>>()))
            .collect();
        phases.first().cloned().unwrap_or_default()
    }
}

impl Drop for History {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Checks that Landscaper's deployer contract permits every change of the status of a DeployItem. `versions` contains
/// the DeployItem after each write, in order. Returns the phases of the DeployItem, in the same order.
#[track_caller]
fn check_status_changes(versions: &[&Value]) -> Vec<String> {
    let is_final = |phase: &Value| ["Succeeded", "Failed", "DeleteFailed"].iter().any(|of| phase == of);
    let mut phases: Vec<String> = Vec::new();
    for pair in versions.windows(2) {
        let [old, new] = [&pair[0]["status"], &pair[1]["status"]];
        let is_finished = new["jobID"] == new["jobIDFinished"];
        assert!(
            new["jobID"].is_null() || !is_finished || is_final(&new["phase"]),
            "a finished job needs a final phase: {new:#}"
        );
        let is_valid_finish = new["jobIDFinished"] == old["jobIDFinished"] || new["jobIDFinished"] == new["jobID"];
        assert!(is_valid_finish, "{old:#}\n{new:#}");
        if old["phase"] == new["phase"] {
            continue;
        }
        let is_starting = old["phase"].is_null() || is_final(&old["phase"]);
        if is_starting {
            assert!(!is_finished && new["lastReconcileTime"].is_string(), "{new:#}");
            assert!(new["lastReconcileTime"].as_str() >= new["jobIDGenerationTime"].as_str(), "{new:#}");
        }
        let is_ending = is_final(&new["phase"]);
        assert_eq!(is_ending, is_finished, "the final phase and the finished job must be written together: {new:#}");
        phases.push(new["phase"].as_str().expect("a phase is a text").to_owned());
    }
    phases
}
