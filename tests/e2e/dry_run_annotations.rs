//! Tests that the controller manager copies the dry-run annotations of a root to existing objects below the root.

use std::sync::PoisonError;

use serde_json::{Value, json};

use crate::Case;
use crate::context::Context;
use crate::controller_manager::{Options, RELEASE_LEASE_LOCK};
use crate::landscaper::{Landscaper, name, owner};
use crate::sentences::eventually;

/// The tests of this file.
pub const CASES: &[Case] = &[
    ("dry_run_annotations::annotates_everything_below_a_root", annotates_everything_below_a_root),
    ("dry_run_annotations::annotates_objects_from_before_the_webhooks", annotates_objects_from_before_the_webhooks),
];

const DRY_RUN: &str = "landscaper.gardener.cloud/dry-run";
const CONFIGURATION: &str = "landscaper.gardener.cloud/dry-run-configuration";

/// Creates a root Installation with the annotations `annotations`. Below the root, creates a sub-installation, an
/// Execution and two DeployItems. Returns the kind and name of each object below the root.
fn create_tree(landscaper: &Landscaper<'_>, annotations: &Value) -> Vec<(&'static str, String)> {
    let spec = json!({"context": "default", "blueprint": {"inline": {"filesystem": {}}}});
    let root = json!({"metadata": {"name": "root", "annotations": annotations}, "spec": spec});
    let root = landscaper.create("Installation", root);
    let below = |kind: &'static str, name: &str, above: &Value, spec: &Value| {
        landscaper.create(kind, json!({"metadata": {"name": name, "ownerReferences": [owner(above)]}, "spec": spec}))
    };
    let sub = below("Installation", "sub", &root, &spec);
    let execution = below("Execution", "sub", &sub, &json!({"deployItems": []}));
    let mut tree = vec![("Installation", name(&sub)), ("Execution", name(&execution))];
    for item in ["one", "two"] {
        below("DeployItem", item, &execution, &json!({"type": "example.org/any"}));
        tree.push(("DeployItem", item.to_owned()));
    }
    tree
}

fn wait_for_annotations(
    landscaper: &Landscaper<'_>,
    tree: &[(&'static str, String)],
    dry_run: &Value,
    configuration: &Value,
) {
    eventually(|| {
        let is_annotated = |(kind, name): &(&'static str, String)| {
            let object = landscaper.get(kind, name).expect("the object exists");
            let annotation = |key: &str| object["metadata"]["annotations"][key].clone();
            annotation(DRY_RUN) == *dry_run && annotation(CONFIGURATION) == *configuration
        };
        tree.iter().all(is_annotated).then_some(())
    });
}

fn annotate(landscaper: &Landscaper<'_>, dry_run: &Value, configuration: &Value) {
    let annotations = json!({DRY_RUN: dry_run, CONFIGURATION: configuration});
    let patch = kube::api::Patch::Merge(json!({"metadata": {"annotations": annotations}}));
    landscaper.patch("Installation", "root", "", &patch);
}

fn annotates_everything_below_a_root(ctx: &Context) {
    let ns = ctx.cluster.namespace("marks");
    let landscaper = Landscaper { cluster: &ctx.cluster, namespace: &ns };
    let tree = create_tree(&landscaper, &json!({}));
    let manager = Options::new(&ctx.cluster, &ns).start(&ctx.cluster);
    annotate(&landscaper, &json!("true"), &json!("configuration"));
    wait_for_annotations(&landscaper, &tree, &json!("true"), &json!("configuration"));
    annotate(&landscaper, &json!("true"), &json!("another"));
    wait_for_annotations(&landscaper, &tree, &json!("true"), &json!("another"));
    annotate(&landscaper, &json!("false"), &Value::Null);
    wait_for_annotations(&landscaper, &tree, &Value::Null, &Value::Null);
    // A restarted controller manager writes none of the objects again.
    let versions = || tree.iter().map(|(kind, name)| resource_version(&landscaper, kind, name)).collect::<Vec<_>>();
    let before = versions();
    drop(manager);
    let again = Options::new(&ctx.cluster, &ns).start(&ctx.cluster);
    eventually(|| again.is_leader().then_some(()));
    let metric_name = "portcullis_companion_reconciled_total{controller=\"dry-run-marks\",outcome=\"done\"} ";
    eventually(|| again.metric(metric_name).filter(|count| *count >= 5.0));
    assert_eq!(versions(), before);
}

fn resource_version(landscaper: &Landscaper<'_>, kind: &str, name: &str) -> Value {
    landscaper.get(kind, name).expect("the object exists")["metadata"]["resourceVersion"].clone()
}

/// Checks that the controller manager annotates objects that the webhooks have not annotated. For example, objects that
/// were created before the webhooks were registered have no annotations. The test creates its objects in the namespace
/// of portcullis, because the webhooks exclude this namespace. The controller manager in this namespace needs the Lease
/// of the release, which only one test can use at a time.
fn annotates_objects_from_before_the_webhooks(ctx: &Context) {
    let _lock = RELEASE_LEASE_LOCK.lock().unwrap_or_else(PoisonError::into_inner);
    let landscaper = Landscaper { cluster: &ctx.cluster, namespace: "portcullis-system" };
    let tree = create_tree(&landscaper, &json!({DRY_RUN: "true", CONFIGURATION: "configuration"}));
    let before = landscaper.get("DeployItem", "one").expect("the object exists");
    assert_eq!(before["metadata"]["annotations"], Value::Null);
    let options = Options { arguments: &[], ..Options::new(&ctx.cluster, "portcullis-system") };
    let _manager = options.start(&ctx.cluster);
    wait_for_annotations(&landscaper, &tree, &json!("true"), &json!("configuration"));
}
