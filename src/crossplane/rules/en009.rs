//! EN009: fields and patches of an environment that have no effect.

use super::{WRITTEN_COMPOSITIONS, text_findings};
use crate::admission::{Level, Operation};
use crate::crossplane::composition::Topic;
use crate::rule::{Example, Page, Rule};

/// The rule definition of EN009.
pub(super) static RULE: Rule = Rule {
    id: "EN009",
    name: "environment-ignored",
    level: Level::Warn,
    summary: "a patch or a field of an environment that Crossplane silently ignores",
    scope: &WRITTEN_COMPOSITIONS,
    looks_up: &[],
    confirm: None,
    check: |request, _| text_findings(&RULE, Topic::Ignored, request),
    page: Page {
        why: "Many fields have no effect, and nothing reports it. Examples are patches from the environment into the \
              status, which Crossplane up to 1.17 loses; `mergeOptions` in the input of \
              function-patch-and-transform, which replaces values instead; maxMatch beside a selector, as in the \
              function's own README, instead of in it; patches of an environment in mode Pipeline; and the first of \
              two matchers with the same key.",
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
              maxMatch: 1
              selector:
                mode: Multiple
                matchLabels:
                  - {key: stage, type: FromCompositeFieldPath, valueFromFieldPath: spec.stage}
    - step: resources
      functionRef: {name: function-patch-and-transform}
      input:
        apiVersion: pt.fn.crossplane.io/v1beta1
        kind: Resources
        environment:
          patches:
            - fromFieldPath: spec.tags
              toFieldPath: tags
              policy: {mergeOptions: {appendSlice: true}}
        resources: []
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
                  - {key: stage, type: FromCompositeFieldPath, valueFromFieldPath: spec.stage}
    - step: resources
      functionRef: {name: function-patch-and-transform}
      input:
        apiVersion: pt.fn.crossplane.io/v1beta1
        kind: Resources
        environment:
          patches:
            - fromFieldPath: spec.tags
              toFieldPath: tags
              policy: {toFieldPath: ForceMergeObjectsAppendArrays}
        resources: []
",
        },
        mend: "Follow the help in the message, or remove what has no effect.",
    },
};
