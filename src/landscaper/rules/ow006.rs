//! OW006: reports the deletion of a Context or ComponentVersionOverwrites object that is still used.

use super::DELETION;
use crate::admission::{FieldPath, Finding, Level, Request};
use crate::catalog::{Index, Kind, LiveRead, NAMESPACES, Reference, View};
use crate::landscaper::deletion::is_terminating;
use crate::landscaper::kinds::{
    self, CONTEXTS, CONTEXTS_BY_OVERWRITES, INSTALLATIONS, INSTALLATIONS_BY_CONTEXT, OVERWRITES,
};
use crate::rule::{FailurePolicy, Match, Rule, RuleInfo};

static MATCHERS: [Match; 2] = [
    kinds::matches(&OVERWRITES, DELETION, FailurePolicy::Ignore),
    kinds::matches(&CONTEXTS, DELETION, FailurePolicy::Ignore),
];

/// The definition of rule OW006.
pub(super) static RULE: Rule = Rule {
    info: RuleInfo {
        id: "OW006",
        name: "deleted-while-used",
        level: Level::Deny,
        summary: "deletion of overwrites that a Context still names, or of a Context that Installations still use",
        page: include_str!("../../../docs/rules/OW006.md"),
    },
    matchers: &MATCHERS,
    looks_up: &[&CONTEXTS, &INSTALLATIONS, &NAMESPACES],
    live_reads: Some(live_reads),
    check,
};

/// Maximum number of Contexts or Installations that are read from the API server at once, to confirm that they still
/// use the object to be deleted. If none of them uses it any more, the next ones are read. The finding names at most
/// this number of them.
const NAMED: usize = 5;
/// Maximum number of Contexts or Installations that a decision looks up in the catalog, as users of the object to be
/// deleted. The rule reports the deletion, unless live reads show that none of them uses the object any more. A
/// decision makes fewer live reads than this limit, so the rule never overlooks a user because of the limit.
const MAX_EXAMINED: usize = 50;

fn live_reads(request: &Request<'_>, view: &View<'_>) -> Vec<Reference> {
    if request.user.is_collector() {
        return Vec::new();
    }
    let mut wanted = Users::of(request, view).references(request);
    // One object that still uses the deleted object is enough.
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
    let users = Users::of(request, view);
    users.names.first().map(|first| finding(request, &users, first)).into_iter().collect()
}

fn finding(request: &Request<'_>, users: &Users, first: &str) -> Finding {
    let others = users.count.saturating_sub(1);
    let more = if others > 0 { format!(" and {others} more") } else { String::new() };
    let message = format!(
        "{} {:?} is still used by {} {first:?}{more}",
        request.resource.kind,
        request.display_name(),
        users.kind.kind
    );
    let found = format!("{} of kind {}", users.names.join(", "), users.kind.kind);
    RULE.finding(FieldPath::root(), message).found(found).help(match users.kind.plural {
        "contexts" => "remove componentVersionOverwrites from that Context first",
        _ => "first delete those Installations, or set their spec.context to another Context",
    })
}

/// The Contexts or Installations that use the object to be deleted, according to the catalog and to live reads.
struct Users {
    kind: &'static Kind,
    /// The names of the Contexts or Installations that use the object. Contains at most [`NAMED`] names.
    names: Vec<String>,
    /// The number of Contexts or Installations that use the object. Does not count those that no longer use the object
    /// according to a live read.
    count: usize,
}

impl Users {
    fn of(request: &Request<'_>, view: &View<'_>) -> Self {
        let (kind, index) = user_kind(request);
        let (namespace, name) = (&request.namespace, request.display_name());
        let found = view.indexed(kind, index, namespace, &name, MAX_EXAMINED);
        let examined = found.len();
        let mut names: Vec<_> = found.iter().map(|stored| stored.name().to_owned()).collect();
        names.retain(|user| is_still_used_by(&Reference::new(kind, namespace, user), request, view));
        let count = match examined {
            MAX_EXAMINED.. => view.count(kind, index, namespace, &name).saturating_sub(examined - names.len()),
            _ => names.len(),
        };
        names.truncate(NAMED);
        Self { kind, names, count }
    }

    fn references(&self, request: &Request<'_>) -> Vec<Reference> {
        self.names.iter().map(|name| Reference::new(self.kind, &request.namespace, name)).collect()
    }
}

/// Returns whether the Context or Installation `reference` still uses the object that a user wants to delete.
///
/// In the catalog, `reference` uses this object, but the catalog may be outdated. So the result depends on a live read
/// of `reference` from the API server. If there was no live read, or if it failed, the result is `true`.
fn is_still_used_by(reference: &Reference, request: &Request<'_>, view: &View<'_>) -> bool {
    let (_, index) = user_kind(request);
    match view.live_read(reference) {
        Some(LiveRead::Gone) => false,
        Some(LiveRead::Exists(stored)) => (index.keys)(stored.value()).contains(&request.display_name()),
        Some(LiveRead::Unknown(_)) | None => true,
    }
}

fn user_kind(request: &Request<'_>) -> (&'static Kind, &'static Index) {
    if kinds::is(&CONTEXTS, request) {
        (&INSTALLATIONS, &INSTALLATIONS_BY_CONTEXT)
    } else {
        (&CONTEXTS, &CONTEXTS_BY_OVERWRITES)
    }
}
