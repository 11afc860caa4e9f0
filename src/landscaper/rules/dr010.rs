//! DR010: reports deletions of a DryRunConfiguration that a running dry run uses.

use serde_json::Value;

use super::DELETION;
use crate::admission::{FieldPath, Finding, Level, Request};
use crate::catalog::{LiveRead, NAMESPACES, Reference, View};
use crate::landscaper::deletion::is_terminating;
use crate::landscaper::dry_run::is_running;
use crate::landscaper::dry_run::reading::MAX_ITEMS;
use crate::landscaper::dry_run_annotations::DryRunAnnotations;
use crate::landscaper::kinds::{self, BY_DRY_RUN_CONFIGURATION, DEPLOY_ITEMS, DRY_RUN_CONFIGURATIONS, INSTALLATIONS};
use crate::rule::{FailurePolicy, Match, Rule, RuleInfo};

static MATCHERS: [Match; 1] = [kinds::matches(&DRY_RUN_CONFIGURATIONS, DELETION, FailurePolicy::Ignore)];

/// The rule definition of DR010.
pub(super) static RULE: Rule = Rule {
    info: RuleInfo {
        id: "DR010",
        name: "configuration-deleted-while-used",
        level: Level::Deny,
        summary: "deleting a DryRunConfiguration that a dry run under way uses",
        page: include_str!("../../../docs/rules/DR010.md"),
    },
    matchers: &MATCHERS,
    looks_up: &[&DEPLOY_ITEMS, &INSTALLATIONS, &NAMESPACES],
    live_reads: Some(live_reads),
    check,
};

/// Maximum number of DeployItems and Installations that are read from the API server when a user deletes a
/// DryRunConfiguration. A few are enough, because the deletion is denied if one of them still uses the
/// DryRunConfiguration.
const MAX_LIVE_READS: usize = 5;

fn live_reads(request: &Request<'_>, view: &View<'_>) -> Vec<Reference> {
    if request.user.is_collector() {
        return Vec::new();
    }
    let mut wanted = users(request, view);
    if !wanted.is_empty() {
        wanted.push(Reference::new(&NAMESPACES, "", &request.namespace));
    }
    wanted
}

fn check(request: &Request<'_>, view: &View<'_>) -> Vec<Finding> {
    if request.user.is_collector() || is_terminating(&request.namespace, view) {
        return Vec::new();
    }
    let name = request.display_name();
    let still = |reference: &Reference| match view.live_read(reference) {
        Some(LiveRead::Exists(now)) => uses(now.value(), &name),
        Some(LiveRead::Gone) => false,
        _ => true,
    };
    let Some(user) = users(request, view).into_iter().find(still) else { return Vec::new() };
    let message = format!(
        "DryRunConfiguration {name:?} is used by {} {:?}, and its job has not ended",
        user.kind.kind, user.name
    );
    vec![RULE.finding(FieldPath::root(), message).help("wait until the dry run has ended, or interrupt it")]
}

fn uses(object: &Value, name: &str) -> bool {
    let annotations = DryRunAnnotations::of(object);
    annotations.is_dry_run() && annotations.configuration == Some(name) && is_running(object)
}

/// Returns references to DeployItems and Installations that use the DryRunConfiguration in the request and are still
/// being processed. They are looked up in the catalog (a cache of objects). At most [`MAX_LIVE_READS`] are returned.
fn users(request: &Request<'_>, view: &View<'_>) -> Vec<Reference> {
    let name = request.display_name();
    let of = |kind| {
        let found = view.indexed(kind, &BY_DRY_RUN_CONFIGURATION, &request.namespace, &name, MAX_ITEMS);
        let running = found.into_iter().filter(|stored| is_running(stored.value()));
        running.map(move |stored| Reference::new(kind, stored.namespace(), stored.name()))
    };
    of(&DEPLOY_ITEMS).chain(of(&INSTALLATIONS)).take(MAX_LIVE_READS).collect()
}
