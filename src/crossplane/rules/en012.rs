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
    summary: "an unknown field in an environment or in the input of a function",
    scope: &WRITTEN_COMPOSITIONS,
    looks_up: &[],
    confirm: None,
    check: |request, _| text_findings(&RULE, Topic::Unknown, request),
    page: Page {
        why: "The API server stores the inputs of functions unchanged, and the functions ignore unknown fields, so a \
              misspelled field has no effect. Go ignores the case of JSON names, so a field with the wrong case \
              works by accident.",
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
        mend: "Use the name in the help, or remove the field.",
    },
};
