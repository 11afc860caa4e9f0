//! Property tests of the answers to AdmissionReviews. They check that every answer passes the API server's
//! verification, and that mutation is idempotent. They also check the patch in the annotation of an Installation: it
//! must change the component reference in the same way as the overwrites.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "in a test a panic is the report")]

mod cases;

use std::collections::HashMap;
use std::sync::Arc;

use cases::Case;
use cases::verify::verify;
use futures::executor::block_on;
use portcullis::admission::review::{self, Review};
use portcullis::admission::{Operation, Phase};
use portcullis::catalog::Catalog;
use portcullis::gate::{Gate, Policy, Registry};
use portcullis::landscaper::annotations::{PATCH_ANNOTATION, SOURCE_ANNOTATION};
use portcullis::landscaper::component_reference::ComponentReference;
use portcullis::landscaper::installation;
use portcullis::landscaper::substitution::{self, Substitution};
use portcullis::rule::Mode;
use proptest::prelude::*;
use serde_json::{Value, json};

fn gate() -> Gate {
    let registry = Registry::standard();
    let catalog = Catalog::of(registry.kinds(), Vec::new());
    Gate::new(registry, Policy::default(), Arc::new(catalog))
}

/// Returns the body of the answer to a request body, or `None` if the server answers with HTTP 400.
fn answer(gate: &Gate, phase: Phase, body: &[u8]) -> Option<Vec<u8>> {
    match review::read(body) {
        Ok(Review { version, request }) => {
            Some(block_on(gate.decide(phase, &request)).answer(version, phase, &request).to_json())
        }
        Err(unreadable) => unreadable.answer().map(|answer| answer.to_json()),
    }
}

/// Returns the uid that a lenient JSON parser finds in a body.
fn readable_uid(body: &[u8]) -> Option<String> {
    let review: Value = serde_json::from_slice(body).ok()?;
    review["request"]["uid"].as_str().filter(|uid| !uid.is_empty()).map(str::to_owned)
}

fn json_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        ".{0,8}".prop_map(Value::from),
    ];
    let key = prop_oneof![
        "[a-zA-Z]{0,6}",
        Just("source".to_owned()),
        Just("substitution".to_owned()),
        Just("repositoryContext".to_owned()),
        Just("componentName".to_owned()),
        Just("version".to_owned()),
        Just("type".to_owned()),
    ];
    leaf.prop_recursive(5, 64, 6, move |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            proptest::collection::hash_map(key.clone(), inner, 0..6)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

fn review_of(object: &Value, kind: usize, operation: &str) -> Value {
    let (kind, plural) = [
        ("ComponentVersionOverwrites", "componentversionoverwrites"),
        ("Context", "contexts"),
        ("Installation", "installations"),
        ("ConfigMap", "configmaps"),
    ][kind % 4];
    let group = if kind == "ConfigMap" { "" } else { "landscaper.gardener.cloud" };
    json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {
        "uid": "a-uid", "kind": {"group": group, "version": "v1alpha1", "kind": kind},
        "resource": {"group": group, "version": "v1alpha1", "resource": plural},
        "name": "n", "namespace": "ns", "operation": operation, "userInfo": {"username": "u"},
        "object": object, "oldObject": null, "dryRun": false}})
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn answers_arbitrary_bytes_with_a_uid(body in proptest::collection::vec(any::<u8>(), 0..400)) {
        let answered = answer(&gate(), Phase::Validate, &body).is_some();
        prop_assert_eq!(answered, readable_uid(&body).is_some());
    }

    /// Truncates the body of a review, or changes one byte of it. If the body still contains a readable uid, the server
    /// must answer with this uid.
    #[test]
    fn answers_damaged_reviews_with_a_uid(
        object in json_value(), kind in 0..4usize, at in any::<prop::sample::Index>(), byte in any::<u8>(),
        truncates in any::<bool>(),
    ) {
        let mut body = review_of(&object, kind, "CREATE").to_string().into_bytes();
        let at = at.index(body.len());
        if truncates { body.truncate(at) } else { body[at] = byte }
        for phase in [Phase::Mutate, Phase::Validate] {
            let answered = answer(&gate(), phase, &body);
            if let Some(uid) = readable_uid(&body) {
                let answered = answered.ok_or_else(|| TestCaseError::fail("a readable uid got no answer"))?;
                verify(&answered, &uid, phase).map_err(TestCaseError::fail)?;
            }
        }
    }

    #[test]
    fn every_answer_passes_the_api_servers_verification(
        object in json_value(), overwrites in json_value(), kind in 0..4usize, operation in 0..4usize,
    ) {
        let operation = ["CREATE", "UPDATE", "DELETE", "CONNECT"][operation];
        for object in [object.clone(), json!({"metadata": object, "overwrites": overwrites, "spec": object, "repositoryContext": object})] {
            let body = review_of(&object, kind, operation).to_string();
            for phase in [Phase::Mutate, Phase::Validate] {
                let answer = answer(&gate(), phase, body.as_bytes()).expect("there is a uid");
                verify(&answer, "a-uid", phase).map_err(TestCaseError::fail)?;
            }
        }
    }
}

fn part() -> impl Strategy<Value = Value> {
    ("[ab]?", "[12]?", 0..4usize).prop_map(|(name, version, context)| {
        let mut part = json!({});
        if !name.is_empty() {
            part["componentName"] = json!(name);
        }
        if !version.is_empty() {
            part["version"] = json!(version);
        }
        match context {
            1 => part["repositoryContext"] = json!({"type": "ociRegistry", "baseUrl": "a"}),
            2 => part["repositoryContext"] = json!({"type": "ociRegistry", "baseUrl": "b"}),
            3 => part["repositoryContext"] = json!({"type": "x", "n": [1, {"<&>": 2.5}]}),
            _ => {}
        }
        part
    })
}

fn entries() -> impl Strategy<Value = Vec<Value>> {
    let entry =
        (part(), part()).prop_map(|(source, substitution)| json!({"source": source, "substitution": substitution}));
    proptest::collection::vec(entry, 0..5)
}

fn descriptor() -> impl Strategy<Value = Value> {
    let by_reference = part().prop_map(|part| {
        let text = |key: &str| part.get(key).cloned().unwrap_or(json!("c"));
        let mut reference =
            json!({"componentName": text("componentName"), "version": text("version"), "unknown": true});
        if let Some(context) = part.get("repositoryContext") {
            reference["repositoryContext"] = context.clone();
        }
        json!({"ref": reference})
    });
    let inline = (part(), 0..3usize).prop_map(|(part, contexts)| {
        let text = |key: &str| part.get(key).cloned().unwrap_or(json!("c"));
        let mut component = json!({"name": text("componentName"), "version": text("version"), "provider": "p"});
        if contexts > 0 {
            let context = part.get("repositoryContext").cloned().unwrap_or(json!({"type": "z"}));
            component["repositoryContexts"] = json!(vec![context; contexts - 1]);
        }
        json!({"inline": {"meta": {"schemaVersion": "v2"}, "component": component}})
    });
    prop_oneof![by_reference, inline]
}

fn case(descriptor: &Value, entries: &[Value], context: Option<&Value>, mode: Mode) -> Case {
    let installation = json!({
        "apiVersion": "landscaper.gardener.cloud/v1alpha1", "kind": "Installation",
        "metadata": {"name": "i", "namespace": "ns", "future": {"field": 1}},
        "spec": {"componentDescriptor": descriptor, "blueprint": {"ref": {"resourceName": "b"}}, "future": [1, 2]},
    });
    let mut stored_context = json!({
        "apiVersion": "landscaper.gardener.cloud/v1alpha1", "kind": "Context",
        "metadata": {"name": "default", "namespace": "ns"}, "componentVersionOverwrites": "o",
    });
    if let Some(context) = context {
        stored_context["repositoryContext"] = context.clone();
    }
    let overwrites = json!({
        "apiVersion": "landscaper.gardener.cloud/v1alpha1", "kind": "ComponentVersionOverwrites",
        "metadata": {"name": "o", "namespace": "ns", "generation": 3}, "overwrites": entries,
    });
    let policy = Policy { modes: HashMap::from([("overwrites".to_owned(), mode)]), ..Policy::default() };
    Case::new(Operation::Create, installation).stored(vec![stored_context, overwrites]).policy(policy)
}

fn mutated(case: &Case) -> Value {
    let mut object = case.object.clone();
    if let Some(patch) = case.decide(Phase::Mutate).patch {
        json_patch::patch(&mut object, &patch).expect("the patch fits the object that it was made from");
    }
    object
}

fn annotation(object: &Value, key: &str) -> Option<Value> {
    let text = object["metadata"]["annotations"].get(key)?.as_str()?;
    Some(serde_json::from_str(text).expect("the annotation holds JSON"))
}

fn reference(object: &Value) -> ComponentReference {
    installation::component_reference(object, &mut Vec::new()).expect("it has a descriptor").1
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, ..ProptestConfig::default() })]

    #[test]
    fn patch_equals_the_substitution(
        descriptor in descriptor(), entries in entries(), context in proptest::option::of(0..2usize),
    ) {
        let context = context.map(|at| [json!({"type": "ociRegistry", "baseUrl": "a"}), json!({"type": "q"})][at].clone());
        let case = case(&descriptor, &entries, context.as_ref(), Mode::Annotate);
        let supplied = portcullis::landscaper::context::Context::of(&case.stored[0]).repository_context;
        let list = substitution::read_entries(&case.stored[1], &mut Vec::new());
        let original = reference(&case.object).or_repository_context(supplied.as_ref());
        let expected = Substitution::of(&list, original);

        let annotated = mutated(&case);
        prop_assert_eq!(&annotated["spec"], &case.object["spec"], "the spec stays as the user wrote it");
        prop_assert_eq!(&annotated["metadata"]["future"], &case.object["metadata"]["future"]);
        let patch = annotation(&annotated, PATCH_ANNOTATION);
        prop_assert_eq!(patch.is_some(), expected.changed().next().is_some());
        prop_assert_eq!(annotation(&annotated, SOURCE_ANNOTATION).is_some(), patch.is_some());
        let mut applied = case.object.clone();
        if let Some(patch) = patch {
            let patch: json_patch::Patch = serde_json::from_value(patch).expect("the annotation is a JSON Patch");
            json_patch::patch(&mut applied, &patch).expect("it fits the object that it was made from");
        }
        prop_assert_eq!(reference(&applied).or_repository_context(supplied.as_ref()), expected.result);
    }

    #[test]
    fn mutation_is_idempotent(descriptor in descriptor(), entries in entries(), apply in any::<bool>()) {
        let mode = if apply { Mode::Apply } else { Mode::Annotate };
        let mut case = case(&descriptor, &entries, None, mode);
        case.object = mutated(&case);
        prop_assert_eq!(case.decide(Phase::Mutate).patch, None);
    }

    /// In mode `apply`, the mutator writes the component reference to the spec as the overwrites change it. If the
    /// overwrites are removed later, the mutator restores the reference that the user wrote.
    #[test]
    fn reverts_applied_references(descriptor in descriptor(), entries in entries()) {
        let mut case = case(&descriptor, &entries, None, Mode::Apply);
        let written = reference(&case.object);
        let list = substitution::read_entries(&case.stored[1], &mut Vec::new());
        let expected = Substitution::of(&list, written.clone());
        case.object = mutated(&case);
        prop_assert_eq!(reference(&case.object), expected.result);
        case.stored[1]["overwrites"] = json!([]);
        case.object = mutated(&case);
        prop_assert_eq!(reference(&case.object), written);
        prop_assert!(case.object["metadata"].get("annotations").is_none());
    }

    /// A user edits the version in an Installation whose reference is overwritten. The overwrites must then be applied
    /// to the reference with the edited version and the original values of its other fields.
    #[test]
    fn keeps_user_edits_of_overwritten_installations(descriptor in descriptor(), entries in entries()) {
        let mut case = case(&descriptor, &entries, None, Mode::Apply);
        let pointer = if descriptor.get("ref").is_some() { "/spec/componentDescriptor/ref/version" }
            else { "/spec/componentDescriptor/inline/component/version" };
        let edit = |object: &mut Value| *object.pointer_mut(pointer).expect("it has a version") = json!("edited");
        let mut written = case.object.clone();
        edit(&mut written);
        let list = substitution::read_entries(&case.stored[1], &mut Vec::new());
        let expected = Substitution::of(&list, reference(&written)).result;
        case.object = mutated(&case);
        edit(&mut case.object);
        prop_assert_eq!(reference(&mutated(&case)), expected);
    }
}

/// Regression test: the first mutation adds a list of repository contexts to the Installation. The second mutation must
/// not treat this list as written by the user.
#[test]
fn patches_an_inline_descriptor_without_repository_contexts_once() {
    let descriptor = json!({"inline": {"meta": {"schemaVersion": "v2"}, "component": {"name": "b", "version": "c"}}});
    let entry = json!({"source": {}, "substitution": {"repositoryContext": {"type": "ociRegistry", "baseUrl": "a"}}});
    let mut case = case(&descriptor, &[entry], None, Mode::Apply);
    case.object = mutated(&case);
    assert_eq!(case.decide(Phase::Mutate).patch, None);
}

#[test]
fn an_object_nested_too_deep_is_denied_with_its_uid() {
    for depth in [129, 5_000, 200_000] {
        let mut body = review_of(&Value::Null, 0, "CREATE").to_string();
        let deep = format!("{{\"overwrites\":{}1{}}}", "[".repeat(depth), "]".repeat(depth));
        body = body.replace("\"object\":null", &format!("\"object\":{deep}"));
        let answer = answer(&gate(), Phase::Validate, body.as_bytes()).expect("there is a uid");
        let answer = verify(&answer, "a-uid", Phase::Validate).expect("it is an answer");
        assert_eq!(answer["response"]["allowed"], false);
        let message = answer["response"]["status"]["message"].as_str().unwrap_or_default();
        assert!(message.contains("nested 128 or more levels deep"), "{message}");
    }
}

/// Regression test for issue 18 (Landscaper, item 6): an object with a number that overflows a `float64` is denied,
/// because Landscaper cannot decode this number.
#[test]
fn a_number_beyond_a_float_is_denied() {
    let object = json!({"repositoryContext": {"type": "x", "n": "NUMBER"}});
    for (number, is_allowed) in [("1e307", true), ("1e999", false)] {
        let body = review_of(&object, 1, "CREATE").to_string().replace("\"NUMBER\"", number);
        let answer = answer(&gate(), Phase::Validate, body.as_bytes()).expect("there is a uid");
        let answer = verify(&answer, "a-uid", Phase::Validate).expect("it is an answer");
        assert_eq!(answer["response"]["allowed"], is_allowed, "{number}: {answer}");
    }
}

#[test]
fn answers_v1beta1_reviews_in_v1beta1() {
    let body =
        review_of(&json!({}), 1, "CREATE").to_string().replace("admission.k8s.io/v1", "admission.k8s.io/v1beta1");
    let answer = answer(&gate(), Phase::Validate, body.as_bytes()).expect("there is a uid");
    let answer: Value = serde_json::from_slice(&answer).expect("it is JSON");
    assert_eq!(answer["apiVersion"], "admission.k8s.io/v1beta1");
}

#[test]
fn admits_requests_that_no_rule_matches() {
    for operation in ["CREATE", "UPDATE", "DELETE", "CONNECT"] {
        let body = review_of(&json!({"kind": "PodExecOptions"}), 3, operation).to_string();
        let answer = answer(&gate(), Phase::Validate, body.as_bytes()).expect("there is a uid");
        let answer = verify(&answer, "a-uid", Phase::Validate).expect("it is an answer");
        assert_eq!(answer["response"]["allowed"], true);
    }
}

#[test]
fn many_warnings_are_capped_and_counted() {
    let entries: Vec<_> = (0..40).map(|_| json!({"source": {"componentName": "a"}, "substitution": {}})).collect();
    let body = review_of(&json!({"overwrites": entries}), 0, "CREATE").to_string();
    let answer = answer(&gate(), Phase::Validate, body.as_bytes()).expect("there is a uid");
    let answer = verify(&answer, "a-uid", Phase::Validate).expect("it is an answer");
    let warnings = answer["response"]["warnings"].as_array().expect("there are warnings");
    assert_eq!(warnings.len(), 16);
    assert_eq!(warnings[15], "portcullis: 25 more warnings are not shown");
}
