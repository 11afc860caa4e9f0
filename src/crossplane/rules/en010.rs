//! EN010: deleting or changing an EnvironmentConfig while it is used.

use std::sync::Arc;

use serde_json::{Map, Value};

use super::with_help_in_message;
use crate::admission::{FieldPath, Finding, Level, Metadata, Operation, Request};
use crate::catalog::{Reference, Stored, View};
use crate::crossplane::configs::{Configs, ConfigsWith, ConfigsWithout};
use crate::crossplane::configuration::on_change;
use crate::crossplane::impact::{Effect, Impact, MAX_ASSESSED, assess};
use crate::crossplane::kinds::{
    self, ALPHA_ENVIRONMENT_CONFIGS, COMPOSITIONS, DEFINITIONS, ENVIRONMENT_CONFIGS, REVISIONS,
};
use crate::crossplane::users::users;
use crate::rule::{FailurePolicy, Match, Rule, RuleInfo};

static MATCHERS: [Match; 1] = [kinds::matches(
    &ENVIRONMENT_CONFIGS,
    &["v1alpha1", "v1beta1"],
    &[Operation::Create, Operation::Update, Operation::Delete],
    FailurePolicy::Ignore,
)];

/// The rule definition of EN010.
pub(super) static RULE: Rule = Rule {
    info: RuleInfo {
        id: "EN010",
        name: "environment-config-in-use",
        level: Level::Deny,
        summary: "deleting an EnvironmentConfig in use, or changing it so that composites that use it break",
        page: include_str!("../../../docs/rules/EN010.md"),
    },
    matchers: &MATCHERS,
    looks_up: &[&COMPOSITIONS, &REVISIONS, &DEFINITIONS, &ENVIRONMENT_CONFIGS, &ALPHA_ENVIRONMENT_CONFIGS],
    live_reads: Some(live_reads),
    check,
};

/// Maximum number of affected objects that are read from the API server and named in a message. The limit bounds the
/// duration of a decision and the length of a message.
const MAX_NAMES: usize = 5;

fn live_reads(request: &Request<'_>, view: &View<'_>) -> Vec<Reference> {
    let effects = impact(request, view).effects.into_iter();
    let is_refused = |effect: &Effect| match request.operation {
        Operation::Delete => effect.fails && effect.is_used,
        _ => on_change(view) == Level::Deny && !effect.problems.is_empty(),
    };
    effects.filter(is_refused).take(MAX_NAMES).flat_map(|effect| [effect.object, effect.composition]).collect()
}

fn check(request: &Request<'_>, view: &View<'_>) -> Vec<Finding> {
    let impact = impact(request, view);
    let mut findings = match request.operation {
        Operation::Delete => deleted(request, &impact),
        _ => changed(request, &impact, view),
    };
    if impact.not_assessed > 0 {
        let Impact { not_assessed, is_complete, .. } = impact;
        let least = if is_complete { "" } else { "at least " };
        let message =
            format!("{least}{not_assessed} more composites use it and were not checked: the limit is {MAX_ASSESSED}");
        let field = Changed::of(request).map_or_else(FieldPath::root, |changed| changed.field());
        findings.push(finding(field, message, Level::Warn));
    }
    findings.retain(|finding| finding.level != Level::Off);
    findings.into_iter().map(with_help_in_message).collect()
}

fn finding(field: FieldPath, message: String, level: Level) -> Finding {
    let mut finding = RULE.finding(field, message);
    finding.level = finding.level.min(level);
    finding
}

/// Computes how a request for an EnvironmentConfig affects the objects that use this EnvironmentConfig.
fn impact(request: &Request<'_>, view: &View<'_>) -> Impact {
    let (old, new) = (request.old_object(), request.object());
    let instead =
        |object: &Value| ConfigsWith { configs: Configs::of(view), config: Arc::new(Stored::new(object.clone())) };
    let configs = Configs::of(view);
    match request.operation {
        Operation::Delete => {
            let name = Metadata::of(old).name();
            assess(&users(old, view), name, &instead(old), &ConfigsWithout { configs, name }, view)
        }
        Operation::Create => assess(&users(new, view), &request.name, &configs, &instead(new), view),
        _ if Changed::of(request).is_none() => Impact::default(),
        _ => {
            let mut using = users(new, view);
            let before = users(old, view).into_iter();
            let before: Vec<_> = before.filter(|user| !using.iter().any(|known| known.object == user.object)).collect();
            using.extend(before);
            assess(&using, &request.name, &instead(old), &instead(new), view)
        }
    }
}

/// Returns findings about a deletion of an EnvironmentConfig. `impact` contains the effects of the deletion on the
/// objects that use the EnvironmentConfig.
fn deleted(request: &Request<'_>, impact: &Impact) -> Vec<Finding> {
    let name = request.display_name();
    let of = |holds: fn(&Effect) -> bool| impact.effects.iter().filter(move |effect| holds(effect)).collect::<Vec<_>>();
    let mut findings = Vec::new();
    let failing = of(|effect| effect.is_used && effect.fails);
    if !failing.is_empty() {
        let message = format!("EnvironmentConfig {name:?} is required by {}", named(&failing));
        findings.push(RULE.finding(FieldPath::root(), message).help("change or delete them first"));
    }
    let losing = of(|effect| effect.is_used && !effect.fails && effect.loses_data);
    if !losing.is_empty() {
        let message =
            format!("EnvironmentConfig {name:?} is merged for {}; its data will be missing there", named(&losing));
        findings.push(finding(FieldPath::root(), message, Level::Warn));
    }
    let passed_to_functions: Vec<_> = impact.passed_to_functions.iter().collect();
    if !passed_to_functions.is_empty() {
        let names: Vec<_> = passed_to_functions.iter().take(MAX_NAMES).map(|who| shown(who)).collect();
        let message = format!(
            "EnvironmentConfig {name:?} is passed to a pipeline step of {} by requirements.requiredResources",
            names.join(", ")
        );
        findings.push(finding(FieldPath::root(), message, Level::Warn));
    }
    let unused = of(|effect| !effect.is_used);
    if !unused.is_empty() {
        let message =
            format!("EnvironmentConfig {name:?} is selected by {}, which no known composite uses", named(&unused));
        findings.push(finding(FieldPath::root(), message, Level::Warn));
    }
    findings
}

/// The part of an EnvironmentConfig that a request changes.
struct Changed {
    words: &'static str,
    field: &'static [&'static str],
}

const LABELS: Changed = Changed { words: "with these labels", field: &["metadata", "labels"] };
const DATA: Changed = Changed { words: "with this data", field: &["data"] };
const BOTH: Changed = Changed { words: "with these labels and this data", field: &[] };
const ALL: Changed = Changed { words: "with this EnvironmentConfig", field: &[] };

impl Changed {
    /// Returns which part of the EnvironmentConfig the request changes. A creation changes all of it. An update changes
    /// its labels, its data, or both. Returns `None` for a deletion, or if the update changes neither labels nor data.
    fn of(request: &Request<'_>) -> Option<Self> {
        let (old, new) = (request.old_object(), request.object());
        match (labels(old) != labels(new), old.get("data") != new.get("data")) {
            _ if request.operation == Operation::Delete => None,
            _ if request.operation == Operation::Create => Some(ALL),
            (true, true) => Some(BOTH),
            (true, false) => Some(LABELS),
            (false, true) => Some(DATA),
            (false, false) => None,
        }
    }

    fn field(&self) -> FieldPath {
        self.field.iter().fold(FieldPath::root(), |field, key| field.key(key))
    }
}

fn labels(object: &Value) -> Option<&Map<String, Value>> {
    Metadata::of(object).labels()
}

/// Returns findings about composites that break or lose data because an EnvironmentConfig is created or updated.
/// `impact` contains the effects of the request on these composites.
fn changed(request: &Request<'_>, impact: &Impact, view: &View<'_>) -> Vec<Finding> {
    let Some(changed) = Changed::of(request) else { return Vec::new() };
    let (broken, others): (Vec<&Effect>, Vec<&Effect>) =
        impact.effects.iter().partition(|effect| !effect.problems.is_empty());
    let of = |effect: &Effect| {
        let (who, problems) = (shown(&effect.object), effect.problems.join("; "));
        // Future composites of a Composition may provide the missing values.
        let is_certain = !is_composition_or_revision(&effect.object);
        let level = if is_certain { on_change(view) } else { on_change(view).min(Level::Warn) };
        finding(changed.field(), format!("{} {who} breaks: {problems}", changed.words), level)
    };
    let mut findings: Vec<_> = broken.iter().take(MAX_NAMES).map(|effect| of(effect)).collect();
    if let Some(more) = broken.len().checked_sub(MAX_NAMES).filter(|more| *more > 0) {
        findings.push(finding(
            changed.field(),
            format!("{} {more} more objects break", changed.words),
            on_change(view),
        ));
    }
    let losing: Vec<&Effect> = others.into_iter().filter(|effect| effect.loses_data && effect.is_used).collect();
    if !losing.is_empty() {
        let (words, name) = (changed.words, request.display_name());
        let who = named(&losing);
        let message =
            format!("{words} EnvironmentConfig {name:?} is no longer merged for {who}; its data will be missing there");
        findings.push(finding(changed.field(), message, on_change(view).min(Level::Warn)));
    }
    findings
}

fn is_composition_or_revision(who: &Reference) -> bool {
    [&COMPOSITIONS, &REVISIONS].iter().any(|kind| std::ptr::eq(*kind, who.kind))
}

fn named(effects: &[&Effect]) -> String {
    let mut names: Vec<_> = effects.iter().take(MAX_NAMES).map(|effect| shown(&effect.object)).collect();
    if effects.len() > MAX_NAMES {
        names.push(format!("{} more", effects.len() - MAX_NAMES));
    }
    names.join(", ")
}

fn shown(who: &Reference) -> String {
    let kind = who.kind.kind;
    if who.namespace.is_empty() {
        format!("{kind} {:?}", who.name)
    } else {
        format!("{kind} \"{}/{}\"", who.namespace, who.name)
    }
}
