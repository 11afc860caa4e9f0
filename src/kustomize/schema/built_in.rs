//! The table of kustomize's built-in definitions.

use super::definitions::{Definitions, Name, Shape, ShapeId};

/// The table, with a line for every kind, type and field. The comment in the file explains the format.
const TABLE: &str = include_str!("built_in.txt");
/// The empty value in the table.
const NONE: &str = "-";

/// Parses the table.
pub(super) fn definitions() -> Definitions {
    let mut definitions = Definitions::reduced();
    let mut kinds = Vec::new();
    let mut current = None;
    for line in TABLE.lines() {
        let mut words = line.split_ascii_whitespace();
        match (words.next(), [words.next(), words.next(), words.next()]) {
            (Some("kind"), [Some(version), Some(kind), Some(name)]) => kinds.push((version, kind, name)),
            (Some("type"), [Some(name), ..]) => {
                current = Some(definitions.add_named(name.into(), Shape::default()));
            }
            (Some(field), [Some(how), Some(what), more]) if line.starts_with(' ') => {
                let id = add_field(&mut definitions, how, what, more.unwrap_or(NONE));
                if let Some(shape) = current.and_then(|current| definitions.shape_mut(current)) {
                    shape.fields.push((field.into(), id));
                }
            }
            _ => {}
        }
    }
    definitions.sort();
    for (version, kind, name) in kinds {
        if let Some(id) = definitions.named(name).or(definitions.opaque()) {
            definitions.add_kind(version.into(), kind.into(), id);
        }
    }
    definitions.sort();
    definitions
}

fn add_field(definitions: &mut Definitions, how: &'static str, what: &'static str, more: &'static str) -> ShapeId {
    let shape = match how {
        "merge" => Shape {
            merges: true,
            keys: what.split(',').filter(|key| *key != NONE).map(Name::from).collect(),
            ..list(definitions, more)
        },
        "list" => list(definitions, what),
        "values" => Shape { values: Some(reference(definitions, what)), ..Shape::default() },
        _ => Shape { reference: Some(what.into()), ..Shape::default() },
    };
    definitions.add(shape)
}

fn list(definitions: &mut Definitions, items: &'static str) -> Shape {
    let items = (items != NONE).then(|| reference(definitions, items));
    Shape { is_array: true, items, ..Shape::default() }
}

fn reference(definitions: &mut Definitions, name: &'static str) -> ShapeId {
    definitions.add(Shape { reference: Some(name.into()), ..Shape::default() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_of_the_table_is_understood() {
        let definitions = definitions();
        let mut references = 0;
        for line in TABLE.lines().filter(|line| !line.starts_with('#')) {
            let words: Vec<_> = line.split_ascii_whitespace().collect();
            match words.as_slice() {
                ["kind", version, kind, name] => {
                    let id = definitions.of_kind(version, kind).expect(line);
                    assert!(*name == NONE || definitions.named(name) == Some(id), "{line}");
                }
                ["type", name] => assert!(definitions.named(name).is_some(), "{line}"),
                [_, "object" | "list" | "values", name] | [_, "merge", _, name] => {
                    references += 1;
                    assert!(*name == NONE || definitions.named(name).is_some(), "{line}");
                }
                _ => panic!("{line}"),
            }
        }
        assert!(references > 250, "{references}");
    }
}
