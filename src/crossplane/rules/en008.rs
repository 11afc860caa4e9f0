//! EN008: patches that read a missing value, or a value of the wrong type, from the merged environment.

use serde_json::Value;

use super::{WRITTEN_COMPOSITIONS_AND_COMPOSITES, is_composite, with_help_in_message};
use crate::admission::{FieldPath, Finding, Level, Request};
use crate::catalog::{Reference, View};
use crate::crossplane::composite::claim::Subject;
use crate::crossplane::composite::composition::{Choice, choose};
use crate::crossplane::composite::computed::{self, of_request};
use crate::crossplane::composite::patch_problem::PatchProblem;
use crate::crossplane::composition;
use crate::crossplane::configs::Configs;
use crate::crossplane::kinds::{ALPHA_ENVIRONMENT_CONFIGS, COMPOSITIONS, DEFINITIONS, ENVIRONMENT_CONFIGS, REVISIONS};
use crate::crossplane::patch_failures;
use crate::crossplane::schema::{self, CONFIG_MAPS};
use crate::rule::{Rule, RuleInfo};

/// The rule definition of EN008.
pub(super) static RULE: Rule = Rule {
    info: RuleInfo {
        id: "EN008",
        name: "environment-path-missing",
        level: Level::Warn,
        summary: "a patch that reads a missing value, or a value of the wrong type, from the merged environment",
        page: include_str!("../../../docs/rules/EN008.md"),
    },
    matchers: &WRITTEN_COMPOSITIONS_AND_COMPOSITES,
    looks_up: &[
        &COMPOSITIONS,
        &REVISIONS,
        &DEFINITIONS,
        &ENVIRONMENT_CONFIGS,
        &ALPHA_ENVIRONMENT_CONFIGS,
        &CONFIG_MAPS,
    ],
    live_reads: Some(live_reads),
    check,
};

fn check(request: &Request<'_>, view: &View<'_>) -> Vec<Finding> {
    let findings =
        if is_composite(request) { of_composite(request, view) } else { of_composition(request.object(), view) };
    findings.into_iter().map(with_help_in_message).collect()
}

/// Returns references to the objects that Portcullis must read from the API server before it checks the request. These
/// objects include the ConfigMap with the schema of the environment, if the Composition names one. For a composite,
/// they also include objects that are not in the catalog and are needed to compute its environment.
fn live_reads(request: &Request<'_>, view: &View<'_>) -> Vec<Reference> {
    if !is_composite(request) {
        return schema::live_reads(request.object()).into_iter().collect();
    }
    let Subject { composite, plural } = Subject::of(request.object(), request, view);
    let mut wanted = computed::live_reads(request, view);
    if let Choice::One(composition) = choose(&composite, &request.resource.group, &plural, view) {
        wanted.extend(schema::live_reads(composition.value()));
    }
    wanted
}

/// Returns findings about patches that fail for a composite, or that read a missing value or a value of the wrong type
/// from its environment.
fn of_composite(request: &Request<'_>, view: &View<'_>) -> Vec<Finding> {
    let computed = of_request(request, view).filter(|computed| !computed.is_uncertain());
    let Some(computed) = computed else { return Vec::new() };
    // A finding on the Composition reports schemas that cannot be read.
    let schema = schema::declared(computed.composition.value(), view).and_then(|(_, schema)| schema.ok());
    let failing = computed.failing_input();
    computed.patch_problems(schema.as_deref()).iter().chain(&failing).map(finding).collect()
}

/// Returns findings about the patches of a Composition. The findings report patches that do not fit the schema of the
/// environment, and patches that fail with the current data of EnvironmentConfigs.
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

/// Checks the patches of a Composition against the schema that the Composition declares for its environment, and
/// returns findings. A schema that cannot be read is also a finding. Returns no findings if no schema is declared.
fn of_schema(composition: &Value, view: &View<'_>) -> Vec<Finding> {
    match schema::declared(composition, view) {
        None => Vec::new(),
        Some((annotation, Err(error))) => {
            let field = FieldPath::of(["metadata", "annotations"]).key(annotation);
            let help = "correct it: without a schema, patches are only checked for each composite";
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
