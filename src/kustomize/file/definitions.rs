//! Checks the files that a kustomization lists in its field `crds`. Each of these files contains OpenAPI definitions by
//! name.
//!
//! Source: `LoadConfigFromCRDs` in kustomize's `api/internal/accumulator/loadconfigfromcrds.go`, and `spec.Schema` of
//! kube-openapi. kube-openapi decodes a schema with go-json-experiment. So the field names of a schema are
//! case-sensitive, and the values of the fields must have exactly the right types.

use std::collections::HashSet;

use serde_json::{Map, Value};

use crate::admission::FieldPath;
use crate::yaml::{self, Document, Limits, Place};

/// The result of checking a file with OpenAPI definitions, such as a file that is listed in the field `crds` of a
/// kustomization file.
#[derive(Debug, Default, PartialEq)]
pub struct Definitions {
    /// The error that kustomize would report, with its position; `None` if kustomize accepts the file.
    pub fault: Option<(Place, String)>,
    /// The reason why it is unknown whether kustomize accepts the file, with the position of the value that is the
    /// cause. `None` if it is known whether kustomize accepts the file.
    pub unknown: Option<(Place, String)>,
}

/// The type of value that a field of an OpenAPI schema must have. For example, `Text` is a string, and `Texts` is a
/// list of strings. Null is always allowed.
#[derive(Debug, Clone, Copy)]
enum Shape {
    Text,
    Flag,
    Integer,
    Number,
    Anything,
    List,
    Texts,
    /// The field contains a string, or a list of strings.
    TextOrTexts,
    Schema,
    Schemas,
    SchemasByName,
    /// The field contains a schema or a list of schemas. kustomize also accepts any scalar.
    SchemaOrSchemas,
    SchemaOrFlag,
    /// The value of the field `dependencies` of a JSON schema: a mapping from the name of a property to its
    /// requirements. Each value in the mapping is a schema, a list of strings, or a scalar.
    Dependencies,
    /// The field contains a mapping with the strings `description` and `url`.
    Docs,
}

/// The fields of a schema. All other fields of a schema are extensions, and may have any value.
const SCHEMA: [(&str, Shape); 37] = [
    ("additionalItems", Shape::SchemaOrFlag),
    ("additionalProperties", Shape::SchemaOrFlag),
    ("allOf", Shape::Schemas),
    ("anyOf", Shape::Schemas),
    ("default", Shape::Anything),
    ("definitions", Shape::SchemasByName),
    ("dependencies", Shape::Dependencies),
    ("description", Shape::Text),
    ("discriminator", Shape::Text),
    ("enum", Shape::List),
    ("example", Shape::Anything),
    ("exclusiveMaximum", Shape::Flag),
    ("exclusiveMinimum", Shape::Flag),
    ("externalDocs", Shape::Docs),
    ("format", Shape::Text),
    ("id", Shape::Text),
    ("items", Shape::SchemaOrSchemas),
    ("maxItems", Shape::Integer),
    ("maxLength", Shape::Integer),
    ("maxProperties", Shape::Integer),
    ("maximum", Shape::Number),
    ("minItems", Shape::Integer),
    ("minLength", Shape::Integer),
    ("minProperties", Shape::Integer),
    ("minimum", Shape::Number),
    ("multipleOf", Shape::Number),
    ("not", Shape::Schema),
    ("nullable", Shape::Flag),
    ("oneOf", Shape::Schemas),
    ("pattern", Shape::Text),
    ("patternProperties", Shape::SchemasByName),
    ("properties", Shape::SchemasByName),
    ("readOnly", Shape::Flag),
    ("required", Shape::Texts),
    ("title", Shape::Text),
    ("type", Shape::TextOrTexts),
    ("uniqueItems", Shape::Flag),
];
/// The properties by which kustomize recognizes a Kubernetes type.
const TYPE: [&str; 3] = ["kind", "apiVersion", "metadata"];

/// Checks the text of a file that is listed in the field `crds` of a kustomization file. The text must not be empty.
pub fn definitions(text: &str) -> Definitions {
    let mut read = Reader::new(text.starts_with('{'), "is not a mapping of names to schemas: ");
    let value = match read.value(text) {
        Ok(value) => value,
        Err(found) => return found,
    };
    if let Some(value) = value {
        read.check(&value);
    }
    read.found
}

/// Checks the schemas in the field `definitions` of an OpenAPI document. `is_json` states whether the document was
/// parsed from JSON.
pub(in crate::kustomize) fn schemas(definitions: &Map<String, Value>, is_json: bool) -> Definitions {
    let mut read = Reader::new(is_json, "");
    read.members(definitions, Shape::Schema, &FieldPath::of(["definitions"]));
    read.found
}

struct Reader {
    /// The beginning of an error message, before the path of the invalid schema or field.
    subject: &'static str,
    found: Definitions,
    document: Option<Document>,
    is_json: bool,
}

impl Reader {
    fn new(is_json: bool, subject: &'static str) -> Self {
        Self { subject, found: Definitions::default(), document: None, is_json }
    }

    /// Parses the text: as JSON if it begins with a brace, otherwise as YAML. Returns `None` if the YAML is empty or
    /// null. If the text cannot be parsed, returns `Err` with the `Definitions` that the caller must return.
    fn value(&mut self, text: &str) -> Result<Option<Value>, Definitions> {
        let limits = Limits::default();
        let document = yaml::first(text, &limits);
        let place = document.as_ref().ok().and_then(Option::as_ref).map_or(START, Document::start);
        if self.is_json {
            let value = serde_json::from_str(text).map_err(|error| not_json(&error))?;
            self.document = document.ok().flatten();
            if self.document.as_ref().is_none_or(|document| !document.duplicates().is_empty()) {
                let unknown = Some((place, "a duplicate key, whose effect in kustomize is unknown".to_owned()));
                return Err(Definitions { unknown, ..Definitions::default() });
            }
            return Ok(Some(value));
        }
        match document {
            Ok(document) => {
                self.document = document;
                Ok(self.document.as_ref().map(|document| document.value.clone()))
            }
            Err(error) => {
                let is_ours = !matches!(error.problem, yaml::Problem::Syntax(_));
                let reason = Some((error.place, format!("is not YAML: {}", error.problem)));
                let (fault, unknown) = if is_ours { (None, reason) } else { (reason, None) };
                Err(Definitions { fault, unknown })
            }
        }
    }

    fn check(&mut self, value: &Value) {
        let Some(members) = self.mapping(value, &FieldPath::root()) else { return };
        for (name, definition) in members {
            self.definition(definition, &FieldPath::of([name]));
        }
        if self.found.fault.is_none() && self.found.unknown.is_none() {
            self.cycles(members);
        }
    }

    /// Checks one OpenAPI definition: its fields `Schema` and `Dependencies`. The case of the field names does not
    /// matter. In a YAML file, any scalar is accepted as a string in `Dependencies`.
    fn definition(&mut self, value: &Value, path: &FieldPath) {
        let Some(members) = self.mapping(value, path) else { return };
        for (key, value) in members {
            let path = path.key(key);
            if key.eq_ignore_ascii_case("schema") {
                self.shape(value, Shape::Schema, &path);
            } else if key.eq_ignore_ascii_case("dependencies") {
                let Some(items) = self.list(value, &path) else { continue };
                for (at, item) in items.iter().enumerate() {
                    let converts = !self.is_json && !item.is_array() && !item.is_object();
                    if !converts {
                        self.shape(item, Shape::Text, &path.index(at));
                    }
                }
            }
        }
    }

    fn shape(&mut self, value: &Value, shape: Shape, path: &FieldPath) {
        match (shape, value) {
            (_, Value::Null)
            | (Shape::Anything, _)
            | (Shape::Text | Shape::TextOrTexts, Value::String(_))
            | (Shape::Flag | Shape::SchemaOrFlag, Value::Bool(_))
            | (Shape::Number, Value::Number(_)) => {}
            (Shape::Integer, Value::Number(number)) if number.is_i64() => {}
            // the conversion from YAML to JSON removes a fraction of zero: `1.0` becomes `1`
            (Shape::Integer, Value::Number(number)) if !self.is_json && number.as_f64().is_some_and(is_whole) => {}
            (Shape::Integer, Value::Number(number)) if number.as_f64() == Some(0.0) => {
                self.unknown(path, "is a zero with a sign or a fraction")
            }
            (Shape::List, Value::Array(_)) => {}
            (Shape::Texts | Shape::TextOrTexts, Value::Array(items)) => self.items(items, Shape::Text, path),
            (Shape::Schemas | Shape::SchemaOrSchemas, Value::Array(items)) => self.items(items, Shape::Schema, path),
            (Shape::Schema | Shape::SchemaOrSchemas | Shape::SchemaOrFlag, Value::Object(members)) => {
                self.schema(members, path)
            }
            (Shape::SchemasByName, Value::Object(members)) => self.members(members, Shape::Schema, path),
            (Shape::Dependencies, Value::Object(members)) => {
                for (key, value) in members {
                    let shape = if value.is_array() { Shape::Texts } else { Shape::SchemaOrSchemas };
                    self.shape(value, shape, &path.key(key));
                }
            }
            (Shape::Docs, Value::Object(members)) => {
                for key in ["description", "url"] {
                    members.get(key).into_iter().for_each(|value| self.shape(value, Shape::Text, &path.key(key)));
                }
            }
            (Shape::SchemaOrSchemas, _) => {}
            (shape, _) => self.fault(path, &format!("is not {}", shape.words())),
        }
    }

    fn items(&mut self, items: &[Value], shape: Shape, path: &FieldPath) {
        items.iter().enumerate().for_each(|(at, item)| self.shape(item, shape, &path.index(at)));
    }

    fn members(&mut self, members: &Map<String, Value>, shape: Shape, path: &FieldPath) {
        members.iter().for_each(|(key, value)| self.shape(value, shape, &path.key(key)));
    }

    fn schema(&mut self, members: &Map<String, Value>, path: &FieldPath) {
        for (key, value) in members {
            let path = path.key(key);
            if let Ok(at) = SCHEMA.binary_search_by_key(&key.as_str(), |(name, _)| name) {
                self.shape(value, SCHEMA[at].1, &path);
            } else if ["$ref", "$schema"].contains(&key.as_str()) && value.as_str().is_some_and(|url| !is_plain(url)) {
                self.unknown(&path, "is a URL that is not read here");
            }
        }
    }

    /// Reports types that refer to themselves, directly or through other types, because kustomize follows such
    /// references endlessly (`loadCrdIntoConfig`).
    fn cycles(&mut self, members: &Map<String, Value>) {
        for (name, definition) in members {
            let is_type = properties(definition).is_some_and(|found| TYPE.iter().all(|key| found.contains_key(*key)));
            if is_type {
                self.follow(members, name, &mut Vec::new(), &mut HashSet::new());
            }
        }
    }

    /// Follows references from the type `name`, and reports a cycle. `way` contains the types whose references lead to
    /// `name`. `seen` contains all visited types.
    fn follow<'m>(
        &mut self,
        members: &'m Map<String, Value>,
        name: &'m str,
        way: &mut Vec<&'m str>,
        seen: &mut HashSet<&'m str>,
    ) {
        let path = FieldPath::of([name]);
        if way.contains(&name) {
            self.unknown(&path, "refers to itself, which may crash kustomize");
            return;
        }
        if !seen.insert(name) {
            return;
        }
        way.push(name);
        for property in members.get(name).and_then(properties).into_iter().flat_map(Map::values) {
            if let Some((next, _)) = property["$ref"].as_str().and_then(|next| members.get_key_value(next)) {
                self.follow(members, next, way, seen);
            }
        }
        way.pop();
    }

    fn mapping<'v>(&mut self, value: &'v Value, path: &FieldPath) -> Option<&'v Map<String, Value>> {
        if !value.is_object() && !value.is_null() {
            self.fault(path, "is not a mapping");
        }
        value.as_object()
    }

    fn list<'v>(&mut self, value: &'v Value, path: &FieldPath) -> Option<&'v Vec<Value>> {
        if !value.is_array() && !value.is_null() {
            self.fault(path, "is not a list");
        }
        value.as_array()
    }

    fn fault(&mut self, path: &FieldPath, what: &str) {
        let error = self.error(path, what);
        self.found.fault.get_or_insert(error);
    }

    fn unknown(&mut self, path: &FieldPath, what: &str) {
        let error = self.error(path, what);
        self.found.unknown.get_or_insert(error);
    }

    fn error(&self, path: &FieldPath, what: &str) -> (Place, String) {
        let place = self.document.as_ref().map_or(START, |document| document.nearest(path));
        if path.is_root() { (place, what.to_owned()) } else { (place, format!("{}{path} {what}", self.subject)) }
    }
}

impl Shape {
    fn words(self) -> &'static str {
        match self {
            Self::Text => "a string",
            Self::Flag => "true or false",
            Self::Integer => "an integer",
            Self::Number => "a number",
            Self::TextOrTexts => "a string or a list of strings",
            Self::Texts => "a list of strings",
            Self::List | Self::Schemas => "a list",
            Self::SchemaOrFlag => "a schema, true or false",
            Self::Anything | Self::Schema | Self::SchemaOrSchemas => "a schema",
            Self::SchemasByName | Self::Dependencies | Self::Docs => "a mapping",
        }
    }
}

/// The position at the start of the file.
const START: Place = Place { line: 1, column: 1, start: 0, end: 0 };

/// Returns the result for a text that serde_json rejects. The result is unknown if Go's JSON parser may accept the
/// text. Otherwise the result is an error.
fn not_json(error: &serde_json::Error) -> Definitions {
    let words = error.to_string();
    let is_ours =
        ["out of range", "recursion", "surrogate", "escape", "code point"].iter().any(|part| words.contains(part));
    let place = Place { line: error.line().max(1) as u32, column: error.column().max(1) as u32, start: 0, end: 0 };
    let reason = Some((place, format!("begins with a brace and is not JSON: {words}")));
    let (fault, unknown) = if is_ours { (None, reason) } else { (reason, None) };
    Definitions { fault, unknown }
}

/// Returns the field `properties` of the schema in a definition; `None` if it is missing or not a mapping.
fn properties(definition: &Value) -> Option<&Map<String, Value>> {
    let members = definition.as_object()?.iter();
    let mut schemas = members.filter(|(key, _)| key.eq_ignore_ascii_case("schema"));
    schemas.next_back()?.1["properties"].as_object()
}

/// Returns whether a float has no fractional part and fits into a signed 64-bit integer.
fn is_whole(float: f64) -> bool {
    float.fract() == 0.0 && float.abs() < i64::MAX as f64
}

/// Returns whether it is certain that Go's URL parser accepts a URL and leaves the URL unchanged.
fn is_plain(url: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || "._-/".contains(c);
    let path = url.strip_prefix("#/").unwrap_or(url);
    path.chars().all(plain) && !path.contains("//")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fields_are_sorted_for_the_search() {
        assert!(SCHEMA.is_sorted_by_key(|(name, _)| name));
    }

    #[test]
    fn a_fault_has_its_place() {
        let found = definitions("a:\n  Schema:\n    properties:\n      b: x\n");
        let (place, words) = found.fault.unwrap();
        assert_eq!((place.line, place.column), (4, 10));
        assert_eq!(words, "is not a mapping of names to schemas: a.Schema.properties.b is not a schema");
    }

    #[test]
    fn a_type_that_refers_to_itself_is_unknown() {
        let of = |property: &str| {
            definitions(&format!(
                "a.B: {{Schema: {{properties: {{kind: {{}}, apiVersion: {{}}, metadata: {{}}, c: {property}}}}}}}\nd: {{Schema: {{properties: {{e: {{x-kubernetes-identity: ''}}}}}}}}\n"
            ))
        };
        assert!(of("{$ref: d}").unknown.is_none());
        assert!(of("{$ref: a.B}").unknown.is_some());
    }
}
