//! Follows a path through a schema.
//!
//! If several combined schemas apply to a value, this module accepts every field and list element that one of them
//! declares. JSON Schema can be stricter, so some invalid paths are accepted. But a valid path is never reported as
//! missing.

use serde_json::Value;

use super::{Found, MAX_PARTS, Schema, Types, is_local};
use crate::crossplane::field_path::{Path, Segment};
use crate::go::regexp;
use crate::suggestion::by_similarity;

/// Maximum number of field names that an error message suggests for a path that the schema does not have. The limit
/// keeps the message short.
const MAX_NAMES: usize = 8;

/// Looks up a path in a schema. Returns the constraints on the value at this path, such as its allowed types. The
/// search visits at most [`MAX_PARTS`] subschemas. If it reaches this limit, returns `Found::Anything`, which means
/// that any value is allowed.
pub(super) fn at(schema: &Schema, path: &Path) -> Found {
    let mut walk = Walk { schema, left: MAX_PARTS };
    let (mut place, mut at, mut is_required) = (vec![&schema.root], String::new(), true);
    for segment in path.segments() {
        let parts = walk.parts(&place);
        match walk.step(&parts, segment) {
            Step::Anywhere => return Found::Anything,
            Step::Nowhere(has) => return Found::Nothing { at, has },
            Step::To(next) => {
                is_required &= matches!(segment, Segment::Field(name) if requires(&parts, name));
                place = next;
                at = match segment {
                    Segment::Field(name) if at.is_empty() => name.clone(),
                    Segment::Field(name) => format!("{at}.{name}"),
                    Segment::Index(index) => format!("{at}[{index}]"),
                };
            }
        }
    }
    let types = walk.types(&place);
    if walk.left == 0 { Found::Anything } else { Found::Something { types, is_required } }
}

struct Walk<'s> {
    schema: &'s Schema,
    left: usize,
}

/// The result of looking up one segment of a path, such as a field name, in the schemas of a value. A value has several
/// schemas if they are combined, for example with `allOf`.
enum Step<'s> {
    /// The schema allows any value at this segment.
    Anywhere,
    /// The segment leads to a value. Contains the schemas that describe this value; there is at least one.
    To(Vec<&'s Value>),
    /// No schema declares the segment. Contains the names of the fields that the schemas declare at this place.
    Nowhere(Vec<String>),
}

impl<'s> Walk<'s> {
    /// Returns `schemas` and the subschemas that validate the same value as these schemas, such as those in `allOf`.
    /// Subschemas for parts of the value, such as those in `properties`, are not included.
    fn parts(&mut self, schemas: &[&'s Value]) -> Vec<&'s Value> {
        let (mut found, mut left): (Vec<&'s Value>, _) = (Vec::new(), schemas.to_vec());
        while let Some(part) = left.pop() {
            if self.left == 0 || found.iter().any(|known| std::ptr::eq(*known, part)) {
                continue;
            }
            self.left -= 1;
            found.push(part);
            left.extend(self.combined(part));
        }
        found
    }

    /// Returns the subschemas of `part` that apply to the same value as `part`. These are the schemas in `allOf`,
    /// `anyOf`, `oneOf`, `then` and `else` of `part`, and the schema to which a local `$ref` in `part` refers.
    fn combined(&self, part: &'s Value) -> Vec<&'s Value> {
        let lists = ["allOf", "anyOf", "oneOf"].into_iter();
        let lists = lists.flat_map(|key| part.get(key).and_then(Value::as_array).into_iter().flatten());
        let single = ["then", "else"].into_iter().filter_map(|key| part.get(key));
        let reference = part.get("$ref").and_then(Value::as_str);
        lists.chain(single).chain(reference.and_then(|reference| self.schema.target(reference))).collect()
    }

    fn step(&mut self, parts: &[&'s Value], segment: &Segment) -> Step<'s> {
        let (mut next, mut has, mut is_constrained) = (Vec::new(), Vec::new(), false);
        for part in parts {
            match step(part, segment) {
                Part::Anything => return Step::Anywhere,
                Part::Nothing => {}
                Part::Has(schemas) => next.extend(schemas),
                Part::HasNot(names) => {
                    is_constrained = true;
                    has.extend(names);
                }
            }
        }
        // Combined schemas without any constraint allow everything.
        if self.left == 0 || next.is_empty() && !is_constrained {
            return Step::Anywhere;
        }
        if next.is_empty() { Step::Nowhere(sorted(&has, segment)) } else { Step::To(next) }
    }

    /// Returns all types that any of the schemas allows.
    fn types(&mut self, schemas: &[&'s Value]) -> Types {
        let mut types = Types::NONE;
        for schema in schemas {
            types = types.or(self.types_of(schema, &mut Vec::new()));
        }
        types
    }

    /// Returns the types that one schema allows. If the schema itself does not restrict the type, returns the types of
    /// its subschemas, such as those in `allOf`. `seen` contains the schemas that enclose this schema, and serves to
    /// detect cycles.
    fn types_of(&mut self, schema: &'s Value, seen: &mut Vec<&'s Value>) -> Types {
        let is_seen = seen.iter().any(|known| std::ptr::eq(*known, schema));
        if self.left == 0 || is_seen || seen.len() > MAX_NESTED {
            return Types::ALL;
        }
        self.left -= 1;
        if let Some(own) = own_types(schema) {
            return own;
        }
        let combined = self.combined(schema);
        if combined.is_empty() {
            return Types::ALL;
        }
        seen.push(schema);
        let of = |types: Types, part| types.or(self.types_of(part, seen));
        let types = combined.into_iter().fold(Types::NONE, of);
        seen.pop();
        types
    }
}

/// Maximum depth to which nested schemas are searched for types. An example of nested schemas is an `allOf` inside an
/// `anyOf`. A schema at a greater depth is treated as if it allowed all types. The limit is needed because the search
/// is recursive.
const MAX_NESTED: usize = 64;

/// The result of looking up a path segment in a single schema. Only the keywords of the schema itself are searched,
/// such as `properties`. Subschemas for the same value, such as those in `allOf`, are not searched.
enum Part<'s> {
    Anything,
    /// The schema has no keyword about the path segment, such as `properties`. But its subschemas may have one, for
    /// example those in `allOf`.
    Nothing,
    Has(Vec<&'s Value>),
    HasNot(Vec<String>),
}

fn step<'s>(part: &'s Value, segment: &Segment) -> Part<'s> {
    let Some(members) = part.as_object() else {
        return if part == &Value::Bool(false) { Part::HasNot(Vec::new()) } else { Part::Anything };
    };
    let wanted = if matches!(segment, Segment::Field(_)) { "object" } else { "array" };
    let is_of_type = Types::named(wanted).is_none_or(|wanted| own_types(part).is_none_or(|types| types.meets(wanted)));
    if !is_of_type {
        return Part::HasNot(Vec::new());
    }
    let said = match segment {
        Segment::Field(name) => member(part, name),
        Segment::Index(index) => element(part, *index as usize),
    };
    said.unwrap_or_else(|| {
        let is_combined = ["$ref", "allOf", "anyOf", "oneOf"].iter().any(|key| members.contains_key(*key));
        let is_elsewhere = part.get("$ref").and_then(Value::as_str).is_some_and(|reference| !is_local(reference));
        if is_combined && !is_elsewhere { Part::Nothing } else { Part::Anything }
    })
}

/// Looks up the property `name` in one schema. Returns `None` if the schema has no keywords about properties, such as
/// `additionalProperties`.
fn member<'s>(part: &'s Value, name: &str) -> Option<Part<'s>> {
    let properties = part.get("properties").and_then(Value::as_object);
    let patterns = part.get("patternProperties").and_then(Value::as_object);
    let matches = |pattern: &str| regexp::compile(pattern).is_ok_and(|regexp| regexp.is_match(name));
    let by_name = properties.and_then(|properties| properties.get(name));
    let by_pattern = patterns.into_iter().flatten().filter(|(pattern, _)| matches(pattern)).map(|(_, schema)| schema);
    let found: Vec<_> = by_name.into_iter().chain(by_pattern).collect();
    if !found.is_empty() {
        return Some(Part::Has(found));
    }
    let names = || properties.into_iter().flat_map(|properties| properties.keys().cloned()).collect();
    if part.get("x-kubernetes-preserve-unknown-fields") == Some(&Value::Bool(true)) {
        return Some(Part::Anything);
    }
    match part.get("additionalProperties").or_else(|| part.get("unevaluatedProperties")) {
        Some(Value::Bool(false)) => Some(Part::HasNot(names())),
        Some(Value::Bool(true)) => Some(Part::Anything),
        Some(schema) => Some(Part::Has(vec![schema])),
        None => (properties.is_some() || patterns.is_some()).then(|| Part::HasNot(names())),
    }
}

/// Looks up the schema of the list element at `index` in the schema `part`. Returns `None` if `part` has no keywords
/// about list elements, such as `items`.
fn element(part: &Value, index: usize) -> Option<Part<'_>> {
    let first = part.get("prefixItems").or_else(|| part.get("items")).and_then(Value::as_array);
    if let Some(schema) = first.and_then(|first| first.get(index)) {
        return Some(Part::Has(vec![schema]));
    }
    let rest = if part.get("items").is_some_and(Value::is_array) { "additionalItems" } else { "items" };
    match part.get(rest) {
        Some(Value::Bool(false)) => Some(Part::HasNot(Vec::new())),
        Some(Value::Bool(true)) => Some(Part::Anything),
        Some(schema) => Some(Part::Has(vec![schema])),
        None => first.map(|_| Part::Anything),
    }
}

/// Returns the types that a schema itself declares. `None` if the schema declares no types.
fn own_types(schema: &Value) -> Option<Types> {
    let union = |types: Vec<Types>| types.into_iter().fold(Types::NONE, Types::or);
    let named = match schema.get("type") {
        Some(Value::Array(names)) => Some(names.iter().filter_map(|name| Types::named(name.as_str()?)).collect()),
        Some(name) => name.as_str().and_then(Types::named).map(|types| vec![types]),
        None => None,
    };
    let by_value = || match (schema.get("const"), schema.get("enum").and_then(Value::as_array)) {
        (Some(value), _) => Some(vec![Types::of(value)]),
        (None, Some(values)) => Some(values.iter().map(Types::of).collect()),
        (None, None) => None,
    };
    let mut types = union(named.or_else(by_value)?);
    if schema.get("nullable") == Some(&Value::Bool(true)) {
        types = types.or(Types::of(&Value::Null));
    }
    Some(types)
}

fn requires(parts: &[&Value], name: &str) -> bool {
    let lists = parts.iter().filter_map(|part| part.get("required").and_then(Value::as_array));
    lists.flatten().any(|required| required == name)
}

fn sorted(names: &[String], segment: &Segment) -> Vec<String> {
    let Segment::Field(wanted) = segment else { return Vec::new() };
    let named = by_similarity(wanted, names.iter().map(String::as_str), MAX_NAMES);
    named.into_iter().map(str::to_owned).collect()
}
