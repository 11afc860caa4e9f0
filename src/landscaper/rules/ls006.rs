//! LS006: an invalid cron schedule.

use super::WRITES;
use crate::admission::{FieldPath, Finding, Level, Operation, Request};
use crate::catalog::View;
use crate::landscaper::cron;
use crate::landscaper::kinds::{self, INSTALLATIONS};
use crate::landscaper::validation::{Findings, member, text};
use crate::rule::{Example, Match, Outage, Page, Rule};

static SCOPE: [Match; 1] = [kinds::matches(&INSTALLATIONS, WRITES, Outage::Admit)];

/// The definition of rule LS006.
pub(super) static RULE: Rule = Rule {
    id: "LS006",
    name: "landscaper-schedule",
    level: Level::Off,
    summary: "a cronSpec of an Installation that is not a valid schedule",
    scope: &SCOPE,
    looks_up: &[],
    confirm: None,
    check,
    page: Page {
        why: "With `spec.automaticReconcile` Landscaper reconciles an Installation on a schedule: five fields, or a \
              descriptor such as `@daily`. With an invalid schedule, Landscaper would never reconcile. Of a time \
              zone, the rule checks only the area. Landscaper's own webhook server rejects the same objects. The \
              rule is off by default; turn it on if Portcullis replaces that server.",
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
  automaticReconcile:
    succeededReconcile:
      cronSpec: \"0 0 * *\"
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
  automaticReconcile:
    succeededReconcile:
      cronSpec: \"0 0 * * *\"
",
        },
        mend: "Write minute, hour, day of the month, month and day of the week (0 to 6), or `@daily`, `@every 1h`.",
    },
};

fn check(request: &Request<'_>, _: &View<'_>) -> Vec<Finding> {
    let mut findings = Findings::new(&RULE, request);
    let automatic = member(findings.spec(), "automaticReconcile");
    for when in ["succeededReconcile", "failedReconcile"] {
        let schedule = text(member(automatic, when), "cronSpec");
        let problem = if schedule.is_empty() { None } else { cron::problem(schedule) };
        if let Some(problem) = problem {
            let field = FieldPath::of(["spec", "automaticReconcile", when, "cronSpec"]);
            let help = "write five fields, such as \"0 6 * * 1-5\", or @daily, or @every 1h";
            findings.add(field, format!("{schedule:?} is not a schedule: {problem}"), help);
        }
    }
    findings.into_found()
}
