//! EN011: reports references from a composite to EnvironmentConfigs that its Composition does not select.

use std::sync::Arc;

use serde_json::Value;

use super::WRITTEN_COMPOSITES;
use crate::admission::{FieldPath, Finding, Level, Metadata, Request};
use crate::catalog::{Reference, Stored, View};
use crate::crossplane::composite::composition::{Choice, choose};
use crate::crossplane::composite::labels;
use crate::crossplane::composite_references::references;
use crate::crossplane::composition;
use crate::crossplane::configs::Configs;
use crate::crossplane::environment::{EnvironmentSource, Profile, SourceType};
use crate::crossplane::kinds::{
    self, ALPHA_ENVIRONMENT_CONFIGS, COMPOSITIONS, DEFINITIONS, ENVIRONMENT_CONFIGS, REVISIONS,
};
use crate::rule::{Rule, RuleInfo};

/// The rule definition of EN011.
pub(super) static RULE: Rule = Rule {
    info: RuleInfo {
        id: "EN011",
        name: "environment-config-not-for-composite",
        level: Level::Warn,
        summary: "a composite that refers to an EnvironmentConfig that its Composition does not select",
        page: include_str!("../../../docs/rules/EN011.md"),
    },
    matchers: &WRITTEN_COMPOSITES,
    looks_up: &[&COMPOSITIONS, &REVISIONS, &DEFINITIONS, &ENVIRONMENT_CONFIGS, &ALPHA_ENVIRONMENT_CONFIGS],
    live_reads: Some(live_reads),
    check,
};

/// Returns the EnvironmentConfigs to which a request adds references. The caller reads them from the API server,
/// because a denial must depend on their current labels.
fn live_reads(request: &Request<'_>, view: &View<'_>) -> Vec<Reference> {
    let added = added(request);
    added.into_iter().map(|(_, name)| Reference::new(kinds::served(view), "", name)).collect()
}

fn check(request: &Request<'_>, view: &View<'_>) -> Vec<Finding> {
    let added = added(request);
    if added.is_empty() {
        return Vec::new();
    }
    let (group, plural) = (&request.resource.group, &request.resource.plural);
    let Choice::One(composition) = choose(request.object(), group, plural, view) else { return Vec::new() };
    let Some(sources) = sources(composition.value()) else { return Vec::new() };
    let configs = Configs::of(view);
    let is_foreign = |name: &str| {
        let config = configs.find(name);
        !sources.iter().any(|source| produces(source, name, config.as_ref(), request.object()))
    };
    let finding = |(at, name): (usize, &str)| {
        let field = FieldPath::of(["spec", "environmentConfigRefs"]).index(at).key("name");
        let text = composition.shown();
        let message = format!("{text} does not select EnvironmentConfig {name:?} for this composite");
        RULE.finding(field, message).help("remove environmentConfigRefs, so that they are filled in")
    };
    added.into_iter().filter(|(_, name)| is_foreign(name)).map(finding).collect()
}

/// Returns the references to EnvironmentConfigs that a request adds to a composite. Each entry has the index in
/// `environmentConfigRefs`, and the name of the EnvironmentConfig.
fn added<'r>(request: &'r Request<'_>) -> Vec<(usize, &'r str)> {
    let before = references(request.old_object());
    let now = references(request.object()).into_iter().enumerate();
    now.filter(|(_, name)| !name.is_empty() && !before.contains(name)).collect()
}

/// Returns the entries of a Composition's `environmentConfigs`, from which Crossplane up to 1.17 selects
/// EnvironmentConfigs. `None` if functions select them, because functions do not record the selected EnvironmentConfigs
/// in the composite. Also `None` if the Composition declares no environment.
fn sources(composition: &Value) -> Option<Vec<EnvironmentSource>> {
    let profile = composition::profile(composition)?;
    let selections = composition::sources(composition).into_iter();
    let sources = selections.flat_map(|(_, selection)| selection.sources.unwrap_or_default());
    (profile == Profile::Native117).then(|| sources.collect())
}

/// Returns whether `source` selects the EnvironmentConfig `name` for `composite`. `source` is an entry of
/// `environmentConfigs` in a Composition, and selects by name or by labels. `config` is the EnvironmentConfig with this
/// name; `None` if it does not exist. If the labels that `source` requires cannot be computed from the composite,
/// returns false.
fn produces(source: &EnvironmentSource, name: &str, config: Option<&Arc<Stored>>, composite: &Value) -> bool {
    match (source.kind(), &source.reference, &source.selector) {
        (SourceType::Reference, Some(reference), _) => reference.name == name,
        (SourceType::Selector, _, Some(selector)) => {
            let Some(config) = config else { return false };
            let own = Metadata::of(config.value());
            let has = |(key, value): (&String, &String)| own.label(key) == Some(value);
            let wanted = labels::wanted(selector, composite, Profile::Native117);
            wanted.is_some_and(|labels| !labels.is_empty() && labels.iter().all(has))
        }
        _ => false,
    }
}
