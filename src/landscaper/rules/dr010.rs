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

/// Maximum number of DeployItems and Installations that are read from the API server at once when a user deletes a
/// DryRunConfiguration. A few are enough, because the deletion is denied if one of them still uses the
/// DryRunConfiguration. If none of them uses it any more, the next ones are read.
const MAX_LIVE_READS: usize = 5;

fn live_reads(request: &Request<'_>, view: &View<'_>) -> Vec<Reference> {
    if request.user.is_collector() {
        return Vec::new();
    }
    let mut wanted: Vec<_> = users(request, view).take(MAX_LIVE_READS).collect();
    if wanted.is_empty() || wanted.iter().any(|user| view.live_read(user).is_some()) {
        return Vec::new();
    }
    wanted.push(Reference::new(&NAMESPACES, "", &request.namespace));
    wanted
}

fn check(request: &Request<'_>, view: &View<'_>) -> Vec<Finding> {
    if request.user.is_collector() || is_terminating(&request.namespace, view) {
        return Vec::new();
    }
    let Some(user) = users(request, view).next() else { return Vec::new() };
    let message = format!(
        "DryRunConfiguration {:?} is used by {} {:?}, and its job has not ended",
        request.display_name(),
        user.kind.kind,
        user.name
    );
    vec![RULE.finding(FieldPath::root(), message).help("wait until the dry run has ended, or interrupt it")]
}

fn uses(object: &Value, name: &str) -> bool {
    let annotations = DryRunAnnotations::of(object);
    annotations.is_dry_run() && annotations.configuration == Some(name) && is_running(object)
}

/// Returns references to DeployItems and Installations that use the DryRunConfiguration in the request and are still
/// being processed. If an object was read live from the API server, uses the result of this read. Otherwise, uses the
/// object in the catalog.
fn users<'a>(request: &'a Request<'_>, view: &'a View<'_>) -> impl Iterator<Item = Reference> + 'a {
    let kinds = [&DEPLOY_ITEMS, &INSTALLATIONS].into_iter();
    kinds.flat_map(move |kind| {
        let name = request.display_name();
        let found = view.indexed(kind, &BY_DRY_RUN_CONFIGURATION, &request.namespace, &name, MAX_ITEMS);
        found.into_iter().filter_map(move |stored| {
            let reference = Reference::new(kind, stored.namespace(), stored.name());
            let is_user = match view.live_read(&reference) {
                Some(LiveRead::Exists(now)) => uses(now.value(), &name),
                Some(LiveRead::Gone) => false,
                _ => is_running(stored.value()),
            };
            is_user.then_some(reference)
        })
    })
}
