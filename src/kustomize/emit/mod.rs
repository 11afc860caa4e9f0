//! Prints objects as kustomize does: byte for byte the text that `kustomize build` writes.
//!
//! kustomize converts each object to JSON and passes the JSON to [sigs.k8s.io/yaml]. This library parses the JSON as
//! YAML 1.1, and prints the result with go-yaml v2. So the output depends only on the values, and not on the styles and
//! comments in the input:
//!
//! - Keys are sorted in natural order.
//! - Strings are quoted if YAML 1.1 would parse them as another type.
//! - Long texts are folded after column 80.
//! - Lists have the same indentation as their key.
//!
//! ```
//! use portcullis::kustomize::emit::{Value, document};
//!
//! let object = serde_json::json!({"kind": "ConfigMap", "data": {"b10": "yes", "b9": "1.0"}});
//! let mut text = String::new();
//! document(&Value::from(&object), &mut text)?;
//! assert_eq!(text, "data:\n  b9: \"1.0\"\n  b10: \"yes\"\nkind: ConfigMap\n");
//! # Ok::<(), portcullis::kustomize::emit::EmitError>(())
//! ```
//!
//! # Differences
//!
//! The natural order has cycles (`a2 < a10 < a1b < a2`). For keys in such a cycle, the output of kustomize changes
//! between runs. The output of this module does not change.
//!
//! # Cost
//!
//! Printing takes one pass over the values, and sorts the keys of each mapping. Strings are written to the output
//! without an intermediate copy, except those that contain U+0085.
//!
//! [sigs.k8s.io/yaml]: https://github.com/kubernetes-sigs/yaml

mod error;
mod keys;
mod number;
mod quoted;
mod read_back;
mod size;
mod style;
pub mod value;
mod writer;

pub use error::{EmitError, Problem};
pub use size::max_size;
pub use style::Style as TextStyle;
pub use value::Value;

pub(super) use keys::sorted;
use writer::Writer;

/// The line that kustomize prints between two documents.
pub const SEPARATOR: &str = "---\n";

/// Appends a value to `out` as one YAML document, as kustomize prints it.
///
/// # Errors
///
/// If kustomize cannot print the value, because its YAML library rejects a character or key, or because JSON cannot
/// represent a number. The content of `out` is then unspecified.
pub fn document(value: &Value<'_>, out: &mut String) -> Result<(), EmitError> {
    Writer::new(out).document(value).map(drop)
}

/// Appends a value to `out` as one YAML document. Returns one position in `out` for each scalar, empty list and empty
/// mapping, in the order of printing. The caller can insert comments at these positions. Each position is the end of
/// the value. For a block scalar, it is the end of the header, such as `|-`.
///
/// # Errors
///
/// If kustomize cannot print the value, because its YAML library rejects a character or key, or because JSON cannot
/// represent a number.
pub(super) fn document_with_ends(value: &Value<'_>, out: &mut String) -> Result<Vec<usize>, EmitError> {
    let mut writer = Writer::new(out);
    writer.ends = Some(Vec::new());
    writer.document(value)
}
