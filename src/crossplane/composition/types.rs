//! Checks of patches against the schemas of the environment and the composite.

use serde_json::Value;

use super::declared::Declared;
use super::place::Place;
use super::problem::{Problem, Topic};
use super::reader::{Node, Reader};
use super::transforms::{self, Shape};
use crate::admission::FieldPath;
use crate::crossplane::field_path::Path;
use crate::crossplane::schema::{Found, Types};
use crate::crossplane::structural::{Field, Structural};

/// Returns whether a patch of type `kind` reads the environment. `place` says in which list of the Composition the
/// patch is, because the meaning of the types depends on the list.
pub(super) fn reads(kind: &str, place: Place) -> bool {
    match place {
        Place::Environment => {
            ["ToCompositeFieldPath", "CombineToComposite", "FromEnvironmentFieldPath"].contains(&kind)
        }
        Place::Resource | Place::Set => ["FromEnvironmentFieldPath", "CombineFromEnvironment"].contains(&kind),
    }
}

/// Checks the paths that a patch reads from the environment against the schema of the environment. Also checks whether
/// the transforms accept the types of the values at these paths. Does nothing if the Composition declares no schema.
pub(super) fn check(reader: &mut Reader, patch: &Node<'_>, kind: &str, place: Place) {
    let Some(declared) = reader.declared.clone().filter(|_| reads(kind, place)) else { return };
    if kind.starts_with("Combine") {
        let combine = patch.member("combine");
        let variables = combine.and_then(|combine| combine.member("variables"));
        let count = variables.as_ref().and_then(|list| list.value.as_array()).map_or(0, Vec::len);
        for at in 0..count {
            let node = variables.as_ref().map(|list| Node::new(&list.value[at], list.at.index(at)));
            node.inspect(|node| {
                read(reader, &declared, node);
            });
        }
        return;
    }
    let Some(types) = read(reader, &declared, patch) else { return };
    check_types(reader, patch, types, "the environment's");
}

/// Checks the paths that a patch reads from the composite against the composite's schema.
pub(super) fn check_composite(reader: &mut Reader, patch: &Node<'_>, kind: &str, place: Place) {
    let reads = kind == "FromCompositeFieldPath" || place == Place::Environment && kind == "ToEnvironmentFieldPath";
    let Some(schema) = reader.composite.clone().filter(|_| reads) else { return };
    let Some(from) = patch.member("fromFieldPath") else { return };
    let Some(path) = from.value.as_str().and_then(|text| Path::parse(text).ok()) else { return };
    if let Some(list) = wildcard_of_list(&path, &schema) {
        let what = format!(
            "Invalid value: \"{path}\": a wildcard is not expanded in a path that is read, and {list} is a list"
        );
        let problem = Problem::new(Topic::Schema, from.at, what);
        return reader.report(problem.help("name the element, such as [0], or read the whole list"));
    }
    if let Field::Declared(schema) = schema.at(&path)
        && let Some(types) = schema.get("type").and_then(Value::as_str).and_then(Types::named)
    {
        check_types(reader, patch, types, "the composite's");
    }
}

/// Returns the part of `path` before its first wildcard, if the schema declares a list at this part. Returns `None` if
/// the schema declares no list there, or if `path` has no wildcard.
fn wildcard_of_list(path: &Path, schema: &Structural) -> Option<String> {
    let at = path.segments().iter().position(crate::crossplane::field_path::Segment::is_wildcard)?;
    let above = Path::of(&path.segments()[..at]);
    match schema.at(&above) {
        Field::Declared(part) if part.get("type").is_some_and(|kind| kind == "array") => Some(above.to_string()),
        _ => None,
    }
}

/// Checks whether the transforms of a patch accept a value of at least one type in `types`. `whose` names the schema
/// that declares these types, for messages.
fn check_types(reader: &mut Reader, patch: &Node<'_>, types: Types, whose: &str) {
    let shapes: Vec<Shape> = types.names().into_iter().filter_map(|name| shape(name, reader.has_integers)).collect();
    // A patch that fails for every possible type always fails.
    let mut failing = shapes.iter().map(|shape| misfits(reader, patch, *shape)).collect::<Vec<_>>().into_iter();
    let Some(first) = failing.next() else { return };
    if !first.is_empty() && failing.all(|others| !others.is_empty()) {
        for problem in first {
            let message = format!("{}: {whose} schema declares {types} here", problem.message);
            let problem = Problem { message, topic: Topic::Schema, ..problem };
            reader.report(problem);
        }
    }
}

/// Looks up the `fromFieldPath` of a patch or variable in the environment's schema. Returns the types that the schema
/// declares at this path; `None` if they are unknown. Reports a path that the schema does not declare.
fn read(reader: &mut Reader, declared: &Declared, node: &Node<'_>) -> Option<Types> {
    let from = node.member("fromFieldPath")?;
    let path = Path::parse(from.value.as_str()?).ok()?;
    match declared.at(&path) {
        Found::Anything => None,
        Found::Something { types, .. } => (types != Types::ALL).then_some(types),
        Found::Nothing { at, has } => {
            reader.report(nothing(from.at, &path, &at, &has));
            None
        }
    }
}

fn nothing(field: FieldPath, path: &Path, at: &str, has: &[String]) -> Problem {
    let message = format!("Invalid value: \"{path}\": the environment's schema has no such field");
    let problem = Problem::new(Topic::Schema, field, message);
    let place = if at.is_empty() { "the environment" } else { at };
    match has {
        [] => problem.help(format!("{place} has no such member; correct the path or the schema")),
        has => problem.help(format!("{place} has {}", has.join(", "))),
    }
}

/// Returns the errors of the transforms of `patch` if their input has the type `shape`. Omits warnings, and errors that
/// do not depend on the type of the input.
fn misfits(reader: &Reader, patch: &Node<'_>, shape: Shape) -> Vec<Problem> {
    let found = |shape: Option<Shape>| {
        let mut reader = Reader { has_integers: reader.has_integers, ..Reader::new(reader.profile) };
        transforms::check(&mut reader, patch, shape);
        reader.problems
    };
    let always = found(None);
    found(Some(shape)).into_iter().filter(|problem| !problem.is_warning && !always.contains(problem)).collect()
}

/// Returns the Go type for values of the JSON type `name`, such as `string`. Numbers have the Go type `float64`. If
/// `has_integers` is true, they can also be integers. Returns `None` for `null`.
fn shape(name: &str, has_integers: bool) -> Option<Shape> {
    Some(match name {
        "boolean" => Shape::Bool,
        // Go has two number types; which one applies depends on earlier patches.
        "integer" | "number" => {
            if has_integers {
                Shape::Number
            } else {
                Shape::Float
            }
        }
        "string" => Shape::Text,
        "array" => Shape::List,
        "object" => Shape::Object,
        _ => return None,
    })
}
