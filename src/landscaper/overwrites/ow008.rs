//! OW008: an overwritten reference whose target does not exist.

use std::collections::BTreeMap;

use super::WRITES;
use super::effect::{self, Setting};
use super::substitution::{Entries, Entry};
use crate::admission::{FieldPath, Finding, Level, Operation, Request};
use crate::catalog::View;
use crate::landscaper::component_reference::{Attribute, ComponentReference};
use crate::landscaper::components::note::{Missing, Note};
use crate::landscaper::components::users;
use crate::landscaper::installation;
use crate::landscaper::kinds::{self, CONTEXTS, INSTALLATIONS, OVERWRITES};
use crate::rule::{Example, Match, Outage, Page, Rule};

static SCOPE: [Match; 2] = [
    kinds::matches(&OVERWRITES, WRITES, Outage::Admit),
    kinds::matches(&INSTALLATIONS, WRITES, Outage::Admit).reading(installation::REFERENCE),
];

/// The row of OW008.
pub(super) static RULE: Rule = Rule {
    id: "OW008",
    name: "target-does-not-exist",
    level: Level::Warn,
    summary: "overwrites that lead to a component version that its repository does not have",
    scope: &SCOPE,
    looks_up: &[&CONTEXTS, &INSTALLATIONS, &OVERWRITES],
    confirm: None,
    check,
    page: Page {
        why: "Landscaper stops at the first component of a tree that it does not find, and the Installation fails. The \
              companion (`portcullis reconcile --overwrite-trees`) follows the trees, and notes on each Installation \
              which overwritten references lead nowhere, and which versions are near. The rule knows what is noted: \
              nothing is asked of a registry while an object is admitted.",
        wrong: Example {
            stored: "\
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
    portcullis.dev/overwrite-tree: |
      {\"missing\": [{\"way\": \"database\", \"nearest\": [\"v2.0.0\"], \"entries\": [0],
        \"target\": {\"componentName\": \"example.org/database\", \"version\": \"v2.0.1\"}}]}
spec:
  componentDescriptor:
    ref:
      componentName: example.org/server
      version: v1.0.0
",
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
      version: v2.0.1
",
        },
        right: Example {
            stored: "\
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
    portcullis.dev/overwrite-tree: |
      {\"missing\": [{\"way\": \"database\", \"nearest\": [\"v2.0.0\"], \"entries\": [0],
        \"target\": {\"componentName\": \"example.org/database\", \"version\": \"v2.0.1\"}}]}
spec:
  componentDescriptor:
    ref:
      componentName: example.org/server
      version: v1.0.0
",
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
        mend: "Name a version that exists, or publish the one that is named into the repository that the tree is read \
               from: that of the root as it is overwritten. `portcullis explain overwrites --tree` shows the way.",
    },
};

fn check(request: &Request<'_>, view: &View<'_>) -> Vec<Finding> {
    if kinds::is(&OVERWRITES, request) { of_overwrites(request, view) } else { of_installation(request, view) }
}

fn of_installation(request: &Request<'_>, view: &View<'_>) -> Vec<Finding> {
    let Some(note) = Note::read(request.object()).filter(|note| !note.missing.is_empty()) else { return Vec::new() };
    let Setting::Overwritten(effect) = effect::of(request.object(), &request.namespace, view) else {
        return Vec::new();
    };
    if !note.is_about(&effect.overwrites.entries, &effect.substitution.original) {
        return Vec::new();
    }
    let field = FieldPath::of(["spec", "componentDescriptor"]);
    note.missing.iter().map(|missing| finding(field.clone(), missing)).collect()
}

/// The entries that lead to what is noted as missing on any Installation that they are for.
fn of_overwrites(request: &Request<'_>, view: &View<'_>) -> Vec<Finding> {
    let entries = Entries::of(request);
    let mut found: BTreeMap<usize, Missing> = BTreeMap::new();
    let users = users::of_overwrites(&request.namespace, &request.display_name(), view);
    for note in users.installations.iter().filter_map(|user| user.installation.view(Note::read)) {
        for missing in note.missing {
            let target = ComponentReference::of(&missing.target, &mut Vec::new());
            let leads = entries.iter().position(|entry| leads_to(entry, &target));
            if let Some(at) = leads.filter(|at| !entries.is_damaged(*at)) {
                found.entry(at).or_insert(missing);
            }
        }
    }
    let field = FieldPath::of(["overwrites"]);
    found.iter().map(|(at, missing)| finding(field.index(*at).key("substitution"), missing)).collect()
}

/// Whether an entry, where it is applied, gives this reference: name and version are what it sets, or wants.
fn leads_to(entry: &Entry, target: &ComponentReference) -> bool {
    let sets = entry.substitution.specified().next().is_some();
    sets && Attribute::ALL.into_iter().all(|part| {
        let said = [&entry.substitution, &entry.source].into_iter().find(|reference| reference.specifies(part));
        match said {
            Some(reference) => reference.agrees(target, part),
            // From where is mostly not said; which version of what is.
            None => part == Attribute::RepositoryContext,
        }
    })
}

fn finding(field: FieldPath, missing: &Missing) -> Finding {
    let target = ComponentReference::of(&missing.target, &mut Vec::new());
    let (name, version) = (&target.component_name, &target.version);
    let from = target.repository_context.as_ref().map(|context| format!(" in {}", context.brief()));
    let message = format!(
        "{name} {version} did not exist{} when it was last looked for ({}): Landscaper stops there",
        from.unwrap_or_default(),
        missing.way
    );
    let help = match missing.nearest.as_slice() {
        [] => "publish it there, or name a version that exists".to_owned(),
        nearest => format!("these versions exist: {}", nearest.join(", ")),
    };
    RULE.finding(field, message).found(version.clone()).help(help)
}
