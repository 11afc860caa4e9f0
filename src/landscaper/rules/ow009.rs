//! OW009: reports a ComponentVersionOverwrites entry that matches no component in the component tree of any
//! Installation that uses the ComponentVersionOverwrites object.

use std::collections::BTreeSet;

use super::WRITES;
use crate::admission::{FieldPath, Finding, Level, Request};
use crate::catalog::View;
use crate::landscaper::components::users;
use crate::landscaper::installation;
use crate::landscaper::kinds::{self, CONTEXTS, INSTALLATIONS, OVERWRITES};
use crate::landscaper::overwrites::note::Note;
use crate::landscaper::substitution::Entries;
use crate::rule::{FailurePolicy, Match, Rule, RuleInfo};

static MATCHERS: [Match; 1] = [kinds::matches(&OVERWRITES, WRITES, FailurePolicy::Ignore)];

/// The definition of rule OW009.
pub(super) static RULE: Rule = Rule {
    info: RuleInfo {
        id: "OW009",
        name: "matches-no-component",
        level: Level::Audit,
        summary: "an entry that matches no component in the tree of any Installation that uses these overwrites",
        page: include_str!("../../../docs/rules/OW009.md"),
    },
    matchers: &MATCHERS,
    looks_up: &[&CONTEXTS, &INSTALLATIONS],
    live_reads: None,
    check,
};

fn check(request: &Request<'_>, view: &View<'_>) -> Vec<Finding> {
    let entries = Entries::of(request);
    let users = users::of_overwrites(&request.namespace, &request.display_name(), view);
    if users.is_cut || users.installations.is_empty() {
        return Vec::new();
    }
    let mut matched = BTreeSet::new();
    for user in &users.installations {
        let read = installation::component_reference(user.installation.value(), &mut Vec::new());
        let Some((_, reference)) = read else { continue };
        let original = reference.or_repository_context(user.context.repository_context.as_ref());
        let note = user.installation.view(Note::read);
        // If part of the tree is unknown, an entry might match a reference there.
        let Some(note) = note.filter(|note| note.complete && note.is_about(&entries, &original)) else {
            return Vec::new();
        };
        matched.extend(note.matched);
    }
    let field = FieldPath::of(["overwrites"]);
    let unmatched = (0..entries.len()).filter(|at| !matched.contains(at) && !entries.has_problem(*at));
    unmatched.map(|at| finding(field.index(at), users.installations.len())).collect()
}

fn finding(field: FieldPath, count: usize) -> Finding {
    let among = if count == 1 {
        "the only Installation that uses".to_owned()
    } else {
        format!("any of the {count} Installations that use")
    };
    let message = format!("matches no component in the tree of {among} these overwrites");
    RULE.finding(field.key("source"), message).help("remove the entry, or correct its source")
}
