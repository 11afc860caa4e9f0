//! Tests of composition environments with the recorded cases of `tests/vectors/crossplane/`, for both values of
//! [`Profile`].
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "in a test a panic is the report")]

mod cases;

use std::sync::Arc;

use cases::vectors;
use portcullis::catalog::Stored;
use portcullis::crossplane::environment::{
    Layer, LayerName, Merged, Patch, Patching, Profile, Transform, invalid_environment_patches, sort, with_kind,
};
use portcullis::go::Any;
use serde_json::{Map, Value, json};

const PROFILES: [(Profile, &str); 2] = [(Profile::Native117, "native1176"), (Profile::Function, "functionPT")];

fn list(file: &Value) -> &Vec<Value> {
    file.as_array().filter(|cases| !cases.is_empty()).expect("the file has cases")
}

/// Converts all numbers to floating point, so that `1` and `1.0` are equal.
fn with_float_numbers(value: &Value) -> Value {
    match value {
        Value::Number(number) => json!(number.as_f64()),
        Value::Array(items) => items.iter().map(with_float_numbers).collect(),
        Value::Object(members) => members.iter().map(|(key, value)| (key.clone(), with_float_numbers(value))).collect(),
        other => other.clone(),
    }
}

/// Returns the input of a recorded case. If the field `inputGoType` of the case is `float64`, the input is a float.
/// Otherwise, it is a JSON value.
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
                    assert_eq!(
                        with_float_numbers(&output.shown()),
                        with_float_numbers(&recorded["output"]),
                        "{name}: {case}"
                    );
                }
            }
        }
    }
}

fn layer(data: &Value) -> Layer {
    let data: Map<String, Value> = data.as_object().unwrap().clone();
    Layer { name: LayerName::Config("config".to_owned()), to_field_path: None, data }
}

#[test]
fn every_merge_has_the_recorded_outcome() {
    for case in list(&vectors("crossplane/env_merge.json")) {
        let merged = Merged::of(list(&case["data"]).iter().map(layer).collect());
        assert_eq!(
            with_float_numbers(&Value::Object(merged.data.clone())),
            with_float_numbers(&case["merged"]),
            "{case}"
        );
        let environment = with_kind(Profile::Native117, merged.data);
        assert_eq!(with_float_numbers(&environment), with_float_numbers(&case["environmentAfterGVK"]), "{case}");
    }
}

#[test]
fn every_row_of_patches_has_the_recorded_outcome() {
    for case in list(&vectors("crossplane/env_patches.json")) {
        let patches: Vec<Patch> = serde_json::from_value(case["patches"].clone()).unwrap();
        for (profile, name) in PROFILES {
            let recorded = &case[name];
            let invalid = invalid_environment_patches(&patches, profile).map(|invalid| invalid.to_string());
            assert_eq!(json!(invalid), recorded["validateError"], "{name}: {case}");
            let environment = with_kind(profile, Merged::of(vec![layer(&case["environmentData"])]).data);
            let mut composite = case["xr"].clone();
            composite["apiVersion"] = json!("e.org/v1");
            composite["kind"] = json!("XR");
            let mut patching = Patching::new(profile, environment, &composite);
            let (_, failure) = patching.environment_patches(&patches);
            assert_eq!(json!(failure), recorded["error"], "{name}: {case}");
            if failure.is_none() {
                let written = if profile == Profile::Function { "desiredXR" } else { "xr" };
                assert_eq!(
                    with_float_numbers(patching.environment()),
                    with_float_numbers(&recorded["env"]),
                    "{name}: {case}"
                );
                assert_eq!(
                    with_float_numbers(patching.desired()),
                    with_float_numbers(&recorded[written]),
                    "{name}: {case}"
                );
            }
        }
    }
}

#[test]
fn every_sort_has_the_recorded_outcome() {
    let profiles = [(Profile::Native117, "native1176"), (Profile::Function, "functionEnvConfigsHEAD")];
    for case in list(&vectors("crossplane/sort_configs.json")) {
        for (profile, name) in profiles {
            let configs = list(&case["configs"]).iter();
            let mut configs: Vec<_> = configs.map(|config| Arc::new(Stored::new(config.clone()))).collect();
            let sorted = sort(profile, case["sortByFieldPath"].as_str().unwrap(), &mut configs);
            let order = configs.iter().map(|config| config.name().to_owned()).collect::<Vec<_>>();
            match sorted {
                Ok(()) => assert_eq!(json!(order), case[name]["order"], "{name}: {case}"),
                Err(error) => assert_eq!(json!(error), case[name]["error"], "{name}: {case}"),
            }
        }
    }
}
