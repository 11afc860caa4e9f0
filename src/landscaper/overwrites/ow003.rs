//! OW003: a substitution without effect.

use super::WRITES;
use super::substitution::{Entries, Entry};
use crate::admission::{FieldPath, Finding, Level, Operation, Request};
use crate::catalog::View;
use crate::landscaper::kinds::{self, OVERWRITES};
use crate::rule::{Example, Match, Outage, Page, Rule};

static SCOPE: [Match; 1] = [kinds::matches(&OVERWRITES, WRITES, Outage::Admit)];

/// The row of OW003.
pub(super) static RULE: Rule = Rule {
    id: "OW003",
    name: "substitution-without-effect",
    level: Level::Warn,
    summary: "a substitution that sets nothing, or sets what its source fixes already",
    scope: &SCOPE,
    looks_up: &[],
    confirm: None,
    check,
    page: Page {
        why: "An entry whose substitution sets nothing matches and does nothing; Landscaper's condition then says \
              FoundOverwrite all the same. An attribute that the substitution sets to the value that the source asks \
              for stays what it is, but counts as taken: later entries can no longer set it.",
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
        mend: "Leave out of the substitution what is to stay as it is; take out an entry that sets nothing.",
    },
};

fn check(request: &Request<'_>, _: &View<'_>) -> Vec<Finding> {
    let list = FieldPath::of(["overwrites"]);
    let entries = Entries::of(request);
    let whole = entries.iter().enumerate().filter(|(at, _)| !entries.is_damaged(*at));
    whole.flat_map(|(at, entry)| of_entry(entry, &list.index(at))).collect()
}

fn of_entry(entry: &Entry, field: &FieldPath) -> Vec<Finding> {
    let substitution = field.key("substitution");
    if entry.substitution.specified().next().is_none() {
        let message = "sets nothing: what the entry matches stays as it is";
        return vec![RULE.finding(substitution, message).help("set what is to change, or take the entry out")];
    }
    let fixed =
        |attribute: &_| entry.source.specifies(*attribute) && entry.source.agrees(&entry.substitution, *attribute);
    let told = entry.substitution.specified().filter(fixed).map(|attribute| {
        let message = "sets what the source asks for: it changes nothing, and keeps later entries from setting it";
        RULE.finding(substitution.key(attribute.as_str()), message)
            .found(entry.substitution.brief(attribute))
            .help("leave it out")
    });
    told.collect()
}
