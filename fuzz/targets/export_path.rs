//! Evaluates the path of an export on a JSON value. The first line of the input is the path. The other lines are the
//! JSON value.
#![no_main]

use libfuzzer_sys::fuzz_target;
use portcullis::landscaper::export_path::{MAX_BYTES, Path, PathError, construct, key, merge};
use serde_json::Value;

fuzz_target!(|text: &str| {
    let (path, json) = text.split_once('\n').unwrap_or((text, "null"));
    let Ok(value) = serde_json::from_str::<Value>(json) else { return };
    match Path::parse(path).and_then(|path| path.find(&value)) {
        Ok(found) => {
            assert!(found.is_string() || size(&found) <= size(&value), "the path finds more than the whole value")
        }
        Err(error) => check(&error, path),
    }
    match construct(path, &value) {
        Ok(built) => {
            assert!(path.len() <= MAX_BYTES && key(path).is_ok(), "an invalid key was accepted");
            let mut twice = built.clone();
            merge(&mut twice, built.clone());
            assert_eq!(twice, built, "merging the same value again changes the result");
        }
        Err(error) => check(&error, path),
    }
});

fn check(error: &PathError, path: &str) {
    assert!(error.at <= path.len() && error.column() <= path.chars().count() + 1, "{error:?}");
    assert!(!error.to_string().is_empty() && error.path == path);
}

/// Returns the number of JSON values in a value, including itself.
fn size(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(size).sum::<usize>(),
        Value::Object(members) => 1 + members.values().map(size).sum::<usize>(),
        _ => 1,
    }
}
