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
    summary: "a patch that reads a missing value, or a value of the wrong type, from the merged environment",
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
        why: "Crossplane skips a patch from the environment if its path finds nothing. If the policy of the patch is \
              Required, it does not reconcile the composite. In both cases nothing points to a misspelled path. The \
              rule computes the composite's environment from the current EnvironmentConfigs, runs every patch with \
              its transforms, and reports patches that find nothing, that fail, or whose format writes \
              `%!d(float64=7)`. Values that a patch reads from the composite itself may come later, and are not \
              checked. In a Composition, each patch runs with the data of the EnvironmentConfigs that are selected \
              for every composite. This already finds a map of a number, a Multiply of a text, or a text that is not \
              a number.\n\nA Composition may declare its environment as JSON Schema in the annotation \
              `portcullis.dev/environment-schema`, or in a ConfigMap that the annotation \
              `portcullis.dev/environment-schema-from: NAMESPACE/NAME/KEY` names. Then its patches are judged before \
              any composite exists: each path must be in the schema, with a type that the transforms accept. The \
              schema is read as a structure: if `properties` are listed, there are no others unless \
              `additionalProperties` allows them. Data from the Composition's own patches and `defaultData` need not \
              be in the schema. With a schema, you get warnings about values of a composite that have another type \
              than declared, but not about missing values that are declared and not `required`. A schema that cannot \
              be read is a warning itself. portcullis does not watch ConfigMaps. Its role allows it to get those in \
              its own namespace; for another namespace, create a role there.",
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
        mend: "Correct the path in the Composition, or add the value to an EnvironmentConfig that it selects. Paths \
               start at the data, without `data.`.",
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
            let message = format!("fails with the data of the currently selected EnvironmentConfigs: {}", failure.why);
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
            let help = "without a schema, patches are only judged for each composite";
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
