//! OW007: reports a change of a ComponentVersionOverwrites object or Context that changes the components of
//! Installations.

use std::sync::Arc;

use serde_json::Value;

use super::WRITES;
use crate::admission::{FieldPath, Finding, Level, Operation, Request};
use crate::catalog::{Kind, Stored, View};
use crate::landscaper::component_reference::ComponentReference;
use crate::landscaper::context::Context;
use crate::landscaper::installation;
use crate::landscaper::kinds::{
    self, CONTEXTS, CONTEXTS_BY_OVERWRITES, INSTALLATIONS, INSTALLATIONS_BY_CONTEXT, OVERWRITES,
};
use crate::landscaper::overwrites::effect;
use crate::landscaper::substitution::{Entries, Entry, Substitution};
use crate::rule::{FailurePolicy, Match, Rule, RuleInfo};

static MATCHERS: [Match; 2] = [
    kinds::matches(&OVERWRITES, WRITES, FailurePolicy::Ignore),
    kinds::matches(&CONTEXTS, WRITES, FailurePolicy::Ignore),
];

/// The definition of rule OW007.
pub(super) static RULE: Rule = Rule {
    info: RuleInfo {
        id: "OW007",
        name: "changes-installations",
        level: Level::Warn,
        summary: "a change of overwrites or of a Context that gives Installations other components",
        page: include_str!("../../../docs/rules/OW007.md"),
    },
    matchers: &MATCHERS,
    looks_up: &[&CONTEXTS, &INSTALLATIONS, &OVERWRITES],
    live_reads: None,
    check,
};

/// Maximum number of Installations that are examined for one change of a Context or ComponentVersionOverwrites object.
/// For each of them, rule OW007 checks whether the change leads to another component or version. The limit bounds the
/// time of a decision.
const MAX_EXAMINED: usize = 10_000;
/// Maximum number of Contexts whose Installations are examined for one change of a ComponentVersionOverwrites object,
/// to bound the time of a decision.
const MAX_CONTEXTS: usize = 100;
/// Maximum number of Installations that a warning names, to keep the warning short.
const NAMED: usize = 3;

fn check(request: &Request<'_>, view: &View<'_>) -> Vec<Finding> {
    let field =
        FieldPath::of([if kinds::is(&CONTEXTS, request) { "componentVersionOverwrites" } else { "overwrites" }]);
    let changes = if kinds::is(&CONTEXTS, request) { of_context(request, view) } else { of_overwrites(request, view) };
    changes.message().map(|message| RULE.finding(field, message)).into_iter().collect()
}

/// The effect of a request on Installations: the number of Installations that get another component or version, and the
/// names of the first ones. The request changes a ComponentVersionOverwrites object or a Context.
#[derive(Default)]
struct Changes {
    names: Vec<String>,
    changed: usize,
    examined: usize,
    not_examined: usize,
}

/// The data that determine which component an Installation gets: its Context, and the entries of the
/// ComponentVersionOverwrites object to which the Context refers.
struct Resolver<'a> {
    context: &'a Context,
    entries: &'a [Entry],
}

impl Resolver<'_> {
    fn result(&self, reference: &ComponentReference) -> ComponentReference {
        let original = reference.clone().or_repository_context(self.context.repository_context.as_ref());
        Substitution::of(self.entries, original).result
    }
}

/// Calls `read` with the object as it was before the request, and returns the result. For an update, this is the old
/// object in the request. Otherwise, it is the object in the catalog. In `portcullis check`, the catalog contains the
/// checked files, so the rule finds no changes.
fn before<T>(request: &Request<'_>, view: &View<'_>, kind: &'static Kind, read: fn(&Value) -> T) -> T {
    if request.operation == Operation::Update {
        return read(request.old_object());
    }
    let stored = view.find(kind, &request.namespace, &request.display_name());
    read(stored.as_ref().map_or(&Value::Null, |stored| stored.value()))
}

fn of_overwrites(request: &Request<'_>, view: &View<'_>) -> Changes {
    let (old, new) = (before(request, view, &OVERWRITES, effect::entries), Entries::of(request));
    let mut changes = Changes::default();
    if old[..] == new[..] {
        return changes;
    }
    let (namespace, name) = (&request.namespace, request.display_name());
    for stored in view.indexed(&CONTEXTS, &CONTEXTS_BY_OVERWRITES, namespace, &name, MAX_CONTEXTS) {
        let context = stored.view(Context::of);
        let before = Resolver { context: &context, entries: &old };
        let after = Resolver { context: &context, entries: &new };
        changes.examine(stored.name(), namespace, view, &before, &after);
    }
    changes
}

fn of_context(request: &Request<'_>, view: &View<'_>) -> Changes {
    let (old, new) = (before(request, view, &CONTEXTS, Context::of), Context::of(request.object()));
    let mut changes = Changes::default();
    if old.overwrites == new.overwrites && old.repository_context == new.repository_context {
        return changes;
    }
    let entries = |context: &Context| -> Arc<Vec<Entry>> {
        let name = context.overwrites.as_deref();
        let found = name.and_then(|name| effect::find(&request.namespace, name, view));
        found.map(|overwrites| overwrites.entries).unwrap_or_default()
    };
    let (before, after) = (entries(&old), entries(&new));
    let before = Resolver { context: &old, entries: &before };
    let after = Resolver { context: &new, entries: &after };
    changes.examine(&request.display_name(), &request.namespace, view, &before, &after);
    changes
}

impl Changes {
    fn examine(
        &mut self,
        context: &str,
        namespace: &str,
        view: &View<'_>,
        before: &Resolver<'_>,
        after: &Resolver<'_>,
    ) {
        let limit = MAX_EXAMINED.saturating_sub(self.examined);
        let found = view.indexed(&INSTALLATIONS, &INSTALLATIONS_BY_CONTEXT, namespace, context, limit);
        let all = view.count(&INSTALLATIONS, &INSTALLATIONS_BY_CONTEXT, namespace, context);
        self.examined += found.len();
        self.not_examined += all.saturating_sub(found.len());
        for installation in found {
            let Some(reference) = reference(&installation) else { continue };
            if before.result(&reference) != after.result(&reference) {
                self.changed += 1;
                if self.names.len() < NAMED {
                    self.names.push(installation.name().to_owned());
                }
            }
        }
    }

    fn message(&self) -> Option<String> {
        if self.changed == 0 {
            return None;
        }
        let subject = if self.changed == 1 { "1 Installation gets" } else { "Installations get" };
        let count = if self.changed == 1 { String::new() } else { format!("{} ", self.changed) };
        let more = match self.changed - self.names.len() {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let bound = match self.not_examined {
            0 => String::new(),
            unseen => format!("; {unseen} more were not checked"),
        };
        Some(format!("{count}{subject} another component: {}{more}{bound}", self.names.join(", ")))
    }
}

/// Returns the component reference of an Installation in the catalog. The result is cached with the stored object.
fn reference(installation: &Stored) -> Option<ComponentReference> {
    installation.view(|object: &Value| {
        installation::component_reference(object, &mut Vec::new()).map(|(_, reference)| reference)
    })
}
