//! LS011: an export of a DeployItem without a required field.

use super::WRITES;
use crate::admission::{FieldPath, Finding, Level, Operation, Request};
use crate::catalog::View;
use crate::landscaper::decode::Problem;
use crate::landscaper::kinds::{self, DEPLOY_ITEMS};
use crate::landscaper::validation::schema;
use crate::landscaper::validation::{Findings, list, member};
use crate::rule::{Example, Match, Outage, Page, Rule};

static SCOPE: [Match; 1] = [kinds::matches(&DEPLOY_ITEMS, WRITES, Outage::Admit)];

/// The definition of rule LS011.
pub(super) static RULE: Rule = Rule {
    id: "LS011",
    name: "landscaper-export-of-an-item",
    level: Level::Off,
    summary: "an export of a DeployItem without key, jsonPath, or the names of the object that it reads",
    scope: &SCOPE,
    looks_up: &[],
    confirm: None,
    check,
    page: Page {
        why: "An export needs a key, a path, and apiVersion, kind and name of the object that it reads. Landscaper \
              has this check but never calls it, so such an export fails after ten minutes. DR008 checks more, and \
              is on by default. Turn this rule on if you want exactly Landscaper's check.",
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
  config:
    exports:
      exports:
        - key: token
          fromResource: {apiVersion: v1, kind: Secret, name: token, namespace: app}
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
  config:
    exports:
      exports:
        - key: token
          jsonPath: .data.token
          fromResource: {apiVersion: v1, kind: Secret, name: token, namespace: app}
",
        },
        mend: "Write the missing field.",
    },
};

fn check(request: &Request<'_>, _: &View<'_>) -> Vec<Finding> {
    let mut findings = Findings::new(&RULE, request);
    let exports = member(member(findings.spec(), "config"), "exports");
    for (field, export) in list(exports, "exports", &FieldPath::of(["spec", "config", "exports"])) {
        let mut problems = Vec::new();
        schema::EXPORT.problems(export, &field, &mut problems);
        for Problem { field, is, found, wanted } in problems {
            findings.add(field, format!("{found} is {is}, but Landscaper expects {wanted}"), format!("write {wanted}"));
        }
        for (part, keys) in PARTS {
            let (object, place) = match part {
                "" => (export, field.clone()),
                part => (member(export, part), field.key(part)),
            };
            if object.is_object() {
                keys.iter().for_each(|key| findings.require(object, &place, key));
            }
        }
    }
    findings.into_found()
}

/// The objects of an export, the export itself first, with their required fields.
const PARTS: [(&str, &[&str]); 3] = [
    ("", &["key", "jsonPath"]),
    ("fromResource", &["apiVersion", "kind", "name"]),
    ("fromObjectRef", &["apiVersion", "kind", "jsonPath"]),
];
