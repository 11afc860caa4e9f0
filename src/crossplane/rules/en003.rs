//! EN003: regular expressions, groups, formats and value types of transforms.

use super::{WRITTEN_COMPOSITIONS, text_findings, with_help_in_message};
use crate::admission::{Finding, Level, Operation, Request};
use crate::catalog::View;
use crate::crossplane::composition::{self, Topic};
use crate::crossplane::kinds::{self, DEFINITIONS};
use crate::crossplane::structural::Structural;
use crate::rule::{Example, Page, Rule};

/// The rule definition of EN003.
pub(super) static RULE: Rule = Rule {
    id: "EN003",
    name: "environment-expression",
    level: Level::Deny,
    summary: "a regular expression, a group, a format or a chain of transforms that can never work",
    scope: &WRITTEN_COMPOSITIONS,
    looks_up: &[&DEFINITIONS],
    confirm: None,
    check,
    page: Page {
        why: "A regular expression that does not compile fails every composite. A negative group crashes \
              Crossplane's controller. A format never fails: if a verb does not fit its value, the composite \
              silently gets a text such as `%!d(float64=7)` or `a-%!s(MISSING)`.\n\nThe rule compares the verbs with \
              the values, and follows the types of values through the transforms. In functions every number is a \
              float64, so `%d` needs a convert transform to int64 before it, unless an earlier patch wrote into the \
              environment. If the CompositeResourceDefinition is known, a value that a patch reads from the \
              composite has a type too. A map or a Multiply of another type, or a wildcard in a list, is then a \
              warning, because the definition may change.",
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
        mend: "Use as many verbs as there are values; `%v` prints a value of any type. Write regular expressions in \
               the syntax of Go's package regexp.",
    },
};

fn check(request: &Request<'_>, view: &View<'_>) -> Vec<Finding> {
    let mut findings = text_findings(&RULE, Topic::Expression, request);
    findings.extend(of_composite(request, view));
    findings
}

/// Returns findings about transforms that cannot take the type which the composite's schema declares.
fn of_composite(request: &Request<'_>, view: &View<'_>) -> Vec<Finding> {
    let composition = request.object();
    let Some((definition, version)) = kinds::definition_of(composition, view) else { return Vec::new() };
    let Some(schema) = Structural::of(definition.value(), version) else { return Vec::new() };
    let problems = composition::against_composite(composition, schema).into_iter();
    let finding = |problem: composition::Problem| {
        let mut finding = RULE.finding(problem.field, problem.message);
        finding.help = problem.help;
        finding.level = finding.level.min(Level::Warn);
        with_help_in_message(finding)
    };
    problems.map(finding).collect()
}
