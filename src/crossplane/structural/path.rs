//! Follows a field path through a schema.

use serde_json::Value;

use super::store::{member, preserves};
use super::{CROSSPLANE_FIELDS, Field, sorted};
use crate::admission::Operation;
use crate::crossplane::field_path::{Path, Segment};

/// Maximum number of subschemas in which Portcullis looks for CEL rules and formats. In larger schemas, it is unknown
/// whether a rule may reject a value. Few definitions are so large, because the API server limits them to three million
/// bytes.
const MAX_PARTS: usize = 10_000;

/// A subschema whose CEL rules, in `x-kubernetes-validations`, are examined.
#[derive(Debug, Clone, Copy)]
struct Rules<'s>(&'s Value);

/// Looks up a path that begins with `spec`. The parameter `spec` is the schema of the composite's field `spec`.
pub(super) fn at<'s>(spec: &'s Value, path: &Path) -> Field<'s> {
    let mut place = "spec".to_owned();
    let mut schema = spec;
    for (depth, segment) in path.segments().iter().enumerate().skip(1) {
        let next = match segment {
            Segment::Field(name) if depth == 1 && CROSSPLANE_FIELDS.contains(&name.as_str()) => return Field::Unknown,
            Segment::Field(name) => member(schema, name),
            Segment::Index(_) => schema.get("items").map(Some),
        };
        match next {
            Some(Some(next)) => schema = next,
            Some(None) => return Field::Unknown,
            None if preserves(schema) => return Field::Unknown,
            None => return pruned(schema, segment, place),
        }
        place = match segment {
            Segment::Field(name) => format!("{place}.{name}"),
            Segment::Index(index) => format!("{place}[{index}]"),
        };
    }
    Field::Declared(schema)
}

fn pruned<'s>(schema: &Value, segment: &Segment, at: String) -> Field<'s> {
    let wanted = if let Segment::Field(name) = segment { name.as_str() } else { "" };
    let has = sorted(schema.get("properties").and_then(Value::as_object), wanted);
    Field::Pruned { at, has }
}

/// Returns a description of the first CEL rule or format that may reject a value at a path; `None` if there is none.
/// The parameter `spec` is the schema of the composite's field `spec`. If the schema at the path has more than
/// [`MAX_PARTS`] subschemas, returns a text that says so. CEL rules and formats are not evaluated.
pub(super) fn undecided(spec: &Value, path: &Path, operation: Operation) -> Option<String> {
    let mut schema = spec;
    for (at, segment) in path.segments().iter().enumerate().skip(1) {
        let names: Vec<&str> = names(&path.segments()[at..]);
        if let Some(rule) = Rules(schema).about(&names, operation) {
            return Some(rule);
        }
        let next = match segment {
            Segment::Field(name) => member(schema, name).flatten(),
            Segment::Index(_) => schema.get("items"),
        };
        schema = next?;
    }
    let (mut left, mut parts) = (vec![schema], 0);
    while let Some(part) = left.pop() {
        parts += 1;
        if parts > MAX_PARTS {
            return Some(format!("its schema has more than {MAX_PARTS} parts"));
        }
        let format = part.get("format").and_then(Value::as_str).filter(|format| !IGNORED_FORMATS.contains(format));
        if let Some(rule) =
            Rules(part).about(&[], operation).or_else(|| format.map(|format| format!("format {format}")))
        {
            return Some(rule);
        }
        left.extend(part.get("properties").and_then(Value::as_object).into_iter().flat_map(|members| members.values()));
        left.extend(["items", "additionalProperties"].into_iter().filter_map(|key| part.get(key)));
    }
    None
}

/// OpenAPI formats that never reject a value, because they accept every number or every string.
const IGNORED_FORMATS: [&str; 6] = ["int32", "int64", "float", "double", "password", "quantity"];

fn names(segments: &[Segment]) -> Vec<&str> {
    let names = segments.iter().map_while(|segment| match segment {
        Segment::Field(name) => Some(name.as_str()),
        Segment::Index(_) => None,
    });
    names.collect()
}

impl Rules<'_> {
    /// Returns a description of the first CEL rule that reads the field at the path `names`; `None` if there is none.
    /// Rules that read a parent of this field, or a value inside it, also count. Rules that need `oldSelf` count only
    /// for updates, because the API server skips them otherwise.
    fn about(self, names: &[&str], operation: Operation) -> Option<String> {
        let rules = self.0.get("x-kubernetes-validations").and_then(Value::as_array).into_iter().flatten();
        let looks = |rule: &&Value| {
            let text = rule.get("rule").and_then(Value::as_str).unwrap_or_default();
            let is_of_change = mentions(text, "oldSelf", &[]) && rule.get("optionalOldSelf").is_none();
            let is_evaluated = operation == Operation::Update || !is_of_change;
            is_evaluated && (mentions(text, "self", names) || mentions(text, "oldSelf", names))
        };
        let found = rules.clone().find(looks)?;
        Some(format!("the rule {:?}", found.get("rule").and_then(Value::as_str).unwrap_or_default()))
    }
}

/// Returns whether a CEL expression may read the field of `variable` at the path `names`. Reading a parent of this
/// field, or a value inside it, also counts. If `names` is empty, every use of `variable` counts.
fn mentions(expression: &str, variable: &str, names: &[&str]) -> bool {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    expression.match_indices(variable).any(|(at, _)| {
        let before = expression[..at].chars().next_back();
        let mut rest = &expression[at + variable.len()..];
        if before.is_some_and(|c| is_word(c) || c == '.') || rest.starts_with(is_word) {
            return false;
        }
        for name in names {
            let trimmed = rest.trim_start();
            let Some(after) = trimmed.strip_prefix('.') else { return true };
            let end = after.find(|c| !is_word(c)).unwrap_or(after.len());
            let (member, after) = after.split_at(end);
            // The member is a function that is called on the whole value.
            if after.starts_with('(') {
                return true;
            }
            if member != *name {
                return false;
            }
            rest = after;
        }
        true
    })
}
