//! Prints objects as kustomize does: byte for byte the text that `kustomize build` writes.
//!
//! kustomize turns each object into JSON and gives that to [sigs.k8s.io/yaml], which reads it as YAML 1.1 and prints it with
//! go-yaml v2. So the text depends on nothing but the values: mappings are sorted by the natural order of their keys,
//! strings are quoted where YAML 1.1 would read something else, long texts are folded behind column 80, and lists have the indentation of their key.
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
//! # What differs
//!
//! The natural order has cycles (`a2 < a10 < a1b < a2`). For such keys the output of kustomize changes between runs; ours
//! does not.
//!
//! # What it costs
//!
//! One pass over the values, plus sorting. Only keys and texts with U+0085 are copied.
//!
//! [sigs.k8s.io/yaml]: https://github.com/kubernetes-sigs/yaml

mod error;
mod keys;
mod number;
mod quoted;
mod read_back;
mod style;
pub mod value;
mod writer;

pub use error::{EmitError, Problem};
pub use style::Style as TextStyle;
pub use value::Value;

use writer::Writer;

/// The line between two documents.
pub const SEPARATOR: &str = "---\n";

/// Appends one document to `out`.
///
/// # Errors
///
/// If kustomize cannot print the value either: because of a character or key that its YAML library does not read back,
/// or a number that JSON does not have. The content of `out` is then unspecified.
pub fn document(value: &Value<'_>, out: &mut String) -> Result<(), EmitError> {
    Writer::new(out).document(value)
}
