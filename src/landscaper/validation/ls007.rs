//! LS007: a DeployItem without a type, or with half a Target.

use super::{Findings, WRITES, member};
use crate::admission::{FieldPath, Finding, Level, Operation, Request};
use crate::catalog::View;
use crate::landscaper::kinds::{self, DEPLOY_ITEMS};
use crate::rule::{Example, Match, Outage, Page, Rule};

static SCOPE: [Match; 1] = [kinds::matches(&DEPLOY_ITEMS, WRITES, Outage::Admit)];

/// The row of LS007.
pub(super) static RULE: Rule = Rule {
    id: "LS007",
    name: "landscaper-deploy-item",
    level: Level::Off,
    summary: "a DeployItem without type, or whose target lacks name or namespace",
    scope: &SCOPE,
    looks_up: &[],
    confirm: None,
    check,
    page: Page {
        why: "A type says which deployer a DeployItem is for; a Target has a name and a namespace, both of which \
              Landscaper writes. That the type stays is the business of DP007. Landscaper's own webhook server \
              refuses the same; the rule is off unless it is to stand in for that.",
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
  target:
    name: my-target
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
  target:
    name: my-target
    namespace: cu-example
",
        },
        mend: "Write `spec.type`, and name and namespace of the Target, or leave `spec.target` out.",
    },
};

fn check(request: &Request<'_>, _: &View<'_>) -> Vec<Finding> {
    let mut findings = Findings::new(&RULE, request);
    let spec = findings.spec();
    findings.require(spec, &FieldPath::of(["spec"]), "type");
    let target = member(spec, "target");
    if !target.is_null() {
        for key in ["name", "namespace"] {
            findings.require(target, &FieldPath::of(["spec", "target"]), key);
        }
    }
    findings.into_found()
}
