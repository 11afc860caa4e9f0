//! OW005: a name that names nothing.

use super::WRITES;
use crate::admission::{FieldPath, Finding, Level, Operation, Request};
use crate::catalog::View;
use crate::landscaper::kinds::{self, CONTEXTS, INSTALLATIONS, OVERWRITES};
use crate::landscaper::{context, installation};
use crate::rule::{Example, Match, Outage, Page, Rule};

static SCOPE: [Match; 2] =
    [kinds::matches(&CONTEXTS, WRITES, Outage::Admit), kinds::matches(&INSTALLATIONS, WRITES, Outage::Admit)];

/// The row of OW005.
pub(super) static RULE: Rule = Rule {
    id: "OW005",
    name: "dangling-name",
    level: Level::Warn,
    summary: "a Context that names overwrites that do not exist, or an Installation whose Context does not exist",
    scope: &SCOPE,
    looks_up: &[&CONTEXTS, &OVERWRITES],
    confirm: None,
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

fn check(request: &Request<'_>, view: &View<'_>) -> Vec<Finding> {
    let found = if kinds::is(&CONTEXTS, request) { of_context(request, view) } else { of_installation(request, view) };
    found.into_iter().collect()
}

fn of_context(request: &Request<'_>, view: &View<'_>) -> Option<Finding> {
    let name = context::overwrites_name(request.object())?;
    if view.find(&OVERWRITES, &request.namespace, name).is_some() || !view.is_complete(&OVERWRITES) {
        return None;
    }
    let message = format!("ComponentVersionOverwrites {name:?} does not exist in namespace {}", request.namespace);
    let finding = RULE.finding(FieldPath::of(["componentVersionOverwrites"]), message).found(name);
    Some(finding.help("apply it, or every Installation in this Context fails"))
}

fn of_installation(request: &Request<'_>, view: &View<'_>) -> Option<Finding> {
    let name = installation::context_name(request.object());
    if view.find(&CONTEXTS, &request.namespace, name).is_some() || !view.is_complete(&CONTEXTS) {
        return None;
    }
    let message = format!("Context {name:?} does not exist in namespace {}", request.namespace);
    let help = match name {
        context::DEFAULT => "Landscaper makes it by itself unless it is told not to",
        _ => "apply it, or the Installation fails",
    };
    Some(RULE.finding(FieldPath::of(["spec", "context"]), message).found(name).help(help))
}
