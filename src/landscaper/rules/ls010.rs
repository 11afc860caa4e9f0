//! LS010: a Target with two configurations.

use super::WRITES;
use crate::admission::{FieldPath, Finding, Level, Operation, Request};
use crate::catalog::View;
use crate::landscaper::kinds::{self, TARGETS};
use crate::landscaper::validation::{Findings, member};
use crate::rule::{Example, Match, Outage, Page, Rule};

static SCOPE: [Match; 1] = [kinds::matches(&TARGETS, WRITES, Outage::Admit)];

/// The definition of rule LS010.
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
        why: "The configuration of a Target is either inline or in a Secret that it names. If both are set, \
              Landscaper cannot know which one to use. Landscaper's own webhook server rejects the same objects. \
              The rule is off by default; turn it on if Portcullis replaces that server.",
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
        mend: "Remove `config` or `secretRef`. With a Secret, users who can only read Targets cannot read the \
               credentials.",
    },
};

fn check(request: &Request<'_>, _: &View<'_>) -> Vec<Finding> {
    let mut findings = Findings::new(&RULE, request);
    let has = |key: &str| !member(findings.spec(), key).is_null();
    if has("config") && has("secretRef") {
        findings.add(FieldPath::of(["spec"]), "config and secretRef exclude each other", "remove one of them");
    }
    findings.into_found()
}
