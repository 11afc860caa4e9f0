//! Repository contexts: the locations of component versions. Each is an object with a `type` and other fields.
//!
//! Source: `UnstructuredTypedObject` and `UnstructuredTypesEqual` in Landscaper's
//! `legacy-component-spec/bindings-go/apis/v2/unstructured.go`. Landscaper keeps the JSON text of a repository context
//! as received. Two repository contexts are equal if they have the same `type`, and if their JSON texts are the same
//! after the keys are sorted and all numbers are converted to floats.

use std::sync::{Arc, OnceLock};

use serde_json::{Map, Value};

use super::decode::{Problem, problem};
use crate::admission::{FieldPath, json};
use crate::go::integers;
use crate::go::json::marshal;

/// A repository context: the location of component versions, such as an OCI registry.
#[derive(Debug, Clone)]
pub struct RepositoryContext(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    /// The JSON text as received. If the repository context was read from a JSON value, this text is generated on
    /// demand.
    raw: OnceLock<String>,
    type_name: String,
    value: Value,
}

/// The fields of a repository context of type `ociRegistry` that appear in messages.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct OciRegistry {
    /// The host of the registry, and an optional path.
    pub base_url: String,
    /// The name of the method that maps component names to repository names, such as `urlPath`; empty if unspecified.
    pub component_name_mapping: String,
}

impl RepositoryContext {
    /// Parses a repository context from the JSON text `text`, and stores this text. Returns `None` for `null` and for
    /// invalid JSON. `field` is the field path of the repository context, for errors.
    ///
    /// # Errors
    /// Returns a [`Problem`] if the value is not an object or its `type` is not a string.
    pub fn parse(text: &str, field: &FieldPath) -> Result<Option<Self>, Problem> {
        let value = json::parse(text).unwrap_or(Value::Null);
        if !value.is_object() {
            return not_an_object(&value, field);
        }
        // With duplicate fields, the last `type` in the text counts; a map would lose the order.
        let type_name = string_of_text(text, "type").map_err(|wrong| not_a_string(&wrong, field))?;
        Ok(Some(Self(Arc::new(Inner { raw: OnceLock::from(text.to_owned()), type_name, value }))))
    }

    /// Reads a repository context from a JSON value. Returns `None` for `null`. [`RepositoryContext::parse`] returns
    /// the same result for the JSON text that the API server sends for this value.
    ///
    /// # Errors
    /// Returns a [`Problem`] if the value is not an object or its `type` is not a string.
    pub fn of(value: &Value, field: &FieldPath) -> Result<Option<Self>, Problem> {
        let Some(members) = value.as_object() else { return not_an_object(value, field) };
        let type_name = string_of(members, "type").map_err(|wrong| not_a_string(wrong, field))?.to_owned();
        Ok(Some(Self(Arc::new(Inner { raw: OnceLock::new(), type_name, value: value.clone() }))))
    }

    /// Reads a repository context from a JSON value. `None` if the value is missing, `null` or invalid. An invalid
    /// value is also added to `problems`.
    pub fn read(value: Option<&Value>, field: &FieldPath, problems: &mut Vec<Problem>) -> Option<Self> {
        Self::of(value?, field).unwrap_or_else(|problem| {
            problems.push(problem);
            None
        })
    }

    /// Returns the repository context as JSON text. This is the received text, or a generated text if the repository
    /// context was read from a JSON value.
    pub fn raw(&self) -> &str {
        self.0.raw.get_or_init(|| marshal(&integers(self.0.value.clone())))
    }

    /// Returns the repository context as a JSON value.
    pub fn value(&self) -> &Value {
        &self.0.value
    }

    /// Returns the `type` of the repository context, such as `ociRegistry`; empty if it is missing.
    pub fn type_name(&self) -> &str {
        &self.0.type_name
    }

    /// Returns the string in the field `name`. The letter case of the field name is ignored. Returns an empty string if
    /// the field is missing or null, and `None` if it has a value of another type.
    pub fn text(&self, name: &str) -> Option<String> {
        match self.0.raw.get() {
            Some(text) => string_of_text(text, name).ok(),
            None => string_of(self.0.value.as_object()?, name).ok().map(str::to_owned),
        }
    }

    /// Returns the fields of a repository context of type `ociRegistry`; `None` for other types, or if a field is not a
    /// string.
    pub fn oci_registry(&self) -> Option<OciRegistry> {
        if self.0.type_name != "ociRegistry" {
            return None;
        }
        Some(OciRegistry {
            base_url: self.text("baseUrl")?,
            component_name_mapping: self.text("componentNameMapping")?,
        })
    }

    /// Returns a short text about the repository context for messages: the base URL for type `ociRegistry`, or
    /// shortened JSON for other types.
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

/// Reports whether Landscaper treats two values as equal. This is the case if Go decodes and encodes both to the same
/// JSON text. Go decodes all numbers as floats, so 1 equals 1.0. But 0 does not equal -0.
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

fn not_an_object(value: &Value, field: &FieldPath) -> Result<Option<RepositoryContext>, Problem> {
    if value.is_null() { Ok(None) } else { Err(problem(field.clone(), value, "an object")) }
}

fn not_a_string(value: &Value, field: &FieldPath) -> Problem {
    problem(field.key("type"), value, "a string")
}

/// Returns the string in the field `name` of a JSON object, as Go's `encoding/json` decodes it. Letter case is ignored,
/// so several keys can match. The last one in alphabetical order wins, because the API server sends keys in this order.
/// Keys with the value `null` are ignored. Returns an empty string if no key matches.
///
/// # Errors
/// Returns the value of a matching key if the value is neither a string nor `null`.
fn string_of<'v>(members: &'v Map<String, Value>, name: &str) -> Result<&'v str, &'v Value> {
    let mut field = "";
    for (_, value) in members.iter().filter(|(key, _)| fold(key).eq(fold(name))) {
        match value {
            Value::String(text) => field = text,
            Value::Null => {}
            other => return Err(other),
        }
    }
    Ok(field)
}

/// Reads the string field `name` from the JSON text of an object, with the rules of [`string_of`]. If several keys
/// differ only in letter case, uses the last one in the text.
fn string_of_text(text: &str, name: &str) -> Result<String, Value> {
    let mut field = String::new();
    for (key, raw) in json::members(text).unwrap_or_default() {
        if !fold(&key).eq(fold(name)) {
            continue;
        }
        match json::parse(raw.get()) {
            Ok(Value::String(text)) => field = text,
            Ok(Value::Null) | Err(_) => {}
            Ok(other) => return Err(other),
        }
    }
    Ok(field)
}

/// Folds letter case as Go does, with simple Unicode case folding. For example, the long s becomes s, and the Kelvin
/// sign becomes k.
fn fold(key: &str) -> impl Iterator<Item = char> {
    key.chars().map(|c| match c {
        '\u{17f}' => 's',
        '\u{212a}' => 'k',
        c => c.to_ascii_lowercase(),
    })
}
