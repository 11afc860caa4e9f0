//! EN012: unknown fields.

use super::{WRITTEN_COMPOSITIONS, text_findings};
use crate::admission::{Level, Operation};
use crate::crossplane::composition::Topic;
use crate::rule::{Example, Page, Rule};

/// The rule definition of EN012.
pub(super) static RULE: Rule = Rule {
    id: "EN012",
    name: "environment-unknown-field",
    level: Level::Warn,
    summary: "a field that an environment or the input of a function does not have",
    scope: &WRITTEN_COMPOSITIONS,
    looks_up: &[],
    confirm: None,
    check: |request, _| text_findings(&RULE, Topic::Unknown, request),
    page: Page {
        why: "The API server keeps the inputs of functions as they are, and the functions pass over what they do not \
              know: a misspelled field is as good as none. Go's JSON takes a name in other capitals for the same \
              field, so that such a one works by accident.",
        wrong: Example {
            stored: "",
            operation: Operation::Create,
            object: "\
apiVersion: apiextensions.crossplane.io/v1
kind: Composition
metadata: {name: example}
spec:
  compositeTypeRef: {apiVersion: example.org/v1, kind: XExample}
  mode: Pipeline
  pipeline:
    - step: environment
      functionRef: {name: function-environment-configs}
      input:
        apiVersion: environmentconfigs.fn.crossplane.io/v1beta1
        kind: Input
        spec:
          environmentConfigs:
            - type: Selector
              selector:
                mode: Multiple
                maxMatches: 1
                matchLabels:
                  - {key: stage, valueFromFieldPath: spec.stage, FromFieldPathPolicy: Optional}
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
  mode: Pipeline
  pipeline:
    - step: environment
      functionRef: {name: function-environment-configs}
      input:
        apiVersion: environmentconfigs.fn.crossplane.io/v1beta1
        kind: Input
        spec:
          environmentConfigs:
            - type: Selector
              selector:
                mode: Multiple
                maxMatch: 1
                matchLabels:
                  - {key: stage, valueFromFieldPath: spec.stage, fromFieldPathPolicy: Optional}
",
        },
        mend: "Spell the field as the help says, or leave it out.",
    },
};
