//! EN007: data that is lost when EnvironmentConfigs are merged.

use serde_json::Value;

use super::{WRITES, is_composite, with_help_in_message};
use crate::admission::{FieldPath, Finding, Level, Request, json};
use crate::catalog::View;
use crate::crossplane::composite::computed::{live_reads, of_request};
use crate::crossplane::composition;
use crate::crossplane::environment::{ActionOutcome, Merged, Overwrite};
use crate::crossplane::kinds::{
    self, ALPHA_ENVIRONMENT_CONFIGS, COMPOSITIONS, DEFINITIONS, ENVIRONMENT_CONFIGS, REVISIONS,
};
use crate::rule::{FailurePolicy, Match, Rule, RuleInfo};

static MATCHERS: [Match; 4] = [
    kinds::matches(&ENVIRONMENT_CONFIGS, &["v1alpha1", "v1beta1"], WRITES, FailurePolicy::Ignore),
    kinds::matches(&COMPOSITIONS, &["v1"], WRITES, FailurePolicy::Fail),
    kinds::composites(WRITES, FailurePolicy::Ignore),
    kinds::claims(WRITES, FailurePolicy::Ignore),
];

/// The rule definition of EN007.
pub(super) static RULE: Rule = Rule {
    info: RuleInfo {
        id: "EN007",
        name: "environment-merge-conflict",
        level: Level::Warn,
        summary: "a key whose type a later EnvironmentConfig changes, or that Crossplane writes itself",
        page: include_str!("../../../docs/rules/EN007.md"),
    },
    matchers: &MATCHERS,
    looks_up: &[&COMPOSITIONS, &REVISIONS, &DEFINITIONS, &ENVIRONMENT_CONFIGS, &ALPHA_ENVIRONMENT_CONFIGS],
    live_reads: Some(|request, view| if is_composite(request) { live_reads(request, view) } else { Vec::new() }),
    check,
};

/// Keys that Crossplane writes into an environment.
const RESERVED: [&str; 2] = ["apiVersion", "kind"];

fn check(request: &Request<'_>, view: &View<'_>) -> Vec<Finding> {
    found(request, view).into_iter().map(with_help_in_message).collect()
}

fn found(request: &Request<'_>, view: &View<'_>) -> Vec<Finding> {
    match &*request.resource.plural {
        _ if is_composite(request) => of_composite(request, view),
        "compositions" => {
            let selections = composition::sources(request.object()).into_iter();
            let defaults =
                selections.filter_map(|(field, selection)| Some((field.key("defaultData"), selection.default_data?)));
            defaults.flat_map(|(field, data)| reserved(&field, &Value::Object(data))).collect()
        }
        _ => reserved(&FieldPath::of(["data"]), request.object().get("data").unwrap_or(&Value::Null)),
    }
}

fn reserved(field: &FieldPath, data: &Value) -> Vec<Finding> {
    let keys = RESERVED.into_iter().filter(|key| data.get(key).is_some());
    let finding = |key: &str| {
        let message =
            format!("{key} is reserved: Crossplane up to 1.17 overwrites it when it merges EnvironmentConfigs");
        RULE.finding(field.key(key), message).help("rename the key")
    };
    keys.map(finding).collect()
}

fn of_composite(request: &Request<'_>, view: &View<'_>) -> Vec<Finding> {
    let Some(computed) = of_request(request, view) else { return Vec::new() };
    let mut findings = Vec::new();
    for step in &computed.computation.steps {
        let ActionOutcome::Selected { merged: Some(merged), .. } = &step.action else { continue };
        findings.extend(merged.overwrites().iter().map(|overwrite| of_overwrite(overwrite, merged)));
        findings.extend(merged.imprecise.iter().map(|path| {
            let message = format!(
                "{path} of the environment is a whole number that does not fit into a float64: merging changes it"
            );
            RULE.finding(FieldPath::root(), message).help("write it as a string")
        }));
    }
    findings
}

fn of_overwrite(overwrite: &Overwrite<'_>, merged: &Merged) -> Finding {
    let Overwrite { path, from, old, by, new } = overwrite;
    let name = |layer: &usize| merged.layers.get(*layer).map(|layer| layer.name.to_string()).unwrap_or_default();
    let (from, by) = (name(from), name(by));
    let is_same = std::mem::discriminant(*old) == std::mem::discriminant(*new);
    let message = match is_same {
        true => format!("{by} replaces {path} of {from} in the environment"),
        false => {
            let (old, new) = (json::kind_of(old), json::kind_of(new));
            format!("{path} of the environment is {old} in {from}, but {new} in {by}, which replaces it")
        }
    };
    let mut finding = RULE.finding(FieldPath::root(), message).found(json::brief(new));
    if is_same {
        finding.level = Level::Audit;
    }
    finding
}
