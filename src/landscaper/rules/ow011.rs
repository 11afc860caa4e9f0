//! OW011: reports an Installation whose Context is being deleted.
//!
//! Source: `GetExternalContext` in Landscaper's `pkg/landscaper/installations/context.go`, which Landscaper calls
//! whenever it reconciles or deletes an Installation. The function ignores the `deletionTimestamp` of the Context, so
//! an Installation works until the Context is gone, and fails from then on.

use std::sync::Arc;

use super::WRITES;
use crate::admission::{FieldPath, Finding, Level, Metadata, Request};
use crate::catalog::{LiveRead, NAMESPACES, Reference, Stored, View};
use crate::landscaper::deletion::is_terminating;
use crate::landscaper::installation;
use crate::landscaper::kinds::{self, CONTEXTS, INSTALLATIONS};
use crate::rule::{FailurePolicy, Match, Rule, RuleInfo};

static MATCHERS: [Match; 1] =
    [kinds::matches(&INSTALLATIONS, WRITES, FailurePolicy::Ignore).reading(installation::REFERENCE)];

/// The definition of rule OW011.
pub(super) static RULE: Rule = Rule {
    info: RuleInfo {
        id: "OW011",
        name: "context-being-deleted",
        level: Level::Warn,
        summary: "an Installation whose Context is being deleted",
        page: include_str!("../../../docs/rules/OW011.md"),
    },
    matchers: &MATCHERS,
    looks_up: &[&CONTEXTS, &NAMESPACES],
    live_reads: Some(live_reads),
    check,
};

/// Returns the objects to read from the API server before the rule reports that a Context is being deleted: the Context
/// and its namespace. The namespace is included because the rule reports nothing if the whole namespace is being
/// deleted.
///
/// The list is empty if the rule has nothing to report: the Installation is being deleted, or the Context is not being
/// deleted according to the catalog.
fn live_reads(request: &Request<'_>, view: &View<'_>) -> Vec<Reference> {
    if request.is_deleting() || context_being_deleted(request, view).is_none() {
        return Vec::new();
    }
    vec![reference(request), Reference::new(&NAMESPACES, "", &request.namespace)]
}

fn check(request: &Request<'_>, view: &View<'_>) -> Vec<Finding> {
    let Some(context) = context_being_deleted(request, view) else { return Vec::new() };
    // Without an answer from the API server, the Context may have been created again.
    let is_unknown = matches!(view.live_read(&reference(request)), Some(LiveRead::Unknown(_)));
    if is_unknown || request.is_deleting() || is_terminating(&request.namespace, view) {
        return Vec::new();
    }
    vec![finding(&context)]
}

fn reference(request: &Request<'_>) -> Reference {
    Reference::new(&CONTEXTS, &request.namespace, installation::context_name(request.object()))
}

fn context_being_deleted(request: &Request<'_>, view: &View<'_>) -> Option<Arc<Stored>> {
    let name = installation::context_name(request.object());
    view.find(&CONTEXTS, &request.namespace, name).filter(|context| Metadata::of(context.value()).is_deleting())
}

fn finding(context: &Stored) -> Finding {
    let name = context.name();
    let since = Metadata::of(context.value()).deletion_timestamp().unwrap_or_default();
    let message =
        format!("Context {name:?} has been in deletion since {since}: when it is gone, this Installation fails");
    let help = "set spec.context to another Context, or create this one again after its deletion";
    RULE.finding(FieldPath::of(["spec", "context"]), message).found(name).help(help)
}
