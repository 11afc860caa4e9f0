//! LS007: a DeployItem without a type, or with an incomplete Target.

use super::WRITES;
use crate::admission::{FieldPath, Finding, Level, Operation, Request};
use crate::catalog::View;
use crate::landscaper::kinds::{self, DEPLOY_ITEMS};
use crate::landscaper::validation::{Findings, member};
use crate::rule::{Example, Match, Outage, Page, Rule};

static SCOPE: [Match; 1] = [kinds::matches(&DEPLOY_ITEMS, WRITES, Outage::Admit)];

/// The definition of rule LS007.
pub(super) static RULE: Rule = Rule {
    id: "LS007",
    name: "landscaper-deploy-item",
    level: Level::Off,
    summary: "a DeployItem without type, or whose target has no name or namespace",
    scope: &SCOPE,
    looks_up: &[],
    confirm: None,
    check,
    page: Page {
        why: "The type determines which deployer processes a DeployItem. A Target has a name and a namespace; \
              Landscaper writes both. Rule DP007 checks that the type does not change. Landscaper's own webhook \
              server rejects the same objects. The rule is off by default; turn it on if Portcullis replaces that \
              server.",
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
        mend: "Write `spec.type`, and name and namespace of the Target, or remove `spec.target`.",
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
