//! EN006: reports references to missing EnvironmentConfigs, and selectors that match too few or too many
//! EnvironmentConfigs.

use super::{WRITTEN_COMPOSITIONS_AND_COMPOSITES, is_composite, with_help_in_message};
use crate::admission::{FieldPath, Finding, Level, Request};
use crate::catalog::{Reference, View};
use crate::crossplane::composite::computed::{self, of_request};
use crate::crossplane::composition;
use crate::crossplane::configs::Configs;
use crate::crossplane::environment::{
    EnvironmentSource, LabelMatcher, LabelMatcherType, Mode, Selector, SourceOutcome, SourceType,
};
use crate::crossplane::kinds::{
    self, ALPHA_ENVIRONMENT_CONFIGS, COMPOSITIONS, DEFINITIONS, ENVIRONMENT_CONFIGS, REVISIONS,
};
use crate::rule::{Rule, RuleInfo};

/// The rule definition of EN006.
pub(super) static RULE: Rule = Rule {
    info: RuleInfo {
        id: "EN006",
        name: "environment-not-selected",
        level: Level::Warn,
        summary: "a reference to a missing EnvironmentConfig, or a selector that matches none, too few or too many",
        page: include_str!("../../../docs/rules/EN006.md"),
    },
    matchers: &WRITTEN_COMPOSITIONS_AND_COMPOSITES,
    looks_up: &[&COMPOSITIONS, &REVISIONS, &DEFINITIONS, &ENVIRONMENT_CONFIGS, &ALPHA_ENVIRONMENT_CONFIGS],
    live_reads: Some(live_reads),
    check,
};

/// Returns references to the EnvironmentConfigs that the object in the request needs, but the catalog does not contain.
/// For a composite, also returns a reference to its Composition, if the catalog does not contain it. The caller reads
/// these objects from the API server, because they may have been created a moment ago.
fn live_reads(request: &Request<'_>, view: &View<'_>) -> Vec<Reference> {
    if is_composite(request) {
        return computed::live_reads(request, view);
    }
    let selections = composition::sources(request.object());
    let sources = selections.iter().flat_map(|(_, selection)| selection.sources.iter().flatten());
    let names = sources.filter_map(|source| Some(&source.reference.as_ref()?.name)).filter(|name| !name.is_empty());
    names.filter_map(|name| view.unless_found(kinds::served(view), "", name)).collect()
}

fn check(request: &Request<'_>, view: &View<'_>) -> Vec<Finding> {
    found(request, view).into_iter().map(with_help_in_message).collect()
}

fn found(request: &Request<'_>, view: &View<'_>) -> Vec<Finding> {
    let configs = Configs::of(view);
    if is_composite(request) {
        return of_composite(request, view, &configs);
    }
    if !configs.is_complete() {
        return Vec::new();
    }
    let mut findings = Vec::new();
    for (field, selection) in composition::sources(request.object()) {
        let is_optional = selection.policy.is_resolution_optional();
        for (at, source) in selection.sources.iter().flatten().enumerate() {
            let field = field.key("environmentConfigs").index(at);
            match source.kind() {
                SourceType::Reference if !is_optional => findings.extend(check_reference(source, &field, &configs)),
                SourceType::Selector => {
                    findings.extend(
                        source.selector.iter().filter_map(|selector| check_selector(selector, &field, &configs)),
                    );
                }
                _ => {}
            }
        }
    }
    findings
}

/// Returns a finding for each entry of `environmentConfigs` that cannot select EnvironmentConfigs for the composite in
/// the request. The entries are in the Composition of the composite. Each finding contains Crossplane's error message.
fn of_composite(request: &Request<'_>, view: &View<'_>, configs: &Configs<'_>) -> Vec<Finding> {
    let Some(computed) = of_request(request, view) else { return Vec::new() };
    let finding = |(step, at, source): (usize, usize, &SourceOutcome)| {
        // EN005 reports matches that cannot be sorted.
        let error = source.error.as_ref().filter(|_| !source.is_unsortable)?;
        let step = &computed.declaration.steps[step].field;
        let message = format!("{}, {step}, environmentConfigs[{at}]: {error}", computed.composition.shown());
        let finding = RULE.finding(FieldPath::root(), message);
        let labels: Vec<_> = source.labels.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
        let found = configs.matching(&labels);
        let names: Vec<_> = found.iter().take(5).map(|stored| stored.name()).collect();
        Some(match hint(&labels, configs).filter(|_| found.is_empty()) {
            Some(hint) => finding.help(hint),
            None if names.is_empty() => finding,
            None => finding.help(format!("EnvironmentConfigs with {}: {}", shown(&labels), names.join(", "))),
        })
    };
    let mut findings: Vec<_> = computed.sources().filter_map(finding).collect();
    // References that the composite keeps belong to no source.
    if let Some(failure) =
        computed.computation.failure.as_ref().filter(|why| findings.is_empty() && why.contains("cannot fetch"))
    {
        findings.push(RULE.finding(FieldPath::of(["spec", "environmentConfigRefs"]), failure));
    }
    findings
}

fn check_reference(source: &EnvironmentSource, field: &FieldPath, configs: &Configs<'_>) -> Option<Finding> {
    let name = source.reference.as_ref().map(|reference| reference.name.as_str()).filter(|name| !name.is_empty())?;
    if configs.find(name).is_some() {
        return None;
    }
    let finding = RULE.finding(field.key("ref").key("name"), format!("EnvironmentConfig {name:?} not found"));
    Some(match configs.similar_names(name).as_slice() {
        [] => finding.help("create it before the composites, or set policy: {resolution: Optional}"),
        near => finding.help(format!("similar names: {}", near.join(", "))),
    })
}

/// Returns a finding if too few or too many EnvironmentConfigs match a selector. The check does not depend on a
/// composite, so it ignores matchers that read the composite. These matchers could only reduce the number of matches,
/// so a finding about too few matches is still correct. Too many matches are reported only if no matcher is ignored.
fn check_selector(selector: &Selector, field: &FieldPath, configs: &Configs<'_>) -> Option<Finding> {
    let mut labels: Vec<(&str, &str)> = Vec::new();
    for matcher in &selector.match_labels {
        // If two matchers have the same key, the last one wins.
        labels.retain(|(key, _)| *key != matcher.key);
        labels.extend(fixed(matcher));
    }
    let is_fixed = selector.match_labels.iter().all(|matcher| fixed(matcher).is_some());
    let is_possible = |value: &str| !value.is_empty() && crate::names::is_label_value(value);
    // EN001 and EN004 report invalid labels.
    if labels.is_empty() || labels.iter().any(|(_, value)| !is_possible(value)) {
        return None;
    }
    let found = configs.matching(&labels);
    let wanted = wanted(selector);
    let message = match (found.as_slice(), wanted) {
        ([], Some(_)) => format!("no EnvironmentConfig has {}", shown(&labels)),
        (found, Some(Wanted::One)) if found.len() > 1 && is_fixed => {
            let names: Vec<_> = found.iter().take(5).map(|stored| stored.name()).collect();
            let (count, names) = (found.len(), names.join(", "));
            format!("{count} EnvironmentConfigs have {}, but mode Single allows only one: {names}", shown(&labels))
        }
        (found, Some(Wanted::AtLeast(least))) if (found.len() as u64) < least => {
            format!("{} EnvironmentConfigs have {}, but minMatch is {least}", found.len(), shown(&labels))
        }
        _ => return None,
    };
    let finding = RULE.finding(field.key("selector"), message);
    Some(match hint(&labels, configs).filter(|_| found.is_empty()) {
        Some(hint) => finding.help(hint),
        None if found.len() > 1 => finding.help("select by more labels, or set mode: Multiple"),
        None => finding.help("add the labels to an EnvironmentConfig"),
    })
}

/// The number of EnvironmentConfigs that must match a selector.
#[derive(Clone, Copy)]
enum Wanted {
    One,
    AtLeast(u64),
}

fn wanted(selector: &Selector) -> Option<Wanted> {
    match (selector.effective_mode(), selector.min_match) {
        (Mode::Single, _) => Some(Wanted::One),
        (_, Some(least)) if least > 0 => Some(Wanted::AtLeast(least)),
        _ => None,
    }
}

fn fixed(matcher: &LabelMatcher) -> Option<(&str, &str)> {
    let value = matcher.value.as_deref().filter(|_| matcher.kind() == LabelMatcherType::Value)?;
    Some((&matcher.key, value))
}

fn shown(labels: &[(&str, &str)]) -> String {
    let labels: Vec<_> = labels.iter().map(|(key, value)| format!("{key}={value}")).collect();
    format!("the label{} {}", if labels.len() == 1 { "" } else { "s" }, labels.join(", "))
}

/// Finds the first label in `labels` that no EnvironmentConfig has. Returns a help text with the most similar values
/// that EnvironmentConfigs have for the key of this label. `None` if for each label, at least one EnvironmentConfig has
/// it.
fn hint(labels: &[(&str, &str)], configs: &Configs<'_>) -> Option<String> {
    let (key, value) = labels.iter().find(|label| configs.matching(&[**label]).is_empty())?;
    let near = configs.similar_values(key, value);
    Some(match near.as_slice() {
        [] => format!("no EnvironmentConfig has a label {key}"),
        near => format!("existing values of {key}: {}", near.join(", ")),
    })
}
