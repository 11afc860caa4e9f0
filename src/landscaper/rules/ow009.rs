//! OW009: an entry that matches nothing in any tree.

use std::collections::BTreeSet;

use super::WRITES;
use crate::admission::{FieldPath, Finding, Level, Operation, Request};
use crate::catalog::View;
use crate::landscaper::components::users;
use crate::landscaper::installation;
use crate::landscaper::kinds::{self, CONTEXTS, INSTALLATIONS, OVERWRITES};
use crate::landscaper::overwrites::note::Note;
use crate::landscaper::substitution::Entries;
use crate::rule::{Example, Match, Outage, Page, Rule};

static SCOPE: [Match; 1] = [kinds::matches(&OVERWRITES, WRITES, Outage::Admit)];

/// A Context, and an Installation with a tree annotation that says that the first entry matches.
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
/// The definition of rule OW009.
pub(super) static RULE: Rule = Rule {
    id: "OW009",
    name: "matches-no-component",
    level: Level::Audit,
    summary: "an entry that matches no component in the tree of any Installation that uses these overwrites",
    scope: &SCOPE,
    looks_up: &[&CONTEXTS, &INSTALLATIONS],
    confirm: None,
    check,
    page: Page {
        why: "Overwrites often stay longer than they are needed. An entry that matches nothing misleads readers of \
              the list, and takes effect unexpectedly when a component with that name comes back. The finding is \
              recorded but not shown to the user, because you can write an entry before the Installation that needs \
              it. `portcullis audit` and the policy reports show it. The rule reports an entry only if the \
              controller manager (`portcullis reconcile --overwrite-trees`) has followed the complete tree of every \
              Installation that uses the overwrites, with exactly these entries.",
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
        mend: "Remove the entry, or correct the name, version or repository context of its source.",
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
        // The entry might match an unknown part of this tree.
        let Some(note) = note.filter(|note| note.complete && note.is_about(&entries, &original)) else {
            return Vec::new();
        };
        matched.extend(note.matched);
    }
    let field = FieldPath::of(["overwrites"]);
    let unmatched = (0..entries.len()).filter(|at| !matched.contains(at) && !entries.has_problem(*at));
    unmatched.map(|at| finding(field.index(at), users.installations.len())).collect()
}

fn finding(field: FieldPath, count: usize) -> Finding {
    let among =
        if count == 1 { "the only Installation".to_owned() } else { format!("any of the {count} Installations") };
    let message = format!("matches no component in the tree of {among} that use these overwrites");
    RULE.finding(field.key("source"), message).help("remove the entry, or correct its source")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::landscaper::component_reference::ComponentReference;
    use crate::landscaper::overwrites::note::fingerprint;
    use crate::landscaper::substitution::read_entries;
    use crate::yaml;

    /// Keeps the fingerprints in the examples current; another test runs the examples.
    #[test]
    fn examples_contain_the_fingerprints_of_their_entries() {
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
