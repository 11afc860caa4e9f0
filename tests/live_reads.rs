//! Tests of rules that read objects from the API server, because the catalog may be out of date.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "in a test a panic is the report")]

mod cases;

use std::sync::Arc;

use cases::Case;
use portcullis::admission::{Operation, Phase};
use portcullis::catalog::{LiveReader, LiveReading, Reference};
use portcullis::gate::{Gate, Policy, Registry};
use serde_json::{Value, json};

/// Number of objects in the catalog that refer to the object of the request. A rule reads at most five of them at once.
const USERS: usize = 12;

/// A simulated API server whose objects differ from those in the catalog. Only the object `unchanged` is the same in
/// both. If `others_exist` is true, all other objects exist, but have only a name and a namespace. If it is false, they
/// do not exist, except Namespaces.
struct ChangedObjects {
    unchanged: Option<Value>,
    others_exist: bool,
}

impl LiveReader for ChangedObjects {
    fn read<'a>(&'a self, Reference { kind, namespace, name }: &'a Reference) -> LiveReading<'a> {
        let bare = json!({"apiVersion": kind.api_version(), "kind": kind.kind,
                          "metadata": {"name": name, "namespace": namespace}});
        let is_same = |object: &&Value| object["kind"] == kind.kind && object["metadata"]["name"] == name.as_str();
        let unchanged = self.unchanged.as_ref().filter(is_same).cloned();
        let exists = self.others_exist || kind.kind == "Namespace";
        Box::pin(async move { Ok(unchanged.or(exists.then_some(bare)).map(|object| object.to_string())) })
    }
}

fn landscaper_object(kind: &str, name: &str, rest: Value) -> Value {
    let mut object = json!({"apiVersion": "landscaper.gardener.cloud/v1alpha1", "kind": kind,
                            "metadata": {"name": name, "namespace": "ns"}});
    for (key, value) in rest.as_object().unwrap() {
        object[key] = value.clone();
    }
    object
}

/// A function that returns two values: an object that refers to a second object, and a request for this second object.
/// A rule denies the request because of the reference. The argument is a number in the name of the first object, so
/// that each call creates a different object.
type Make = fn(usize) -> (Value, Case);

fn overwrites_of_contexts(number: usize) -> (Value, Case) {
    let context = json!({"componentVersionOverwrites": "mirror"});
    let overwrites = landscaper_object("ComponentVersionOverwrites", "mirror", json!({"overwrites": []}));
    (landscaper_object("Context", &format!("user-{number:02}"), context), Case::new(Operation::Delete, overwrites))
}

fn configuration_of_dry_runs(number: usize) -> (Value, Case) {
    let mut item = landscaper_object("DeployItem", &format!("user-{number:02}"), json!({"status": {"jobID": "a"}}));
    item["metadata"]["annotations"] = json!({
        "landscaper.gardener.cloud/dry-run": "true", "landscaper.gardener.cloud/dry-run-configuration": "fragments",
    });
    let configuration = landscaper_object("DryRunConfiguration", "fragments", json!({"spec": {"exports": []}}));
    (item, Case::new(Operation::Delete, configuration))
}

fn root_of_deployed_items(number: usize) -> (Value, Case) {
    let status = json!({"phase": "Succeeded", "jobID": "a", "jobIDFinished": "a"});
    let mut item = landscaper_object("DeployItem", &format!("user-{number:02}"), json!({"status": status}));
    item["metadata"]["ownerReferences"] = json!([{"apiVersion": "landscaper.gardener.cloud/v1alpha1", "name": "root",
                                                  "kind": "Installation", "controller": true}]);
    let root = landscaper_object("Installation", "root", json!({"spec": {}}));
    let mut dry_run = root.clone();
    dry_run["metadata"]["annotations"] = json!({"landscaper.gardener.cloud/dry-run": "true"});
    (item, Case::new(Operation::Update, dry_run).update(root))
}

/// Returns the messages of `rule` for the request that `make` creates. The catalog contains [`USERS`] objects that
/// refer to the object in the request. `api_server` contains changed versions of these objects.
fn messages(rule: &str, make: Make, api_server: ChangedObjects) -> Vec<String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let users = (0..USERS).map(|number| make(number).0).collect();
    let mut catalog = Registry::standard().catalog_of(users);
    catalog.set_live_reader(Arc::new(api_server));
    let gate = Gate::new(Registry::standard(), Policy::default(), Arc::new(catalog));
    let verdict = runtime.block_on(gate.decide(Phase::Validate, &make(0).1.request()));
    verdict.findings.into_iter().filter(|finding| finding.rule == rule).map(|finding| finding.message).collect()
}

/// Regression test: Portcullis read only the first five objects that refer to the object of the request. If none of
/// these five still referred to it, the request was admitted, although another object still did.
#[test]
fn reads_further_users_until_one_still_uses_the_object() {
    let rules: [(&str, Make); 3] =
        [("OW006", overwrites_of_contexts), ("DR010", configuration_of_dry_runs), ("DR009", root_of_deployed_items)];
    for (rule, make) in rules {
        for others_exist in [true, false] {
            for last in [0, 4, 5, USERS - 1] {
                let unchanged = Some(make(last).0);
                let found = messages(rule, make, ChangedObjects { unchanged, others_exist });
                let [message] = &found[..] else { panic!("{rule} {last} {others_exist}: {found:?}") };
                assert!(message.contains(&format!("user-{last:02}")), "{rule}: {message}");
            }
            let found = messages(rule, make, ChangedObjects { unchanged: None, others_exist });
            assert!(found.is_empty(), "{rule} {others_exist}: {found:?}");
        }
    }
}
