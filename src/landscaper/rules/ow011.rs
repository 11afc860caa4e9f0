//! OW011: an Installation whose Context is being deleted.
//!
//! Source: `GetExternalContext` in Landscaper's `pkg/landscaper/installations/context.go`, which every reconcile and every
//! deletion of an Installation calls. It reads the Context without looking at its `deletionTimestamp`, so an Installation
//! works until the Context is gone, and fails from then on.

use std::sync::Arc;

use super::WRITES;
use crate::admission::{FieldPath, Finding, Level, Metadata, Operation, Request};
use crate::catalog::{Confirmation, NAMESPACES, Reference, Stored, View};
use crate::landscaper::deletion::is_terminating;
use crate::landscaper::installation;
use crate::landscaper::kinds::{self, CONTEXTS, INSTALLATIONS};
use crate::rule::{Example, Match, Outage, Page, Rule};

static SCOPE: [Match; 1] = [kinds::matches(&INSTALLATIONS, WRITES, Outage::Admit).reading(installation::REFERENCE)];

/// The definition of rule OW011.
pub(super) static RULE: Rule = Rule {
    id: "OW011",
    name: "context-being-deleted",
    level: Level::Warn,
    summary: "an Installation whose Context is being deleted",
    scope: &SCOPE,
    looks_up: &[&CONTEXTS, &NAMESPACES],
    confirm: Some(confirm),
    check,
    page: Page {
        why: "A Context with a `deletionTimestamp` exists until its last finalizer is removed. Until then, Landscaper \
              still uses it; afterwards, every Installation that names it fails at its next reconcile, and Landscaper \
              cannot delete it properly. The rule reads the Context from the API server before it warns, so it does not \
              report a Context that you have already created again. It reports no Installation that is being deleted \
              itself, and none in a namespace that is being deleted.",
        wrong: Example {
            stored: "\
apiVersion: landscaper.gardener.cloud/v1alpha1
kind: Context
metadata:
  name: default
  namespace: my-namespace
  finalizers: [example.org/backup]
  deletionTimestamp: \"2026-01-01T12:00:00Z\"
",
            operation: Operation::Create,
            object: INSTALLATION,
        },
        right: Example {
            stored: "\
apiVersion: landscaper.gardener.cloud/v1alpha1
kind: Context
metadata:
  name: default
  namespace: my-namespace
  finalizers: [example.org/backup]
",
            operation: Operation::Create,
            object: INSTALLATION,
        },
        mend: "Set `spec.context` to another Context, or create the Context again after its deletion has finished.",
    },
};

const INSTALLATION: &str = "\
apiVersion: landscaper.gardener.cloud/v1alpha1
kind: Installation
metadata:
  name: server
  namespace: my-namespace
spec:
  context: default
  componentDescriptor:
    ref:
      componentName: example.org/server
      version: v1.0.0
";

/// Returns the live reads before a finding: the Context may be gone, and the namespace may be terminating.
fn confirm(request: &Request<'_>, view: &View<'_>) -> Vec<Reference> {
    if request.is_deleting() || context_being_deleted(request, view).is_none() {
        return Vec::new();
    }
    vec![reference(request), Reference::new(&NAMESPACES, "", &request.namespace)]
}

fn check(request: &Request<'_>, view: &View<'_>) -> Vec<Finding> {
    // Without an answer from the API server, the Context may have been created again.
    let is_unknown = matches!(view.confirmation(&reference(request)), Some(Confirmation::Unknown(_)));
    if is_unknown || request.is_deleting() || is_terminating(&request.namespace, view) {
        return Vec::new();
    }
    context_being_deleted(request, view).map(|context| finding(&context)).into_iter().collect()
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
    let message = format!("Context {name:?} is being deleted since {since}: when it is gone, this Installation fails");
    let help = "set spec.context to another Context, or create this one again after its deletion";
    RULE.finding(FieldPath::of(["spec", "context"]), message).found(name).help(help)
}
