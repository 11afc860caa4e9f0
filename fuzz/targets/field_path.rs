//! Evaluates field paths. The input is a line with a path, a line with a JSON value, and a JSON object. The target
//! checks three properties:
//!
//! - After a value is written at a path, reading this path returns the value.
//! - If the path has wildcards, it expands only to paths that exist in the object.
//! - A failed write does not change the object.
#![no_main]

use libfuzzer_sys::fuzz_target;
use portcullis::crossplane::field_path::{MAX_EXPANSIONS, MergeOptions, Path};
use serde_json::Value;

fuzz_target!(|text: &str| {
    let mut lines = text.splitn(3, '\n');
    let Ok(path) = Path::parse(lines.next().unwrap_or_default()) else { return };
    let mut json = || lines.next().and_then(|line| serde_json::from_str::<Value>(line).ok());
    let value = json().unwrap_or_default();
    let object = json().unwrap_or_else(|| serde_json::json!({}));
    let _ = (path.get(&object), path.to_string());
    if let Ok(paths) = path.expand(&object) {
        assert!(paths.len() <= MAX_EXPANSIONS);
        assert!(
            path.is_empty() || paths.iter().all(|path| path.get(&object).is_ok()),
            "{path} expands to a path that does not exist"
        );
    }
    let mut written = object.clone();
    match path.set(&mut written, value.clone()) {
        Ok(()) if !path.is_empty() => assert_eq!(path.get(&written), Ok(&value), "{path}"),
        _ => assert_eq!(written, object, "{path}"),
    }
    for (keep_map_values, append_slice) in [(false, false), (true, false), (false, true), (true, true)] {
        let mut merged = object.clone();
        let options = MergeOptions { keep_map_values, append_slice };
        if path.merge(&mut merged, value.clone(), Some(options)).is_err() {
            assert_eq!(merged, object, "{path}");
        }
    }
});
