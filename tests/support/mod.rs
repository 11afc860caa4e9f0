//! What several tests need.

use std::path::PathBuf;

use serde_json::Value;

/// A file of executed cases: from `$PORTCULLIS_VECTORS` where that is set, else from `tests/vectors`.
pub fn vectors(file: &str) -> Value {
    let own = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/vectors");
    let folder = std::env::var_os("PORTCULLIS_VECTORS").map_or(own, PathBuf::from);
    let path = folder.join(file);
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}
