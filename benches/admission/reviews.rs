//! Creates AdmissionReviews of a given size, as an API server sends them.

use serde_json::{Value, json};

/// Namespace of the objects under review.
pub const NAMESPACE: &str = "team-0";
/// Maximum number of items in a large object. The rest of the object is a long text.
const MAX_ITEMS: usize = 64;
const LINE: &str = "  - name: \"setting\"\n    value: {\"level\": 7}\n";

/// The numbers of items and of text lines that are added to an object, so that it reaches a given size.
#[derive(Clone, Copy, Default)]
struct Padding {
    items: usize,
    lines: usize,
}

/// Returns a review of an object that no rule matches, with about `size` bytes.
pub fn unhandled(size: usize) -> Vec<u8> {
    pad_to_size(size, |padding| {
        let items = (0..padding.items).map(|at| (format!("setting-{at}"), "level=info, workers=4".into()));
        let mut data: serde_json::Map<String, Value> = items.collect();
        data.insert("application.yaml".to_owned(), LINE.repeat(padding.lines).into());
        let object =
            json!({"apiVersion": "v1", "kind": "PodTemplate", "metadata": metadata("settings", "v1"), "data": data});
        review("podtemplates", &object)
    })
}

/// Returns an AdmissionReview of about `size` bytes for an Installation. An entry of a ComponentVersionOverwrites
/// object matches the component of this Installation.
pub fn installation(size: usize) -> Vec<u8> {
    pad_to_size(size, |padding| {
        let mut object = small_installation("server");
        let imports = (0..padding.items).map(|at| json!({"name": format!("import-{at}"), "dataRef": "cluster-config"}));
        object["spec"]["imports"] = json!({"data": imports.collect::<Vec<_>>()});
        if padding.lines > 0 {
            let files = json!({"blueprint.yaml": LINE.repeat(padding.lines)});
            object["spec"]["blueprint"] = json!({"inline": {"filesystem": files}});
        }
        review("installations", &object)
    })
}

/// Returns a review of a ComponentVersionOverwrites object with `count` entries. A Context in the catalog names the
/// object.
pub fn overwrites(count: usize) -> Vec<u8> {
    review("componentversionoverwrites", &overwrites_object("overwrites-0", count))
}

/// Returns an Installation. The third entry of [`overwrites_object`] overwrites its component.
pub fn small_installation(name: &str) -> Value {
    json!({
        "apiVersion": "landscaper.gardener.cloud/v1alpha1",
        "kind": "Installation",
        "metadata": metadata(name, "landscaper.gardener.cloud/v1alpha1"),
        "spec": {
            "context": "context-0",
            "componentDescriptor": {"ref": {
                "repositoryContext": {"type": "ociRegistry", "baseUrl": "registry.example.org/components"},
                "componentName": "example.org/component-2",
                "version": "v0.2.0",
            }},
            "blueprint": {"ref": {"resourceName": "blueprint"}},
        },
    })
}

/// Returns a ComponentVersionOverwrites object with `count` entries, each for another component.
pub fn overwrites_object(name: &str, count: usize) -> Value {
    let entry = |at: usize| {
        json!({
            "source": {"componentName": format!("example.org/component-{at}"), "version": "v0.2.0"},
            "substitution": {
                "version": "v0.2.1-fix",
                "repositoryContext": {"type": "ociRegistry", "baseUrl": "registry.example.org/tests"},
            },
        })
    };
    json!({
        "apiVersion": "landscaper.gardener.cloud/v1alpha1",
        "kind": "ComponentVersionOverwrites",
        "metadata": metadata(name, "landscaper.gardener.cloud/v1alpha1"),
        "overwrites": (0..count).map(entry).collect::<Vec<_>>(),
    })
}

/// Returns a review of about `size` bytes. `make` creates a review with the given padding. This function first
/// increases the number of items in the padding, up to [`MAX_ITEMS`]. If the review is then still too short, it adds
/// lines of text.
fn pad_to_size(size: usize, make: impl Fn(Padding) -> Vec<u8>) -> Vec<u8> {
    let mut padding = Padding::default();
    while padding.items < MAX_ITEMS && make(padding).len() < size {
        padding.items += 1;
    }
    let missing = size.saturating_sub(make(padding).len());
    padding.lines = missing / json!(LINE).to_string().len();
    make(padding)
}

fn metadata(name: &str, manager_version: &str) -> Value {
    json!({
        "name": name,
        "namespace": NAMESPACE,
        "uid": "8a6f0a57-7c1c-4d0b-9f0b-5d6a6c3f9a11",
        "generation": 1,
        "creationTimestamp": "2026-01-01T00:00:00Z",
        "managedFields": [{
            "manager": "kubectl-client-side-apply",
            "operation": "Update",
            "apiVersion": manager_version,
            "time": "2026-01-01T00:00:00Z",
            "fieldsType": "FieldsV1",
            "fieldsV1": {"f:metadata": {"f:annotations": {".": {}}}, "f:spec": {".": {}, "f:context": {}}},
        }],
    })
}

/// Returns an AdmissionReview for the creation of an object.
pub fn review(plural: &str, object: &Value) -> Vec<u8> {
    let api_version = object["apiVersion"].as_str().unwrap();
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    let kind = json!({"group": group, "version": version, "kind": object["kind"]});
    let resource = json!({"group": group, "version": version, "resource": plural});
    let review = json!({
        "kind": "AdmissionReview",
        "apiVersion": "admission.k8s.io/v1",
        "request": {
            "uid": "705ab4f5-6393-11e8-b7cc-42010a800002",
            "kind": kind, "resource": resource, "requestKind": kind, "requestResource": resource,
            "name": object["metadata"]["name"],
            "namespace": object["metadata"]["namespace"],
            "operation": "CREATE",
            "userInfo": {"username": "alice", "groups": ["developers", "system:authenticated"]},
            "object": object,
            "oldObject": null,
            "dryRun": false,
            "options": {"kind": "CreateOptions", "apiVersion": "meta.k8s.io/v1", "fieldManager": "kubectl"},
        },
    });
    review.to_string().into_bytes()
}
