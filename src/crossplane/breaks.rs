//! What breaks when an EnvironmentConfig becomes another: every Composition and composite that uses it is judged again,
//! with what is there now and with what is to come, and what is wrong only then is new.

use std::sync::Arc;

use serde_json::{Value, json};

use super::composite::composition::{Choice, choose};
use super::composite::computed::{Computed, writes_composite};
use super::composition;
use super::environment::{Configs, Ending, compute};
use super::kinds::{BY_COMPOSITION, COMPOSITIONS};
use super::users::{MAX_LOOKED_AT, User};
use crate::catalog::{Reference, Stored, View};

/// How many composites are judged again. Each is computed twice, which takes a millisecond where an environment is large
/// (docs/performance.md), and the API server waits for three seconds.
pub const MAX_JUDGED: usize = 100;

/// What becomes of those who use an EnvironmentConfig.
#[derive(Debug, Default)]
pub struct Judgement {
    /// Those who break.
    pub broken: Vec<Broken>,
    /// How many were not judged, beyond [`MAX_JUDGED`].
    pub left_out: usize,
    /// Whether that is all of them: no more than [`MAX_LOOKED_AT`] were looked up.
    pub is_counted: bool,
}

/// Somebody who breaks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Broken {
    /// A composite; or a Composition, where no composite has it yet.
    pub who: Reference,
    /// The Composition.
    pub composition: Reference,
    /// What is wrong then and was not before, the first first.
    pub troubles: Vec<String>,
}

/// Judges those who use an EnvironmentConfig, as it is in `before` and as it is in `after`.
pub fn judge(users: &[User], before: &dyn Configs, after: &dyn Configs, view: &View<'_>) -> Judgement {
    let mut subjects = Vec::new();
    let mut is_counted = users.len() < MAX_LOOKED_AT;
    for User { who, .. } in users {
        is_counted &= add(&mut subjects, who, view);
    }
    let left_out = subjects.len().saturating_sub(MAX_JUDGED);
    subjects.truncate(MAX_JUDGED);
    let broken = subjects.iter().filter_map(|subject| subject.broken(before, after)).collect();
    Judgement { broken, left_out, is_counted }
}

/// A composite with its Composition; or a Composition with a composite that says nothing, where there is none yet.
struct Subject {
    who: Reference,
    composite: Arc<Stored>,
    composition: Arc<Stored>,
}

/// Adds those who are judged for a user; whether that is all of them.
fn add(subjects: &mut Vec<Subject>, user: &Reference, view: &View<'_>) -> bool {
    let Some(stored) = view.find(user.kind, &user.namespace, &user.name) else { return true };
    if !std::ptr::eq(user.kind, &COMPOSITIONS) {
        let choice = choose(stored.value(), user.kind.group, user.kind.plural, view);
        if let Choice::One(composition) = choice {
            push(subjects, Subject { who: user.clone(), composite: stored, composition });
        }
        return true;
    }
    let (before, mut is_all) = (subjects.len(), true);
    for kind in view.declared() {
        let composites = view.indexed_everywhere(kind, &BY_COMPOSITION, &user.name, MAX_LOOKED_AT);
        is_all &= composites.len() < MAX_LOOKED_AT;
        for composite in composites {
            let who = Reference::new(kind, composite.namespace(), composite.name());
            push(subjects, Subject { who, composite, composition: Arc::clone(&stored) });
        }
    }
    if subjects.len() == before {
        let composite = Arc::new(Stored::new(bare(stored.value())));
        push(subjects, Subject { who: user.clone(), composite, composition: stored });
    }
    is_all
}

fn push(subjects: &mut Vec<Subject>, subject: Subject) {
    if !subjects.iter().any(|known| known.who == subject.who) {
        subjects.push(subject);
    }
}

/// A composite of the type that a Composition is for.
fn bare(composition: &Value) -> Value {
    let of =
        |key| composition.pointer("/spec/compositeTypeRef").and_then(|of| of.get(key)).cloned().unwrap_or_default();
    json!({"apiVersion": of("apiVersion"), "kind": of("kind"), "metadata": {}, "spec": {}})
}

/// How somebody fares.
struct Judged {
    /// Whether the environment cannot be computed.
    fails: bool,
    /// What is wrong with it: a source that fails, a patch that fails or finds nothing.
    troubles: Vec<String>,
}

impl Subject {
    fn broken(&self, before: &dyn Configs, after: &dyn Configs) -> Option<Broken> {
        let Judged { mut troubles, .. } = self.judged(after).filter(|judged| !judged.troubles.is_empty())?;
        // What failed before does not break now, whatever it fails at next.
        let known = self.judged(before).filter(|judged| !judged.fails)?;
        troubles.retain(|trouble| !known.troubles.contains(trouble));
        let composition = Reference::new(&COMPOSITIONS, "", self.composition.name());
        (!troubles.is_empty()).then(|| Broken { who: self.who.clone(), composition, troubles })
    }

    fn judged(&self, configs: &dyn Configs) -> Option<Judged> {
        let declaration = composition::declaration(self.composition.value())?;
        let computation = compute(&declaration, self.composite.value(), configs);
        let computed = Computed { composition: Arc::clone(&self.composition), declaration, computation };
        // What comes after a function that nothing is known of cannot be told; what is selected before it can.
        if computed.is_uncertain() {
            let troubles: Vec<_> = computed.sources().filter_map(|(.., source)| source.error.clone()).collect();
            return Some(Judged { fails: !troubles.is_empty(), troubles });
        }
        let unanswered = computed.unanswered(None).into_iter().map(|unanswered| unanswered.to_string());
        // A patch from the environment that fails is among those already, with its place in the Composition.
        let is_told = computed
            .environment_patches()
            .any(|(_, _, patch, outcome)| writes_composite(patch) && matches!(outcome.ending, Ending::Failed(_)));
        let failure = computed.computation.failure.clone().filter(|_| !is_told);
        let fails = computed.computation.failure.is_some();
        Some(Judged { fails, troubles: failure.into_iter().chain(unanswered).collect() })
    }
}
