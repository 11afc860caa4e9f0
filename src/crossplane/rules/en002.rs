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
    summary: "a field path that cannot be parsed, writes beyond index 1024, or has a wildcard where none is expanded",
    scope: &WRITTEN_COMPOSITIONS,
    looks_up: &[],
    confirm: None,
    check: |request, _| text_findings(&RULE, Topic::Path, request),
    page: Page {
        why: "Crossplane parses field paths when it uses them, so an invalid path becomes an error of every \
              composite. It does not write to an index above 1024. A path that can be parsed but does not mean what \
              it seems to mean is a warning: Crossplane expands a wildcard only in a path that is written, only as \
              `[*]`, and not in patches that combine. Everywhere else it is the name of a field called `*`.",
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
        mend: "Correct the path. Separate names with dots. Put indexes and names that contain dots in brackets, as \
               in `metadata.annotations[example.org/name]`.",
    },
};
