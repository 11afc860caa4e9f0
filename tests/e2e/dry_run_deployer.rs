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
use crate::controller_manager::{ACCOUNT_LEASE, Options};
use crate::helm::NAMESPACE;
use crate::landscaper::{Landscaper, Template, name};
use crate::proxy::{Cut, Proxy};
use crate::sentences::{accepts, eventually};
use crate::user::User;

/// The tests of this file.
pub const CASES: &[Case] = &[
    ("dry_run_deployer::a_whole_dry_run_succeeds_with_the_seeds_exports", a_whole_dry_run_succeeds),
    ("dry_run_deployer::the_commands_of_the_example_work", the_commands_of_the_example_work),
    ("dry_run_deployer::a_wrong_path_fails_at_the_first_look", a_wrong_path_fails_at_the_first_look),
    ("dry_run_deployer::recovers_from_a_kill_at_any_write", recovers_from_a_kill_at_any_write),
    ("dry_run_deployer::the_conformance_kit_finds_nothing", the_conformance_kit_finds_nothing),
    ("dry_run_deployer::it_steps_back_where_another_deployer_is_at_work", stops_for_another_deployer),
];

const SEED_CONFIGURATION: &str = include_str!("../../examples/dry-run/configuration.yaml");
const SEED_INSTALLATION: &str = include_str!("../../examples/dry-run/installation.yaml");
const SEED_CONTEXT: &str = include_str!("../../examples/dry-run/context.yaml");
const MANIFEST: &str = "landscaper.gardener.cloud/kubernetes-manifest";
const HELM: &str = "landscaper.gardener.cloud/helm";
const MARKS: [(&str, &str); 2] = [
    ("landscaper.gardener.cloud/dry-run", "true"),
    ("landscaper.gardener.cloud/dry-run-configuration", "test-dry-run"),
];

/// Returns the configuration of a DeployItem with the export of the example in `examples/dry-run`.
fn exporting() -> Value {
    json!({
        "apiVersion": "manifest.deployer.landscaper.gardener.cloud/v1alpha2", "kind": "ProviderConfiguration",
        "exports": {"exports": [{"key": "test-token", "jsonPath": ".data.token", "fromResource":
            {"apiVersion": "v1", "kind": "Secret", "name": "test-secret", "namespace": "example"}}]},
    })
}

fn chart() -> Value {
    json!({
        "apiVersion": "helm.deployer.landscaper.gardener.cloud/v1alpha1", "kind": "ProviderConfiguration",
        "chart": {"ref": "example.org/charts/nginx:1.0.0"}, "name": "nginx", "namespace": "example",
    })
}

fn namespace(ctx: &Context) -> String {
    prepared(ctx, "deployer")
}

fn prepared(ctx: &Context, prefix: &str) -> String {
    let ns = ctx.cluster.namespace(prefix);
    for yaml in [SEED_CONTEXT, SEED_CONFIGURATION] {
        accepts(ctx, &ns, &yaml.replace("namespace: cu-example", &format!("namespace: {ns}")));
    }
    ns
}

/// Creates a DeployItem in dry run that has no owner. Returns the stored object.
fn item(landscaper: &Landscaper<'_>, config: &Value) -> Value {
    let annotations: serde_json::Map<_, _> =
        MARKS.map(|(key, text)| (key.to_owned(), text.into())).into_iter().collect();
    let metadata = json!({"name": "item", "annotations": annotations});
    landscaper.create("DeployItem", json!({"metadata": metadata, "spec": {"type": MANIFEST, "config": config}}))
}

fn exported(ctx: &Context, ns: &str, item: &Value) -> Value {
    let reference = &item["status"]["exportRef"];
    assert_eq!(reference["namespace"], ns, "{item:#}");
    let secrets: Api<Secret> = Api::namespaced(ctx.cluster.client(), ns);
    let secret = ctx.cluster.block_on(secrets.get(reference["name"].as_str().expect("it is named")));
    let secret = secret.expect("there is a Secret");
    let owners = secret.metadata.owner_references.expect("it belongs to the item");
    assert_eq!(json!(owners[0].uid), item["metadata"]["uid"]);
    let data = secret.data.expect("it has data");
    assert_eq!(data.keys().collect::<Vec<_>>(), ["config"]);
    serde_json::from_slice(&data["config"].0).expect("it is JSON")
}

/// Checks that a dry run of the example succeeds twice, and exports the expected values. The test uses the Lease of the
/// release.
fn a_whole_dry_run_succeeds(ctx: &Context) {
    let _alone = ACCOUNT_LEASE.lock().unwrap_or_else(PoisonError::into_inner);
    let ns = namespace(ctx);
    accepts(ctx, &ns, &SEED_INSTALLATION.replace("namespace: cu-example", &format!("namespace: {ns}")));
    let landscaper = Landscaper { cluster: &ctx.cluster, namespace: &ns };
    let manager = Options { lease: NAMESPACE, ..Options::new(&ctx.cluster, &ns) }.start(&ctx.cluster);
    let history = History::of(ctx, &landscaper);
    let subs: [(&str, Vec<Template>); 2] = [
        ("exports", vec![("test-item", MANIFEST, exporting()), ("other", MANIFEST, exporting())]),
        ("charts", vec![("chart", HELM, chart())]),
    ];
    for job in ["job-1", "job-2"] {
        let items = landscaper.process("test-installation", &subs, job);
        assert_eq!(items.len(), 3);
        let away = |item: &Value| item["metadata"]["annotations"]["landscaper.gardener.cloud/deployer-type"] == ROUTE;
        assert!(items.iter().all(away), "other deployers are kept off: {items:#?}");
        for item in &items {
            assert_eq!(item["status"]["phase"], "Succeeded", "{item:#}\n{}", manager.log());
            match item["spec"]["type"] == MANIFEST {
                true => assert_eq!(exported(ctx, &ns, item), json!({"test-token": "dG9rZW4="})),
                false => assert_eq!(item["status"]["exportRef"], Value::Null),
            }
        }
    }
    assert_eq!(landscaper.get("Installation", "test-installation").unwrap()["status"]["phase"], "Succeeded");
    assert_eq!(landscaper.list("Target"), [] as [Value; 0]);
    assert_eq!(events(ctx, &ns, "DryRunSucceeded"), 3);
    is_explained(ctx, &ns);
    for item in landscaper.list("DeployItem") {
        landscaper.delete_item(&item, "job-3");
    }
    eventually(|| landscaper.list("DeployItem").is_empty().then_some(()));
    history.keeps_the_contract();
}

/// Runs the commands in `examples/dry-run/README.md` while a controller manager runs, and checks that their output is
/// as on this page.
fn the_commands_of_the_example_work(ctx: &Context) {
    const WALK: &str = include_str!("../../examples/dry-run/README.md");
    const EXAMPLE: &str = "cu-example";
    let manager = Options { lease: "default", ..Options::new(&ctx.cluster, EXAMPLE) };
    let manager = manager.start(&ctx.cluster);
    eventually(|| manager.leads().then_some(()));
    let blocks: Vec<_> = WALK.split("\n```").collect();
    let walked: Vec<_> = blocks.iter().filter_map(|block| block.strip_prefix("sh\n")).collect();
    let shown: Vec<_> = blocks.iter().filter_map(|block| block.strip_prefix("console\n")).skip(1).collect();
    // The first block installs portcullis, so it is not run.
    let output = shell(ctx, &walked[1..].join("\n"));
    let text = String::from_utf8_lossy(&output.stdout);
    let log = || format!("{text}\n{}\n{}", String::from_utf8_lossy(&output.stderr), manager.log());
    assert!(output.status.success(), "{}", log());
    assert_eq!((walked.len(), shown.len()), (5, 3), "the page has other blocks");
    for part in shown {
        assert!(text.contains(part.trim()), "not shown:\n{part}\n{}", log());
    }
}

/// Runs a shell script in the root folder of the repository, with kubectl and the administrator's kubeconfig. Returns
/// the output of the script.
fn shell(ctx: &Context, script: &str) -> std::process::Output {
    let kubectl = ctx.cluster.assets().program("kubectl");
    let programs = kubectl.parent().expect("it is in a folder").to_owned();
    let path = std::env::var_os("PATH").unwrap_or_default();
    let paths = std::iter::once(programs).chain(std::env::split_paths(&path));
    let mut command = Command::new("sh");
    command.args(["-e", "-c", script]).current_dir(env!("CARGO_MANIFEST_DIR"));
    command.env("PATH", std::env::join_paths(paths).expect("folders have usual names"));
    command.env("KUBECONFIG", ctx.cluster.kubeconfig(User::Admin)).env("HOME", ctx.cluster.folder());
    command.output().expect("there is a shell")
}

fn is_explained(ctx: &Context, ns: &str) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_portcullis"));
    command.args(["explain", "dry-run", "--namespace", ns, "test-installation"]);
    let output = command.arg("--kubeconfig").arg(ctx.cluster.kubeconfig(User::Admin)).output().expect("it runs");
    let text = String::from_utf8_lossy(&output.stdout);
    let reported = ["dry run        yes", "configuration  test-dry-run", "= \"dG9rZW4=\"", "in dry run"];
    assert!(reported.iter().all(|part| text.contains(part)), "{text}\n{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(text.matches("DeployItem ").count(), 3, "{text}");
}

fn a_wrong_path_fails_at_the_first_look(ctx: &Context) {
    let ns = namespace(ctx);
    let landscaper = Landscaper { cluster: &ctx.cluster, namespace: &ns };
    let item = item(&landscaper, &exporting());
    let manager = Options::new(&ctx.cluster, &ns).start(&ctx.cluster);
    eventually(|| manager.leads().then_some(()));
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
    let message = error["message"].as_str().expect("it is a text");
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
        let lives: Vec<_> = (first..first + AT_ONCE).flat_map(|at| [(at, Cut::Before), (at, Cut::After)]).collect();
        let cut: Vec<bool> = std::thread::scope(|scope| {
            let running: Vec<_> = lives
                .iter()
                .map(|(at, cut)| scope.spawn(|| interrupts_a_life_at_every_write(ctx, *at, *cut)))
                .collect();
            running.into_iter().map(|life| life.join().expect("a life is lived to its end")).collect()
        });
        first += AT_ONCE;
        if !cut.iter().any(|cut| *cut) {
            // The writes for the job are: pickup, finalizer, start, Secret, end. The writes for the deletion are:
            // pickup, start, finalizer.
            assert!(first > 8, "all writes of a life were cut at: {first}");
            return;
        }
    }
}

/// Creates and deletes a DeployItem. Kills the controller manager before or after write number `at`, and checks that
/// another controller manager completes the work. Returns whether there was a write with this number.
fn interrupts_a_life_at_every_write(ctx: &Context, at: usize, cut: Cut) -> bool {
    let ns = namespace(ctx);
    let landscaper = Landscaper { cluster: &ctx.cluster, namespace: &ns };
    let proxy = Proxy::start(&ctx.cluster, at, cut);
    let kubeconfig = proxy.kubeconfig(&ctx.cluster).expect("a file can be written");
    let mut manager = Options { kubeconfig, ..Options::new(&ctx.cluster, &ns) }.start(&ctx.cluster);
    let (history, secrets) = (History::of(ctx, &landscaper), History::of_secrets(ctx, &ns));
    let item = item(&landscaper, &exporting());
    let mut was_cut = false;
    let mut live = |is_over: &dyn Fn() -> bool| {
        if !was_cut && proxy.until_cut_or(is_over) {
            was_cut = true;
            // This assignment drops the first controller manager, and so kills it.
            manager = Options::new(&ctx.cluster, &ns).start(&ctx.cluster);
        }
        eventually(|| is_over().then_some(()));
    };
    landscaper.trigger(&item, "job-1");
    let is_finished =
        || landscaper.get("DeployItem", "item").is_some_and(|item| item["status"]["jobIDFinished"] == "job-1");
    live(&is_finished);
    let finished = landscaper.get("DeployItem", "item").expect("it is there");
    assert_eq!(finished["status"]["phase"], "Succeeded", "at {at}, {cut:?}: {finished:#}");
    assert_eq!(exported(ctx, &ns, &finished), json!({"test-token": "dG9rZW4="}));
    landscaper.delete_item(&finished, "job-2");
    live(&|| landscaper.get("DeployItem", "item").is_none());
    assert_eq!(
        history.keeps_the_contract(),
        ["Init", "Progressing", "Succeeded", "InitDelete", "Deleting"],
        "at {at}, {cut:?}"
    );
    assert_eq!(secrets.versions().len(), 1, "at {at}, {cut:?}: the Secret is written once");
    was_cut
}

/// Checks that the dry-run deployer meets all requirements of `portcullis conformance deployer`.
fn the_conformance_kit_finds_nothing(ctx: &Context) {
    // The kit writes a DeployItem of another type, which DR012 denies, except in namespaces that begin with `kit-`.
    let ns = prepared(ctx, "kit");
    let manager = Options::new(&ctx.cluster, &ns).start(&ctx.cluster);
    eventually(|| manager.leads().then_some(()));
    let file = |name: &str, config: &Value| {
        let path = ctx.cluster.folder().join(format!("{ns}-{name}.yaml"));
        std::fs::write(&path, config.to_string()).expect("a file can be written");
        path
    };
    let mut failing = chart();
    failing["exports"] = json!({"exports": [{"key": "port", "jsonPath": "Values.port"}]});
    let mut command = Command::new(env!("CARGO_BIN_EXE_portcullis"));
    command.args(["conformance", "deployer", "--type", HELM, "--namespace", &ns, "--quiet", "1s", "--output", "json"]);
    command.arg("--config").arg(file("config", &chart())).arg("--failing-config").arg(file("failing", &failing));
    command.args(MARKS.map(|(key, text)| format!("--annotation={key}={text}")));
    let output = command.arg("--kubeconfig").arg(ctx.cluster.kubeconfig(User::Admin)).output().expect("it runs");
    let report: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"));
    let requirements = report["requirements"].as_array().expect("it is a list");
    let kept = requirements.iter().filter(|requirement| requirement["verdict"] == "met").count();
    assert!(output.status.success() && kept == requirements.len(), "{report:#}\n{}", manager.log());
}

fn stops_for_another_deployer(ctx: &Context) {
    let ns = namespace(ctx);
    let landscaper = Landscaper { cluster: &ctx.cluster, namespace: &ns };
    item(&landscaper, &exporting());
    let deployer = json!({"identity": "helm-1", "name": "helm.deployer.landscaper.gardener.cloud", "version": "v1"});
    let item = landscaper.set_status(
        "DeployItem",
        "item",
        json!({"observedGeneration": 1, "deployer": deployer, "phase": "Succeeded"}),
    );
    let _companion = Options::new(&ctx.cluster, &ns).start(&ctx.cluster);
    landscaper.trigger(&item, "job-1");
    assert_eq!(events(ctx, &ns, "AnotherDeployer"), 1);
    let untouched = landscaper.get("DeployItem", "item").expect("it is there");
    assert_eq!((&untouched["status"]["phase"], &untouched["status"]["deployer"]), (&json!("Succeeded"), &deployer));
    assert_eq!(untouched["status"]["jobIDFinished"], Value::Null);
}

/// A watch that collects all versions of the watched objects.
struct History {
    versions: Arc<Mutex<Vec<Value>>>,
    task: tokio::task::JoinHandle<()>,
}

impl History {
    fn of(ctx: &Context, landscaper: &Landscaper<'_>) -> Self {
        Self::watch(ctx, landscaper.api("DeployItem"))
    }

    fn of_secrets(ctx: &Context, ns: &str) -> Self {
        let resource = kube::api::ApiResource::erase::<Secret>(&());
        Self::watch(ctx, Api::namespaced_with(ctx.cluster.client(), ns, &resource))
    }

    fn watch(ctx: &Context, api: Api<DynamicObject>) -> Self {
        let versions = Arc::new(Mutex::new(Vec::new()));
        let (reported, (ready, begun)) = (Arc::clone(&versions), tokio::sync::oneshot::channel());
        let task = async move {
            let mut ready = Some(ready);
            let mut events = watcher(api, watcher::Config::default()).boxed();
            while let Some(event) = events.next().await {
                match event.expect("the watch goes on") {
                    watcher::Event::Apply(object) | watcher::Event::InitApply(object) => {
                        reported.lock().unwrap().push(serde_json::to_value(object).expect("it is JSON"));
                    }
                    watcher::Event::InitDone => drop(ready.take().map(|ready| ready.send(()))),
                    watcher::Event::Init | watcher::Event::Delete(_) => {}
                }
            }
        };
        ctx.cluster.block_on(async {
            let task = tokio::spawn(task);
            begun.await.expect("the watch begins");
            Self { versions, task }
        })
    }

    fn versions(&self) -> Vec<Value> {
        self.versions.lock().unwrap().clone()
    }

    /// Checks that the deployer contract permits every change of a status. Returns the phases of the first DeployItem,
    /// in order.
    #[track_caller]
    fn keeps_the_contract(&self) -> Vec<String> {
        let versions = self.versions();
        let names: std::collections::BTreeSet<_> = versions.iter().map(name).collect();
        let lives: Vec<_> = names
            .iter()
            .map(|of| life(&versions.iter().filter(|item| name(item) == *of).collect::<Vec<_>>()))
            .collect();
        lives.first().cloned().unwrap_or_default()
    }
}

impl Drop for History {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Checks that Landscaper's deployer contract permits every change of the status of a DeployItem. Returns its phases,
/// in order.
#[track_caller]
fn life(versions: &[&Value]) -> Vec<String> {
    let is_final = |phase: &Value| ["Succeeded", "Failed", "DeleteFailed"].iter().any(|of| phase == of);
    let mut phases: Vec<String> = Vec::new();
    for pair in versions.windows(2) {
        let [old, new] = [&pair[0]["status"], &pair[1]["status"]];
        let is_finished = new["jobID"] == new["jobIDFinished"];
        assert!(new["jobID"].is_null() || !is_finished || is_final(&new["phase"]), "finished, but {new:#}");
        let moves = new["jobIDFinished"] == old["jobIDFinished"] || new["jobIDFinished"] == new["jobID"];
        assert!(moves, "{old:#}\n{new:#}");
        if old["phase"] == new["phase"] {
            continue;
        }
        let begins = old["phase"].is_null() || is_final(&old["phase"]);
        if begins {
            assert!(!is_finished && new["lastReconcileTime"].is_string(), "{new:#}");
            assert!(new["lastReconcileTime"].as_str() >= new["jobIDGenerationTime"].as_str(), "{new:#}");
        }
        let is_ending = is_final(&new["phase"]);
        assert_eq!(is_ending, is_finished, "the final phase and the end of the job are one write: {new:#}");
        phases.push(new["phase"].as_str().expect("a phase is a text").to_owned());
    }
    phases
}
