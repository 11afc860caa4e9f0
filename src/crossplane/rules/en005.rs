//! EN005: selectors of EnvironmentConfigs with an invalid `minMatch`, `maxMatch` or `sortByFieldPath`.

use std::sync::Arc;

use serde_json::Value;

use super::{WRITTEN_COMPOSITIONS_AND_COMPOSITES, is_composite, text_findings, with_help_in_message};
use crate::admission::{FieldPath, Finding, Level, Request};
use crate::catalog::{Stored, View};
use crate::crossplane::composite::computed::{self, of_request};
use crate::crossplane::composition::{self, Topic};
use crate::crossplane::configs::Configs;
use crate::crossplane::environment::{LabelMatcherType, Mode, Profile, Selector, SourceOutcome, sort};
use crate::crossplane::field_path::Path;
use crate::crossplane::kinds::{ALPHA_ENVIRONMENT_CONFIGS, COMPOSITIONS, DEFINITIONS, ENVIRONMENT_CONFIGS, REVISIONS};
use crate::rule::{Rule, RuleInfo};

/// The rule definition of EN005.
pub(super) static RULE: Rule = Rule {
    info: RuleInfo {
        id: "EN005",
        name: "environment-selector-bounds",
        level: Level::Deny,
        summary: "a selector with a negative bound, or with a sort path that no EnvironmentConfig has",
        page: include_str!("../../../docs/rules/EN005.md"),
    },
    matchers: &WRITTEN_COMPOSITIONS_AND_COMPOSITES,
    looks_up: &[&COMPOSITIONS, &REVISIONS, &DEFINITIONS, &ENVIRONMENT_CONFIGS, &ALPHA_ENVIRONMENT_CONFIGS],
    live_reads: Some(
        |request, view| if is_composite(request) { computed::live_reads(request, view) } else { Vec::new() },
    ),
    check,
};

/// Maximum number of EnvironmentConfigs that a message names as examples, so that the message stays short.
const MAX_NAMES: usize = 5;

fn check(request: &Request<'_>, view: &View<'_>) -> Vec<Finding> {
    if is_composite(request) {
        return of_composite(request, view).into_iter().map(with_help_in_message).collect();
    }
    let against_data = of_composition(request.object(), &Configs::of(view));
    text_findings(&RULE, Topic::Bounds, request)
        .into_iter()
        .chain(against_data.into_iter().map(with_help_in_message))
        .collect()
}

/// Returns findings about selectors of EnvironmentConfigs for the composite in the request. A selector is reported if
/// the EnvironmentConfigs that it matches cannot be sorted.
fn of_composite(request: &Request<'_>, view: &View<'_>) -> Vec<Finding> {
    let Some(computed) = of_request(request, view) else { return Vec::new() };
    let finding = |(step, at, source): (usize, usize, &SourceOutcome)| {
        let error = source.error.as_ref().filter(|_| source.is_unsortable)?;
        let step = &computed.declaration.steps[step].field;
        let text = computed.composition.shown();
        Some(warning(FieldPath::root(), format!("{text}, {step}, environmentConfigs[{at}]: {error}")))
    };
    computed.sources().filter_map(finding).collect()
}

/// Returns findings about the selectors in a Composition. A selector is reported if the EnvironmentConfigs that it
/// matches cannot be sorted, whichever composite uses the Composition.
fn of_composition(composition: &Value, configs: &Configs<'_>) -> Vec<Finding> {
    let Some(profile) = composition::profile(composition).filter(|_| configs.is_complete()) else { return Vec::new() };
    let mut findings = Vec::new();
    for (field, selection) in composition::sources(composition) {
        for (at, source) in selection.sources.iter().flatten().enumerate() {
            let field = field.key("environmentConfigs").index(at).key("selector").key("sortByFieldPath");
            let selector = source.selector.as_ref().filter(|selector| selector.effective_mode() == Mode::Multiple);
            let problem = selector.and_then(|selector| unsorted(profile, selector, configs));
            findings.extend(problem.map(|problem| warning(field, problem)));
        }
    }
    findings
}

/// Returns why the EnvironmentConfigs that a selector matches cannot be sorted. `None` if sorting may succeed.
fn unsorted(profile: Profile, selector: &Selector, configs: &Configs<'_>) -> Option<String> {
    let path = selector.sort_by_field_path.as_deref().filter(|path| Path::parse(path).is_ok())?;
    let is_fixed = |kind: LabelMatcherType| kind == LabelMatcherType::Value;
    let fixed = selector.match_labels.iter().filter(|matcher| is_fixed(matcher.kind()));
    let labels: Vec<_> = fixed.filter_map(|matcher| Some((matcher.key.as_str(), matcher.value.as_deref()?))).collect();
    let mut found = configs.matching(&labels);
    let has = |stored: &&Arc<Stored>| Path::parse(path).is_ok_and(|path| path.get(stored.value()).is_ok());
    // The final matches are a subset of these, so only what is true for all of them is certain.
    if !found.is_empty() && !found.iter().any(|stored| has(&stored)) {
        let names: Vec<_> = found.iter().take(MAX_NAMES).map(|stored| stored.name()).collect();
        return Some(format!("no matching EnvironmentConfig has {path}, for example {}", names.join(", ")));
    }
    let all_match = labels.len() == selector.match_labels.len();
    all_match.then(|| sort(profile, path, &mut found).err())?
}

fn warning(field: FieldPath, message: String) -> Finding {
    let mut finding =
        RULE.finding(field, message).help("set a value of the same type in all of them, or sort by another path");
    finding.level = finding.level.min(Level::Warn);
    finding
}
