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
        why: "A selector with an invalid label key or value selects nothing, and Crossplane only reports that it \
              found nothing. The usual cause is a field path in place of a value: `value: metadata.labels[my-label]` \
              is a literal text, not the value of that label. If a selector may match nothing (mode Multiple without \
              minMatch), this is a warning.",
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
        mend: "Write a valid label key or value. To read the value from the composite, use `valueFromFieldPath`.",
    },
};
