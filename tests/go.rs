//! Tests of our implementations of functions from Go's standard library. The files in `tests/vectors/go/` contain
//! random inputs and the results of Go 1.26 for them.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "in a test a panic is the report")]

mod cases;

use cases::repository;
use portcullis::go::{
    Any, Target, base64, duration, floats, fmt, format_float, format_float32, json as go_json, parse_bool, parse_float,
    parse_int, parse_quantity, regexp, to_lower, to_upper, unmarshal,
};
use portcullis::kustomize::pattern::Pattern;
use proptest::prelude::*;
use serde_json::{Value, json};

/// Returns the test cases that are recorded in `file`.
fn recorded(file: &str) -> Vec<Value> {
    let path = repository().join("tests/vectors/go").join(file);
    let cases: Vec<Value> = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    assert!(!cases.is_empty(), "the file has cases");
    cases
}

fn argument(argument: &Value) -> Any {
    match argument["t"].as_str().unwrap() {
        "nonfinite" => Any::NonFinite(argument["v"].as_str().unwrap().parse().unwrap()),
        "nilmap" => Any::NilMap,
        "nilslice" => Any::NilSlice,
        "int64" => Any::Json(argument["v"].clone()),
        _ => Any::Json(floats(argument["v"].clone())),
    }
}

#[test]
fn formats_like_go() {
    for case in recorded("go_fmt.json") {
        let arguments: Vec<Any> = case["args"].as_array().unwrap().iter().map(argument).collect();
        let printed = fmt::sprintf(case["s"].as_str().unwrap(), &arguments).unwrap();
        assert_eq!(json!(printed), case["outcome"]["value"], "{case}");
    }
}

#[test]
fn matches_patterns_like_go() {
    for case in recorded("go_regexp.json") {
        let (pattern, text) = (case["p"].as_str().unwrap(), case["s"].as_str().unwrap());
        let outcome = match regexp::compile(pattern) {
            Err(error) => json!({"error": error.to_string()}),
            Ok(regexp) => json!({"value": regexp.captures(text).map(|found| {
                let place = |group: Option<regex::Match<'_>>| {
                    group.map_or([-1, -1], |group| [group.start(), group.end()].map(|at| i64::try_from(at).unwrap()))
                };
                found.iter().flat_map(place).collect::<Vec<_>>()
            })}),
        };
        assert_eq!(outcome, case["outcome"], "{case}");
    }
}

fn outcome<T: Into<Value>>(result: Result<T, String>) -> Value {
    result.map_or_else(|error| json!({"error": error}), |value| json!({"value": value.into()}))
}

#[test]
fn parses_and_prints_like_go() {
    let bits = |value: f64| value.to_bits().to_string();
    let written = |value: Option<Value>| value.map_or("null".to_owned(), |value| go_json::marshal(&value));
    for case in recorded("go_std.json") {
        let text = case["s"].as_str().unwrap_or_default();
        let found = match case["op"].as_str().unwrap() {
            "float" => outcome(parse_float(text).map(bits)),
            "quantity" => outcome(parse_quantity(text).map(bits)),
            "int" => outcome(parse_int(text).map(|value| value.to_string())),
            "bool" => outcome(parse_bool(text)),
            "upper" => json!({"value": to_upper(text)}),
            "lower" => json!({"value": to_lower(text)}),
            "unb64" => outcome(
                base64::decode(text).map(|bytes| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>()),
            ),
            "object" => outcome(unmarshal(text, Target::Object).map(written)),
            "array" => outcome(unmarshal(text, Target::Array).map(written)),
            "marshal" => json!({"value": go_json::marshal(&floats(case["v"].clone()))}),
            other => panic!("no such operation: {other}"),
        };
        assert_eq!(found, case["outcome"], "{case}");
    }
}

#[test]
fn parses_and_formats_durations_like_go() {
    for case in recorded("durations.json") {
        let found = match case["op"].as_str().unwrap() {
            "parse" => duration::parse(case["s"].as_str().unwrap()).map(|nanoseconds| nanoseconds.to_string()),
            _ => Some(duration::format(case["n"].as_str().unwrap().parse().unwrap())),
        };
        assert_eq!(found.as_deref(), case["outcome"]["value"].as_str(), "{case}");
    }
}

#[test]
fn formats_floats_like_go() {
    for case in recorded("floats.json") {
        let value = f64::from_bits(case["bits"].as_str().unwrap().parse().unwrap());
        #[expect(clippy::cast_possible_truncation, reason = "Go truncates too")]
        let single = value as f32;
        for (name, wanted) in case.as_object().unwrap() {
            let found = match name.as_str() {
                "e" | "f" | "g" => format_float(value, name.chars().next().unwrap(), None),
                "e3" => format_float(value, 'e', Some(3)),
                "f2" => format_float(value, 'f', Some(2)),
                "g5" => format_float(value, 'g', Some(5)),
                "g32" => format_float32(single),
                "json" => go_json::marshal(&value.into()),
                "v" => fmt::plain(&Any::float(value)).unwrap(),
                _ => continue,
            };
            assert_eq!(json!(found), *wanted, "{name} of {case}");
        }
    }
}

#[test]
fn selects_the_same_names_as_kustomize() {
    let cases = cases::vectors("kustomize/selectors.json");
    let candidates = cases.as_array().unwrap().iter().find_map(|case| case["candidates"].as_array()).unwrap();
    for case in cases.as_array().unwrap().iter().filter(|case| case["pattern"].is_string()) {
        let found = match Pattern::new(case["pattern"].as_str().unwrap()) {
            Ok(pattern) => candidates.iter().filter(|name| pattern.matches(name.as_str().unwrap())).cloned().collect(),
            Err(error) => json!({"error": error.to_string()}),
        };
        let wanted = if case["error"].is_string() { json!({"error": case["error"]}) } else { case["names"].clone() };
        assert_eq!(found, wanted, "{case}");
    }
}

#[test]
fn a_format_cannot_fill_the_memory() {
    let wide = "%1000000d".repeat(100);
    let error = fmt::sprintf(&wide, &vec![Any::Json(json!(1)); 100]).unwrap_err();
    assert!(error.to_string().contains("longer than"), "{error}");
}

proptest! {
    #[test]
    fn nothing_panics(text in "\\PC{0,40}", pattern in "[a-z()\\[\\]{}|*+?^$.\\\\:<>P0-9,&~-]{0,24}") {
        let _ = fmt::sprintf(&text, &[Any::Json(json!({"a": [1, 1.5, null]})), Any::NilMap]);
        if let Ok(regexp) = regexp::compile(&pattern) {
            let _ = regexp.captures(&text);
        }
        let _ = (parse_float(&text), parse_int(&text), parse_quantity(&text), base64::decode(&text));
        let _ = (unmarshal(&text, Target::Object), unmarshal(&text, Target::Array), to_upper(&text), to_lower(&text));
    }

    #[test]
    fn parses_printed_numbers(bits: u64) {
        let value = f64::from_bits(bits);
        prop_assume!(value.is_finite());
        let text = format_float(value, 'g', None);
        prop_assert_eq!(parse_float(&text), Ok(value));
        let text = format_float(value, 'x', None);
        prop_assert_eq!(parse_float(&text), Ok(value), "{}", text);
    }
}
