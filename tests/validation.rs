//! Compares the rules that replace Landscaper's webhook server with recorded cases of that server.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "in a test a panic is the report")]

mod cases;

use std::collections::BTreeMap;

use cases::{Case, vectors};
use futures::executor::block_on;
use portcullis::admission::{Level, Operation, Phase, Resource};
use portcullis::gate::Policy;
use proptest::prelude::*;
use serde_json::{Value, json};

/// Returns a policy with only the rules that replace Landscaper's webhook server.
fn policy() -> Policy {
    let mut policy = Policy::default();
    for (family, level) in [("LS", Level::Deny), ("DP", Level::Off), ("DR", Level::Off), ("OW", Level::Off)] {
        policy.levels.insert(family.to_owned(), level);
    }
    policy.levels.insert("DP007".to_owned(), Level::Deny);
    policy
}

/// Returns the fields of all findings of level `deny`, sorted.
fn denied_fields(kind: &str, object: &Value, old: Option<&Value>) -> Vec<String> {
    let mut case = Case::new(Operation::Create, object.clone()).policy(policy());
    if let Some(old) = old {
        case = case.update(old.clone());
    }
    let mut request = case.request();
    let plural = format!("{}s", kind.to_lowercase());
    request.resource = Resource {
        group: "landscaper.gardener.cloud".into(),
        version: "v1alpha1".into(),
        plural: plural.into(),
        kind: kind.to_owned().into(),
        subresource: "".into(),
    };
    let verdict = block_on(case.gate().decide(Phase::Validate, &request));
    let refused = verdict.findings.iter().filter(|finding| finding.level == Level::Deny);
    let mut fields: Vec<_> = refused.map(|finding| finding.field.to_string()).collect();
    assert_eq!(fields.is_empty(), verdict.is_allowed());
    fields.sort();
    fields
}

/// Converts a field path in an error of Landscaper to the notation of Portcullis. Landscaper's paths differ in three
/// ways:
///
/// - The index of a template is followed by the name of the template.
/// - A path to a choice between `inline` and `ref` ends in `.definition`.
/// - A path in compressed templates leads into the decompressed templates.
fn field(upstream: &str, object: &Value) -> String {
    let field = upstream.strip_suffix(".definition").unwrap_or(upstream);
    if field.starts_with("spec.deployItems") && object.pointer("/spec/deployItemsCompressed").is_some() {
        return "spec.deployItemsCompressed".to_owned();
    }
    let Some((before, after)) = field.split_once("][") else { return dotted(field) };
    let (_, after) = after.split_once(']').unwrap_or_default();
    dotted(&format!("{before}]{after}"))
}

/// Converts a path with keys in brackets, such as `a[b]`, to a path with dots, such as `a.b`.
fn dotted(field: &str) -> String {
    field.trim_start_matches('.').replace('[', ".").replace(']', "")
}

fn count_by_field(fields: &[String]) -> BTreeMap<&str, usize> {
    fields.iter().fold(BTreeMap::new(), |mut counts, field| {
        *counts.entry(field.as_str()).or_default() += 1;
        counts
    })
}

/// Checks that the rules allow and deny the same objects as Landscaper's webhook server, and find errors at the same
/// fields.
#[test]
fn denies_what_landscaper_denies() {
    let file = vectors("landscaper/validation.json");
    let cases = file["cases"].as_array().unwrap();
    assert!(!cases.is_empty());
    for case in cases {
        let (name, kind) = (&case["name"], case["kind"].as_str().unwrap());
        let mut object = case["object"].clone();
        let mut kind = kind;
        // An export without an object is tested within a DeployItem.
        if kind == "Export" {
            kind = "DeployItem";
            object = json!({
                "apiVersion": "landscaper.gardener.cloud/v1alpha1", "kind": kind,
                "metadata": {"name": "d", "namespace": "n"},
                "spec": {"type": "t", "config": {"exports": {"exports": [object]}}},
            });
        }
        let ours = denied_fields(kind, &object, case.get("oldObject"));
        let expect = &case["expect"];
        assert_eq!(ours.is_empty(), expect["allowed"] == true, "{name}: {ours:?}");
        let errors = expect["errors"].as_array().into_iter().flatten();
        let theirs: Vec<_> = errors.map(|error| field(error["field"].as_str().unwrap(), &object)).collect();
        let ours: Vec<_> = ours.iter().map(|field| dotted(field.trim_start_matches("spec.config.exports."))).collect();
        let (ours, theirs) = (count_by_field(&ours), count_by_field(&theirs));
        for (field, times) in theirs {
            assert!(ours.get(field).is_some_and(|ours| *ours >= times), "{name}: {field} is missing in {ours:?}");
        }
    }
}

#[test]
fn reports_all_errors_at_once() {
    let object = json!({
        "apiVersion": "landscaper.gardener.cloud/v1alpha1", "kind": "Installation",
        "metadata": {"name": "a.b", "namespace": "n"},
        "spec": {"context": 5, "imports": {"data": [{"name": "a"}]}, "exports": {"targets": [{}]},
                 "automaticReconcile": {"failedReconcile": {"cronSpec": "x"}}},
    });
    let fields = denied_fields("Installation", &object, None);
    for field in [
        "metadata.name",
        "spec.context",
        "spec.imports.data[0]",
        "spec.exports.targets[0].target",
        "spec.exports.targets[0].name",
        "spec.blueprint",
        "spec.automaticReconcile.failedReconcile.cronSpec",
    ] {
        assert!(fields.iter().any(|found| found == field), "{field} is missing in {fields:?}");
    }
}

/// The rules skip an update only if both the old and the new object have Landscaper's skip label. With Landscaper's own
/// webhook, the API server does the same, because the webhook has an object selector.
#[test]
fn landscapers_label_is_honoured_as_landscaper_does() {
    let object = |label: &str| {
        json!({
            "apiVersion": "landscaper.gardener.cloud/v1alpha1", "kind": "DeployItem", "spec": {"type": ""},
            "metadata": {"name": "d", "namespace": "n",
                         "labels": {"validation.landscaper.gardener.cloud/skip-validation": label}},
        })
    };
    let (with, without) = (object("true"), object("false"));
    assert_eq!(denied_fields("DeployItem", &with, None), [""; 0]);
    assert_eq!(denied_fields("DeployItem", &without, None), ["spec.type"]);
    let mut typed = with.clone();
    typed["spec"]["type"] = json!("t");
    assert_eq!(denied_fields("DeployItem", &with, Some(&typed)), [""; 0]);
    assert_eq!(denied_fields("DeployItem", &with, Some(&without)), ["spec.type"]);
    assert_eq!(
        denied_fields("DeployItem", &without, Some(&typed)),
        ["spec.type", "spec.type"],
        "the type has changed, too"
    );
}

#[test]
fn handles_a_long_chain_of_templates() {
    let template = |at: usize| json!({"name": format!("t{at}"), "type": "t", "dependsOn": [format!("t{}", at + 1)]});
    let mut templates: Vec<_> = (0..30_000).map(template).collect();
    let execution = |templates: &[Value]| {
        json!({
            "apiVersion": "landscaper.gardener.cloud/v1alpha1", "kind": "Execution",
            "metadata": {"name": "e", "namespace": "n"}, "spec": {"deployItems": templates},
        })
    };
    assert_eq!(denied_fields("Execution", &execution(&templates), None), ["spec.deployItems[29999]"]);
    templates.push(json!({"name": "t30000", "type": "t", "dependsOn": ["t0"]}));
    assert_eq!(denied_fields("Execution", &execution(&templates), None), ["spec.deployItems"]);
    // Now each template also depends on the first one, so there are thousands of cycles. Only ten are reported.
    templates.iter_mut().for_each(|template| template["dependsOn"].as_array_mut().unwrap().push(json!("t0")));
    assert_eq!(denied_fields("Execution", &execution(&templates), None).len(), 10);
}

/// Generates JSON values with the keys of Landscaper objects.
fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        "[a-z.]{0,4}".prop_map(Value::from),
    ];
    let keys = prop::sample::select(vec![
        "name",
        "type",
        "target",
        "targets",
        "targetMap",
        "data",
        "dataRef",
        "imports",
        "exports",
        "config",
        "manifests",
        "blueprint",
        "ref",
        "deployItems",
        "dependsOn",
        "labels",
        "chart",
        "spec",
        "key",
        "cronSpec",
        "fromResource",
    ]);
    leaf.prop_recursive(4, 40, 5, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::hash_map(keys.clone(), inner, 0..5)
                .prop_map(|members| members.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()),
        ]
    })
}

proptest! {
    #[test]
    fn never_panics_on_any_object(spec in any_value(), kind in prop::sample::select(vec![
        "Installation", "DeployItem", "Execution", "Target",
    ])) {
        let object = json!({"apiVersion": "landscaper.gardener.cloud/v1alpha1", "kind": kind,
                            "metadata": {"name": "o", "namespace": "n"}, "spec": spec});
        let _ = denied_fields(kind, &object, None);
    }
}
