//! EN004: invalid label keys and values in selectors.

use super::{WRITTEN_COMPOSITIONS, text_findings};
use crate::admission::{Level, Operation};
use crate::crossplane::composition::Topic;
use crate::rule::{Example, Page, Rule};

/// The rule definition of EN004.
pub(super) static RULE: Rule = Rule {
    id: "EN004",
    name: "environment-label",
    level: Level::Deny,
    summary: "a selector with a label key or value that no object can have",
    scope: &WRITTEN_COMPOSITIONS,
    looks_up: &[],
    confirm: None,
    check: |request, _| text_findings(&RULE, Topic::Label, request),
    page: Page {
        why: "A selector with a key or value that is no label selects nothing, and Crossplane says only that nothing \
              was found. Mostly it is a field path where a value is to stand: `value: metadata.labels[my-label]` is a \
              text of its own, not the value of that label. Where a selector may select nothing (mode Multiple without minMatch), \
              this is a warning.",
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
    environmentConfigs:
      - type: Selector
        selector:
          matchLabels:
            - {key: stage, type: Value, value: \"metadata.labels[my-label]\"}
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
    environmentConfigs:
      - type: Selector
        selector:
          matchLabels:
            - {key: stage, type: FromCompositeFieldPath, valueFromFieldPath: \"metadata.labels[my-label]\"}
",
        },
        mend: "Write a label's own key or value; to read the value from the composite, use `valueFromFieldPath`.",
    },
};
