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
    summary: "a Context that names overwrites that do not exist, or an Installation whose Context, or its overwrites, do not exist",
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

/// An object that must exist, and where its name comes from.
struct Named {
    kind: &'static Kind,
    name: String,
    field: FieldPath,
    /// The Context that names it, where the object under admission does not name it itself.
    by: Option<String>,
}

/// The objects that must exist for an Installation or a Context to work, as far as they are known.
fn named(request: &Request<'_>, view: &View<'_>) -> Vec<Named> {
    let object = request.object();
    if kinds::is(&CONTEXTS, request) {
        let field = FieldPath::of(["componentVersionOverwrites"]);
        let named = |name: &str| Named { kind: &OVERWRITES, name: name.to_owned(), field, by: None };
        return context::overwrites_name(object).map(named).into_iter().collect();
    }
    let (name, field) = (installation::context_name(object).to_owned(), FieldPath::of(["spec", "context"]));
    // Landscaper fails any Installation in such a Context, one without a component descriptor too.
    let context = view.find(&CONTEXTS, &request.namespace, &name);
    let overwrites = context.as_ref().and_then(|context| context::overwrites_name(context.value()));
    let below = overwrites.map(|overwrites| {
        let (field, by) = (field.clone(), Some(name.clone()));
        Named { kind: &OVERWRITES, name: overwrites.to_owned(), field, by }
    });
    let mut named: Vec<_> = below.into_iter().collect();
    named.push(Named { kind: &CONTEXTS, name, field, by: None });
    named
}

fn confirm(request: &Request<'_>, view: &View<'_>) -> Vec<Reference> {
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
        ("Context", context::DEFAULT) => "Landscaper makes it by itself unless it is told not to",
        ("Context", _) => "apply it, or the Installation fails",
        _ => "apply them, or every Installation in this Context fails",
    };
    RULE.finding(field, message).found(name).help(help)
}
