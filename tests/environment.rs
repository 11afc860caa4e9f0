//! Composition environments against the executed cases of `tests/vectors/crossplane/`, in both profiles.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "in a test a panic is the report")]

mod cases;

use cases::vectors;
use portcullis::crossplane::environment::{Profile, Transform};
use portcullis::crossplane::go::Any;
use serde_json::{Value, json};

const PROFILES: [(Profile, &str); 2] = [(Profile::Native117, "native1176"), (Profile::Function, "functionPT")];

fn list(file: &Value) -> &Vec<Value> {
    file.as_array().filter(|cases| !cases.is_empty()).expect("the file has cases")
}

/// Values as JSON has them: `1` and `1.0` are the same number.
fn plain(value: &Value) -> Value {
    match value {
        Value::Number(number) => json!(number.as_f64()),
        Value::Array(items) => items.iter().map(plain).collect(),
        Value::Object(members) => members.iter().map(|(key, value)| (key.clone(), plain(value))).collect(),
        other => other.clone(),
    }
}

/// The input of a case, with the Go type that it says.
fn input(case: &Value) -> Any {
    let value = &case["input"];
    match case["inputGoType"].as_str() {
        Some("float64") => Any::float(value.as_f64().unwrap()),
        _ => Any::Json(value.clone()),
    }
}

#[test]
fn every_transform_has_the_recorded_outcome() {
    for case in list(&vectors("crossplane/transforms.json")) {
        let transform: Transform = serde_json::from_value(case["transform"].clone()).unwrap();
        for (profile, name) in PROFILES {
            let recorded = if case[name] == "same" { &case["native1176"] } else { &case[name] };
            let invalid = transform.invalid(profile).map(|invalid| invalid.to_string());
            assert_eq!(json!(invalid), recorded["validateError"], "{name}: {case}");
            match transform.resolve(&input(case), profile) {
                Err(error) => assert_eq!(json!(error.to_string()), recorded["error"], "{name}: {case}"),
                Ok(output) => {
                    assert_eq!(recorded.get("error"), None, "{name}: {case}: {output:?}");
                    assert_eq!(json!(output.type_name()), recorded["outputGoType"], "{name}: {case}");
                    assert_eq!(plain(&output.shown()), plain(&recorded["output"]), "{name}: {case}");
                }
            }
        }
    }
}
