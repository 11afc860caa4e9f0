//! Compares the YAML that Portcullis prints for objects with the output of kustomize's own libraries
//! (`tests/vectors/kustomize/emit.json`). Also checks that the YAML parser of Portcullis parses this YAML to the same
//! objects.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "in a test a panic is the report")]

mod cases;

use cases::vectors;
use portcullis::kustomize::emit::{EmitError, Value, document};
use portcullis::yaml::{self, Limits};
use proptest::prelude::*;
use serde_json::json;

fn print_yaml(value: &serde_json::Value) -> Result<String, EmitError> {
    let mut text = String::new();
    document(&Value::from(value), &mut text).map(|()| text)
}

#[test]
fn prints_what_kustomize_prints() {
    let cases = vectors("kustomize/emit.json");
    let mut wrong = Vec::new();
    for case in cases.as_array().expect("the file is a list") {
        let json = case["json"].as_str().expect("a case has JSON");
        let printed = print_yaml(&serde_json::from_str(json).expect("the JSON can be read"));
        if printed.as_deref().ok() != case["yaml"].as_str() {
            wrong.push(format!("{json}\n  kustomize: {}\n  printed: {printed:?}", case["yaml"]));
        }
    }
    assert!(wrong.is_empty(), "{} differ:\n{}", wrong.len(), wrong[..wrong.len().min(20)].join("\n"));
}

#[test]
fn prints_a_merge_key_without_quotes_as_kustomize_does() {
    assert_eq!(print_yaml(&json!({"data": {"<<": {"a": "<<"}}})).as_deref(), Ok("data:\n  <<:\n    a: <<\n"));
}

#[test]
fn reports_the_position_of_unprintable_values() {
    let error = print_yaml(&json!({"data": {"list": ["a", "b\u{7f}"]}})).unwrap_err();
    assert_eq!(error.to_string(), "data.list[1]: the control character U+007F cannot be printed as YAML");
    let error = print_yaml(&json!({"data": {"k\u{85}": 1}})).unwrap_err();
    assert!(error.to_string().starts_with("data.k\u{85}: a key with a next-line character"), "{error}");
}

/// Returns a strategy that generates texts. The YAML 1.2 parser of Portcullis and go-yaml v2 interpret these texts
/// identically.
fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        "[ -~]{0,12}",
        "[a-z ]{60,200}",
        "([a-z0-9: #'\"-]{0,20}\n){0,5}[a-z ]{0,9}",
        "[-+.0-9exob_:T Zyn~]{0,12}",
        "[\\PC&&[^\u{85}\u{2028}\u{2029}\u{feff}]]{0,9}",
        prop::sample::select(vec![
            "",
            "~",
            "null",
            "yes",
            "0x1F",
            "1e3",
            "2001-01-01",
            "- a",
            "a: b",
            "\t",
            "😀",
            "\u{0}"
        ])
        .prop_map(str::to_owned),
    ]
}

/// Returns a strategy that generates keys other than `<<`. kustomize prints the key `<<` without quotes, so parsers
/// would treat it as a YAML merge key.
fn key() -> impl Strategy<Value = String> {
    text().prop_filter("a merge key", |key| key != "<<")
}

fn value() -> impl Strategy<Value = serde_json::Value> {
    let leaf = prop_oneof![
        Just(json!(null)),
        any::<bool>().prop_map(|flag| json!(flag)),
        any::<i64>().prop_map(|int| json!(int)),
        any::<u64>().prop_map(|int| json!(int)),
        // With a fraction, the number is still a float after it is printed.
        (-1_000_000_i32..1_000_000).prop_map(|whole| json!(f64::from(whole) + 0.25)),
        text().prop_map(|text| json!(text)),
    ];
    leaf.prop_recursive(4, 24, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(|items| json!(items)),
            prop::collection::hash_map(key(), inner, 0..5).prop_map(|entries| json!(entries)),
        ]
    })
}

proptest! {
    #[test]
    fn printed_text_reads_as_the_same_value(value in value()) {
        let object = json!({"object": value});
        let text = print_yaml(&object).expect("nothing in the value is refused");
        let read = yaml::read(&text, &Limits::default()).map_err(|error| TestCaseError::fail(format!("{error}:\n{text}")))?;
        prop_assert_eq!(read.first().map(|document| &document.value), Some(&object), "{}", text);
    }
}
