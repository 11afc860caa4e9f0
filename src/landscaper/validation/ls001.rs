//! LS001: an object that Landscaper cannot decode.

use super::schema::{self, Type};
use super::{Findings, WRITES, member, text};
use crate::admission::{FieldPath, Finding, Level, Operation, Request};
use crate::catalog::View;
use crate::landscaper::decode::Problem;
use crate::landscaper::execution;
use crate::landscaper::kinds::{self, DEPLOY_ITEMS, EXECUTIONS, INSTALLATIONS, TARGETS};
use crate::rule::{Example, Match, Outage, Page, Rule};

static SCOPE: [Match; 4] = [
    kinds::matches(&DEPLOY_ITEMS, WRITES, Outage::Admit),
    kinds::matches(&EXECUTIONS, WRITES, Outage::Admit),
    kinds::matches(&INSTALLATIONS, WRITES, Outage::Admit),
    kinds::matches(&TARGETS, WRITES, Outage::Admit),
];

/// The row of LS001.
pub(super) static RULE: Rule = Rule {
    id: "LS001",
    name: "landscaper-undecodable",
    level: Level::Off,
    summary: "an object that Landscaper cannot decode",
    scope: &SCOPE,
    looks_up: &[],
    confirm: None,
    check,
    page: Page {
        why: "Landscaper reads objects into types of its own. Where a value does not fit, such as a version that \
              YAML reads as a number, it cannot read the object at all, and nothing happens to it. The \
              CustomResourceDefinitions catch most of this, but not all, and not in files. Landscaper's own \
              webhook server refuses the same; the rule is off unless it is to stand in for that.",
        wrong: Example {
            stored: "",
            operation: Operation::Create,
            object: "\
apiVersion: landscaper.gardener.cloud/v1alpha1
kind: DeployItem
metadata:
  name: test-item
  namespace: cu-example
spec:
  type: example.org/my-type
  timeout: 5x
",
        },
        right: Example {
            stored: "",
            operation: Operation::Create,
            object: "\
apiVersion: landscaper.gardener.cloud/v1alpha1
kind: DeployItem
metadata:
  name: test-item
  namespace: cu-example
spec:
  type: example.org/my-type
  timeout: 5m
",
        },
        mend: "Write a value of the type that is asked for; quote texts that look like numbers, such as `\"1.0\"`.",
    },
};

fn check(request: &Request<'_>, _: &View<'_>) -> Vec<Finding> {
    let mut findings = Findings::new(&RULE, request);
    let object = request.object();
    let version = format!("{}/{}", kinds::GROUP, kinds::VERSION);
    for (key, wanted) in [("apiVersion", &*version), ("kind", &*request.resource.kind)] {
        let found = text(object, key);
        if !found.is_empty() && found != wanted {
            findings.add(
                FieldPath::of([key]),
                format!("{key} is {found:?}, not {wanted:?}"),
                format!("write {wanted}"),
            );
        }
    }
    // Of something else nothing more can be said.
    if !findings.found.is_empty() {
        return findings.into_found();
    }
    let mut problems = Vec::new();
    let (schema, is_execution) = schema_of(request);
    schema.problems(object, &FieldPath::root(), &mut problems);
    for Problem { field, is, found, wanted } in problems {
        let message = format!("{found} is {is}, and Landscaper reads {wanted}: it cannot decode the object");
        findings.add(field, message, format!("write {wanted}"));
    }
    let spec = member(object, "spec");
    if let Some(Err(unreadable)) = (is_execution && spec.is_object()).then(|| execution::templates(spec)) {
        let message = format!("{unreadable}: Landscaper cannot decode the object");
        findings.add(FieldPath::of(["spec"]), message, "write the templates as a list, at spec.deployItems");
    }
    findings.into_found()
}

fn schema_of(request: &Request<'_>) -> (&'static Type, bool) {
    if kinds::is(&INSTALLATIONS, request) {
        (&schema::INSTALLATION, false)
    } else if kinds::is(&EXECUTIONS, request) {
        (&schema::EXECUTION, true)
    } else if kinds::is(&TARGETS, request) {
        (&schema::TARGET, false)
    } else {
        (&schema::DEPLOY_ITEM, false)
    }
}
