//! OW005: a name that names nothing.

use super::WRITES;
use crate::admission::{FieldPath, Finding, Level, Operation, Request};
use crate::catalog::{Kind, Reference, View};
use crate::landscaper::kinds::{self, CONTEXTS, INSTALLATIONS, OVERWRITES};
use crate::landscaper::{context, installation};
use crate::rule::{Example, Match, Outage, Page, Rule};

static SCOPE: [Match; 2] = [
    kinds::matches(&CONTEXTS, WRITES, Outage::Admit),
    kinds::matches(&INSTALLATIONS, WRITES, Outage::Admit).reading(installation::REFERENCE),
];

/// The row of OW005.
pub(super) static RULE: Rule = Rule {
    id: "OW005",
    name: "dangling-name",
    level: Level::Warn,
    summary: "a Context that names overwrites that do not exist, or an Installation whose Context does not exist",
    scope: &SCOPE,
    looks_up: &[&CONTEXTS, &OVERWRITES],
    confirm: Some(confirm),
    check,
    page: Page {
        why: "Every Installation in a Context whose overwrites do not exist fails, and so does an Installation whose \
              Context does not exist. The order in which objects are applied is free, so this is a warning: it is right \
              again as soon as the missing object is there. Landscaper itself makes a Context `default` in every \
              namespace, unless it is told not to.",
        wrong: Example {
            stored: "",
            operation: Operation::Create,
            object: "\
apiVersion: landscaper.gardener.cloud/v1alpha1
kind: Context
metadata:
  name: default
  namespace: my-namespace
componentVersionOverwrites: my-overwrites
",
        },
        right: Example {
            stored: "\
apiVersion: landscaper.gardener.cloud/v1alpha1
kind: ComponentVersionOverwrites
metadata:
  name: my-overwrites
  namespace: my-namespace
overwrites: []
",
            operation: Operation::Create,
            object: "\
apiVersion: landscaper.gardener.cloud/v1alpha1
kind: Context
metadata:
  name: default
  namespace: my-namespace
componentVersionOverwrites: my-overwrites
",
        },
        mend: "Apply the object that is named, in the same namespace, or correct the name.",
    },
};

/// The kind and the name that an object names, and where.
fn named<'v>(request: &'v Request<'_>) -> Option<(&'static Kind, &'v str, FieldPath)> {
    let object = request.object();
    if kinds::is(&CONTEXTS, request) {
        let name = context::overwrites_name(object)?;
        return Some((&OVERWRITES, name, FieldPath::of(["componentVersionOverwrites"])));
    }
    Some((&CONTEXTS, installation::context_name(object), FieldPath::of(["spec", "context"])))
}

fn confirm(request: &Request<'_>, view: &View<'_>) -> Vec<Reference> {
    let missing = |(kind, name, _)| view.unless_found(kind, &request.namespace, name);
    named(request).and_then(missing).into_iter().collect()
}

fn check(request: &Request<'_>, view: &View<'_>) -> Vec<Finding> {
    let dangling = named(request).filter(|(kind, name, _)| view.is_missing(kind, &request.namespace, name));
    dangling.map(|(kind, name, field)| finding(kind, name, field, &request.namespace)).into_iter().collect()
}

fn finding(kind: &Kind, name: &str, field: FieldPath, namespace: &str) -> Finding {
    let verb = if kind.kind.ends_with('s') { "do" } else { "does" };
    let message = format!("{} {name:?} {verb} not exist in namespace {namespace}", kind.kind);
    let help = match (kind.kind, name) {
        ("Context", context::DEFAULT) => "Landscaper makes it by itself unless it is told not to",
        ("Context", _) => "apply it, or the Installation fails",
        _ => "apply them, or every Installation in this Context fails",
    };
    RULE.finding(field, message).found(name).help(help)
}
