//! Field paths against the executed cases of `tests/vectors/crossplane/fieldpath_*.json` and `merge_value.json`, and on
//! anything.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "in a test a panic is the report")]

mod cases;

use cases::vectors;
use portcullis::crossplane::field_path::{MergeOptions, Path, PathError, Segment};
use serde_json::{Value, json};

fn list(file: &Value) -> &Vec<Value> {
    file.as_array().filter(|cases| !cases.is_empty()).expect("the file has cases")
}

fn text(value: &Value) -> &str {
    value.as_str().expect("it is a text")
}

fn expect<T>(case: &Value, result: Result<T, PathError>) -> Option<T> {
    match (result, case.get("error").filter(|error| !error.is_null())) {
        (Ok(value), None) => Some(value),
        (Err(error), Some(expected)) => {
            assert_eq!(error.to_string(), text(expected), "{case}");
            if let Some(not_found) = case.get("notFound") {
                assert_eq!(Value::Bool(error.is_not_found()), *not_found, "{case}");
            }
            None
        }
        (Ok(_), Some(_)) => panic!("no error: {case}"),
        (Err(error), None) => panic!("{error}: {case}"),
    }
}

#[test]
fn every_case_of_the_grammar_has_the_recorded_outcome() {
    for case in list(&vectors("crossplane/fieldpath_parse.json")) {
        let parsed = Path::parse(text(&case["path"]));
        if let Some(error) = case.get("error") {
            assert_eq!(parsed.expect_err(text(&case["path"])).to_string(), text(error));
            continue;
        }
        let path = parsed.unwrap_or_else(|error| panic!("{error}: {case}"));
        let segment = |segment: &Segment| match segment {
            Segment::Field(name) => json!({"field": name}),
            Segment::Index(index) => json!({"index": index}),
        };
        assert_eq!(json!(path.segments().iter().map(segment).collect::<Vec<_>>()), case["segments"], "{case}");
        assert_eq!(path.to_string(), text(&case["string"]));
    }
}

#[test]
fn every_case_of_reading_has_the_recorded_outcome() {
    let file = vectors("crossplane/fieldpath_get.json");
    for case in list(&file["cases"]) {
        let read = Path::named(text(&case["path"])).and_then(|path| path.get(&file["doc"]));
        if let Some(value) = expect(case, read) {
            assert_eq!(*value, case["value"], "{case}");
        }
    }
}

#[test]
fn every_case_of_writing_has_the_recorded_outcome() {
    for case in list(&vectors("crossplane/fieldpath_set.json")) {
        let mut object = case["doc"].clone();
        let path = Path::named(text(&case["path"]));
        expect(case, path.and_then(|path| path.set(&mut object, case["value"].clone())));
        let recorded = if case["after"].is_string() { described(text(&case["after"])) } else { case["after"].clone() };
        assert_eq!(object, recorded, "{case}");
    }
}

/// The document that a case describes instead of writing it out: `a = array of 3, last = 1, others null`.
fn described(words: &str) -> Value {
    let (name, rest) = words.split_once(" = array of ").expect("it names a list");
    let (length, rest) = rest.split_once(", last = ").expect("it says how long it is");
    let last = rest.strip_suffix(", others null").expect("it says what is in it");
    let mut items = vec![Value::Null; length.parse().unwrap()];
    *items.last_mut().unwrap() = serde_json::from_str(last).unwrap();
    json!({name: items})
}

#[test]
fn every_case_of_wildcards_has_the_recorded_outcome() {
    for case in list(&vectors("crossplane/fieldpath_wildcards.json")) {
        let paths = Path::named(text(&case["path"])).and_then(|path| path.expand(&case["doc"]));
        if let Some(paths) = expect(case, paths) {
            let mut recorded: Vec<&str> = case["paths"].as_array().unwrap().iter().map(text).collect();
            let mut found: Vec<String> = paths.iter().map(Path::to_string).collect();
            // Upstream walks a map, which is at random.
            recorded.sort_unstable();
            found.sort_unstable();
            assert_eq!(found, recorded, "{case}");
        }
    }
}

fn options(name: &str) -> Option<MergeOptions> {
    if name == "nil" {
        return None;
    }
    let words: Vec<&str> = name.split('+').collect();
    let unknown = |word: &&&str| !["{}", "keepMapValues", "keepMapValues=false", "appendSlice"].contains(*word);
    assert_eq!(words.iter().find(unknown), None, "options {name:?}");
    Some(MergeOptions {
        keep_map_values: words.contains(&"keepMapValues"),
        append_slice: words.contains(&"appendSlice"),
    })
}

#[test]
fn every_case_of_merging_has_the_recorded_outcome() {
    let path = Path::parse("v").unwrap();
    for case in list(&vectors("crossplane/merge_value.json")) {
        let mut object = json!({"v": case["dst"]});
        let merged = path.merge(&mut object, case["src"].clone(), options(text(&case["options"])));
        if expect(case, merged).is_some() {
            assert_eq!(object["v"], case["result"], "{case}");
        } else {
            assert_eq!(object["v"], case["dst"], "a failure changes nothing: {case}");
        }
    }
}
