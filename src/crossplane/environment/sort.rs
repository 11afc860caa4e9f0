//! Sorts EnvironmentConfigs by the value at a path.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::sync::Arc;

use serde_json::{Map, Value};

use super::Profile;
use crate::catalog::Stored;
use crate::crossplane::field_path::Path;
use crate::go::{Any, fmt, quote, type_of};

/// Sorts EnvironmentConfigs by the value at `path`. `profile` says whether they are sorted as in Crossplane up to 1.17
/// or as in function-environment-configs. EnvironmentConfigs with equal values are sorted by name, because their order
/// is undefined in both programs.
///
/// # Errors
/// The error message of Crossplane or function-environment-configs, if the path is invalid or the values cannot be
/// compared. For Crossplane up to 1.17, a missing value is an error too.
pub fn sort(profile: Profile, path: &str, configs: &mut [Arc<Stored>]) -> Result<(), String> {
    let keys = match profile {
        Profile::Native117 => native_keys(path, configs)?,
        Profile::Function => function_keys(path, configs)?,
    };
    let mut keyed: Vec<(Key, Arc<Stored>)> = keys.into_iter().zip(configs.iter().cloned()).collect();
    keyed.sort_by(|(a, x), (b, y)| a.compare(b).then_with(|| x.name().cmp(y.name())));
    for (slot, (_, config)) in configs.iter_mut().zip(keyed) {
        *slot = config;
    }
    Ok(())
}

/// A sort key: the value of an EnvironmentConfig at the sort path.
#[derive(Debug, Clone)]
enum Key {
    Nothing,
    Text(String),
    Integer(i64),
    Float(f64),
}

impl Key {
    /// Compares keys of the same type. Strings are compared by their bytes. Keys of different types count as equal.
    fn compare(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Text(a), Self::Text(b)) => a.cmp(b),
            (Self::Integer(a), Self::Integer(b)) => a.cmp(b),
            (Self::Float(a), Self::Float(b)) => a.total_cmp(b),
            _ => Ordering::Equal,
        }
    }
}

/// Returns the sort keys for Crossplane up to 1.17. Fails if an EnvironmentConfig has no value at `path`, or if the
/// values have different types, or are neither strings nor numbers.
fn native_keys(path: &str, configs: &[Arc<Stored>]) -> Result<Vec<Key>, String> {
    let path = Path::named(path).map_err(|error| error.to_string())?;
    let mut first = None;
    let mut keys = Vec::with_capacity(configs.len());
    for config in configs {
        let object = typed(config.value());
        let value = path.get(&object).map_err(|error| error.to_string())?;
        let found = type_of(value);
        let key = match value {
            Value::String(text) => Key::Text(text.clone()),
            Value::Number(number) => match number.as_i64() {
                Some(integer) => Key::Integer(integer),
                None => Key::Float(number.as_f64().unwrap_or_default()),
            },
            _ => return Err(format!("unexpected type {found}")),
        };
        let expected = *first.get_or_insert(found);
        if found != expected {
            let shown = fmt::plain(&Any::Json(value.clone())).unwrap_or_default();
            return Err(format!("not matching types, got {shown} ({found}), expected {expected}"));
        }
        keys.push(key);
    }
    Ok(keys)
}

/// Returns an EnvironmentConfig as Go decodes it into the struct `EnvironmentConfig`: empty maps are omitted.
fn typed(config: &Value) -> Cow<'_, Value> {
    const MAPS: [(&str, &str); 3] = [("", "data"), ("/metadata", "labels"), ("/metadata", "annotations")];
    let is_empty = |parent: &str, key: &str| {
        config.pointer(parent).and_then(|parent| parent.get(key)?.as_object()).is_some_and(Map::is_empty)
    };
    let mut typed = Cow::Borrowed(config);
    for (parent, key) in MAPS.into_iter().filter(|(parent, key)| is_empty(parent, key)) {
        if let Some(members) = typed.to_mut().pointer_mut(parent).and_then(Value::as_object_mut) {
            members.remove(key);
        }
    }
    typed
}

/// Returns the values at `path` by which function-environment-configs sorts EnvironmentConfigs. The values are either
/// all strings or all numbers. A value that is missing or null counts as an empty string or as 0. Fails if `path` is
/// invalid, or if the values cannot be sorted.
fn function_keys(path: &str, configs: &[Arc<Stored>]) -> Result<Vec<Key>, String> {
    if path.is_empty() {
        return Err("cannot sort by empty field path".to_owned());
    }
    let path = Path::named(path).map_err(|error| error.to_string())?;
    let mut first: Option<&'static str> = None;
    let mut values = Vec::with_capacity(configs.len());
    for config in configs {
        let value = match path.get(config.value()) {
            Ok(value) => value,
            Err(error) if error.is_not_found() => &Value::Null,
            Err(error) => return Err(error.to_string()),
        };
        values.push(value);
        let Some(found) = reflected(value) else { continue };
        let expected = *first.get_or_insert(found);
        if found != expected {
            return Err(format!("cannot sort values of different types {} and {}", quote(expected), quote(found)));
        }
    }
    let kind = first.unwrap_or_default();
    if configs.len() > 1 && !["", "string", "float64"].contains(&kind) {
        let kind = match kind {
            "map[string]interface {}" => "map",
            "[]interface {}" => "slice",
            other => other,
        };
        return Err(format!("unsupported type {} for sorting", quote(kind)));
    }
    let key = |value: &Value| match (value, kind) {
        (Value::String(text), _) => Key::Text(text.clone()),
        (Value::Number(number), _) => Key::Float(number.as_f64().unwrap_or_default()),
        (_, "string") => Key::Text(String::new()),
        (_, "float64") => Key::Float(0.0),
        _ => Key::Nothing,
    };
    Ok(values.into_iter().map(key).collect())
}

fn reflected(value: &Value) -> Option<&'static str> {
    match value {
        Value::Null => None,
        Value::Number(_) => Some("float64"),
        other => Some(type_of(other)),
    }
}
