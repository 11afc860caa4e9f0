//! Tests of export paths with the recorded cases of `tests/vectors/landscaper/{jsonpath,construct}.json`, and with
//! random input.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "in a test a panic is the report")]

mod cases;

use cases::vectors;
use portcullis::landscaper::export_path::{Class, Path, PathError, construct, merge};
use proptest::prelude::*;
use serde_json::{Value, json};

fn find(path: &str, object: &Value) -> Result<Value, PathError> {
    Path::parse(path)?.find(object)
}

fn list<'v>(file: &'v Value, name: &str) -> &'v Vec<Value> {
    file[name].as_array().filter(|cases| !cases.is_empty()).expect("the list has cases")
}

fn text(value: &Value) -> &str {
    value.as_str().expect("the value is a string")
}

/// Reports whether two values are equal. Integers and floating-point numbers with the same value are equal.
fn are_equal(a: &Value, b: &Value) -> bool {
    floats(a.clone()) == floats(b.clone())
}

fn floats(value: Value) -> Value {
    match value {
        Value::Number(number) => json!(number.as_f64()),
        Value::Array(items) => items.into_iter().map(floats).collect(),
        Value::Object(members) => members.into_iter().map(|(key, value)| (key, floats(value))).collect(),
        other => other,
    }
}

fn class(name: &str) -> Class {
    match name {
        "parse" => Class::Parse,
        "eval" => Class::Evaluation,
        "count" => Class::Count,
        "empty" => Class::Empty,
        "unsupported" => Class::Unsupported,
        other => panic!("no such class: {other}"),
    }
}

/// The end of one error message of Landscaper. Messages with this end are not compared: they contain a whole map in
/// Go's syntax, while the message of Portcullis contains shortened JSON.
const CANNOT_BE_FILTERED: &str = "is not array or slice and cannot be filtered";

#[test]
fn every_case_of_reading_has_the_recorded_outcome() {
    let file = vectors("landscaper/jsonpath.json");
    for case in list(&file, "cases") {
        let (name, path, expect) = (&case["name"], text(&case["path"]), &case["expect"]);
        let object = case.get("objectRef").map_or(&case["object"], |named| &file["objects"][text(named)]);
        let object = if case["plainJson"] == true { floats(object.clone()) } else { object.clone() };
        let found = find(path, &object);
        if let Some(value) = expect.get("value") {
            let found = found.unwrap_or_else(|error| panic!("{name}: {error}"));
            assert!(are_equal(&found, value), "{name}: {found} instead of {value}");
            continue;
        }
        let error = found.expect_err(text(name));
        if let Some(expected) = expect.get("error") {
            assert_eq!(error.class(), class(text(&expected["class"])), "{name}: {error}");
            let expected = text(&expected["text"]);
            assert!(
                error.problem.to_string() == expected || expected.ends_with(CANNOT_BE_FILTERED),
                "{name}: {error} instead of {expected}"
            );
        } else if expect.get("panic").is_some() {
            assert_eq!(error.class(), Class::Panic, "{name}: {error}");
        } else {
            assert_eq!(error.class(), Class::Random, "{name}: {error}");
        }
    }
}

#[test]
fn every_case_of_building_has_the_recorded_outcome() {
    let file = vectors("landscaper/construct.json");
    for case in list(&file, "construct") {
        let built = construct(text(&case["key"]), &case["value"]);
        check(&case["name"], built, &case["expect"]);
    }
    for case in list(&file, "merge") {
        let mut result = Value::Null;
        let mut failed = None;
        for (at, export) in case["exports"].as_array().expect("exports is a list").iter().enumerate() {
            match construct(text(&export["key"]), &export["value"]) {
                Ok(built) => merge(&mut result, built),
                Err(error) => {
                    failed = Some((at, error));
                    break;
                }
            }
        }
        assert_eq!(failed.as_ref().map(|(at, _)| json!(at)).as_ref(), case["expect"].get("failedIndex"));
        check(&case["name"], failed.map_or(Ok(result), |(_, error)| Err(error)), &case["expect"]);
    }
}

fn check(name: &Value, built: Result<Value, PathError>, expect: &Value) {
    match (built, expect.get("error")) {
        (Ok(built), None) => assert!(are_equal(&built, &expect["value"]), "{name}: {built}"),
        (Err(error), Some(expected)) => {
            assert_eq!(error.class(), class(text(&expected["class"])), "{name}: {error}");
        }
        (built, _) => panic!("{name}: {built:?} instead of {expect}"),
    }
}

#[test]
fn errors_name_the_place_in_the_path() {
    let object = json!({"data": {"token": "x"}});
    for (path, column) in
        [(".data.tokn", 7), ("data.tokn", 6), (".data['tokn']", 8), (".data[x]", 6), (".data.token}{.x", 15)]
    {
        let error = find(path, &object).expect_err(path);
        assert_eq!(error.column(), column, "{error}");
    }
    let error = find(".data.tokn", &object).expect_err("there is no such field");
    assert_eq!(error.to_string(), "tokn is not found at character 7 of the path \".data.tokn\"");
}

#[test]
fn stops_an_endless_path() {
    let list: Value = (0..100).map(|_| json!({"a": [1, 2, 3], "b": {"c": {"d": 1}}})).collect();
    let object = json!({"list": list});
    let path = format!("list{}", "..[0:1]".repeat(400));
    assert!(find(&path, &object).is_err());
    let path = "..a..a".to_owned() + &"}{range ..".repeat(30);
    assert!(find(&path, &object).is_err());
    assert_eq!(construct(&"a.".repeat(4000), &json!(1)).expect_err("it is too deep").class(), Class::Bound);
    assert_eq!(find(&"a.".repeat(8000), &object).expect_err("it is too long").class(), Class::Bound);
}

fn object() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-3..4i64).prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "[ab]{0,2}".prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 64, 5, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            proptest::collection::hash_map("[ab]", inner, 0..3)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

fn path() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        Just(".a"),
        Just(".b"),
        Just("['a']"),
        Just("[0]"),
        Just("[-1]"),
        Just("[1:]"),
        Just("[*]"),
        Just(".*"),
        Just(".."),
        Just("..a"),
        Just("[?(@.a)]"),
        Just("[?(@.a==1)]"),
        Just("[?(@>'a')]"),
        Just("[0,1]"),
        Just("}{"),
        Just("range "),
        Just("end"),
        Just(" "),
        Just("\\"),
        Just("'"),
        Just("\""),
        Just("("),
        Just("["),
        Just("]"),
        Just(")"),
        Just("é"),
        Just("5"),
        Just("true"),
        Just("{"),
        Just("}"),
        Just("$"),
        Just("@"),
    ];
    prop_oneof![proptest::collection::vec(piece, 0..10).prop_map(|pieces| pieces.concat()), ".{0,40}", "[ -~]{0,40}",]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4000, ..ProptestConfig::default() })]

    #[test]
    fn nothing_panics_and_errors_point_into_the_path(path in path(), object in object()) {
        for error in [find(&path, &object).err(), construct(&path, &object).err()].into_iter().flatten() {
            prop_assert!(error.at <= path.len());
            prop_assert!(!error.to_string().is_empty());
            let _ = error.help();
        }
    }

    /// `construct` writes `value` into an object at the path `key`. From this object, `find` with the path `key` must
    /// return `value` again.
    #[test]
    fn finds_the_value_that_a_key_builds(key in "[a-c](\\.[a-c]){0,4}", value in object()) {
        prop_assert_eq!(find(&key, &construct(&key, &value).unwrap()).unwrap(), value);
    }
}
