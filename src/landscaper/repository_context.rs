//! Repository contexts: where component versions come from. An object with a `type` and anything else.
//!
//! Source: `UnstructuredTypedObject` and `UnstructuredTypesEqual` in Landscaper's
//! `legacy-component-spec/bindings-go/apis/v2/unstructured.go`. It keeps the text that it received, and compares the
//! `type` first and then the whole as JSON with sorted keys and every number a float.

use std::sync::{Arc, OnceLock};

use serde_json::{Map, Value};

use super::decode::{Problem, problem};
use crate::admission::{FieldPath, json};

/// A repository context.
#[derive(Debug, Clone)]
pub struct RepositoryContext(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    /// The text as it was received; written when it is asked for where it was received as a value.
    raw: OnceLock<String>,
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
        if !value.is_object() {
            return not_an_object(&value, field);
        }
        // The type is that of the member that comes last in the text, not in the order of a map.
        let type_name = string_of_text(text, "type").map_err(|wrong| not_a_string(&wrong, field))?;
        Ok(Some(Self(Arc::new(Inner { raw: OnceLock::from(text.to_owned()), type_name, value }))))
    }

    /// Reads one from a value, as its text from an API server would be read; `None` for `null`.
    ///
    /// # Errors
    /// As for [`RepositoryContext::parse`].
    pub fn of(value: &Value, field: &FieldPath) -> Result<Option<Self>, Problem> {
        let Some(members) = value.as_object() else { return not_an_object(value, field) };
        let type_name = string_of(members, "type").map_err(|wrong| not_a_string(wrong, field))?.to_owned();
        Ok(Some(Self(Arc::new(Inner { raw: OnceLock::new(), type_name, value: value.clone() }))))
    }

    /// Reads one from a value; what is no repository context is told in `problems` and counts as missing.
    pub fn read(value: Option<&Value>, field: &FieldPath, problems: &mut Vec<Problem>) -> Option<Self> {
        Self::of(value?, field).unwrap_or_else(|problem| {
            problems.push(problem);
            None
        })
    }

    /// The JSON text as it was received.
    pub fn raw(&self) -> &str {
        self.0.raw.get_or_init(|| json::to_go_string(&self.0.value))
    }

    /// It as a value.
    pub fn value(&self) -> &Value {
        &self.0.value
    }

    /// Its `type`; empty where it has none.
    pub fn type_name(&self) -> &str {
        &self.0.type_name
    }

    /// A text member, its name in any letter case; empty where there is none, `None` where it is no text.
    pub fn text(&self, name: &str) -> Option<String> {
        match self.0.raw.get() {
            Some(text) => string_of_text(text, name).ok(),
            None => string_of(self.0.value.as_object()?, name).ok().map(str::to_owned),
        }
    }

    /// The fields of an `ociRegistry`; `None` for other types, and where a field is no string.
    pub fn oci_registry(&self) -> Option<OciRegistry> {
        if self.0.type_name != "ociRegistry" {
            return None;
        }
        Some(OciRegistry {
            base_url: self.text("baseUrl")?,
            component_name_mapping: self.text("componentNameMapping")?,
        })
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

fn not_an_object(value: &Value, field: &FieldPath) -> Result<Option<RepositoryContext>, Problem> {
    if value.is_null() { Ok(None) } else { Err(problem(field.clone(), value, "an object")) }
}

fn not_a_string(value: &Value, field: &FieldPath) -> Problem {
    problem(field.key("type"), value, "a string")
}

/// A string field decoded as Go's `encoding/json` does: keys in any letter case, the last one wins, `null` changes
/// nothing. The order of a map is that of an API server's text.
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

/// The same in the order of a text.
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

/// Go folds by simple case folding, which takes the long s and the Kelvin sign for s and k.
fn fold(key: &str) -> impl Iterator<Item = char> {
    key.chars().map(|c| match c {
        '\u{17f}' => 's',
        '\u{212a}' => 'k',
        c => c.to_ascii_lowercase(),
    })
}
