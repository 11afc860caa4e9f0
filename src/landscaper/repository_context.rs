//! Repository contexts: where component versions come from. An object with a `type` and anything else.
//!
//! Source: `UnstructuredTypedObject` and `UnstructuredTypesEqual` in Landscaper's
//! `legacy-component-spec/bindings-go/apis/v2/unstructured.go`. It keeps the text that it received, and compares the
//! `type` first and then the whole as JSON with sorted keys and every number a float.

use std::sync::Arc;

use serde_json::Value;

use super::decode::{Problem, problem};
use crate::admission::{FieldPath, json};

/// A repository context.
#[derive(Debug, Clone)]
pub struct RepositoryContext(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    raw: String,
    type_name: String,
    value: Value,
}

/// The fields of a repository context of type `ociRegistry` that messages show.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct OciRegistry {
    /// The registry and the path in it.
    pub base_url: String,
    /// How component names become repository names; empty where it is not said.
    pub component_name_mapping: String,
}

impl RepositoryContext {
    /// Reads one from its JSON text, which is kept as it is; `None` for `null`.
    ///
    /// # Errors
    /// What stands there instead of an object with a string `type`.
    pub fn parse(text: &str, field: &FieldPath) -> Result<Option<Self>, Problem> {
        let value = json::parse(text).unwrap_or(Value::Null);
        if value.is_null() {
            return Ok(None);
        }
        if !value.is_object() {
            return Err(problem(field.clone(), &value, "an object"));
        }
        match strings(text, ["type"]) {
            Ok([type_name]) => Ok(Some(Self(Arc::new(Inner { raw: text.to_owned(), type_name, value })))),
            Err(wrong) => Err(problem(field.key("type"), &wrong, "a string")),
        }
    }

    /// Reads one from a value; what is no repository context is told in `problems` and counts as missing.
    pub fn read(value: Option<&Value>, field: &FieldPath, problems: &mut Vec<Problem>) -> Option<Self> {
        let value = value.filter(|value| !value.is_null())?;
        Self::parse(&json::to_go_string(value), field).unwrap_or_else(|problem| {
            problems.push(problem);
            None
        })
    }

    /// The JSON text as it was received.
    pub fn raw(&self) -> &str {
        &self.0.raw
    }

    /// It as a value.
    pub fn value(&self) -> &Value {
        &self.0.value
    }

    /// The fields of an `ociRegistry`; `None` for other types, and where a field is no string.
    pub fn oci_registry(&self) -> Option<OciRegistry> {
        if self.0.type_name != "ociRegistry" {
            return None;
        }
        let [base_url, component_name_mapping] = strings(&self.0.raw, ["baseUrl", "componentNameMapping"]).ok()?;
        Some(OciRegistry { base_url, component_name_mapping })
    }

    /// A short text for people: the base URL of an `ociRegistry`, the JSON of others.
    pub fn brief(&self) -> String {
        match self.oci_registry() {
            Some(oci) if !oci.base_url.is_empty() => oci.base_url,
            _ => json::brief(self.value()),
        }
    }
}

impl PartialEq for RepositoryContext {
    fn eq(&self, other: &Self) -> bool {
        self.0.type_name == other.0.type_name && same(&self.0.value, &other.0.value)
    }
}

impl Eq for RepositoryContext {}

/// Equality of the texts that Go would write: every number a float, so that 1 is 1.0 but 0 is not -0.
fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => a.as_f64().map(f64::to_bits) == b.as_f64().map(f64::to_bits),
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b)),
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|((ka, a), (kb, b))| ka == kb && same(a, b))
        }
        _ => a == b,
    }
}

/// String fields decoded as Go's `encoding/json` does: keys in any letter case, the last one wins, `null` changes
/// nothing.
fn strings<const N: usize>(text: &str, names: [&str; N]) -> Result<[String; N], Value> {
    let mut fields = [const { String::new() }; N];
    for (key, raw) in json::members(text).unwrap_or_default() {
        let Some(at) = names.iter().position(|name| fold(&key).eq(fold(name))) else { continue };
        match json::parse(raw.get()) {
            Ok(Value::String(text)) => fields[at] = text,
            Ok(Value::Null) => {}
            Ok(other) => return Err(other),
            Err(_) => {}
        }
    }
    Ok(fields)
}

/// Go folds by simple case folding, which takes the long s and the Kelvin sign for s and k.
fn fold(key: &str) -> impl Iterator<Item = char> {
    key.chars().map(|c| match c {
        '\u{17f}' => 's',
        '\u{212a}' => 'k',
        c => c.to_ascii_lowercase(),
    })
}
