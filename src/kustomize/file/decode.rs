//! Decodes a value into the fields of a struct, as Go's `encoding/json` does with `DisallowUnknownFields`.

use serde_json::{Map, Number, Value};

use super::schema::{Fields, Type};
use crate::admission::FieldPath;
use crate::suggestion;

/// An error that kustomize would report when it decodes a file, with the path of the field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// The path of the field with the error, spelled as in the file.
    pub path: FieldPath,
    /// The error: an unknown field, or a wrong type.
    pub kind: FaultKind,
}

/// A kind of decoding error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FaultKind {
    /// An unknown field.
    Unknown {
        /// The unknown key, as in the file.
        key: String,
        /// The name of the Go struct in kustomize that does not have this field, such as `Kustomization`.
        of: &'static str,
        /// The names of all fields of the Go struct in `of`.
        allowed: Vec<&'static str>,
        /// The known field name that is most similar to the unknown key; `None` if no name is similar.
        near: Option<&'static str>,
    },
    /// A value with the wrong type.
    Type {
        /// The expected type, such as `a string`.
        expected: &'static str,
        /// The value in the file as JSON, shortened if it is long.
        found: String,
    },
}

/// Maximum length of a value in a message, in characters. Longer values are shortened, so that messages stay readable.
const MAX_FOUND_LENGTH: usize = 60;

/// Decodes a value as kustomize does. `fields` are the fields of the Go struct into which kustomize decodes the value.
/// Returns the decoded value and the errors. The decoded value has the field names of the Go struct, and has no null
/// fields.
pub(super) fn decode(value: &Value, fields: &'static Fields) -> (Value, Vec<Fault>) {
    let mut decoder = Decoder { faults: Vec::new() };
    let decoded = decoder.fields(value, fields, &Path::Root);
    (decoded, decoder.faults)
}

struct Decoder {
    faults: Vec<Fault>,
}

/// The path of the value that is being decoded. It is converted to a [`FieldPath`] only if the value has an error.
#[derive(Debug, Clone, Copy)]
enum Path<'p> {
    Root,
    Key(&'p Self, &'p str),
    Index(&'p Self, usize),
}

impl Path<'_> {
    fn to_field(self) -> FieldPath {
        match self {
            Self::Root => FieldPath::root(),
            Self::Key(parent, key) => parent.to_field().key(key),
            Self::Index(parent, index) => parent.to_field().index(index),
        }
    }
}

impl Decoder {
    /// Decodes the fields of a mapping. Sorts the keys by their bytes, so that upper-case letters come first. If
    /// several keys match the same field, the value of the last key wins.
    fn fields(&mut self, value: &Value, fields: &'static Fields, path: &Path<'_>) -> Value {
        let Value::Object(members) = value else {
            return self.wrong(value, "a mapping", path, Value::Object(Map::new()));
        };
        let mut decoded = Map::new();
        for (key, value) in sorted(members) {
            let path = Path::Key(path, key);
            match fields.find(key) {
                Some((name, ty)) if !value.is_null() => {
                    decoded.insert((*name).to_owned(), self.value(value, ty, &path));
                }
                Some((name, ty)) if is_nil(ty) => drop(decoded.remove(*name)),
                Some(_) => {}
                None => self.unknown(key, fields, path),
            }
        }
        Value::Object(decoded)
    }

    fn value(&mut self, value: &Value, ty: &'static Type, path: &Path<'_>) -> Value {
        match (ty, value) {
            (_, Value::Null) => zero(ty),
            (Type::Text, Value::String(_)) | (Type::Flag, Value::Bool(_)) | (Type::Anything, Value::Object(_)) => {
                value.clone()
            }
            (Type::Integer, Value::Number(number)) if number.is_i64() => value.clone(),
            (Type::Fields(fields), _) => self.fields(value, fields, path),
            (Type::List(item), Value::Array(items)) => {
                let items = items.iter().enumerate();
                Value::Array(items.map(|(at, value)| self.value(value, item, &Path::Index(path, at))).collect())
            }
            (Type::Texts, Value::Object(members)) => {
                let texts = members
                    .iter()
                    .map(|(key, value)| (key.clone(), self.value(value, &Type::Text, &Path::Key(path, key))));
                Value::Object(texts.collect())
            }
            _ => self.wrong(value, ty.words(), path, zero(ty)),
        }
    }

    fn unknown(&mut self, key: &str, fields: &Fields, path: Path<'_>) {
        let allowed: Vec<_> = fields.fields.iter().map(|(name, _)| *name).collect();
        let near = suggestion::most_similar(key, allowed.iter().copied());
        let kind = FaultKind::Unknown { key: key.to_owned(), of: fields.name, allowed, near };
        self.faults.push(Fault { path: path.to_field(), kind });
    }

    fn wrong(&mut self, value: &Value, expected: &'static str, path: &Path<'_>, instead: Value) -> Value {
        let mut found = value.to_string();
        if let Some((at, _)) = found.char_indices().nth(MAX_FOUND_LENGTH) {
            found.truncate(at);
            found.push('…');
        }
        self.faults.push(Fault { path: path.to_field(), kind: FaultKind::Type { expected, found } });
        instead
    }
}

fn sorted(members: &Map<String, Value>) -> Vec<(&String, &Value)> {
    let mut members: Vec<_> = members.iter().collect();
    members.sort_by_key(|(key, _)| *key);
    members
}

/// Returns the zero value of a Go type, such as an empty string. The decoder uses the zero value for a null in a list
/// or in a mapping of strings, and for a value with the wrong type.
fn zero(ty: &Type) -> Value {
    match ty {
        Type::Text => Value::String(String::new()),
        Type::Flag => Value::Bool(false),
        Type::Integer => Value::Number(Number::from(0)),
        Type::List(_) => Value::Array(Vec::new()),
        Type::Anything | Type::Texts | Type::Fields(_) => Value::Object(Map::new()),
    }
}

/// Returns whether null sets a Go field of the type `ty` to nil. This is the case for slices, maps and pointers. Null
/// leaves a field of any other type, such as a string, unchanged.
fn is_nil(ty: &Type) -> bool {
    match ty {
        Type::Text | Type::Flag | Type::Integer => false,
        Type::List(_) | Type::Anything | Type::Texts => true,
        Type::Fields(fields) => fields.pointer,
    }
}

/// Returns whether a value is the zero value of its Go type. A kustomization file with only such values counts as
/// empty.
pub(super) fn is_zero(value: &Value, ty: &Type) -> bool {
    match (ty, value) {
        (Type::Text, Value::String(text)) => text.is_empty(),
        (Type::Flag, Value::Bool(flag)) => !flag,
        (Type::Fields(fields), Value::Object(members)) => !fields.pointer && members.is_empty(),
        _ => false,
    }
}
