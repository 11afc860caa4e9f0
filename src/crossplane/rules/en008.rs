//! EN008: patches that the merged environment cannot satisfy.

use serde_json::Value;

use super::{WRITTEN_COMPOSITIONS_AND_COMPOSITES, is_composite, with_help_in_message};
use crate::admission::{FieldPath, Finding, Level, Operation, Request};
use crate::catalog::{Reference, View};
use crate::crossplane::composite::claim::Subject;
use crate::crossplane::composite::composition::{Choice, choose};
use crate::crossplane::composite::computed::{self, computed};
use crate::crossplane::composite::patch_problem::PatchProblem;
use crate::crossplane::composition;
use crate::crossplane::configs::Configs;
use crate::crossplane::kinds::{ALPHA_ENVIRONMENT_CONFIGS, COMPOSITIONS, DEFINITIONS, ENVIRONMENT_CONFIGS, REVISIONS};
use crate::crossplane::patch_failures;
use crate::crossplane::schema::{self, CONFIG_MAPS};
use crate::rule::{Example, Page, Rule};

/// The rule definition of EN008.
pub(super) static RULE: Rule = Rule {
    id: "EN008",
    name: "environment-path-missing",
    level: Level::Warn,
    summary: "a patch that reads what the merged environment does not have, or has of another type than it needs",
    scope: &WRITTEN_COMPOSITIONS_AND_COMPOSITES,
    looks_up: &[
        &COMPOSITIONS,
        &REVISIONS,
        &DEFINITIONS,
        &ENVIRONMENT_CONFIGS,
        &ALPHA_ENVIRONMENT_CONFIGS,
        &CONFIG_MAPS,
    ],
    confirm: Some(confirm),
    check,
    page: Page {
        why: "A patch from the environment whose path leads to nothing is passed over, unless its policy says Required, and then \
              the composite is not reconciled. Either way a misspelled path shows nowhere. The rule computes the composite's \
              environment from the EnvironmentConfigs that are there, runs every patch with its transforms, and names those \
              that read nothing, that fail, or whose format makes `%!d(float64=7)` of a value. What is read from the \
              composite itself may come later, and is not looked at. In a Composition, each patch is tried with the data of the \
              EnvironmentConfigs that it selects for every composite: a map of a number, a Multiply of a text or a text that is \
              no number is found there already.\n\nA Composition may declare what its environment is, \
              as JSON Schema in the annotation `portcullis.dev/environment-schema`, or in a ConfigMap that \
              `portcullis.dev/environment-schema-from: NAMESPACE/NAME/KEY` names. Then its patches are judged before there \
              is any composite: each path must be in the schema, and of a type that the transforms can take. The schema \
              is read as a structure: where `properties` are listed there are no others, unless `additionalProperties` says \
              so; what the Composition's own patches and `defaultData` put into the environment need not be in it. \
              Composites are told of values of another type than is declared, and no more of what is declared and not \
              `required`. A schema that cannot be read is a warning itself. ConfigMaps are not watched; the role that comes \
              with portcullis lets it get those in its own namespace, and for another namespace a role is needed there.",
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
    let findings =
        if is_composite(request) { of_composite(request, view) } else { of_composition(request.object(), view) };
    findings.into_iter().map(with_help_in_message).collect()
}

/// Returns the objects to read live. For a Composition these are the ConfigMap of its schema; for a composite also the
/// objects that its environment needs.
fn confirm(request: &Request<'_>, view: &View<'_>) -> Vec<Reference> {
    if !is_composite(request) {
        return schema::confirm(request.object()).into_iter().collect();
    }
    let Subject { composite, plural } = Subject::of(request.object(), request, view);
    let mut wanted = computed::confirm(request, view);
    if let Choice::One(composition) = choose(&composite, &request.resource.group, &plural, view) {
        wanted.extend(schema::confirm(composition.value()));
    }
    wanted
}

/// Returns findings about patches that the environment of a composite cannot satisfy.
fn of_composite(request: &Request<'_>, view: &View<'_>) -> Vec<Finding> {
    let computed = computed(request.object(), request, view).filter(|computed| !computed.is_uncertain());
    let Some(computed) = computed else { return Vec::new() };
    // A finding on the Composition reports schemas that cannot be read.
    let schema = schema::declared(computed.composition.value(), view).and_then(|(_, schema)| schema.ok());
    let failing = computed.failing_input();
    computed.patch_problems(schema.as_deref()).iter().chain(&failing).map(finding).collect()
}

/// Returns findings about patches that fail with the declared schema or the current data.
fn of_composition(composition: &Value, view: &View<'_>) -> Vec<Finding> {
    let mut findings = of_schema(composition, view);
    let configs = Configs::of(view);
    if configs.is_complete() {
        let failing = patch_failures::failing_patches(composition, &configs).into_iter();
        let help = "correct the patch, or the data of the EnvironmentConfig";
        findings.extend(failing.map(|failure| {
            let message =
                format!("fails with the data of the EnvironmentConfigs that are selected now: {}", failure.why);
            RULE.finding(failure.patch, message).help(help)
        }));
    }
    findings
}

/// Returns findings about patches that read fields which the declared schema lacks.
fn of_schema(composition: &Value, view: &View<'_>) -> Vec<Finding> {
    match schema::declared(composition, view) {
        None => Vec::new(),
        Some((annotation, Err(error))) => {
            let field = FieldPath::of(["metadata", "annotations"]).key(annotation);
            let help = "patches are judged against the data of each composite as long as there is no schema";
            vec![RULE.finding(field, error.to_string()).help(help)]
        }
        Some((_, Ok(schema))) => {
            let problems = composition::against_schema(composition, schema).into_iter();
            problems
                .map(|problem| Finding { help: problem.help, ..RULE.finding(problem.field, problem.message) })
                .collect()
        }
    }
}

fn finding(problem: &PatchProblem) -> Finding {
    Finding { help: problem.help.clone(), ..RULE.finding(FieldPath::root(), problem.to_string()) }
}
