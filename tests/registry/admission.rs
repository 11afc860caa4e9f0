//! Tests the admission of an Installation whose component is in an OCI registry. ComponentVersionOverwrites apply to
//! this component.

use std::sync::Arc;

use futures::executor::block_on;
use portcullis::admission::Phase;
use portcullis::admission::review;
use portcullis::catalog::Catalog;
use portcullis::gate::{Gate, Policy, Registry};
use serde_json::{Value, json};

/// Checks that the rule OW001 reports nothing when an Installation is created. Runs both admission phases, mutating and
/// validating. The component of the Installation is in the registry with the base URL `registry`.
pub fn admit(registry: &str) {
    let rows = Registry::standard();
    let catalog = Catalog::of(rows.kinds(), stored(registry));
    let gate = Gate::new(rows, Policy::default(), Arc::new(catalog));
    let body = review_of(registry).to_string();
    let read = review::read(body.as_bytes()).expect("the text is an AdmissionReview");
    for phase in [Phase::Mutate, Phase::Validate] {
        let verdict = block_on(gate.decide(phase, &read.request));
        assert!(verdict.findings.iter().all(|finding| finding.rule != "OW001"));
    }
}

fn stored(registry: &str) -> Vec<Value> {
    let api = "landscaper.gardener.cloud/v1alpha1";
    let context = json!({"type": "ociRegistry", "baseUrl": registry});
    vec![
        json!({"apiVersion": api, "kind": "Context", "metadata": {"name": "default", "namespace": "ns"},
               "componentVersionOverwrites": "mine", "repositoryContext": context}),
        json!({"apiVersion": api, "kind": "ComponentVersionOverwrites", "metadata": {"name": "mine", "namespace": "ns"},
               "overwrites": [{"source": {"componentName": "example.org/app"}, "substitution": {"version": "v2"}}]}),
    ]
}

fn review_of(registry: &str) -> Value {
    let reference = json!({"componentName": "example.org/app", "version": "v1",
                           "repositoryContext": {"type": "ociRegistry", "baseUrl": registry}});
    json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {
        "uid": "a-uid", "kind": {"group": "landscaper.gardener.cloud", "version": "v1alpha1", "kind": "Installation"},
        "resource": {"group": "landscaper.gardener.cloud", "version": "v1alpha1", "resource": "installations"},
        "name": "app", "namespace": "ns", "operation": "CREATE", "userInfo": {"username": "u"}, "dryRun": false,
        "object": {"apiVersion": "landscaper.gardener.cloud/v1alpha1", "kind": "Installation",
                   "metadata": {"name": "app", "namespace": "ns"},
                   "spec": {"componentDescriptor": {"ref": reference}}},
        "oldObject": null}})
}
