//! Tests of Installations with inline component descriptors. At admission, Portcullis knows the whole component tree of
//! such an Installation, and computes the patches of all descriptors.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "in a test a panic is the report")]

mod cases;

use cases::{Case, objects};
use portcullis::admission::{Operation, Phase};
use portcullis::gate::Policy;
use portcullis::landscaper::annotations::{PATCH_ANNOTATION, SOURCE_ANNOTATION};
use portcullis::rule::Mode;
use serde_json::{Value, json};

const STORED: &str = "
apiVersion: landscaper.gardener.cloud/v1alpha1
kind: Context
metadata: {name: default, namespace: ns}
componentVersionOverwrites: mine
---
apiVersion: landscaper.gardener.cloud/v1alpha1
kind: ComponentVersionOverwrites
metadata: {name: mine, namespace: ns, generation: 3}
overwrites:
  - source: {componentName: example.org/db}
    substitution: {version: v2}
  - source: {componentName: example.org/ui}
    substitution: {repositoryContext: {type: ociRegistry, baseUrl: other.example}}
";
const INSTALLATION: &str = "
apiVersion: landscaper.gardener.cloud/v1alpha1
kind: Installation
metadata: {name: app, namespace: ns}
spec:
  componentDescriptor:
    inline:
      meta: {schemaVersion: v2}
      component:
        name: example.org/app
        version: v1
        repositoryContexts: [{type: ociRegistry, baseUrl: example.org}]
        componentReferences:
          - {name: store, componentName: example.org/store, version: v1}
          - {name: db, componentName: example.org/db, version: v1, digest: {value: \"00\"}}
          - {name: ui, componentName: example.org/ui, version: v1}
";

fn case(installation: &str, mode: Mode) -> Case {
    let policy = Policy { modes: [("overwrites".to_owned(), mode)].into(), ..Policy::default() };
    let object = objects(installation).remove(0);
    Case::new(Operation::Create, object).stored(objects(STORED)).policy(policy)
}

fn mutated(case: &Case) -> Value {
    let mut object = case.object.clone();
    if let Some(patch) = case.decide(Phase::Mutate).patch {
        json_patch::patch(&mut object, &patch).expect("the patch fits");
    }
    object
}

fn annotation(object: &Value, key: &str) -> Value {
    serde_json::from_str(object["metadata"]["annotations"][key].as_str().expect("it is annotated")).unwrap()
}

const REFERENCES: &str = "/spec/componentDescriptor/inline/component/componentReferences";

#[test]
fn one_patch_covers_the_references() {
    let case = case(INSTALLATION, Mode::Annotate);
    let object = mutated(&case);
    let label = json!({"name": "portcullis.dev/repository-context",
                       "value": {"type": "ociRegistry", "baseUrl": "other.example"}});
    assert_eq!(
        annotation(&object, PATCH_ANNOTATION),
        json!([
            {"op": "test", "path": format!("{REFERENCES}/1/version"), "value": "v1"},
            {"op": "replace", "path": format!("{REFERENCES}/1/version"), "value": "v2"},
            {"op": "test", "path": format!("{REFERENCES}/1/digest"), "value": {"value": "00"}},
            {"op": "remove", "path": format!("{REFERENCES}/1/digest")},
            {"op": "add", "path": format!("{REFERENCES}/2/labels"), "value": [label]},
        ])
    );
    assert_eq!(annotation(&object, SOURCE_ANNOTATION)["entries"], json!([0, 1]));
    assert_eq!(object["spec"], case.object["spec"], "the spec stays as the user wrote it");
    assert_eq!(
        case.decide(Phase::Mutate).notices,
        [
            "component overwritten: reference \"db\": version v1 -> v2 (overwrites[0] of mine)",
            "component overwritten: reference \"ui\": repositoryContext example.org -> other.example (overwrites[1] of mine)",
        ]
    );
}

#[test]
fn applies_idempotently_and_reverts_completely() {
    let mut case = case(INSTALLATION, Mode::Apply);
    let written = case.object.clone();
    case.object = mutated(&case);
    assert_eq!(case.object.pointer(&format!("{REFERENCES}/1/version")), Some(&json!("v2")));
    assert_eq!(case.decide(Phase::Mutate).patch, None);
    case.stored[1]["overwrites"] = json!([]);
    assert_eq!(mutated(&case), written);
}

#[test]
fn references_follow_the_overwritten_repository_of_the_root() {
    let mut case = case(INSTALLATION, Mode::Annotate);
    case.stored[1]["overwrites"] = json!([
        {"source": {"componentName": "example.org/app"},
         "substitution": {"repositoryContext": {"type": "ociRegistry", "baseUrl": "mirror.example"}}},
        {"source": {"componentName": "example.org/db", "repositoryContext": {"type": "ociRegistry", "baseUrl": "example.org"}},
         "substitution": {"version": "v8"}},
        {"source": {"componentName": "example.org/db", "repositoryContext": {"type": "ociRegistry", "baseUrl": "mirror.example"}},
         "substitution": {"version": "v9"}},
    ]);
    let patch = annotation(&mutated(&case), PATCH_ANNOTATION);
    let versions: Vec<_> = patch.as_array().unwrap().iter().filter(|operation| operation["op"] == "replace").collect();
    assert_eq!(versions[1]["value"], "v9", "{patch}");
}

/// Checks when Portcullis patches a component descriptor that is stored in a label of a component reference. It does so
/// only if the component of the outermost descriptor also has such a label. Landscaper unpacks descriptors in labels
/// under the same condition.
#[test]
fn nested_descriptors_are_patched_where_landscaper_unpacks_them() {
    let nested = json!({"meta": {"schemaVersion": "v2"}, "component": {"name": "example.org/store", "version": "v1",
        "componentReferences": [{"name": "db", "componentName": "example.org/db", "version": "v1"}]}});
    let label = json!([{"name": "landscaper.gardener.cloud/component-descriptor", "value": nested}]);
    let mut case = case(INSTALLATION, Mode::Annotate);
    *case.object.pointer_mut(&format!("{REFERENCES}/0")).unwrap() =
        json!({"name": "store", "componentName": "example.org/store", "version": "v1", "labels": label});
    let deep = format!("{REFERENCES}/0/labels/0/value/component/componentReferences/0/version");
    let has_deep = |case: &Case| annotation(&mutated(case), PATCH_ANNOTATION).to_string().contains(&deep);
    assert!(!has_deep(&case));
    case.object["spec"]["componentDescriptor"]["inline"]["component"]["labels"] =
        json!([{"name": "landscaper.gardener.cloud/component-descriptor", "value": {}}]);
    assert!(has_deep(&case));
}

#[test]
fn an_unreadable_descriptor_still_gets_its_own_reference_patched() {
    let mut case = case(INSTALLATION, Mode::Annotate);
    case.object["spec"]["componentDescriptor"]["inline"]["component"]["componentReferences"] = json!([{"version": 5}]);
    case.stored[1]["overwrites"] = json!([{"source": {}, "substitution": {"version": "v9"}}]);
    let patch = annotation(&mutated(&case), PATCH_ANNOTATION);
    assert_eq!(patch.as_array().map(Vec::len), Some(2), "{patch}");
}

/// Checks that the patch annotation omits the references of an inline descriptor if the annotation would otherwise be
/// too large. The warnings list only the first changes, and the number of remaining changes.
#[test]
fn omits_a_patch_that_does_not_fit_an_annotation() {
    let mut case = case(INSTALLATION, Mode::Annotate);
    let reference = |at| json!({"name": format!("db-{at}"), "componentName": "example.org/db", "version": "v1"});
    case.object["spec"]["componentDescriptor"]["inline"]["component"]["componentReferences"] =
        (0..2000).map(reference).collect();
    let annotations = serde_json::to_string(&mutated(&case)["metadata"]["annotations"]).unwrap();
    assert!(annotations.len() < 128 * 1024, "{}", annotations.len());
    let notices = case.decide(Phase::Mutate).notices;
    assert!(notices.len() <= 13 && notices.last().unwrap().contains("and 1989 more"), "{notices:?}");
}
