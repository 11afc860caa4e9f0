//! The Composition that a composite uses, and its revision.
//!
//! Crossplane sets `compositionRef` only once. It uses the first of these that exists:
//!
//! 1. `enforcedCompositionRef` of the definition
//! 2. `compositionRef` of the composite itself
//! 3. a Composition that matches the composite's `compositionSelector`
//! 4. `defaultCompositionRef` of the definition, if the composite has no `compositionSelector`
//! 5. a random Composition for the type of the composite
//!
//! Then Crossplane selects a CompositionRevision. With the update policy Manual, this is the revision in
//! `compositionRevisionRef`. Otherwise it is the newest revision that matches `compositionRevisionSelector`.
//!
//! Source: `internal/controller/apiextensions/composite/api.go` in Crossplane 1.17 and 2.3.

use std::sync::Arc;

use serde_json::{Map, Value};

use crate::admission::Metadata;
use crate::catalog::{Reference, Stored, View};
use crate::crossplane::composite_references::{composition_name, crossplane_fields};
use crate::crossplane::kinds::{
    self, BY_COMPOSITE_TYPE, BY_REVISED, COMPOSITION_LABEL, COMPOSITIONS, DEFINITIONS, REVISIONS,
};

/// Maximum number of Compositions that Portcullis compares with a composite's selector. If the type of the composite
/// has more Compositions, Portcullis does not predict which one Crossplane selects.
const MAX_CANDIDATES: usize = 100;
/// Maximum number of revisions of one Composition that are compared to find the newest. Crossplane keeps all revisions,
/// but there are few, because each revision is a change by a person.
const MAX_REVISIONS: usize = 1000;

/// The Composition that a composite uses, as far as it can be predicted.
#[derive(Debug)]
pub enum Choice {
    /// Crossplane uses this Composition or revision.
    One(Chosen),
    /// Crossplane looks for a Composition with this name, but no such Composition exists.
    Missing(String),
    /// Crossplane looks for a CompositionRevision with this name, but no such revision exists.
    MissingRevision(String),
    /// Crossplane looks for a revision of the Composition with this name, but no revision has the labels that the
    /// composite requires.
    NoRevision(String),
    /// Portcullis cannot predict the Composition, because several Compositions are possible, or none. Contains the
    /// names of the possible Compositions. If there are several, Crossplane selects one of them.
    Open(Vec<String>),
}

/// A Composition or one of its revisions.
#[derive(Debug, Clone)]
pub struct Chosen {
    /// The name of the Composition. For a CompositionRevision, this is the name of the Composition to which it belongs.
    pub name: String,
    /// The stored object whose `spec` is used: the current Composition, or a CompositionRevision.
    pub text: Arc<Stored>,
    /// Whether the stored object is a CompositionRevision, and not a Composition.
    pub is_revision: bool,
}

impl Chosen {
    /// Creates a `Chosen` from the current state of a Composition. Crossplane copies this state into the newest
    /// CompositionRevision.
    pub fn current(composition: Arc<Stored>) -> Self {
        Self { name: composition.name().to_owned(), text: composition, is_revision: false }
    }

    /// Creates a `Chosen` from a CompositionRevision.
    pub fn revision(revision: Arc<Stored>) -> Self {
        let name = kinds::revised(revision.value()).unwrap_or_default().to_owned();
        Self { name, text: revision, is_revision: true }
    }

    /// Returns the Composition or CompositionRevision as JSON.
    pub fn value(&self) -> &Value {
        self.text.value()
    }

    /// Returns a reference to the Composition or CompositionRevision.
    pub fn reference(&self) -> Reference {
        let kind = if self.is_revision { &REVISIONS } else { &COMPOSITIONS };
        Reference::new(kind, "", self.text.name())
    }

    /// Returns the kind and the name for messages, such as `Composition "example"`.
    pub fn shown(&self) -> String {
        format!("{} {:?}", self.reference().kind.kind, self.text.name())
    }
}

/// Predicts the Composition or revision that a composite uses. `group` and `plural` name the kind of the composite.
pub fn choose(composite: &Value, group: &str, plural: &str, view: &View<'_>) -> Choice {
    let definition = view.find(&DEFINITIONS, "", &format!("{plural}.{group}"));
    let choosing = Choosing { composite, definition, view };
    let revision = choosing.inner("compositionRevisionRef").and_then(|reference| reference.get("name")?.as_str());
    if let Some(name) = revision.filter(|name| !name.is_empty() && choosing.policy() == "Manual") {
        let found = view.find(&REVISIONS, "", name).map(Chosen::revision);
        return found.map_or_else(|| Choice::MissingRevision(name.to_owned()), Choice::One);
    }
    match choosing.composition() {
        Choice::One(current) => choosing.revision_of(current),
        other => other,
    }
}

struct Choosing<'c> {
    composite: &'c Value,
    definition: Option<Arc<Stored>>,
    view: &'c View<'c>,
}

impl Choosing<'_> {
    /// Returns the field `key`, one of the fields that Crossplane adds to composites, such as `compositionSelector`.
    /// Since Crossplane 2, these fields are in `spec.crossplane`. If the composite has no `spec.crossplane`, reads the
    /// field from `spec`. `None` if the field is missing.
    fn inner(&self, key: &str) -> Option<&Value> {
        crossplane_fields(self.composite)?.get(key)
    }

    fn of_definition(&self, key: &str) -> Option<&Value> {
        self.definition.as_ref()?.value().get("spec")?.get(key)
    }

    /// Returns the update policy of the composite, `Automatic` or `Manual`. If the composite has none, returns the
    /// default from its CompositeResourceDefinition. If there is no default either, returns `Automatic`.
    fn policy(&self) -> &str {
        let default = || self.of_definition("defaultCompositionUpdatePolicy");
        self.inner("compositionUpdatePolicy").or_else(default).and_then(Value::as_str).unwrap_or("Automatic")
    }

    fn composition(&self) -> Choice {
        let named = |key: &str| {
            let name = self.of_definition(key)?.get("name")?.as_str()?;
            Some(name.to_owned()).filter(|name| !name.is_empty())
        };
        let selector = labels(self.inner("compositionSelector"));
        let own = || composition_name(self.composite).map(str::to_owned);
        let default = || named("defaultCompositionRef").filter(|_| selector.is_none());
        if let Some(name) = named("enforcedCompositionRef").or_else(own).or_else(default) {
            let found = self.view.find(&COMPOSITIONS, "", &name).map(Chosen::current);
            return found.map_or(Choice::Missing(name), Choice::One);
        }
        let mut found = of_type(self.composite, self.view);
        if let Some(labels) = selector.filter(|_| found.len() <= MAX_CANDIDATES) {
            found.retain(|composition| has_labels(composition.value(), labels));
        }
        match found.as_slice() {
            [one] => Choice::One(Chosen::current(one.clone())),
            several => Choice::Open(several.iter().map(|one| one.name().to_owned()).collect()),
        }
    }

    /// Returns the newest revision of the Composition `current` that matches the revision selector of the composite.
    /// Returns [`Choice::NoRevision`] if no revision matches.
    ///
    /// Returns `current` itself in these cases:
    ///
    /// - The composite and its definition have no revision selector.
    /// - The update policy is not `Automatic`.
    /// - The labels of `current` match the selector. Crossplane copies these labels to the next revision, which may not
    ///   exist yet. So the next revision will match too.
    fn revision_of(&self, current: Chosen) -> Choice {
        let default = || self.of_definition("defaultCompositionRevisionSelector");
        let selector = labels(self.inner("compositionRevisionSelector").or_else(default));
        let Some(selector) = selector.filter(|_| self.policy() == "Automatic") else { return Choice::One(current) };
        let own = |(key, value): (&String, &Value)| {
            let is_name = key == COMPOSITION_LABEL && *value == current.name;
            is_name || label(current.value(), key) == Some(value)
        };
        if selector.iter().all(own) {
            return Choice::One(current);
        }
        let mut revisions = self.view.indexed(&REVISIONS, &BY_REVISED, "", &current.name, MAX_REVISIONS);
        revisions.retain(|one| is_of(one.value(), current.value()) && has_labels(one.value(), selector));
        let number = |one: &Arc<Stored>| one.value().pointer("/spec/revision").and_then(Value::as_i64);
        match revisions.into_iter().max_by_key(number) {
            Some(revision) => Choice::One(Chosen::revision(revision)),
            None => Choice::NoRevision(current.name),
        }
    }
}

/// Returns whether a CompositionRevision belongs to this Composition. A revision of a deleted Composition with the same
/// name does not belong to it. If the Composition has no uid or the revision has no owner, returns true.
fn is_of(revision: &Value, composition: &Value) -> bool {
    let revision = Metadata::of(revision);
    let Some(uid) = Metadata::of(composition).uid() else { return true };
    revision.owner_references().next().is_none() || revision.is_owned_by(uid)
}

fn labels(selector: Option<&Value>) -> Option<&Map<String, Value>> {
    selector?.get("matchLabels")?.as_object()
}

fn label<'v>(object: &'v Value, key: &str) -> Option<&'v Value> {
    Metadata::of(object).labels()?.get(key)
}

fn has_labels(object: &Value, labels: &Map<String, Value>) -> bool {
    labels.iter().all(|(key, value)| label(object, key) == Some(value))
}

/// Returns the Compositions for the type of the composite, sorted by name. Returns at most [`MAX_CANDIDATES`] + 1 of
/// them, so that the caller can detect that there are too many.
fn of_type(composite: &Value, view: &View<'_>) -> Vec<Arc<Stored>> {
    let text = |key| composite.get(key).and_then(Value::as_str).unwrap_or_default();
    let key = kinds::type_key(text("apiVersion"), text("kind"));
    view.indexed(&COMPOSITIONS, &BY_COMPOSITE_TYPE, "", &key, MAX_CANDIDATES + 1)
}
