//! OW008: reports an overwritten component reference that leads to a component version that does not exist.

use std::collections::BTreeMap;

use super::WRITES;
use crate::admission::{FieldPath, Finding, Level, Request};
use crate::catalog::View;
use crate::landscaper::component_reference::{Attribute, ComponentReference};
use crate::landscaper::components::users;
use crate::landscaper::installation;
use crate::landscaper::kinds::{self, CONTEXTS, INSTALLATIONS, OVERWRITES};
use crate::landscaper::overwrites::effect::{self, Evaluation};
use crate::landscaper::overwrites::note::{Missing, Note};
use crate::landscaper::substitution::{Entries, Entry};
use crate::rule::{FailurePolicy, Match, Rule, RuleInfo};

static MATCHERS: [Match; 2] = [
    kinds::matches(&OVERWRITES, WRITES, FailurePolicy::Ignore),
    kinds::matches(&INSTALLATIONS, WRITES, FailurePolicy::Ignore).reading(installation::REFERENCE),
];

/// The definition of rule OW008.
pub(super) static RULE: Rule = Rule {
    info: RuleInfo {
        id: "OW008",
        name: "target-does-not-exist",
        level: Level::Warn,
        summary: "overwrites that produce a reference to a component version that its repository does not have",
        page: include_str!("../../../docs/rules/OW008.md"),
    },
    matchers: &MATCHERS,
    looks_up: &[&CONTEXTS, &INSTALLATIONS, &OVERWRITES],
    live_reads: None,
    check,
};

fn check(request: &Request<'_>, view: &View<'_>) -> Vec<Finding> {
    if kinds::is(&OVERWRITES, request) { of_overwrites(request, view) } else { of_installation(request, view) }
}

fn of_installation(request: &Request<'_>, view: &View<'_>) -> Vec<Finding> {
    let Some(note) = Note::read(request.object()).filter(|note| !note.missing.is_empty()) else { return Vec::new() };
    let Evaluation::Overwritten(effect) = effect::of(request.object(), &request.namespace, view) else {
        return Vec::new();
    };
    if !note.is_about(&effect.overwrites.entries, &effect.substitution.original) {
        return Vec::new();
    }
    let field = FieldPath::of(["spec", "componentDescriptor"]);
    note.missing.iter().map(|missing| finding(field.clone(), missing)).collect()
}

/// Reports entries of a ComponentVersionOverwrites object that produce a reference to a component version that does not
/// exist. The controller manager has found the missing versions earlier, and stored them in an annotation of each
/// Installation that uses the object.
fn of_overwrites(request: &Request<'_>, view: &View<'_>) -> Vec<Finding> {
    let entries = Entries::of(request);
    let mut found: BTreeMap<usize, Missing> = BTreeMap::new();
    let users = users::of_overwrites(&request.namespace, &request.display_name(), view);
    for note in users.installations.iter().filter_map(|user| user.installation.view(Note::read)) {
        for missing in note.missing {
            let target = ComponentReference::of(&missing.target, &mut Vec::new());
            let index = entries.iter().position(|entry| produces(entry, &target));
            if let Some(at) = index.filter(|at| !entries.has_problem(*at)) {
                found.entry(at).or_insert(missing);
            }
        }
    }
    let field = FieldPath::of(["overwrites"]);
    found.iter().map(|(at, missing)| finding(field.index(*at).key("substitution"), missing)).collect()
}

/// Returns whether an entry can change a component reference to `target`. A value in the `substitution` of the entry
/// takes precedence over the value in its `source`. The component name and the version must be specified, and equal to
/// those of `target`. The repository context must be equal only if it is specified.
fn produces(entry: &Entry, target: &ComponentReference) -> bool {
    let sets = entry.substitution.specified().next().is_some();
    sets && Attribute::ALL.into_iter().all(|part| {
        let specified = [&entry.substitution, &entry.source].into_iter().find(|reference| reference.specifies(part));
        match specified {
            Some(reference) => reference.agrees(target, part),
            // Most entries do not specify the repository, so any repository is accepted; name and version must match.
            None => part == Attribute::RepositoryContext,
        }
    })
}

fn finding(field: FieldPath, missing: &Missing) -> Finding {
    let target = ComponentReference::of(&missing.target, &mut Vec::new());
    let (name, version) = (&target.component_name, &target.version);
    let from = target.repository_context.as_ref().map(|context| format!(" in {}", context.brief()));
    let message = format!(
        "{name} {version} did not exist{} when it was last checked ({}): the Installation fails",
        from.unwrap_or_default(),
        missing.way
    );
    let help = match missing.nearest.as_slice() {
        [] => "publish it there, or choose a version that exists".to_owned(),
        nearest => format!("these versions exist: {}", nearest.join(", ")),
    };
    RULE.finding(field, message).found(version.clone()).help(help)
}
