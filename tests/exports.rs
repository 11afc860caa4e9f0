//! Tests of exports and compressed Executions with the recorded cases of
//! `tests/vectors/landscaper/{exports,compressed}.json`.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "in a test a panic is the report")]

mod cases;

use std::io::Write;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cases::vectors;
use flate2::Compression;
use flate2::write::GzEncoder;
use portcullis::admission::FieldPath;
use portcullis::landscaper::dry_run::export::{Deployer, Export, Failure, exports, result};
use portcullis::landscaper::execution::{self, Unreadable};
use serde_json::{Value, json};

#[test]
fn every_case_of_exporting_has_the_recorded_outcome() {
    let file = vectors("landscaper/exports.json");
    let cases = file["cases"].as_array().expect("cases is a list");
    assert!(!cases.is_empty());
    for case in cases {
        let name = &case["name"];
        let list = case["exports"].as_array().expect("exports is a list");
        let read = |value| Export::read(FieldPath::root(), Deployer::Manifest, false, value);
        let configuration = json!({"spec": {"exports": case["objects"]}});
        let found = result(&list.iter().map(read).collect::<Vec<_>>(), &configuration);
        match (found, case["expect"].get("error")) {
            (Ok(value), None) => assert_eq!(value, case["expect"]["value"], "{name}"),
            (Err((at, failure)), Some(error)) => {
                assert_eq!(json!(at), error["failedIndex"], "{name}: {failure:?}");
                let text = error["text"].as_str().expect("text is a text");
                assert!(matches_recorded_error(&failure, text), "{name}: {failure:?} instead of {text}");
            }
            (found, _) => panic!("{name}: {found:?} instead of {}", case["expect"]),
        }
    }
}

fn matches_recorded_error(failure: &Failure, text: &str) -> bool {
    match failure {
        Failure::Missing(identity) => {
            text == format!("{} \"{}/{}\" not found", identity.kind, identity.namespace, identity.name)
        }
        Failure::Path { error, .. } => text == error.problem.to_string(),
        Failure::Reference { .. } => text.starts_with("unexpected reference") || text.starts_with("expected name"),
        Failure::Key(_) => text.contains("Unsupported value"),
    }
}

/// Returns name, type and configuration of each DeployItem template in `decoded`, the decoded spec of an Execution.
fn items(decoded: &Value) -> Vec<Value> {
    let part = |item: &Value| json!([item["name"], item["type"], item["config"]]);
    decoded["deployItems"].as_array().into_iter().flatten().map(part).collect()
}

fn read(spec: &Value) -> Result<Vec<Value>, Unreadable> {
    let templates = execution::templates(spec)?;
    Ok(templates.items.into_iter().map(|item| json!([item.name, item.type_name, item.config])).collect())
}

#[test]
fn every_case_of_decompressing_has_the_recorded_outcome() {
    let file = vectors("landscaper/compressed.json");
    for case in file["roundTrip"].as_array().filter(|cases| !cases.is_empty()).expect("there are cases") {
        assert_eq!(read(&case["wire"]).unwrap(), items(&case["decoded"]), "{}", case["name"]);
    }
    for case in file["decode"].as_array().filter(|cases| !cases.is_empty()).expect("there are cases") {
        let spec: Value = serde_json::from_str(case["specText"].as_str().unwrap()).unwrap();
        let (found, expect) = (read(&spec), &case["expect"]);
        if let Some(decoded) = expect.get("decoded") {
            assert_eq!(found, Ok(items(decoded)), "{}", case["name"]);
        } else if let Some(count) = expect.get("decodedCount") {
            assert_eq!(json!(found.unwrap().len()), *count, "{}", case["name"]);
        } else {
            assert!(found.is_err(), "{}: {found:?}", case["name"]);
        }
    }
}

#[test]
fn decompression_is_bounded() {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    let zeros = vec![b' '; 1024 * 1024];
    for _ in 0..40 {
        encoder.write_all(&zeros).unwrap();
    }
    let spec = json!({"deployItemsCompressed": STANDARD.encode(encoder.finish().unwrap())});
    assert_eq!(read(&spec), Err(Unreadable::TooLarge));
}

#[test]
fn exports_are_found_where_deployers_read_them() {
    let list = json!([{"key": "a"}, {"key": "b"}]);
    let config = |api_version: &str| {
        json!({"apiVersion": api_version, "kind": "ProviderConfiguration", "exports": {"exports": list},
               "exportsFromManifests": [{"key": "c"}]})
    };
    let fields = |api_version: &str| -> Vec<String> {
        exports(&config(api_version)).iter().map(|export| export.field.to_string()).collect()
    };
    let both = ["exports.exports[0]", "exports.exports[1]"];
    assert_eq!(fields("manifest.deployer.landscaper.gardener.cloud/v1alpha1"), both);
    assert_eq!(fields("manifest.deployer.landscaper.gardener.cloud/v1alpha2"), both);
    assert_eq!(
        fields("helm.deployer.landscaper.gardener.cloud/v1alpha1"),
        [both.as_slice(), &["exportsFromManifests[0]"]].concat()
    );
    assert!(fields("container.deployer.landscaper.gardener.cloud/v1alpha1").is_empty());
}
