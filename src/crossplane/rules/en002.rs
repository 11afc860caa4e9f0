//! EN002: invalid field paths.

use super::{WRITTEN_COMPOSITIONS, text_findings};
use crate::admission::{Level, Operation};
use crate::crossplane::composition::Topic;
use crate::rule::{Example, Page, Rule};

/// The rule definition of EN002.
pub(super) static RULE: Rule = Rule {
    id: "EN002",
    name: "environment-field-path",
    level: Level::Deny,
    summary: "a field path that cannot be parsed, writes beyond index 1024, or has a wildcard where none works",
    scope: &WRITTEN_COMPOSITIONS,
    looks_up: &[],
    confirm: None,
    check: |request, _| text_findings(&RULE, Topic::Path, request),
    page: Page {
        why: "Crossplane parses field paths when it uses them, so that a misspelled one shows as an error of every \
              composite. An index above 1024 is refused when it is written. What can be parsed and does not mean what \
              it seems is warned about: a wildcard is followed only where a value is written, only as `[*]`, and not \
              by patches that combine; elsewhere it names a field that is called `*`.",
        wrong: Example {
            stored: "",
            operation: Operation::Create,
            object: "\
apiVersion: apiextensions.crossplane.io/v1
kind: Composition
metadata: {name: example}
spec:
  compositeTypeRef: {apiVersion: example.org/v1, kind: XExample}
  environment:
    patches:
      - type: FromCompositeFieldPath
        fromFieldPath: spec.subnets[0
        toFieldPath: network..subnet
",
        },
        right: Example {
            stored: "",
            operation: Operation::Create,
            object: "\
apiVersion: apiextensions.crossplane.io/v1
kind: Composition
metadata: {name: example}
spec:
  compositeTypeRef: {apiVersion: example.org/v1, kind: XExample}
  environment:
    patches:
      - type: FromCompositeFieldPath
        fromFieldPath: spec.subnets[0]
        toFieldPath: network.subnet
",
        },
        mend: "Correct the path: names are parted by dots, elements and names with dots stand in brackets, as in \
              `metadata.annotations[example.org/name]`.",
    },
};
