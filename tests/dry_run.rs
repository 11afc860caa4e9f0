//! Tests that a dry run applies to all objects below its root, even if the catalog is outdated.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "in a test a panic is the report")]

mod cases;

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use cases::Case;
use portcullis::admission::{Operation, Phase, Verdict};
use portcullis::catalog::{Catalog, LiveReader, LiveReading, Reference};
use portcullis::config;
use portcullis::gate::{Gate, Policy, Registry};
use portcullis::landscaper::annotations::{CONFIGURATION_ANNOTATION, DRY_RUN_ANNOTATION, ROUTE};
use portcullis::landscaper::kinds::{EXECUTIONS, INSTALLATIONS};
use portcullis::rule::Mode;
use serde_json::{Value, json};

/// Returns a Landscaper object. `owner` is the kind and the name of the object that owns it.
fn object(kind: &str, name: &str, owner: Option<(&str, &str)>) -> Value {
    let mut object = json!({
        "apiVersion": "landscaper.gardener.cloud/v1alpha1", "kind": kind,
        "metadata": {"name": name, "namespace": "ns"}, "spec": {},
    });
    if let Some((kind, name)) = owner {
        object["metadata"]["ownerReferences"] = json!([{
            "apiVersion": "landscaper.gardener.cloud/v1alpha1", "kind": kind, "name": name, "controller": true,
        }]);
    }
    object
}

fn with_annotations(mut object: Value, dry_run: &str, configuration: Option<&str>) -> Value {
    object["metadata"]["annotations"] = json!({DRY_RUN_ANNOTATION: dry_run});
    if let Some(name) = configuration {
        object["metadata"]["annotations"][CONFIGURATION_ANNOTATION] = json!(name);
    }
    object
}

fn in_dry_run(object: Value) -> Value {
    with_annotations(object, "true", Some("fragments"))
}

/// Returns the owners of the DeployItem that [`item`] returns: the root Installation, the sub-installation and the
/// Execution.
fn ancestors() -> [Value; 3] {
    [
        object("Installation", "root", None),
        object("Installation", "sub", Some(("Installation", "root"))),
        object("Execution", "sub", Some(("Installation", "sub"))),
    ]
}

fn item() -> Value {
    object("DeployItem", "item", Some(("Execution", "sub")))
}

fn patched(object: &Value, verdict: &Verdict) -> Value {
    let mut patched = object.clone();
    if let Some(patch) = &verdict.patch {
        json_patch::patch(&mut patched, patch).expect("the patch fits");
    }
    patched
}

fn mutated(case: &Case) -> Value {
    let verdict = case.decide(Phase::Mutate);
    assert!(verdict.is_allowed(), "{}", verdict.message());
    patched(&case.object, &verdict)
}

fn create(object: Value, stored: impl Into<Vec<Value>>) -> Case {
    Case::new(Operation::Create, object).stored(stored.into())
}

#[test]
fn every_level_inherits_from_the_root() {
    let [root, sub, execution] = ancestors();
    let stored = [in_dry_run(root), sub.clone(), execution.clone()];
    for object in [sub, execution, item()] {
        assert_eq!(mutated(&create(object.clone(), stored.clone())), in_dry_run(object));
    }
}

#[test]
fn removes_annotations_after_the_dry_run() {
    let [root, sub, execution] = ancestors();
    for root in [root.clone(), with_annotations(root, "false", Some("fragments"))] {
        let stored = [root, in_dry_run(sub.clone()), in_dry_run(execution.clone())];
        for object in [sub.clone(), execution.clone(), item()] {
            assert_eq!(mutated(&create(in_dry_run(object.clone()), stored.clone())), object);
        }
    }
}

#[test]
fn removes_a_configuration_that_the_root_no_longer_names() {
    let [root, sub, execution] = ancestors();
    let stored = [with_annotations(root, "true", None), sub, execution];
    assert_eq!(mutated(&create(in_dry_run(item()), stored)), with_annotations(item(), "true", None));
}

#[test]
fn without_dry_run_nothing_changes() {
    for object in ancestors().into_iter().chain([item()]) {
        assert_eq!(create(object, ancestors()).decide(Phase::Mutate), Verdict::default());
    }
    let mut other = in_dry_run(object("Installation", "root", None));
    other["metadata"]["ownerReferences"] =
        json!([{"apiVersion": "apps/v1", "kind": "Deployment", "name": "x", "controller": true}]);
    assert_eq!(create(other, ancestors()).decide(Phase::Mutate), Verdict::default());
}

#[test]
fn denies_an_orphan_but_not_its_deletion() {
    let case = create(item(), []);
    let message = case.decide(Phase::Mutate).message();
    assert!(message.contains("the owner, Execution \"sub\", does not exist"), "{message}");
    let mut changed = item();
    changed["metadata"]["annotations"] = json!({"landscaper.gardener.cloud/delete-without-uninstall": "true"});
    assert!(create(changed.clone(), []).update(item()).decide(Phase::Mutate).is_allowed());
    changed["spec"] = json!({"type": "t"});
    assert!(!create(changed.clone(), []).update(item()).decide(Phase::Mutate).is_allowed());
    changed["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    assert!(create(changed, []).update(item()).decide(Phase::Mutate).is_allowed());
}

#[test]
fn another_object_of_the_owners_name_is_not_the_owner() {
    let [mut root, ..] = ancestors();
    root["metadata"]["uid"] = json!("new");
    let mut sub = object("Installation", "sub", Some(("Installation", "root")));
    sub["metadata"]["ownerReferences"][0]["uid"] = json!("old");
    let verdict = create(sub, [root]).decide(Phase::Mutate);
    let message = verdict.message();
    assert!(!verdict.is_allowed() && !message.contains("does not exist"), "{message}");
    let reported = "the owner, Installation \"root\", was deleted: the owner reference has uid \"old\", and the object of \
                that name has uid \"new\"";
    assert!(message.contains(reported), "{message}");
}

#[test]
fn stops_at_cycles_of_owners() {
    let stored = [
        object("Installation", "a", Some(("Installation", "b"))),
        object("Installation", "b", Some(("Installation", "a"))),
    ];
    assert!(
        !create(object("Installation", "c", Some(("Installation", "a"))), stored).decide(Phase::Mutate).is_allowed()
    );
}

#[test]
fn reports_annotations_that_the_root_overrides() {
    let [root, sub, _] = ancestors();
    let verdict = create(in_dry_run(sub.clone()), [root]).decide(Phase::Mutate);
    assert!(verdict.notices[0].contains("is inherited from the root Installation \"root\""), "{:?}", verdict.notices);
    assert_eq!(patched(&in_dry_run(sub.clone()), &verdict), sub);
}

/// The objects in the API server, which may be newer than those in the catalog.
#[derive(Default)]
struct ApiServer(Mutex<HashMap<(String, String), Value>>);

impl ApiServer {
    fn put(&self, object: &Value) {
        let key =
            (object["kind"].as_str().unwrap().to_owned(), object["metadata"]["name"].as_str().unwrap().to_owned());
        self.0.lock().unwrap().insert(key, object.clone());
    }
}

impl LiveReader for ApiServer {
    fn read<'a>(&'a self, reference: &'a Reference) -> LiveReading<'a> {
        Box::pin(async move {
            tokio::task::yield_now().await;
            let key = (reference.kind.kind.to_owned(), reference.name.clone());
            Ok(self.0.lock().unwrap().get(&key).map(Value::to_string))
        })
    }
}

/// An API server that does not answer live reads.
struct UnreachableApiServer;

impl LiveReader for UnreachableApiServer {
    fn read<'a>(&'a self, _: &'a Reference) -> LiveReading<'a> {
        Box::pin(async { Err("connection refused".to_owned()) })
    }
}

fn gate(reader: Arc<dyn LiveReader>, objects: Vec<Value>) -> Gate {
    let registry = Registry::standard();
    let mut catalog = Catalog::of(registry.kinds(), objects);
    catalog.set_live_reader(reader);
    Gate::new(registry, Policy::default(), Arc::new(catalog))
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap()
}

/// A pseudo-random number generator with a fixed seed.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }
}

/// Checks that a new object gets the dry-run annotation even if the root of its owner chain was annotated just before.
/// The owners reach the catalog late and in any order, before or during the admission request.
#[test]
fn annotates_a_child_of_a_root_annotated_just_before() {
    let runtime = runtime();
    let mut random = Random(5);
    for round in 0..4000 {
        let [root, sub, execution] = ancestors();
        let children = [sub.clone(), execution.clone(), item()];
        let child = children[usize::try_from(random.below(3)).unwrap()].clone();
        let known = [root.clone(), sub.clone(), execution.clone()];
        let known: Vec<_> = known.into_iter().filter(|_| random.below(3) > 0).collect();
        let api_server = Arc::new(ApiServer::default());
        let gate = gate(api_server.clone(), known);
        let fresh = [in_dry_run(root), sub, execution];
        fresh.iter().for_each(|object| api_server.put(object));

        let catalog = gate.catalog().clone();
        let delays: Vec<_> = fresh.iter().map(|_| Duration::from_micros(random.below(120))).collect();
        let delayed_watch = std::thread::spawn(move || {
            for (object, delay) in fresh.into_iter().zip(delays) {
                std::thread::sleep(delay);
                let kind = if object["kind"] == "Execution" { &EXECUTIONS } else { &INSTALLATIONS };
                catalog.insert(kind, object);
            }
        });
        let case = create(child.clone(), []);
        let verdict = runtime.block_on(gate.decide(Phase::Mutate, &case.request()));
        delayed_watch.join().unwrap();
        assert!(verdict.is_allowed(), "round {round}: {}", verdict.message());
        assert_eq!(patched(&child, &verdict), in_dry_run(child), "round {round}");
    }
}

/// Checks that Portcullis removes the dry-run annotation from a new DeployItem if the dry run of its root has ended.
/// The catalog is outdated: the root in the catalog still has the annotation, but the root in the API server does not.
#[test]
fn does_not_annotate_a_child_after_the_end_of_the_dry_run() {
    let [root, sub, execution] = ancestors();
    let api_server = Arc::new(ApiServer::default());
    let gate = gate(api_server.clone(), vec![in_dry_run(root.clone()), sub.clone(), execution.clone()]);
    [root, sub, execution].iter().for_each(|object| api_server.put(object));
    let case = create(in_dry_run(item()), []);
    let verdict = runtime().block_on(gate.decide(Phase::Mutate, &case.request()));
    assert_eq!(patched(&in_dry_run(item()), &verdict), item());
}

#[test]
fn without_the_api_server_admits_only_known_dry_runs() {
    let runtime = runtime();
    let [root, sub, execution] = ancestors();
    let decide = |gate: &Gate, case: &Case| runtime.block_on(gate.decide(Phase::Mutate, &case.request()));

    let annotated =
        gate(Arc::new(UnreachableApiServer), vec![in_dry_run(root.clone()), sub.clone(), execution.clone()]);
    assert_eq!(patched(&item(), &decide(&annotated, &create(item(), []))), in_dry_run(item()));

    for known in [vec![root, sub, execution], Vec::new()] {
        let gate = gate(Arc::new(UnreachableApiServer), known);
        let message = decide(&gate, &create(item(), [])).message();
        assert!(message.contains("could not be read"), "{message}");
        assert!(!message.contains("connection refused"), "{message}");
        let mut touched = in_dry_run(item());
        touched["metadata"]["labels"] = json!({"a": "b"});
        assert!(decide(&gate, &create(touched.clone(), []).update(in_dry_run(item()))).is_allowed());
        touched["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
        assert!(decide(&gate, &create(touched, []).update(item())).is_allowed());
    }
}

const TYPE: &str = "landscaper.gardener.cloud/deployer-type";

/// Adds the type of the helm deployer to a DeployItem, and the annotation with which Landscaper routes the DeployItem
/// to this deployer.
fn with_deployer_type(mut item: Value) -> Value {
    item["spec"]["type"] = json!("landscaper.gardener.cloud/helm");
    item["metadata"]["annotations"][TYPE] = json!("landscaper.gardener.cloud/helm");
    item
}

fn apply_policy() -> Policy {
    let modes = HashMap::from([("dry-run".to_owned(), Mode::Apply)]);
    Policy { modes, ..Policy::default() }
}

#[test]
fn routes_dry_runs_away_from_deployers_if_configured() {
    let [root, sub, execution] = ancestors();
    let dry = [in_dry_run(root.clone()), sub.clone(), execution.clone()];
    let routed = mutated(&create(with_deployer_type(item()), dry.clone()).policy(apply_policy()));
    assert_eq!(routed["metadata"]["annotations"][TYPE], ROUTE);
    assert_eq!(routed["spec"]["type"], "landscaper.gardener.cloud/helm");
    let not_routed = mutated(&create(with_deployer_type(item()), dry));
    assert_eq!(not_routed["metadata"]["annotations"][TYPE], "landscaper.gardener.cloud/helm");
    let real = [root, sub, execution];
    assert_eq!(
        mutated(&create(with_deployer_type(item()), real.clone()).policy(apply_policy())),
        with_deployer_type(item())
    );
    // After the dry run, the deployer of the type is responsible again, even if the mode of the mutator has changed.
    for policy in [apply_policy(), Policy::default()] {
        let after = mutated(&create(routed.clone(), real.clone()).policy(policy));
        assert_eq!(after["metadata"]["annotations"], json!({TYPE: "landscaper.gardener.cloud/helm"}));
    }
    // The dry-run deployer does not process this type. If the DeployItem were routed to it, it would never be
    // processed.
    let mut other = with_deployer_type(item());
    other["spec"]["type"] = json!("landscaper.gardener.cloud/mock");
    other["metadata"]["annotations"][TYPE] = json!("landscaper.gardener.cloud/mock");
    let dry = [in_dry_run(real[0].clone()), real[1].clone(), real[2].clone()];
    let not_processed = mutated(&create(other.clone(), dry.clone()).policy(apply_policy()));
    assert_eq!(not_processed["metadata"]["annotations"][TYPE], "landscaper.gardener.cloud/mock");
    let named = "dryRun: {types: [landscaper.gardener.cloud/mock]}\n";
    let named = config::parse(named, "portcullis.yaml", &Registry::standard()).unwrap();
    assert_eq!(mutated(&create(other, dry).policy(named))["metadata"]["annotations"][TYPE], ROUTE);
    // An object without an owner has its own dry-run annotation.
    let alone = in_dry_run(object("DeployItem", "alone", None));
    let alone = mutated(&create(with_deployer_type(alone), []).policy(apply_policy()));
    assert_eq!(alone["metadata"]["annotations"][TYPE], ROUTE);
    let verdict = create(alone, []).decide(Phase::Validate);
    assert!(!verdict.findings.iter().any(|finding| finding.rule == "DP008"), "{}", verdict.message());
}
