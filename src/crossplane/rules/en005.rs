//! EN005: bounds that contradict each other, and orders that cannot be.

use super::{WRITTEN_COMPOSITIONS, of_text};
use crate::admission::{Level, Operation};
use crate::crossplane::composition::Topic;
use crate::rule::{Example, Page, Rule};

/// The row of EN005.
pub(super) static RULE: Rule = Rule {
    id: "EN005",
    name: "environment-selector-bounds",
    level: Level::Deny,
    summary: "a selector whose bounds contradict each other, or that sorts by what no EnvironmentConfig has",
    scope: &WRITTEN_COMPOSITIONS,
    looks_up: &[],
    confirm: None,
    check: |request, _| of_text(&RULE, Topic::Bounds, request),
    page: Page {
        why: "No number of EnvironmentConfigs satisfies a minMatch above maxMatch, and a negative bound cannot even be \
              decoded. A selector sorts by a path on the whole EnvironmentConfig, so that it begins with `data` or \
              `metadata`. The EnvironmentConfigs that match now are looked at too: to Crossplane up to 1.17 each must \
              have a value there, and all of the same type.",
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
          mode: Multiple
          minMatch: 3
          maxMatch: 2
          sortByFieldPath: priority
          matchLabels:
            - {key: stage, type: FromCompositeFieldPath, valueFromFieldPath: spec.stage}
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
          mode: Multiple
          minMatch: 1
          maxMatch: 2
          sortByFieldPath: data.priority
          matchLabels:
            - {key: stage, type: FromCompositeFieldPath, valueFromFieldPath: spec.stage}
",
        },
        mend: "Correct the bound, or sort by a path such as `data.priority` that every selected EnvironmentConfig has.",
    },
};
