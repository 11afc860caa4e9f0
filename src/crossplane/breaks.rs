//! What changes for the users of an EnvironmentConfig when it becomes another, or is deleted: each composite's environment
//! is computed with the EnvironmentConfigs as they are and as they will be.

use std::sync::Arc;

use serde_json::{Value, json};

use super::composite::composition::{Choice, Chosen, choose};
use super::composite::computed::{Computed, writes_composite};
use super::composition;
use super::environment::{ActionOutcome, Configs, Ending, compute};
use super::kinds::{BY_COMPOSITION, COMPOSITIONS, REVISIONS};
use super::users::{How, MAX_LOOKED_AT, User};
use crate::catalog::{Kind, Reference, Stored, View};

/// How many composites are judged again. Each is computed twice, which takes a millisecond where an environment is large
/// (docs/performance.md), and the API server waits for three seconds.
pub const MAX_JUDGED: usize = 100;

/// What becomes of the users of an EnvironmentConfig.
#[derive(Debug, Default)]
pub struct Judgement {
    /// Those for whom something changes.
    pub effects: Vec<Effect>,
    /// Compositions and revisions whose pipeline steps require it.
    pub handed: Vec<Reference>,
    /// How many were not judged, beyond [`MAX_JUDGED`].
    pub left_out: usize,
    /// Whether that is all of them: no more than [`MAX_LOOKED_AT`] were looked up.
    pub is_counted: bool,
}

/// What a change does to a composite.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Effect {
    /// The composite; or a Composition or CompositionRevision, where no composite is known.
    pub who: Reference,
    /// The Composition or CompositionRevision.
    pub composition: Reference,
    /// What is wrong then and was not before, the first first.
    pub troubles: Vec<String>,
    /// Whether Crossplane fails then and did not before.
    pub fails: bool,
    /// Whether the EnvironmentConfig was merged before and no longer is.
    pub loses: bool,
    /// Whether a composite with this Composition is known, or nothing is known of its composites.
    pub is_used: bool,
}

/// Computes what changes for the users of the EnvironmentConfig `name` between `before` and `after`.
pub fn judge(users: &[User], name: &str, before: &dyn Configs, after: &dyn Configs, view: &View<'_>) -> Judgement {
    let mut subjects = Subjects { view, found: Vec::new(), is_counted: users.len() < MAX_LOOKED_AT };
    users.iter().for_each(|user| subjects.add(user));
    let Subjects { mut found, is_counted, .. } = subjects;
    let left_out = found.len().saturating_sub(MAX_JUDGED);
    found.truncate(MAX_JUDGED);
    let handed = users.iter().filter(|user| user.how == How::Handed).map(|user| user.who.clone()).collect();
    let effects = found.iter().filter_map(|subject| subject.effect(name, before, after)).collect();
    Judgement { effects, handed, left_out, is_counted }
}

/// A composite with the text of its Composition; or a text with an empty composite, where no composite is known.
struct Subject {
    who: Reference,
    composite: Arc<Stored>,
    composition: Chosen,
    /// How the text uses the EnvironmentConfig whatever its composites are.
    how: How,
    is_used: bool,
}

struct Subjects<'s> {
    view: &'s View<'s>,
    found: Vec<Subject>,
    is_counted: bool,
}

impl Subjects<'_> {
    fn add(&mut self, user: &User) {
        let Some(stored) = self.view.find(user.who.kind, &user.who.namespace, &user.who.name) else { return };
        if std::ptr::eq(user.who.kind, &COMPOSITIONS) {
            self.composites_of(Chosen::current(stored), user);
        } else if std::ptr::eq(user.who.kind, &REVISIONS) {
            self.composites_of(Chosen::revision(stored), user);
        } else if let Choice::One(composition) =
            choose(stored.value(), user.who.kind.group, user.who.kind.plural, self.view)
        {
            self.push(Subject {
                who: user.who.clone(),
                composite: stored,
                composition,
                how: How::Merged,
                is_used: true,
            });
        }
    }

    /// Adds the composites that are made from a text, or an empty one where none is known.
    fn composites_of(&mut self, text: Chosen, user: &User) {
        let (mut is_any, mut is_used) = (false, false);
        for kind in self.view.declared() {
            let composites = self.view.indexed_everywhere(kind, &BY_COMPOSITION, &text.name, MAX_LOOKED_AT);
            self.is_counted &= composites.len() < MAX_LOOKED_AT;
            for composite in composites {
                is_any = true;
                is_used |= self.composite_of(kind, composite, &text);
            }
        }
        let is_known = is_any || self.knows_composites_of(text.value());
        // Old revisions are kept for ever; one that no known composite uses is not in the way.
        if is_used || is_known && text.is_revision || self.is_current_found(&text) {
            return;
        }
        let composite = Arc::new(Stored::new(bare(text.value())));
        let is_used = !is_known && !text.is_revision;
        let who = user.who.clone();
        self.push(Subject { who, composite, composition: text, how: user.how, is_used });
    }

    /// Adds a composite if it is made from a text, and returns whether it is.
    fn composite_of(&mut self, kind: &'static Kind, composite: Arc<Stored>, text: &Chosen) -> bool {
        let choice = choose(composite.value(), kind.group, kind.plural, self.view);
        let Choice::One(composition) = choice else { return false };
        let is_its = composition.reference() == text.reference();
        if is_its {
            let who = Reference::new(kind, composite.namespace(), composite.name());
            self.push(Subject { who, composite, composition, how: How::Merged, is_used: true });
        }
        is_its
    }

    /// Whether the catalog holds all composites of the type that a text is for.
    fn knows_composites_of(&self, text: &Value) -> bool {
        let of = |key| text.pointer("/spec/compositeTypeRef").and_then(|of| of.get(key)?.as_str()).unwrap_or_default();
        let group = of("apiVersion").split_once('/').map_or("", |(group, _)| group);
        let is_it = |kind: &&'static Kind| kind.group == group && kind.kind == of("kind");
        self.view.declared().into_iter().find(is_it).is_some_and(|kind| self.view.is_complete(kind))
    }

    /// Whether the current text of a revision's Composition is among the users already.
    fn is_current_found(&self, text: &Chosen) -> bool {
        text.is_revision && self.found.iter().any(|one| one.composition.name == text.name)
    }

    fn push(&mut self, subject: Subject) {
        if !self.found.iter().any(|known| known.who == subject.who) {
            self.found.push(subject);
        }
    }
}

/// An empty composite of the type that a Composition is for.
fn bare(composition: &Value) -> Value {
    let of =
        |key| composition.pointer("/spec/compositeTypeRef").and_then(|of| of.get(key)).cloned().unwrap_or_default();
    json!({"apiVersion": of("apiVersion"), "kind": of("kind"), "metadata": {}, "spec": {}})
}

/// The environment of a composite, judged.
struct Judged {
    /// Whether the environment cannot be computed.
    fails: bool,
    /// What is wrong with it: a source that fails, a patch that fails or finds nothing.
    troubles: Vec<String>,
    /// The EnvironmentConfigs that were merged.
    merged: Vec<String>,
}

impl Subject {
    /// Returns what changes for it, if anything does.
    fn effect(&self, name: &str, before: &dyn Configs, after: &dyn Configs) -> Option<Effect> {
        let (known, then) = (self.judged(before)?, self.judged(after)?);
        let has = |judged: &Judged| judged.merged.iter().any(|merged| merged == name);
        let mut effect = Effect {
            who: self.who.clone(),
            composition: self.composition.reference(),
            troubles: Vec::new(),
            fails: then.fails && !known.fails,
            loses: has(&known) && !has(&then),
            is_used: self.is_used,
        };
        if known.fails {
            return self.effect_on_failing(effect, name, before, after);
        }
        effect.troubles = then.troubles;
        effect.troubles.retain(|trouble| !known.troubles.contains(trouble));
        (!effect.troubles.is_empty() || effect.loses).then_some(effect)
    }

    /// What failed before does not break now. But an empty composite in place of unknown ones may fail where those do
    /// not; of it counts what the text says of every composite.
    fn effect_on_failing(
        &self,
        mut effect: Effect,
        name: &str,
        before: &dyn Configs,
        after: &dyn Configs,
    ) -> Option<Effect> {
        let is_composite = ![&COMPOSITIONS, &REVISIONS].iter().any(|kind| std::ptr::eq(*kind, self.who.kind));
        let is_deleted = before.find(name).is_some() && after.find(name).is_none();
        if is_composite || !is_deleted {
            return None;
        }
        effect.loses = true;
        effect.fails = self.how == How::Needed;
        Some(effect)
    }

    fn judged(&self, configs: &dyn Configs) -> Option<Judged> {
        let declaration = composition::declaration(self.composition.value())?;
        let computation = compute(&declaration, self.composite.value(), configs);
        let computed = Computed { composition: self.composition.clone(), declaration, computation };
        let merged = merged(&computed, configs);
        // What comes after a function that nothing is known of cannot be told; what is selected before it can.
        if computed.is_uncertain() {
            let troubles: Vec<_> = computed.sources().filter_map(|(.., source)| source.error.clone()).collect();
            return Some(Judged { fails: !troubles.is_empty(), troubles, merged });
        }
        let unanswered = computed.unanswered(None).into_iter().map(|unanswered| unanswered.to_string());
        // A patch from the environment that fails is among those already, with its place in the Composition.
        let is_told = computed
            .environment_patches()
            .any(|(_, _, patch, outcome)| writes_composite(patch) && matches!(outcome.ending, Ending::Failed(_)));
        let failure = computed.computation.failure.clone().filter(|_| !is_told);
        let fails = computed.computation.failure.is_some();
        Some(Judged { fails, troubles: failure.into_iter().chain(unanswered).collect(), merged })
    }
}

/// The names of the EnvironmentConfigs that are merged.
fn merged(computed: &Computed, configs: &dyn Configs) -> Vec<String> {
    let mut names = Vec::new();
    for step in &computed.computation.steps {
        let ActionOutcome::Selected { sources, kept, .. } = &step.action else { continue };
        names.extend(sources.iter().flat_map(|source| &source.selected).map(|stored| stored.name().to_owned()));
        names.extend(kept.iter().flatten().filter(|name| configs.find(name).is_some()).cloned());
    }
    names
}
