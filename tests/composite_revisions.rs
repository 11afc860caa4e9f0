//! Tests that rules, audits and `explain environment` use the CompositionRevision of a composite, as Crossplane does.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "in a test a panic is the report")]

mod cases;

use std::fs;
use std::process::Command;

use cases::{Case, objects};
use portcullis::admission::{Operation, Phase};
use serde_json::{Value, json};

const DEFINITION: &str = "
apiVersion: apiextensions.crossplane.io/v1
kind: CompositeResourceDefinition
metadata: {name: xexamples.example.org, labels: {portcullis.dev/composites: \"true\"}}
spec:
  group: example.org
  names: {kind: XExample, plural: xexamples}
  versions: [{name: v1, served: true, referenceable: true}]
---
apiVersion: apiextensions.crossplane.io/v1beta1
kind: EnvironmentConfig
metadata: {name: old}
data: {network: {subnet: subnet-old}}
---
apiVersion: apiextensions.crossplane.io/v1beta1
kind: EnvironmentConfig
metadata: {name: new}
data: {network: {subnet: subnet-new}}
";

/// Returns the spec of a Composition that selects the EnvironmentConfig `config` and reads `path` in the environment.
fn spec(config: &str, path: &str) -> Value {
    let patch = json!({"type": "FromEnvironmentFieldPath", "fromFieldPath": path, "toFieldPath": "data.subnet"});
    json!({
        "compositeTypeRef": {"apiVersion": "example.org/v1", "kind": "XExample"},
        "environment": {"environmentConfigs": [{"type": "Reference", "ref": {"name": config}}]},
        "resources": [{"name": "settings", "base": {"apiVersion": "v1", "kind": "ConfigMap"}, "patches": [patch]}],
    })
}

/// Returns the objects in the cluster. They include a Composition with two revisions. The second revision equals the
/// current Composition. The first revision selects the EnvironmentConfig `old`, and reads a path that does not exist in
/// `old`.
fn stored() -> Vec<Value> {
    let api_version = "apiextensions.crossplane.io/v1";
    let now = spec("new", "network.subnet");
    let composition =
        json!({"apiVersion": api_version, "kind": "Composition", "metadata": {"name": "example"}, "spec": now});
    let revision = |name: &str, number: u64, mut spec: Value| {
        spec["revision"] = number.into();
        json!({"apiVersion": api_version, "kind": "CompositionRevision", "spec": spec,
               "metadata": {"name": name, "labels": {"crossplane.io/composition-name": "example"}}})
    };
    let first = revision("example-1", 1, spec("old", "network.sub-net"));
    let mut all = objects(DEFINITION);
    all.extend([composition, first, revision("example-2", 2, now)]);
    all
}

/// Returns two composites: one that is pinned to the first revision, and one that uses the newest revision of the
/// Composition. The fields in `more` are added to `spec` of both composites.
fn composites(more: &Value) -> [Value; 2] {
    let pin = json!({"compositionUpdatePolicy": "Manual", "compositionRevisionRef": {"name": "example-1"}});
    [("pinned", pin), ("following", json!({}))].map(|(name, own)| {
        let mut spec = json!({"compositionRef": {"name": "example"}});
        json_patch::merge(&mut spec, &own);
        json_patch::merge(&mut spec, more);
        json!({"apiVersion": "example.org/v1", "kind": "XExample", "metadata": {"name": name}, "spec": spec})
    })
}

/// Returns the findings of the rule `rule` about two composites: first the composite that is pinned to the first
/// revision, and then the one that uses the newest revision. `more` contains fields that are added to the `spec` of
/// both composites.
fn found(rule: &str, more: &Value) -> [Vec<String>; 2] {
    composites(more).map(|composite| {
        let case = Case::new(Operation::Create, composite).stored(stored());
        let findings = case.decide(Phase::Validate).findings;
        findings.iter().filter(|finding| finding.rule == rule).map(|finding| finding.headline()).collect()
    })
}

/// Regression test for issue 18 (Crossplane, item 2): rules use the patches of the CompositionRevision that the
/// composite uses.
#[test]
fn patches_are_those_of_the_revision() {
    let [pinned, following] = found("EN008", &json!({}));
    assert!(pinned.len() == 1 && pinned[0].contains("network.sub-net: no such field"), "{pinned:?}");
    assert!(pinned[0].starts_with("EN008 CompositionRevision \"example-1\", resource \"settings\""), "{pinned:?}");
    assert_eq!(following, [""; 0]);
}

/// Regression test for issue 18 (Crossplane, item 2): rules use the selectors of the CompositionRevision that the
/// composite uses.
#[test]
fn references_must_be_selected_by_the_revision() {
    let [pinned, following] = found("EN011", &json!({"environmentConfigRefs": [{"name": "old"}]}));
    assert_eq!(pinned, [""; 0]);
    assert!(
        following.len() == 1 && following[0].contains("does not select EnvironmentConfig \"old\""),
        "{following:?}"
    );
    let [pinned, following] = found("EN011", &json!({"environmentConfigRefs": [{"name": "new"}]}));
    let words = "CompositionRevision \"example-1\" does not select EnvironmentConfig \"new\"";
    assert!(pinned.len() == 1 && pinned[0].contains(words), "{pinned:?}");
    assert_eq!(following, [""; 0]);
}

/// Runs a `portcullis` command with `--manifests` and a folder that contains all objects. Returns the output of the
/// command.
fn run(arguments: &[&str]) -> String {
    let folder = tempfile::tempdir().unwrap();
    let all: Vec<_> = stored().into_iter().chain(composites(&json!({}))).collect();
    let list = json!({"apiVersion": "v1", "kind": "List", "items": all});
    fs::write(folder.path().join("objects.json"), list.to_string()).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_portcullis"));
    let output = command.args(arguments).arg("--manifests").arg(folder.path()).output().unwrap();
    String::from_utf8(output.stdout).unwrap()
}

/// Regression test for issue 18 (Crossplane, item 2): `explain environment` uses the CompositionRevision of the
/// composite.
#[test]
fn explains_the_environment_of_the_revision() {
    let pinned = run(&["explain", "environment", "pinned"]);
    assert!(pinned.contains("example (revision example-1)"), "{pinned}");
    assert!(pinned.contains("subnet-old") && !pinned.contains("subnet-new"), "{pinned}");
    let following = run(&["explain", "environment", "following"]);
    assert!(following.contains("subnet-new") && !following.contains("subnet-old"), "{following}");
}

/// Regression test for issue 18 (Crossplane, item 2): `audit` uses the CompositionRevision of the composite.
#[test]
fn audits_a_composite_by_its_revision() {
    let audited = run(&["audit", "--rules", "EN008"]);
    let lines: Vec<_> = audited.lines().filter(|line| line.contains(" EN008 ") && line.contains("XExample")).collect();
    assert!(lines.len() == 1 && lines[0].contains("XExample pinned: "), "{audited}");
    assert!(lines[0].contains("CompositionRevision \"example-1\""), "{audited}");
}
