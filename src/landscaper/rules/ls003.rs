//! LS003: a blueprint or component descriptor with both, or neither, of `inline` and `ref`.

use super::WRITES;
use crate::admission::{FieldPath, Finding, Level, Operation, Request};
use crate::catalog::View;
use crate::landscaper::kinds::{self, INSTALLATIONS};
use crate::landscaper::validation::{Findings, member};
use crate::rule::{Example, Match, Outage, Page, Rule};

static SCOPE: [Match; 1] = [kinds::matches(&INSTALLATIONS, WRITES, Outage::Admit)];

/// The definition of rule LS003.
pub(super) static RULE: Rule = Rule {
    id: "LS003",
    name: "landscaper-one-definition",
    level: Level::Off,
    summary: "an Installation whose blueprint or component descriptor has both, or neither, of inline and ref",
    scope: &SCOPE,
    looks_up: &[],
    confirm: None,
    check,
    page: Page {
        why: "A blueprint is either inline in the Installation or a reference; the same applies to the optional \
              component descriptor. If both are set, Landscaper cannot know which one to use. Landscaper's own \
              webhook server rejects the same objects. The rule is off by default; turn it on if Portcullis \
              replaces that server.",
        wrong: Example {
            stored: "",
            operation: Operation::Create,
            object: "\
apiVersion: landscaper.gardener.cloud/v1alpha1
kind: Installation
metadata:
  name: test-installation
  namespace: cu-example
spec:
  blueprint:
    ref:
      resourceName: blueprint
    inline:
      filesystem: {blueprint.yaml: x}
",
        },
        right: Example {
            stored: "\
apiVersion: landscaper.gardener.cloud/v1alpha1
kind: Context
metadata:
  name: default
  namespace: cu-example
",
            operation: Operation::Create,
            object: "\
apiVersion: landscaper.gardener.cloud/v1alpha1
kind: Installation
metadata:
  name: test-installation
  namespace: cu-example
spec:
  blueprint:
    ref:
      resourceName: blueprint
",
        },
        mend: "Write either `ref` or `inline`.",
    },
};

fn check(request: &Request<'_>, _: &View<'_>) -> Vec<Finding> {
    let mut findings = Findings::new(&RULE, request);
    let spec = findings.spec();
    findings.exactly_one(member(spec, "blueprint"), &FieldPath::of(["spec", "blueprint"]), &["ref", "inline"]);
    let descriptor = member(spec, "componentDescriptor");
    if !descriptor.is_null() {
        findings.exactly_one(descriptor, &FieldPath::of(["spec", "componentDescriptor"]), &["ref", "inline"]);
    }
    findings.into_found()
}
