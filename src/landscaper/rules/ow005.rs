//! OW005: reports an object that refers to a Context or ComponentVersionOverwrites object that does not exist.

use super::WRITES;
use crate::admission::{FieldPath, Finding, Level, Request};
use crate::catalog::{Kind, Reference, View};
use crate::landscaper::kinds::{self, CONTEXTS, INSTALLATIONS, OVERWRITES};
use crate::landscaper::{context, installation};
use crate::rule::{FailurePolicy, Match, Rule, RuleInfo};

static MATCHERS: [Match; 2] = [
    kinds::matches(&CONTEXTS, WRITES, FailurePolicy::Ignore),
    kinds::matches(&INSTALLATIONS, WRITES, FailurePolicy::Ignore).reading(installation::REFERENCE),
];

/// The definition of rule OW005.
pub(super) static RULE: Rule = Rule {
    info: RuleInfo {
        id: "OW005",
        name: "dangling-name",
        level: Level::Warn,
        summary: "a Context that names overwrites that do not exist, or an Installation whose Context, or its overwrites, do not exist",
        page: include_str!("../../../docs/rules/OW005.md"),
    },
    matchers: &MATCHERS,
    looks_up: &[&CONTEXTS, &OVERWRITES],
    live_reads: Some(live_reads),
    check,
};

/// A Context or ComponentVersionOverwrites object that must exist, and the field that refers to it.
struct Named {
    kind: &'static Kind,
    name: String,
    field: FieldPath,
    /// The name of the Context that refers to the required object. `None` if the object under admission refers to it
    /// directly.
    by: Option<String>,
}

/// Returns the objects that must exist because the object in the request refers to them:
///
/// - For a Context, returns the ComponentVersionOverwrites object to which it refers, if any.
/// - For an Installation, returns its Context. If the catalog contains this Context, also returns the
///   ComponentVersionOverwrites object to which the Context refers, if any.
fn named(request: &Request<'_>, view: &View<'_>) -> Vec<Named> {
    let object = request.object();
    if kinds::is(&CONTEXTS, request) {
        let field = FieldPath::of(["componentVersionOverwrites"]);
        let named = |name: &str| Named { kind: &OVERWRITES, name: name.to_owned(), field, by: None };
        return context::overwrites_name(object).map(named).into_iter().collect();
    }
    let (name, field) = (installation::context_name(object).to_owned(), FieldPath::of(["spec", "context"]));
    // If the overwrites of a Context do not exist, Landscaper fails every Installation in that Context, even one
    // without a component descriptor.
    let context = view.find(&CONTEXTS, &request.namespace, &name);
    let overwrites = context.as_ref().and_then(|context| context::overwrites_name(context.value()));
    let indirect = overwrites.map(|overwrites| {
        let (field, by) = (field.clone(), Some(name.clone()));
        Named { kind: &OVERWRITES, name: overwrites.to_owned(), field, by }
    });
    let mut named: Vec<_> = indirect.into_iter().collect();
    named.push(Named { kind: &CONTEXTS, name, field, by: None });
    named
}

fn live_reads(request: &Request<'_>, view: &View<'_>) -> Vec<Reference> {
    let missing = |named: &Named| view.unless_found(named.kind, &request.namespace, &named.name);
    named(request, view).iter().filter_map(missing).collect()
}

fn check(request: &Request<'_>, view: &View<'_>) -> Vec<Finding> {
    let mut named = named(request, view);
    named.retain(|named| view.is_missing(named.kind, &request.namespace, &named.name));
    named.into_iter().map(|named| finding(named, &request.namespace)).collect()
}

fn finding(named: Named, namespace: &str) -> Finding {
    let Named { kind, name, field, by } = named;
    let verb = if kind.kind.ends_with('s') { "do" } else { "does" };
    let by = by.map(|context| format!(", which Context {context:?} names,")).unwrap_or_default();
    let message = format!("{} {name:?}{by} {verb} not exist in namespace {namespace}", kind.kind);
    let help = match (kind.kind, name.as_str()) {
        ("Context", context::DEFAULT) => "Landscaper creates it automatically, unless this is disabled",
        ("Context", _) => "apply the Context, or the Installation fails",
        _ => "apply the overwrites, or every Installation in this Context fails",
    };
    RULE.finding(field, message).found(name).help(help)
}
