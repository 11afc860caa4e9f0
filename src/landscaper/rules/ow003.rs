//! OW003: a substitution without effect.

use super::WRITES;
use crate::admission::{FieldPath, Finding, Level, Operation, Request};
use crate::catalog::View;
use crate::landscaper::kinds::{self, OVERWRITES};
use crate::landscaper::substitution::{Entries, Entry};
use crate::rule::{Example, Match, Outage, Page, Rule};

static SCOPE: [Match; 1] = [kinds::matches(&OVERWRITES, WRITES, Outage::Admit)];

/// The definition of rule OW003.
pub(super) static RULE: Rule = Rule {
    id: "OW003",
    name: "substitution-without-effect",
    level: Level::Warn,
    summary: "a substitution that sets nothing, or sets the value that its source already requires",
    scope: &SCOPE,
    looks_up: &[],
    confirm: None,
    check,
    page: Page {
        why: "An entry whose substitution sets nothing matches references but does not change them; Landscaper's \
              condition still reports FoundOverwrite. If the substitution sets an attribute to the value that the \
              source requires, the attribute does not change, but it counts as set: later entries can no longer set \
              it.",
        wrong: Example {
            stored: "",
            operation: Operation::Create,
            object: "\
apiVersion: landscaper.gardener.cloud/v1alpha1
kind: ComponentVersionOverwrites
metadata:
  name: my-overwrites
  namespace: my-namespace
overwrites:
  - source:
      componentName: example.org/echo-server
    substitution:
      componentName: example.org/echo-server
      version: v2.0.0
  - source:
      componentName: example.org/database
    substitution: {}
",
        },
        right: Example {
            stored: "",
            operation: Operation::Create,
            object: "\
apiVersion: landscaper.gardener.cloud/v1alpha1
kind: ComponentVersionOverwrites
metadata:
  name: my-overwrites
  namespace: my-namespace
overwrites:
  - source:
      componentName: example.org/echo-server
    substitution:
      version: v2.0.0
",
        },
        mend: "Remove attributes that should not change from the substitution. Remove entries that set nothing.",
    },
};

fn check(request: &Request<'_>, _: &View<'_>) -> Vec<Finding> {
    let list = FieldPath::of(["overwrites"]);
    let entries = Entries::of(request);
    let decoded = entries.iter().enumerate().filter(|(at, _)| !entries.has_problem(*at));
    decoded.flat_map(|(at, entry)| of_entry(entry, &list.index(at))).collect()
}

fn of_entry(entry: &Entry, field: &FieldPath) -> Vec<Finding> {
    let substitution = field.key("substitution");
    if entry.substitution.specified().next().is_none() {
        let message = "sets nothing: the entry does not change the references that it matches";
        return vec![
            RULE.finding(substitution, message).help("set the attributes that should change, or remove the entry"),
        ];
    }
    let fixed =
        |attribute: &_| entry.source.specifies(*attribute) && entry.source.agrees(&entry.substitution, *attribute);
    let findings = entry.substitution.specified().filter(fixed).map(|attribute| {
        let message =
            "sets the value of the source: it changes nothing, and prevents later entries from setting this attribute";
        RULE.finding(substitution.key(attribute.as_str()), message)
            .found(entry.substitution.brief(attribute))
            .help("remove it")
    });
    findings.collect()
}
