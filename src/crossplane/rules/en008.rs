//! EN008: patches that the merged environment does not answer.

use super::{WRITTEN_COMPOSITES, told};
use crate::admission::{FieldPath, Finding, Level, Operation, Request};
use crate::catalog::View;
use crate::crossplane::composite::computed::{Computed, computed, confirm};
use crate::crossplane::composite::unanswered::Unanswered;
use crate::crossplane::kinds::{ALPHA_ENVIRONMENT_CONFIGS, COMPOSITIONS, DEFINITIONS, ENVIRONMENT_CONFIGS};
use crate::rule::{Example, Page, Rule};

/// The row of EN008.
pub(super) static RULE: Rule = Rule {
    id: "EN008",
    name: "environment-path-missing",
    level: Level::Warn,
    summary: "a patch that reads what the merged environment does not have, or has of another type than it needs",
    scope: &WRITTEN_COMPOSITES,
    looks_up: &[&COMPOSITIONS, &DEFINITIONS, &ENVIRONMENT_CONFIGS, &ALPHA_ENVIRONMENT_CONFIGS],
    confirm: Some(confirm),
    check,
    page: Page {
        why: "A patch from the environment whose path leads to nothing is passed over, unless its policy says Required, and then \
              the composite is not reconciled. Either way a misspelled path shows nowhere. The rule computes the composite's \
              environment from the EnvironmentConfigs that are there, runs every patch with its transforms, and names those \
              that read nothing, that fail, or whose format makes `%!d(float64=7)` of a value. What is read from the \
              composite itself may come later, and is not looked at.",
        wrong: Example { stored: STORED, operation: Operation::Create, object: WRONG },
        right: Example {
            stored: STORED,
            operation: Operation::Create,
            object: "\
apiVersion: example.org/v1
kind: XExample
metadata: {name: mine}
spec: {compositionRef: {name: good}}
",
        },
        mend: "Correct the path in the Composition, or add the value to an EnvironmentConfig that it selects. Paths begin at the \
               data: without `data.`.",
    },
};

const WRONG: &str = "\
apiVersion: example.org/v1
kind: XExample
metadata: {name: mine}
spec: {compositionRef: {name: bad}}
";

const STORED: &str = "\
apiVersion: apiextensions.crossplane.io/v1
kind: CompositeResourceDefinition
metadata: {name: xexamples.example.org, labels: {portcullis.dev/composites: \"true\"}}
spec:
  group: example.org
  names: {kind: XExample, plural: xexamples}
  versions: [{name: v1, served: true, referenceable: true}]
---
apiVersion: apiextensions.crossplane.io/v1beta1
kind: EnvironmentConfig
metadata: {name: prod}
data: {network: {subnets: [subnet-7]}}
---
apiVersion: apiextensions.crossplane.io/v1
kind: Composition
metadata: {name: bad}
spec:
  compositeTypeRef: {apiVersion: example.org/v1, kind: XExample}
  environment:
    environmentConfigs: [{type: Reference, ref: {name: prod}}]
    patches:
      - {type: ToCompositeFieldPath, fromFieldPath: 'network.subnet[0]', toFieldPath: spec.subnet}
---
apiVersion: apiextensions.crossplane.io/v1
kind: Composition
metadata: {name: good}
spec:
  compositeTypeRef: {apiVersion: example.org/v1, kind: XExample}
  environment:
    environmentConfigs: [{type: Reference, ref: {name: prod}}]
    patches:
      - {type: ToCompositeFieldPath, fromFieldPath: 'network.subnets[0]', toFieldPath: spec.subnet}
";

fn check(request: &Request<'_>, view: &View<'_>) -> Vec<Finding> {
    found(request, view).into_iter().map(told).collect()
}

fn found(request: &Request<'_>, view: &View<'_>) -> Vec<Finding> {
    let computed = computed(request.object(), request, view).filter(|computed| !computed.is_uncertain());
    let unanswered = computed.iter().flat_map(Computed::unanswered);
    unanswered.map(|unanswered| finding(&unanswered)).collect()
}

fn finding(unanswered: &Unanswered) -> Finding {
    let finding = RULE.finding(FieldPath::root(), unanswered.to_string());
    match &unanswered.help {
        Some(help) => finding.help(help),
        None => finding,
    }
}
