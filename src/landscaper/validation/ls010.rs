//! LS010: a Target with two configurations.

use super::{Findings, WRITES, member};
use crate::admission::{FieldPath, Finding, Level, Operation, Request};
use crate::catalog::View;
use crate::landscaper::kinds::{self, TARGETS};
use crate::rule::{Example, Match, Outage, Page, Rule};

static SCOPE: [Match; 1] = [kinds::matches(&TARGETS, WRITES, Outage::Admit)];

/// The row of LS010.
pub(super) static RULE: Rule = Rule {
    id: "LS010",
    name: "landscaper-target",
    level: Level::Off,
    summary: "a Target with both config and secretRef",
    scope: &SCOPE,
    looks_up: &[],
    confirm: None,
    check,
    page: Page {
        why: "What a Target holds is written into it, or into a Secret that it names. Landscaper cannot know which \
              of two is meant. Landscaper's own webhook server refuses the same; the rule is off unless it is to \
              stand in for that.",
        wrong: Example {
            stored: "",
            operation: Operation::Create,
            object: "\
apiVersion: landscaper.gardener.cloud/v1alpha1
kind: Target
metadata:
  name: my-target
  namespace: cu-example
spec:
  type: landscaper.gardener.cloud/kubernetes-cluster
  config: {kubeconfig: x}
  secretRef: {name: my-secret}
",
        },
        right: Example {
            stored: "",
            operation: Operation::Create,
            object: "\
apiVersion: landscaper.gardener.cloud/v1alpha1
kind: Target
metadata:
  name: my-target
  namespace: cu-example
spec:
  type: landscaper.gardener.cloud/kubernetes-cluster
  secretRef: {name: my-secret}
",
        },
        mend: "Leave `config` or `secretRef` out; a Secret keeps credentials from those who may only read Targets.",
    },
};

fn check(request: &Request<'_>, _: &View<'_>) -> Vec<Finding> {
    let mut findings = Findings::new(&RULE, request);
    let has = |key: &str| !member(findings.spec(), key).is_null();
    if has("config") && has("secretRef") {
        findings.add(FieldPath::of(["spec"]), "config and secretRef exclude each other", "leave one of them out");
    }
    findings.into_found()
}
