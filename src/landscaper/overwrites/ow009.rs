//! OW009: an entry that matches nothing in any tree.

use std::collections::BTreeSet;

use super::WRITES;
use super::substitution::Entries;
use crate::admission::{FieldPath, Finding, Level, Operation, Request};
use crate::catalog::View;
use crate::landscaper::components::note::Note;
use crate::landscaper::components::users;
use crate::landscaper::installation;
use crate::landscaper::kinds::{self, CONTEXTS, INSTALLATIONS, OVERWRITES};
use crate::rule::{Example, Match, Outage, Page, Rule};

static SCOPE: [Match; 1] = [kinds::matches(&OVERWRITES, WRITES, Outage::Admit)];

/// A Context and an Installation whose note says that the first of some entries matches.
macro_rules! stored {
    ($from:literal) => {
        concat!(
            "\
apiVersion: landscaper.gardener.cloud/v1alpha1
kind: Context
metadata:
  name: default
  namespace: my-namespace
componentVersionOverwrites: my-overwrites
---
apiVersion: landscaper.gardener.cloud/v1alpha1
kind: Installation
metadata:
  name: server
  namespace: my-namespace
  annotations:
    portcullis.dev/overwrite-tree: '{\"from\": \"",
            $from,
            "\", \"complete\": true, \"matched\": [0]}'
spec:
  componentDescriptor:
    ref:
      componentName: example.org/server
      version: v1.0.0
"
        )
    };
}
/// The row of OW009.
pub(super) static RULE: Rule = Rule {
    id: "OW009",
    name: "matches-no-component",
    level: Level::Audit,
    summary: "an entry of overwrites that matches no component in the tree of any Installation that uses them",
    scope: &SCOPE,
    looks_up: &[&CONTEXTS, &INSTALLATIONS],
    confirm: None,
    check,
    page: Page {
        why: "Overwrites outlive what they were written for. An entry that matches nothing any more misleads whoever \
              reads the list, and takes effect by surprise when a component of that name comes back. It is recorded, \
              not shown: an entry may well be written before the Installation that it is for. `portcullis audit` shows it, and \
              the policy reports have it. The rule speaks only where \
              the companion (`portcullis reconcile --overwrite-trees`) has followed the tree of every Installation \
              that uses the overwrites, to its leaves, with these very entries.",
        wrong: Example {
            stored: stored!("2c5ef597112956f2"),
            operation: Operation::Create,
            object: "\
apiVersion: landscaper.gardener.cloud/v1alpha1
kind: ComponentVersionOverwrites
metadata:
  name: my-overwrites
  namespace: my-namespace
overwrites:
  - source:
      componentName: example.org/database
    substitution:
      version: v2.0.0
  - source:
      componentName: example.org/left-long-ago
    substitution:
      version: v2.0.0
",
        },
        right: Example {
            stored: stored!("53718fc81b16ebae"),
            operation: Operation::Create,
            object: "\
apiVersion: landscaper.gardener.cloud/v1alpha1
kind: ComponentVersionOverwrites
metadata:
  name: my-overwrites
  namespace: my-namespace
overwrites:
  - source:
      componentName: example.org/database
    substitution:
      version: v2.0.0
",
        },
        mend: "Take the entry out, or correct the name, version or repository context of its source.",
    },
};

fn check(request: &Request<'_>, view: &View<'_>) -> Vec<Finding> {
    let entries = Entries::of(request);
    let users = users::of_overwrites(&request.namespace, &request.display_name(), view);
    if users.is_cut || users.installations.is_empty() {
        return Vec::new();
    }
    let mut matched = BTreeSet::new();
    for user in &users.installations {
        let read = installation::component_reference(user.installation.value(), &mut Vec::new());
        let Some((_, reference)) = read else { continue };
        let original = reference.or_repository_context(user.context.repository_context.as_ref());
        let note = user.installation.view(Note::read);
        // What is not known of one tree might be what the entry is for.
        let Some(note) = note.filter(|note| note.complete && note.is_about(&entries, &original)) else {
            return Vec::new();
        };
        matched.extend(note.matched);
    }
    let field = FieldPath::of(["overwrites"]);
    let idle = (0..entries.len()).filter(|at| !matched.contains(at) && !entries.is_damaged(*at));
    idle.map(|at| finding(field.index(at), users.installations.len())).collect()
}

fn finding(field: FieldPath, count: usize) -> Finding {
    let among =
        if count == 1 { "the one Installation".to_owned() } else { format!("any of the {count} Installations") };
    let message = format!("matches no component in the tree of {among} that it is for");
    RULE.finding(field.key("source"), message).help("take it out, or correct its source")
}

#[cfg(test)]
mod tests {
    use super::super::substitution::read_entries;
    use super::*;
    use crate::landscaper::component_reference::ComponentReference;
    use crate::landscaper::components::note::fingerprint;
    use crate::yaml;

    /// What is in the notes of the page is run by the test of all pages.
    #[test]
    fn the_notes_of_the_page_are_about_its_entries() {
        for example in [&RULE.page.wrong, &RULE.page.right] {
            let document = yaml::read(example.object, &yaml::Limits::default()).unwrap().remove(0);
            let entries = read_entries(&document.value, &mut Vec::new());
            let original = ComponentReference {
                component_name: "example.org/server".to_owned(),
                version: "v1.0.0".to_owned(),
                repository_context: None,
            };
            let from = fingerprint(&entries, &original);
            assert!(example.stored.contains(&from), "{from}");
        }
    }
}
