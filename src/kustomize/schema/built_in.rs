//! The table of kustomize's built-in definitions. `build.rs` generates this table from `built_in.txt`.

use std::borrow::Cow;

use super::definitions::{Definitions, Name, Shape, ShapeId};

include!(concat!(env!("OUT_DIR"), "/definitions.rs"));

/// A schema without any fields or elements.
const EMPTY: Shape = Shape {
    reference: None,
    fields: Cow::Borrowed(&[]),
    values: None,
    is_array: false,
    items: None,
    merges: false,
    keys: Cow::Borrowed(&[]),
};

/// The OpenAPI schemas of Kubernetes objects that are built into kustomize. Fields that do not matter for merging lists
/// are left out. The schema at index 0 is empty, and is used for these fields.
pub(super) static DEFINITIONS: Definitions = Definitions {
    shapes: Cow::Borrowed(&SHAPES),
    names: Cow::Borrowed(&NAMES),
    kinds: Cow::Borrowed(&KINDS),
    opaque: Some(0),
};

#[cfg(test)]
mod tests {
    use super::*;

    /// The table from which `DEFINITIONS` is generated.
    const TABLE: &str = include_str!("built_in.txt");
    /// The placeholder for an empty value in `built_in.txt`.
    const NONE: &str = "-";

    #[test]
    fn every_line_of_the_table_is_understood() {
        let definitions = &DEFINITIONS;
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
