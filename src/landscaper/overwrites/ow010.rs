//! OW010: two versions of one component in a tree, because an entry matches only one reference to it.

use super::WRITES;
use super::effect::{self, Effect, Setting};
use crate::admission::{FieldPath, Finding, Level, Operation, Request};
use crate::catalog::View;
use crate::landscaper::component_reference::ComponentReference;
use crate::landscaper::components::closure::{Closure, Found};
use crate::landscaper::components::inline::Inline;
use crate::landscaper::components::note::Note;
use crate::landscaper::components::split::splits;
use crate::landscaper::installation;
use crate::landscaper::kinds::{self, CONTEXTS, INSTALLATIONS, OVERWRITES};
use crate::rule::{Example, Match, Outage, Page, Rule};

static SCOPE: [Match; 1] = [kinds::matches(&INSTALLATIONS, WRITES, Outage::Admit).reading(installation::REFERENCE)];

/// The row of OW010.
pub(super) static RULE: Rule = Rule {
    id: "OW010",
    name: "different-versions-in-a-tree",
    level: Level::Warn,
    summary: "a tree that holds two versions of a component because an entry matches only one reference to it",
    scope: &SCOPE,
    looks_up: &[&CONTEXTS, &OVERWRITES],
    confirm: None,
    check,
    page: Page {
        why: "An entry with a version in its source matches the references to that version, and not those to another one \
              deeper in the tree. Both versions are then deployed side by side, which is seldom what a test of one of \
              them is after. Of inline component descriptors the rule sees for itself what they refer to; of others it \
              knows what the companion (`portcullis reconcile --overwrite-trees`) has noted on the Installation.",
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
kind: ComponentVersionOverwrites
metadata:
  name: my-overwrites
  namespace: my-namespace
overwrites:
  - source:
      componentName: example.org/log
      version: v1.0.0
    substitution:
      version: v3.0.0
",
            operation: Operation::Create,
            object: INSTALLATION,
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
kind: ComponentVersionOverwrites
metadata:
  name: my-overwrites
  namespace: my-namespace
overwrites:
  - source:
      componentName: example.org/log
    substitution:
      version: v3.0.0
",
            operation: Operation::Create,
            object: INSTALLATION,
        },
        mend: "Leave the version out of the entry's source, so that it matches every reference to the component, or add \
               an entry for the other version.",
    },
};

const INSTALLATION: &str = "\
apiVersion: landscaper.gardener.cloud/v1alpha1
kind: Installation
metadata:
  name: server
  namespace: my-namespace
spec:
  componentDescriptor:
    inline:
      meta:
        schemaVersion: v2
      component:
        name: example.org/server
        version: v1.0.0
        repositoryContexts:
          - type: ociRegistry
            baseUrl: example.org/components
        componentReferences:
          - name: log
            componentName: example.org/log
            version: v1.0.0
          - name: audit-log
            componentName: example.org/log
            version: v2.0.0
";

fn check(request: &Request<'_>, view: &View<'_>) -> Vec<Finding> {
    let note = Note::read(request.object());
    let inline = Inline::of(request.object()).and_then(Result::ok);
    if note.is_none() && inline.is_none() {
        return Vec::new();
    }
    let Setting::Overwritten(effect) = effect::of(request.object(), &request.namespace, view) else {
        return Vec::new();
    };
    let is_about = |note: &Note| note.is_about(&effect.overwrites.entries, &effect.substitution.original);
    let sentences = match (note.filter(is_about), inline) {
        (Some(note), _) => note.splits,
        (None, Some(inline)) => within(&inline, &effect),
        (None, None) => Vec::new(),
    };
    let field = FieldPath::of(["spec", "componentDescriptor"]);
    sentences.into_iter().map(|sentence| finding(&field, sentence, &effect)).collect()
}

/// What an inline descriptor shows of its tree.
fn within(inline: &Inline, effect: &Effect) -> Vec<String> {
    let find = |reference: &ComponentReference| inline.find(reference).map_or(Found::Pending, Found::Descriptor);
    let closure = Closure::of(effect.substitution.original.clone(), &effect.overwrites.entries, &find);
    splits(&closure).iter().map(|split| split.sentence(&closure)).collect()
}

fn finding(field: &FieldPath, sentence: String, effect: &Effect) -> Finding {
    let help = format!("leave the version out of that entry's source in {:?}, or add an entry", effect.overwrites.name);
    RULE.finding(field.clone(), sentence).help(help)
}
