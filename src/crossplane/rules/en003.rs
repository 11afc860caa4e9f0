//! EN003: regular expressions, their groups, formats and the types on the way through transforms.

use super::{WRITTEN_COMPOSITIONS, of_text};
use crate::admission::{Level, Operation};
use crate::crossplane::composition::Topic;
use crate::rule::{Example, Page, Rule};

/// The row of EN003.
pub(super) static RULE: Rule = Rule {
    id: "EN003",
    name: "environment-expression",
    level: Level::Deny,
    summary: "a regular expression, a group, a format or a chain of transforms that can never work",
    scope: &WRITTEN_COMPOSITIONS,
    looks_up: &[],
    confirm: None,
    check: |request, _| of_text(&RULE, Topic::Expression, request),
    page: Page {
        why: "A regular expression that does not compile fails every composite, and a negative group crashes \
              Crossplane's controller. A format never fails: with a verb that does not fit, the composite silently \
              gets a value such as `%!d(float64=7)` or `a-%!s(MISSING)`. The rule counts the verbs against the values, \
              and follows the types of values through the transforms; to the functions every number is a float64, so \
              that `%d` needs a convert transform to int64 before it.",
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
      - type: CombineFromComposite
        combine:
          strategy: string
          string: {fmt: \"%s-%s-%s\"}
          variables:
            - {fromFieldPath: metadata.name}
            - {fromFieldPath: spec.stage}
        toFieldPath: names.prefix
      - type: FromCompositeFieldPath
        fromFieldPath: spec.region
        toFieldPath: region
        transforms:
          - {type: string, string: {type: Regexp, regexp: {match: \"^([a-z]+)-\", group: 2}}}
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
      - type: CombineFromComposite
        combine:
          strategy: string
          string: {fmt: \"%s-%s\"}
          variables:
            - {fromFieldPath: metadata.name}
            - {fromFieldPath: spec.stage}
        toFieldPath: names.prefix
      - type: FromCompositeFieldPath
        fromFieldPath: spec.region
        toFieldPath: region
        transforms:
          - {type: string, string: {type: Regexp, regexp: {match: \"^([a-z]+)-\", group: 1}}}
",
        },
        mend: "Give a format as many verbs as there are values; write `%v` for a value of any type. Correct the \
              expression as Go's package regexp reads it.",
    },
};
