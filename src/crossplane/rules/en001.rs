//! EN001: missing fields and fields of the wrong type in an environment.

use super::{WRITTEN_COMPOSITIONS, text_findings};
use crate::admission::{Level, Operation};
use crate::crossplane::composition::Topic;
use crate::rule::{Example, Page, Rule};

/// The rule definition of EN001.
pub(super) static RULE: Rule = Rule {
    id: "EN001",
    name: "environment-structure",
    level: Level::Deny,
    summary: "an environment or patch with a missing field or a field of the wrong type",
    scope: &WRITTEN_COMPOSITIONS,
    looks_up: &[],
    confirm: None,
    check: |request, _| text_findings(&RULE, Topic::Structure, request),
    page: Page {
        why: "Crossplane up to 1.17 checks these fields at admission and reports one error at a time. Nothing checks \
              the inputs of functions: function-environment-configs crashes on a source of type Reference without \
              `ref`, on one of type Selector without `selector`, and on a matcher without its value. \
              function-patch-and-transform fails at the first reconcile. This rule reports all errors at once. \
              Fields of the first design, such as `reference` or a list under `selector`, are accepted, with a \
              warning that says how to write them today.",
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
            - type: Reference
            - type: Selector
              selector:
                matchLabels:
                  - {key: stage, type: Value}
",
        },
        right: Example {
            stored: "\
apiVersion: apiextensions.crossplane.io/v1beta1
kind: EnvironmentConfig
metadata: {name: example-environment, labels: {stage: prod}}
data: {region: eu-1}
",
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
            - type: Reference
              ref: {name: example-environment}
            - type: Selector
              selector:
                matchLabels:
                  - {key: stage, type: Value, value: prod}
",
        },
        mend: "Add the missing field, or correct its type.",
    },
};
