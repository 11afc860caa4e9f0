//! Tests of field paths with the recorded cases of `tests/vectors/crossplane/fieldpath_*.json` and `merge_value.json`,
//! and with random input.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "in a test a panic is the report")]

mod cases;

use cases::{repository, vectors};
use portcullis::crossplane::field_path::{MAX_EXPANSIONS, MergeOptions, Path, PathError, Segment};
use proptest::prelude::*;
use serde_json::{Value, json};

fn list(file: &Value) -> &Vec<Value> {
    file.as_array().filter(|cases| !cases.is_empty()).expect("the file has cases")
}

fn text(value: &Value) -> &str {
    value.as_str().expect("the value is a string")
}

fn check_result<T>(case: &Value, result: Result<T, PathError>) -> Option<T> {
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
        if let Some(value) = check_result(case, read) {
            assert_eq!(*value, case["value"], "{case}");
        }
    }
}

#[test]
fn every_case_of_writing_has_the_recorded_outcome() {
    for case in list(&vectors("crossplane/fieldpath_set.json")) {
        let mut object = case["doc"].clone();
        let path = Path::named(text(&case["path"]));
        check_result(case, path.and_then(|path| path.set(&mut object, case["value"].clone())));
        let recorded =
            if case["after"].is_string() { expand_description(text(&case["after"])) } else { case["after"].clone() };
        assert_eq!(object, recorded, "{case}");
    }
}

/// Returns the large document that a test case describes in words, such as `a = array of 3, last = 1, others null`.
fn expand_description(words: &str) -> Value {
    let (name, rest) = words.split_once(" = array of ").expect("the description names the list");
    let (length, rest) = rest.split_once(", last = ").expect("the description has the length");
    let last = rest.strip_suffix(", others null").expect("the description has the other items");
    let mut items = vec![Value::Null; length.parse().unwrap()];
    *items.last_mut().unwrap() = serde_json::from_str(last).unwrap();
    json!({name: items})
}

#[test]
fn every_case_of_wildcards_has_the_recorded_outcome() {
    for case in list(&vectors("crossplane/fieldpath_wildcards.json")) {
        let paths = Path::named(text(&case["path"])).and_then(|path| path.expand(&case["doc"]));
        if let Some(paths) = check_result(case, paths) {
            let mut recorded: Vec<&str> = case["paths"].as_array().unwrap().iter().map(text).collect();
            let mut found: Vec<String> = paths.iter().map(Path::to_string).collect();
            // Upstream iterates over a Go map, so the order of its paths is random.
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
        if check_result(case, merged).is_some() {
            assert_eq!(object["v"], case["result"], "{case}");
        } else {
            assert_eq!(object["v"], case["dst"], "a failure changes nothing: {case}");
        }
    }
}

/// Checks the cases of `named_fieldpath.json`. Each case is named after a test in crossplane-runtime, but its input is
/// different. The expected outcomes were recorded with crossplane-runtime v1.17.0.
#[test]
fn every_case_with_a_name_has_the_recorded_outcome() {
    let path = repository().join("tests/vectors/crossplane/named_fieldpath.json");
    let file: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    for case in list(&file) {
        let (outcome, mut object) = (&case["outcome"], case.get("doc").cloned().unwrap_or_default());
        let path = Path::named(text(&case["path"]));
        let result = match text(&case["op"]) {
            "parse" => {
                Path::parse(text(&case["path"])).map(|path| json!(path.to_string())).map_err(|error| error.to_string())
            }
            "get" => path.and_then(|path| path.get(&object).cloned()).map_err(|error| error.to_string()),
            "expand" => path
                .and_then(|path| path.expand(&object))
                .map(|paths| json!(paths.iter().map(Path::to_string).collect::<Vec<_>>()))
                .map_err(|error| error.to_string()),
            operation => {
                let options = (case["opt"] == true)
                    .then(|| MergeOptions { keep_map_values: case["keep"] == true, append_slice: case["app"] == true });
                let value = case["value"].clone();
                let write = |path: Path| match operation {
                    "set" => path.set(&mut object, value),
                    _ => path.merge(&mut object, value, options),
                };
                path.and_then(write).map(|()| Value::Null).map_err(|error| error.to_string())
            }
        };
        match result {
            Err(error) => assert_eq!(json!(error), outcome["error"], "{case}"),
            Ok(found) => {
                assert_eq!(outcome.get("error"), None, "{case}");
                let key = ["string", "value", "paths", "after"].into_iter().find(|key| outcome.get(*key).is_some());
                let found = if found.is_null() && key == Some("after") { object.clone() } else { found };
                let (mut found, mut recorded) = (found, outcome[key.unwrap()].clone());
                if key == Some("paths") {
                    for paths in [&mut found, &mut recorded] {
                        paths.as_array_mut().unwrap().sort_by_key(Value::to_string);
                    }
                }
                assert_eq!(found, recorded, "{case}");
            }
        }
    }
}

#[test]
fn treats_a_member_named_star_as_an_ordinary_member() {
    let object = json!({"a": {"*": {"b": 1}, "x": {"b": 2}}});
    let paths = Path::parse("a[*].b").unwrap().expand(&object).unwrap();
    assert_eq!(paths.iter().map(Path::to_string).collect::<Vec<_>>(), ["a[*].b", "a.x.b"]);
}

#[test]
fn the_highest_index_is_1024() {
    let write = |index: &str| Path::parse(index).unwrap().set(&mut json!({}), json!(1));
    assert_eq!(write("a[1024]"), Ok(()));
    let error = write("a[1025]").unwrap_err();
    assert_eq!(error.to_string(), "index 1025 is greater than max allowed index 1024");
}

#[test]
fn bounds_the_expansion_of_wildcards() {
    let members: serde_json::Map<String, Value> =
        (0..1_000_000).map(|at| (format!("k{at}"), json!({"b": 1}))).collect();
    let object = json!({"a": members});
    let error = Path::parse("a[*].b").unwrap().expand(&object).unwrap_err();
    assert!(error.to_string().contains(&MAX_EXPANSIONS.to_string()), "{error}");
    let squared = json!({"a": vec![json!(vec![1; 1000]); 1000]});
    let error = Path::parse("a[*][*]").unwrap().expand(&squared).unwrap_err();
    assert!(error.to_string().contains(&MAX_EXPANSIONS.to_string()), "{error}");
}

#[test]
fn limits_the_depth_of_written_objects() {
    let deep = Path::parse(&vec!["a"; 1_000_000].join(".")).unwrap();
    let mut object = json!({});
    let error = deep.set(&mut object, json!(1)).unwrap_err();
    assert!(error.to_string().contains("deeper than 128"), "{error}");
    assert_eq!(object, json!({}));
    assert!(deep.get(&object).unwrap_err().is_not_found());
}

fn values() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-2i64..3).prop_map(Value::from),
        Just(json!(0.5)),
        "[ab]{0,2}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 32, 4, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            proptest::collection::btree_map("[a-c*]|x[.]y|0", inner, 0..4)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

fn objects() -> impl Strategy<Value = Value> {
    proptest::collection::btree_map("[a-c*]", values(), 0..4)
        .prop_map(|members| Value::Object(members.into_iter().collect()))
}

proptest! {
    #[test]
    fn reads_what_was_written(mut object in objects(), value in values(), path in "[a-c]([.][a-c]|\\[[0-3]\\]|\\[x[.]y\\]){0,4}") {
        let path = Path::parse(&path).unwrap();
        let before = object.clone();
        match path.set(&mut object, value.clone()) {
            Ok(()) => {
                prop_assert_eq!(path.get(&object), Ok(&value));
                let once = object.clone();
                path.set(&mut object, value).unwrap();
                prop_assert_eq!(object, once);
            }
            Err(_) => prop_assert_eq!(object, before),
        }
    }

    #[test]
    fn expanded_paths_exist(object in objects(), path in "[a-c*]([.][a-c]|\\[[0-2*]\\]){0,4}") {
        for path in Path::parse(&path).unwrap().expand(&object).unwrap_or_default() {
            prop_assert!(path.get(&object).is_ok(), "{}", path);
        }
    }

    #[test]
    fn merging_again_changes_nothing_unless_lists_grow(mut object in objects(), value in values(), keep: bool) {
        let options = Some(MergeOptions { keep_map_values: keep, append_slice: false });
        let path = Path::parse("a").unwrap();
        path.merge(&mut object, value.clone(), options).unwrap();
        let once = object.clone();
        path.merge(&mut object, value, options).unwrap();
        prop_assert_eq!(object, once);
    }

    #[test]
    fn nothing_panics(text in "\\PC{0,16}|[a-b.\\[\\]*'0-9]{0,12}", mut object in objects(), value in values(), keep: bool, append: bool) {
        if let Ok(path) = Path::parse(&text) {
            let _ = (path.get(&object), path.expand(&object), path.to_string());
            let options = MergeOptions { keep_map_values: keep, append_slice: append };
            let _ = path.merge(&mut object, value, Some(options));
        }
    }
}
