//! DR012: reports dry runs in which a deployer may really deploy DeployItems.
//!
//! A dry run is an Installation, Execution or DeployItem with the dry-run annotation. If Portcullis routes DeployItems
//! to the dry-run deployer, the rule also reports DeployItems that neither the dry-run deployer nor another configured
//! deployer would process.

use serde_json::Value;

use super::WRITES;
use crate::admission::{FieldPath, Finding, Level, Path, Request};
use crate::catalog::{Reference, View};
use crate::landscaper::annotations::DRY_RUN_ANNOTATION;
use crate::landscaper::deployer::configuration::Deployers;
use crate::landscaper::deployer::responsibility::{self, Responsible, Route};
use crate::landscaper::dry_run::configuration::DryRuns;
use crate::landscaper::dry_run::{annotations_and_spec, unless_unchanged};
use crate::landscaper::dry_run_annotations::{DryRunAnnotations, annotation};
use crate::landscaper::execution;
use crate::landscaper::kinds::{self, DEPLOY_ITEMS, DEPLOYER_REGISTRATIONS, EXECUTIONS, INSTALLATIONS, TARGETS};
use crate::landscaper::owner::owner;
use crate::rule::{FailurePolicy, Match, Rule, RuleInfo};

const SPEC: &[Path] = &[&["spec"]];

static MATCHERS: [Match; 3] = [
    kinds::matches(&DEPLOY_ITEMS, WRITES, FailurePolicy::Ignore).reading(SPEC),
    kinds::matches(&EXECUTIONS, WRITES, FailurePolicy::Ignore).reading(SPEC),
    kinds::matches(&INSTALLATIONS, WRITES, FailurePolicy::Ignore).reading(&[]),
];

/// The rule definition of DR012.
pub(super) static RULE: Rule = Rule {
    info: RuleInfo {
        id: "DR012",
        name: "dry-run-that-may-deploy",
        level: Level::Deny,
        summary: "a dry run that a deployer may deploy, because its DeployItems are not routed to the dry-run deployer",
        page: include_str!("../../../docs/rules/DR012.md"),
    },
    matchers: &MATCHERS,
    looks_up: &[&DEPLOYER_REGISTRATIONS, &TARGETS],
    live_reads: Some(live_reads),
    check,
};

/// The prediction of how a DeployItem in dry run is processed.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Fate {
    /// No problem is known. Either the DeployItem is processed as a dry run, or the configuration of Portcullis lists
    /// no deployer for it.
    Fine,
    /// The deployer with this name would deploy the DeployItem to its target, although the DeployItem is in dry run.
    Deployed(String),
    /// It is not known whether the deployer with this name would really deploy the DeployItem, because the Target or
    /// the DeployerRegistration is unknown.
    Unknown(String),
    /// The dry-run deployer does not process the type of the DeployItem, and the configuration of Portcullis lists no
    /// deployer for it.
    NotProcessed,
}

/// A DeployItem or a DeployItem template, and the field path of its type.
struct Item {
    type_name: String,
    target: Option<String>,
    field: FieldPath,
    template: Option<String>,
}

fn live_reads(request: &Request<'_>, view: &View<'_>) -> Vec<Reference> {
    let items = if is_in_scope(request) { items(request) } else { Vec::new() };
    items.iter().flat_map(|item| fate(item, &request.namespace, view).1).collect()
}

fn check(request: &Request<'_>, view: &View<'_>) -> Vec<Finding> {
    if !DryRunAnnotations::of(request.object()).is_dry_run() {
        return Vec::new();
    }
    let mut findings = if kinds::is(&INSTALLATIONS, request) { root(request, view) } else { below(request, view) };
    for finding in &mut findings {
        finding.level = unless_unchanged(request, finding.level, annotations_and_spec);
    }
    findings
}

fn is_in_scope(request: &Request<'_>) -> bool {
    DryRunAnnotations::of(request.object()).is_dry_run() && !kinds::is(&INSTALLATIONS, request)
}

/// Checks a root Installation in dry run. Returns a finding if a deployer in the configuration ignores the dry run, and
/// would deploy the DeployItems of the Installation.
///
/// A root Installation has no owner. The Targets of its DeployItems are not known yet, so only deployers that accept
/// every Target are considered.
fn root(request: &Request<'_>, view: &View<'_>) -> Vec<Finding> {
    if owner(request.object()).is_some() || DryRuns::of(view).routes {
        return Vec::new();
    }
    let Some(deployers) = Deployers::of(view) else { return Vec::new() };
    let deploys = |deployer: &&_| responsibility::deploys_any(deployer);
    let Some(deployer) = deployers.identities.iter().find(deploys) else { return Vec::new() };
    let message = format!(
        "this dry run may deploy: {:?} serves {}, and mutators.dry-run does not route its items to the dry-run deployer",
        deployer.display_name(),
        deployer.types.join(", ")
    );
    vec![RULE.finding(annotation(DRY_RUN_ANNOTATION), message).help(HELP)]
}

const HELP: &str = "route items to the dry-run deployer (section dryRun, mutators: {dry-run: apply}), or set honoursDryRun: \
                    true for a deployer that honours the annotation";

const HELP_FOR_TYPE: &str = "leave such items out of dry runs, or name the type in dryRun.types and in --dry-run-type, or set \
                             honoursDryRun: true for a deployer that honours the annotation";

/// Checks a DeployItem in dry run, or the DeployItem templates of an Execution in dry run. Returns findings about
/// DeployItems that a deployer would or may deploy despite the dry run. If Portcullis routes DeployItems to the dry-run
/// deployer, also returns findings about DeployItems that no configured deployer would process.
fn below(request: &Request<'_>, view: &View<'_>) -> Vec<Finding> {
    let mut items = items(request);
    let mut seen = std::collections::BTreeSet::new();
    items.retain(|item| seen.insert((item.type_name.clone(), item.target.clone())));
    items.iter().filter_map(|item| finding(item, &fate(item, &request.namespace, view).0, view)).collect()
}

fn finding(item: &Item, fate: &Fate, view: &View<'_>) -> Option<Finding> {
    let type_name = &item.type_name;
    let message = match fate {
        Fate::Fine => return None,
        Fate::Deployed(by) => format!("{by:?} would deploy this dry run: it serves {type_name:?}"),
        Fate::Unknown(by) => format!("{by:?} may deploy this dry run: it is not known whether it serves the item"),
        Fate::NotProcessed => format!(
            "the dry-run deployer does not process {type_name:?}, so the item is not routed to it: its own deployer would deploy \
             it or, without a deployer, it would fail after the pickup timeout"
        ),
    };
    let message = item.template.as_ref().map_or(message.clone(), |name| format!("template {name:?}: {message}"));
    let mut finding = RULE.finding(item.field.clone(), message).found(type_name);
    if matches!(fate, Fate::Unknown(_)) {
        finding.level = Level::Warn;
    }
    let help = if *fate == Fate::NotProcessed { HELP_FOR_TYPE } else { HELP };
    Some(finding.allowed(DryRuns::of(view).types.join(", ")).help(help))
}

/// Predicts how a DeployItem in dry run is processed. Also returns the objects that must be read from the API server to
/// make the prediction certain.
fn fate(item: &Item, namespace: &str, view: &View<'_>) -> (Fate, Vec<Reference>) {
    let dry_runs = DryRuns::of(view);
    if dry_runs.routes && dry_runs.processes(&item.type_name) {
        return (Fate::Fine, Vec::new());
    }
    let deployers = Deployers::of(view).unwrap_or_default();
    let route = Route { type_name: &item.type_name, target: item.target.as_deref() };
    let judged: Vec<_> =
        deployers.identities.iter().map(|one| (one, responsibility::of(one, &route, namespace, view))).collect();
    let unread = judged.iter().filter_map(|(_, (_, unread))| unread.clone()).collect();
    let of = |wanted: Responsible, honours: bool| {
        let is = |(one, (found, _)): &&(&crate::landscaper::deployer::configuration::Deployer, _)| {
            one.honours_dry_run == honours && *found == wanted
        };
        judged.iter().find(is).map(|(one, _)| one.display_name().to_owned())
    };
    let fate = match (of(Responsible::Yes, false), of(Responsible::Yes, true), of(Responsible::Unknown, false)) {
        (Some(by), ..) => Fate::Deployed(by),
        (None, Some(_), None) => Fate::Fine,
        (None, _, Some(by)) => Fate::Unknown(by),
        _ if dry_runs.routes => Fate::NotProcessed,
        _ => Fate::Fine,
    };
    (fate, unread)
}

fn items(request: &Request<'_>) -> Vec<Item> {
    let object = request.object();
    if !kinds::is(&EXECUTIONS, request) {
        let Route { type_name, target } = Route::specified(object);
        let (type_name, target) = (type_name.to_owned(), target.map(str::to_owned));
        return vec![Item { type_name, target, field: FieldPath::of(["spec", "type"]), template: None }];
    }
    templates(object.get("spec").unwrap_or(&Value::Null))
}

fn templates(spec: &Value) -> Vec<Item> {
    // Landscaper's own webhook denies templates that cannot be read.
    let Ok(templates) = execution::templates(spec) else { return Vec::new() };
    let field = |at| match templates.compressed {
        true => FieldPath::of(["spec", "deployItemsCompressed"]),
        false => FieldPath::of(["spec", "deployItems"]).index(at).key("type"),
    };
    let item = |(at, template): (usize, &execution::Template)| Item {
        type_name: template.type_name.clone(),
        target: Some(template.target.clone()).filter(|target| !target.is_empty()),
        field: field(at),
        template: Some(template.name.clone()),
    };
    templates.items.iter().enumerate().map(item).collect()
}
