//! Tests of overwrites with the recorded cases of `tests/vectors/landscaper/overwrites.json`.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "in a test a panic is the report")]

mod cases;

use cases::{Case, vectors};
use portcullis::admission::{FieldPath, Object, Operation, Phase};
use portcullis::landscaper::component_reference::{Attribute, ComponentReference};
use portcullis::landscaper::context::Context;
use portcullis::landscaper::decode::Problem;
use portcullis::landscaper::installation;
use portcullis::landscaper::overwrites::message;
use portcullis::landscaper::repository_context::RepositoryContext;
use portcullis::landscaper::substitution::{self, Entry, Outcome, Substitution};
use serde_json::{Value, json};

/// Returns the field `member` of the input of `case` as JSON text. If the case has the field `rawInput`, this field
/// already contains the text. Otherwise, serializes the value in `input`, as an API server does.
fn text(case: &Value, member: &str) -> Option<String> {
    match case.get("rawInput") {
        Some(raw) => raw.get(member).map(|text| text.as_str().expect("rawInput holds texts").to_owned()),
        None => case["input"].get(member).map(Value::to_string),
    }
}

struct Input {
    entries: Vec<Entry>,
    reference: ComponentReference,
    problems: Vec<Problem>,
}

fn input(case: &Value) -> Input {
    let mut problems = Vec::new();
    let entries = substitution::parse_entries(&text(case, "overwrites").unwrap_or("null".into()), &mut problems);
    let reference = match text(case, "inlineComponentDescriptor") {
        Some(inline) => {
            let inline: Value = serde_json::from_str(&inline).expect("the descriptor is JSON");
            let installation = json!({"spec": {"componentDescriptor": {"inline": inline}}});
            installation::component_reference(&installation, &mut problems).expect("it has a descriptor").1
        }
        None => {
            let reference = text(case, "reference").expect("every case has a reference");
            ComponentReference::parse(&reference, &FieldPath::of(["reference"]), &mut problems)
        }
    };
    let context = text(case, "contextRepositoryContext").and_then(|text| {
        RepositoryContext::parse(&text, &FieldPath::of(["context"])).unwrap_or_else(|problem| {
            problems.push(problem);
            None
        })
    });
    Input { entries, reference: reference.or_repository_context(context.as_ref()), problems }
}

/// Applies the overwrites in `input` to the reference in `input`. Returns the result in the format of the field
/// `expect` of the recorded cases.
fn outcome(input: &Input) -> Value {
    let substitution = Substitution::of(&input.entries, input.reference.clone());
    let condition = message::condition(&substitution);
    let mut expect = json!({
        "replaced": substitution.matched,
        "referenceAfter": {
            "repositoryContext": substitution.result.value(Attribute::RepositoryContext),
            "componentName": substitution.result.component_name,
            "version": substitution.result.version,
        },
        "overwritten": Attribute::ALL.map(|a| (a.to_string(), json!(substitution.changes(a))))
            .into_iter().collect::<serde_json::Map<_, _>>(),
        "lines": Attribute::ALL.map(|a| message::line(&substitution, a)),
        "diffText": message::diff_text(&substitution),
        "condition": {"type": message::CONDITION_TYPE, "status": condition.status, "reason": condition.reason,
                      "message": condition.message},
        "entries": input.entries.iter().zip(&substitution.trace)
            .map(|(entry, outcome)| reported(entry, outcome, &input.reference)).collect::<Vec<_>>(),
    });
    match &substitution.result.repository_context {
        Some(context) => expect["repositoryContextRaw"] = json!(context.raw()),
        None => drop(expect["referenceAfter"].as_object_mut().map(|after| after.remove("repositoryContext"))),
    }
    expect
}

fn reported(entry: &Entry, outcome: &Outcome, original: &ComponentReference) -> Value {
    let matched = entry.matches(original);
    match outcome {
        Outcome::NotMatched { .. } => json!({"matched": matched, "outcome": "notMatched"}),
        Outcome::Applied { set } if set.is_empty() => json!({"matched": matched, "outcome": "appliedEmpty"}),
        Outcome::Applied { set } => json!({"matched": matched, "outcome": "applied", "set": set}),
        Outcome::Rejected { .. } => json!({"matched": matched, "outcome": "rejected"}),
        Outcome::NotReached => json!({"matched": matched, "outcome": "notEvaluated"}),
    }
}

/// Prepares the result or the expected result of a case for the comparison. Removes repository contexts that are
/// `null`, and converts all numbers to floating point.
fn normalize(mut value: Value) -> Value {
    if let Some(after) = value.get_mut("referenceAfter").and_then(Value::as_object_mut) {
        after.retain(|_, part| !part.is_null());
    }
    if value.get("repositoryContextRaw").is_some_and(Value::is_null) {
        value.as_object_mut().expect("expect is an object").remove("repositoryContextRaw");
    }
    floats(value)
}

fn floats(value: Value) -> Value {
    match value {
        Value::Number(number) => json!(number.as_f64()),
        Value::Array(items) => items.into_iter().map(floats).collect(),
        Value::Object(members) => members.into_iter().map(|(key, value)| (key, floats(value))).collect(),
        other => other,
    }
}

#[test]
fn every_case_has_the_recorded_outcome() {
    let file = vectors("landscaper/overwrites.json");
    let cases = file["cases"].as_array().expect("cases is a list");
    assert!(!cases.is_empty());
    for case in cases {
        let input = input(case);
        assert_eq!(input.problems, [], "{}", case["name"]);
        assert_eq!(normalize(outcome(&input)), normalize(case["expect"].clone()), "{}", case["name"]);
    }
}

/// Checks that parsing overwrites from a JSON text and reading them from a parsed object have the same result. The
/// other tests parse overwrites from JSON texts, but Portcullis reads them from parsed objects.
#[test]
fn parses_values_and_their_texts_alike() {
    let file = vectors("landscaper/overwrites.json");
    for case in file["cases"].as_array().expect("cases is a list").iter().filter(|case| case.get("input").is_some()) {
        let object = json!({"overwrites": case["input"]["overwrites"]});
        let mut problems = Vec::new();
        let entries = substitution::read_entries(&object, &mut problems);
        assert_eq!(entries, input(case).entries, "{}", case["name"]);
    }
    for case in file["decodeErrors"]
        .as_array()
        .expect("decodeErrors is a list")
        .iter()
        .filter(|case| case.get("input").is_some())
    {
        let mut problems = Vec::new();
        substitution::read_entries(&json!({"overwrites": case["input"]["overwrites"]}), &mut problems);
        assert_eq!(problems, problems_of(case, "overwrites"), "{}", case["name"]);
        let mut problems = Vec::new();
        let spec = json!({"componentDescriptor": {"ref": case["input"]["reference"]}});
        installation::component_reference(&json!({"spec": spec}), &mut problems);
        assert_eq!(problems.len(), problems_of(case, "installation").len(), "{}", case["name"]);
    }
}

/// Regression test for issue 18: an Installation whose Context names missing overwrites was admitted without a warning,
/// and failed later.
#[test]
fn warns_about_an_installation_whose_context_names_missing_overwrites() {
    let of = |kind: &str, more: Value| {
        let mut object = json!({"apiVersion": "landscaper.gardener.cloud/v1alpha1", "kind": kind,
                                "metadata": {"name": "default", "namespace": "ns"}});
        json_patch::merge(&mut object, &more);
        object
    };
    let context = of("Context", json!({"componentVersionOverwrites": "mine"}));
    let found = |stored: Vec<Value>| -> Vec<String> {
        let case = Case::new(Operation::Create, of("Installation", json!({"spec": {"blueprint": {}}}))).stored(stored);
        let findings = case.decide(Phase::Validate).findings;
        let reported = findings.iter().filter(|found| found.rule == "OW005");
        reported.map(|found| format!("{} {}: {}", found.level, found.field, found.message)).collect()
    };
    let message = "warn spec.context: ComponentVersionOverwrites \"mine\", which Context \"default\" names, do not exist in \
                   namespace ns";
    assert_eq!(found(vec![context.clone()]), [message]);
    let overwrites = of("ComponentVersionOverwrites", json!({"metadata": {"name": "mine"}, "overwrites": []}));
    assert_eq!(found(vec![context, overwrites]), [""; 0]);
    assert_eq!(found(Vec::new()), ["warn spec.context: Context \"default\" does not exist in namespace ns"]);
}

/// Checks that [`Object::read`] returns an error if an object contains a number that Landscaper cannot decode, so that
/// the request is denied. An earlier call that read only a part of the object without this number must not hide the
/// error.
#[test]
fn a_number_out_of_range_is_reported() {
    for case in vectors("landscaper/deployers.json")["numbers"].as_array().expect("it is a list") {
        let number = case["number"].as_str().unwrap();
        let text = format!(
            "{{\"apiVersion\":\"landscaper.gardener.cloud/v1alpha1\",\"kind\":\"Context\",\"metadata\":{{\"name\":\"c\"}},\
             \"repositoryContext\":{{\"type\":\"x\",\"n\":{number}}}}}"
        );
        let object = Object::raw(Some(&text));
        assert!(object.read(Some(&[])).is_ok(), "metadata alone can be read");
        assert_eq!(object.read(None).is_ok(), case["expect"]["context"].is_null(), "{number}");
    }
}

/// Regression test for issue 18. With `overwrites: apply`, the mutator has already substituted the reference, so
/// Landscaper finds no overwrite for it. The test checks that `docs/configuration.md` quotes the condition that
/// Landscaper writes in this case.
#[test]
fn the_page_quotes_the_condition_of_an_applied_substitution() {
    let file = vectors("landscaper/overwrites.json");
    let cases = file["cases"].as_array().unwrap().iter();
    let case = cases
        .into_iter()
        .find(|case| case["name"] == "match name= version- repo=")
        .expect("the vectors have this case");
    let mut input = input(case);
    input.reference = Substitution::of(&input.entries, input.reference).result;
    let condition = outcome(&input)["condition"].clone();
    assert_eq!((&condition["type"], &condition["status"]), (&json!("ComponentReferenceOverwrite"), &json!("False")));
    let page = std::fs::read_to_string(cases::repository().join("docs/configuration.md")).unwrap();
    let page = page.split_whitespace().collect::<Vec<_>>().join(" ");
    for part in ["type", "status", "message"] {
        let quoted = format!("`{}`", condition[part].as_str().unwrap());
        assert!(page.contains(&quoted), "{quoted}");
    }
}

#[test]
fn reports_values_that_landscaper_cannot_decode() {
    let file = vectors("landscaper/overwrites.json");
    let cases = file["decodeErrors"].as_array().expect("decodeErrors is a list");
    assert!(!cases.is_empty());
    for case in cases {
        let expected = case["expect"]["decodeError"].as_object().expect("decodeError is an object");
        for object in ["overwrites", "installation", "context"] {
            let problems = problems_of(case, object);
            let fails = expected.contains_key(object);
            assert_eq!(!problems.is_empty(), fails, "{} {object}: {problems:?}", case["name"]);
        }
    }
}

fn problems_of(case: &Value, object: &str) -> Vec<Problem> {
    let mut problems = Vec::new();
    match object {
        "overwrites" => {
            if let Some(text) = text(case, "overwrites") {
                substitution::parse_entries(&text, &mut problems);
            }
        }
        "installation" => {
            if let Some(text) = text(case, "reference") {
                ComponentReference::parse(&text, &FieldPath::root(), &mut problems);
            }
        }
        _ => {
            if let Some(text) = text(case, "contextRepositoryContext") {
                let value: Value = serde_json::from_str(&text).expect("the context is JSON");
                Context::read(&json!({"repositoryContext": value}), &mut problems);
            }
        }
    }
    problems
}
