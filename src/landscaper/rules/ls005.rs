//! LS005: exports of an Installation that Landscaper rejects.

use std::collections::HashSet;

use super::WRITES;
use crate::admission::{FieldPath, Finding, Level, Operation, Request};
use crate::catalog::View;
use crate::landscaper::kinds::{self, INSTALLATIONS};
use crate::landscaper::validation::{Findings, list, member, text};
use crate::rule::{Example, Match, Outage, Page, Rule};

static SCOPE: [Match; 1] = [kinds::matches(&INSTALLATIONS, WRITES, Outage::Admit)];

/// The definition of rule LS005.
pub(super) static RULE: Rule = Rule {
    id: "LS005",
    name: "landscaper-exports",
    level: Level::Off,
    summary: "an export without a name or a destination, or with a duplicate name",
    scope: &SCOPE,
    looks_up: &[],
    confirm: None,
    check,
    page: Page {
        why: "Every export has a name and a destination. A data export and a Target export can have the same name; \
              two data exports, or two Target exports, cannot. Landscaper's own webhook server rejects the same \
              objects. The rule is off by default; turn it on if Portcullis replaces that server.",
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
  exports:
    data:
      - name: size
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
  exports:
    data:
      - name: size
        dataRef: size
",
        },
        mend: "Write `name` and `dataRef` for data, or `name` and `target` for Targets; use each name once.",
    },
};

fn check(request: &Request<'_>, _: &View<'_>) -> Vec<Finding> {
    let mut findings = Findings::new(&RULE, request);
    let exports = member(findings.spec(), "exports");
    for (sort, destination) in [("data", "dataRef"), ("targets", "target")] {
        let mut seen = HashSet::new();
        for (field, export) in list(exports, sort, &FieldPath::of(["spec", "exports"])) {
            findings.require(export, &field, destination);
            match text(export, "name") {
                "" => findings.require(export, &field, "name"),
                name => findings.unique(name, field, &mut seen),
            }
        }
    }
    findings.into_found()
}
