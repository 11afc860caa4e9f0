//! Reads the DeployItem templates of an `Execution`, which Landscaper may store compressed.
//!
//! Source: `ExecutionSpec.UnmarshalJSON` in Landscaper's `apis/core/v1alpha1/types_execution.go`. The results of
//! running this function are recorded in `tests/vectors/landscaper/compressed.json`.

use std::borrow::Cow;
use std::io::Read;

use base64::Engine as _;
use base64::alphabet::STANDARD;
use base64::engine::GeneralPurpose;
use base64::engine::general_purpose::GeneralPurposeConfig;
use flate2::read::MultiGzDecoder;
use serde_json::Value;

use super::duration;
use crate::admission::json as wire;

/// Maximum size of decompressed templates, in bytes. An API server accepts requests of up to 3 MiB, and compressed text
/// has about a tenth of its original size.
pub const MAX_DECOMPRESSED_BYTES: u64 = 32 * 1024 * 1024;

/// The base64 decoder. As in Go, it ignores unused bits in the last character, and requires padding.
const BASE64: GeneralPurpose =
    GeneralPurpose::new(&STANDARD, GeneralPurposeConfig::new().with_decode_allow_trailing_bits(true));

/// A template of a DeployItem in an Execution.
#[derive(Debug, Clone, PartialEq)]
pub struct Template {
    /// The name of the template, unique in the Execution.
    pub name: String,
    /// The type of the DeployItem.
    pub type_name: String,
    /// The name of the Target; empty if there is none.
    pub target: String,
    /// The configuration that the deployer reads. It includes the definitions of the values to export.
    pub config: Value,
}

/// The DeployItem templates of an Execution, a Landscaper object from which Landscaper creates DeployItems.
#[derive(Debug, Clone, PartialEq)]
pub struct Templates {
    /// The templates, in the order of the Execution.
    pub items: Vec<Template>,
    /// Whether the templates come from the compressed field `spec.deployItemsCompressed`.
    pub compressed: bool,
}

/// The reason why the templates of an Execution cannot be read. [`Unreadable::TooLarge`] is a limit of Portcullis. For
/// all other reasons, Landscaper cannot read the templates either.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unreadable {
    /// A field of the Execution has a value of the wrong type.
    #[error("{field} is {is}, not {wanted}")]
    Type {
        /// The name of the field, such as `deployItems`.
        field: String,
        /// The JSON type of the value in the field, such as `a number`.
        is: &'static str,
        /// The JSON type that Landscaper expects in the field, such as `a list`.
        wanted: &'static str,
    },
    /// The value of `spec.deployItemsCompressed` is not base64.
    #[error("spec.deployItemsCompressed is not base64: {0}")]
    Base64(String),
    /// The content of `spec.deployItemsCompressed` is not compressed with gzip.
    #[error("spec.deployItemsCompressed is not gzip: {0}")]
    Gzip(String),
    /// The decompressed content of `spec.deployItemsCompressed` is not JSON.
    #[error("the content of spec.deployItemsCompressed is not JSON: {0}")]
    Json(String),
    /// The decompressed templates are larger than [`MAX_DECOMPRESSED_BYTES`].
    #[error("spec.deployItemsCompressed contains more than {} MiB", MAX_DECOMPRESSED_BYTES / 1024 / 1024)]
    TooLarge,
}

/// Reads the templates of an Execution from its `spec`.
///
/// # Errors
/// Returns the reason why the templates cannot be read. Either a value has the wrong type, or
/// `spec.deployItemsCompressed` is not base64, gzip or JSON, or its content is larger than [`MAX_DECOMPRESSED_BYTES`].
pub fn templates(spec: &Value) -> Result<Templates, Unreadable> {
    let (list, compressed) = list(spec)?;
    Ok(Templates { items: read(list.as_deref())?, compressed })
}

/// Returns the list of DeployItem templates in the `spec` of an Execution as JSON, and whether the list was
/// decompressed from `spec.deployItemsCompressed`. The list is `None` if it is missing.
///
/// # Errors
/// Fails in the same cases as [`templates`], but does not check whether the value is a list, or whether its elements
/// are valid.
pub fn list(spec: &Value) -> Result<(Option<Cow<'_, Value>>, bool), Unreadable> {
    if !spec.is_object() {
        return Err(wrong("spec", spec, "an object"));
    }
    optional(spec, "context", Value::is_string, "a string")?;
    let bytes = compressed(member(spec, "deployItemsCompressed"))?;
    if bytes.is_empty() {
        return Ok((member(spec, "deployItems").map(Cow::Borrowed), false));
    }
    let text = decompress(&bytes)?;
    let list = wire::parse(&String::from_utf8_lossy(&text)).map_err(|error| Unreadable::Json(error.to_string()))?;
    Ok((Some(Cow::Owned(list)), true))
}

/// Decodes the bytes of `spec.deployItemsCompressed` as Go decodes a byte slice in JSON. The value is either a base64
/// string or a list of numbers. A missing value results in no bytes.
fn compressed(value: Option<&Value>) -> Result<Vec<u8>, Unreadable> {
    match value {
        None | Some(Value::Null) => Ok(Vec::new()),
        Some(Value::String(text)) => {
            let text: String = text.chars().filter(|c| !['\r', '\n'].contains(c)).collect();
            BASE64.decode(text).map_err(|error| Unreadable::Base64(error.to_string()))
        }
        Some(list @ Value::Array(bytes)) => {
            let byte = |value: &Value| value.as_u64().and_then(|byte| u8::try_from(byte).ok());
            bytes.iter().map(byte).collect::<Option<_>>().ok_or_else(|| wrong("deployItemsCompressed", list, "bytes"))
        }
        Some(other) => Err(wrong("deployItemsCompressed", other, "a string of base64")),
    }
}

fn decompress(bytes: &[u8]) -> Result<Vec<u8>, Unreadable> {
    let mut text = Vec::new();
    let mut reader = MultiGzDecoder::new(bytes).take(MAX_DECOMPRESSED_BYTES + 1);
    reader.read_to_end(&mut text).map_err(|error| Unreadable::Gzip(error.to_string()))?;
    let is_bounded = u64::try_from(text.len()).is_ok_and(|length| length <= MAX_DECOMPRESSED_BYTES);
    if is_bounded { Ok(text) } else { Err(Unreadable::TooLarge) }
}

fn read(list: Option<&Value>) -> Result<Vec<Template>, Unreadable> {
    match list {
        None | Some(Value::Null) => Ok(Vec::new()),
        Some(Value::Array(items)) => items.iter().map(template).collect(),
        Some(other) => Err(wrong("deployItems", other, "a list")),
    }
}

fn template(item: &Value) -> Result<Template, Unreadable> {
    if !item.is_object() && !item.is_null() {
        return Err(wrong("deployItems[]", item, "an object"));
    }
    let is_texts = |value: &Value| value.as_object().is_some_and(|texts| texts.values().all(Value::is_string));
    optional(item, "labels", is_texts, "an object of strings")?;
    optional(item, "target", Value::is_object, "an object")?;
    optional(item, "dependsOn", Value::is_array, "a list")?;
    optional(item, "updateOnChangeOnly", Value::is_boolean, "a boolean")?;
    optional(item, "timeout", |value| value.as_str().is_some_and(duration::is_duration), "a duration")?;
    let config = member(item, "config").cloned().unwrap_or_default();
    let target = member(item, "target").map_or(Ok(String::new()), |target| text(target, "name"))?;
    Ok(Template { name: text(item, "name")?, type_name: text(item, "type")?, target, config })
}

fn text(object: &Value, key: &str) -> Result<String, Unreadable> {
    optional(object, key, Value::is_string, "a string")?;
    Ok(member(object, key).and_then(Value::as_str).unwrap_or_default().to_owned())
}

fn optional(
    object: &Value,
    key: &str,
    is_right: impl Fn(&Value) -> bool,
    wanted: &'static str,
) -> Result<(), Unreadable> {
    match member(object, key) {
        Some(value) if !value.is_null() && !is_right(value) => Err(wrong(key, value, wanted)),
        _ => Ok(()),
    }
}

/// Returns the field `key` of an object; `None` if the field is missing. If no field name matches exactly, returns a
/// field whose name differs only in letter case, as Go does.
pub(super) fn member<'v>(object: &'v Value, key: &str) -> Option<&'v Value> {
    let members = object.as_object()?;
    let folded = || members.iter().find(|(name, _)| name.eq_ignore_ascii_case(key)).map(|(_, value)| value);
    members.get(key).or_else(folded)
}

fn wrong(field: &str, value: &Value, wanted: &'static str) -> Unreadable {
    Unreadable::Type { field: field.to_owned(), is: wire::kind_of(value), wanted }
}
