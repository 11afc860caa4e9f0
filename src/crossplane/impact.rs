//! Computes the impact of changing or deleting an EnvironmentConfig on the composites that use it. Computes the
//! environment of each composite twice: with the EnvironmentConfigs before the request, and with those after the
//! request. Then compares the two results.

use std::sync::Arc;

use serde_json::{Value, json};

use super::composite::composition::{Choice, Chosen, choose};
use super::composite::computed::{Computed, writes_composite};
use super::composition;
use super::environment::{ActionOutcome, Configs, Ending, compute};
use super::kinds::{BY_COMPOSITION, COMPOSITIONS, REVISIONS};
use super::users::{MAX_USERS, Usage, User};
use crate::catalog::{Kind, Reference, Stored, View};

/// Maximum number of composites for which the effect of a changed EnvironmentConfig is computed. It is limited because
/// the API server waits for only three seconds. The environment of each composite is computed twice. A large
/// environment takes a millisecond (docs/performance.md).
pub const MAX_ASSESSED: usize = 100;

/// The impact of a request on the objects that use an EnvironmentConfig.
#[derive(Debug, Default)]
pub struct Impact {
    /// The effects of the request on composites, one for each composite that it affects.
    pub effects: Vec<Effect>,
    /// The Compositions and CompositionRevisions with pipeline steps that require the EnvironmentConfig.
    pub passed_to_functions: Vec<Reference>,
    /// Number of composites that were not assessed, because the limit [`MAX_ASSESSED`] was reached.
    pub not_assessed: usize,
    /// Whether all objects that use the EnvironmentConfig were found. The search stops after [`MAX_USERS`] objects.
    pub is_complete: bool,
}

/// The effect of a change or deletion of an EnvironmentConfig on one composite.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Effect {
    /// The affected composite. If no composite of a Composition is known, this is the Composition or
    /// CompositionRevision.
    pub object: Reference,
    /// The Composition or CompositionRevision of the composite.
    pub composition: Reference,
    /// Messages about problems in computing the environment of the composite. Problems that exist even without the
    /// request are omitted. The messages are in the order in which the computation finds the problems.
    pub problems: Vec<String>,
    /// Whether the request causes the computation of the environment to fail. Failures that also occur without the
    /// request do not count.
    pub fails: bool,
    /// Whether the request removes the data of the EnvironmentConfig from the environment of this composite.
    pub loses_data: bool,
    /// Whether a composite uses this Composition. Also true if the composites of its type are unknown, because one of
    /// them may use the Composition.
    pub is_used: bool,
}

/// Computes how a change of EnvironmentConfigs from `before` to `after` affects `users`, the objects that use the
/// EnvironmentConfig `name`.
pub fn assess(users: &[User], name: &str, before: &dyn Configs, after: &dyn Configs, view: &View<'_>) -> Impact {
    let mut subjects = Subjects { view, found: Vec::new(), is_complete: users.len() < MAX_USERS };
    users.iter().for_each(|user| subjects.add(user));
    let Subjects { mut found, is_complete, .. } = subjects;
    let not_assessed = found.len().saturating_sub(MAX_ASSESSED);
    found.truncate(MAX_ASSESSED);
    let passed_to_functions =
        users.iter().filter(|user| user.usage == Usage::PassedToFunction).map(|user| user.object.clone()).collect();
    let effects = found.iter().filter_map(|subject| subject.effect(name, before, after)).collect();
    Impact { effects, passed_to_functions, not_assessed, is_complete }
}

/// A composite and its Composition. Portcullis computes the environment of this composite before and after the request.
/// If no known composite uses the Composition, `composite` is an empty composite of the right type.
struct Subject {
    object: Reference,
    composite: Arc<Stored>,
    composition: Chosen,
    /// How the Composition uses the EnvironmentConfig. Used only if `composite` is empty, because no known composite
    /// uses the Composition. For other composites, the value is always `Optional`.
    usage: Usage,
    is_used: bool,
}

struct Subjects<'s> {
    view: &'s View<'s>,
    found: Vec<Subject>,
    is_complete: bool,
}

impl Subjects<'_> {
    fn add(&mut self, user: &User) {
        let Some(stored) = self.view.find(user.object.kind, &user.object.namespace, &user.object.name) else { return };
        if std::ptr::eq(user.object.kind, &COMPOSITIONS) {
            self.composites_of(Chosen::current(stored), user);
        } else if std::ptr::eq(user.object.kind, &REVISIONS) {
            self.composites_of(Chosen::revision(stored), user);
        } else if let Choice::One(composition) =
            choose(stored.value(), user.object.kind.group, user.object.kind.plural, self.view)
        {
            self.push(Subject {
                object: user.object.clone(),
                composite: stored,
                composition,
                usage: Usage::Optional,
                is_used: true,
            });
        }
    }

    /// Adds all composites that use `text`, a Composition or CompositionRevision, to the list `self.found`. `user` says
    /// how `text` uses the EnvironmentConfig. If no known composite uses `text`, an empty composite may be added
    /// instead. It represents composites that are created later, or that Portcullis does not know.
    fn composites_of(&mut self, text: Chosen, user: &User) {
        let (mut is_any, mut is_used) = (false, false);
        for kind in self.view.declared() {
            let composites = self.view.indexed_everywhere(kind, &BY_COMPOSITION, &text.name, MAX_USERS);
            self.is_complete &= composites.len() < MAX_USERS;
            for composite in composites {
                is_any = true;
                is_used |= self.composite_of(kind, composite, &text);
            }
        }
        let is_known = is_any || self.knows_composites_of(text.value());
        // Crossplane keeps old revisions forever; those that no known composite uses must not block a deletion.
        if is_used || is_known && text.is_revision || self.is_current_found(&text) {
            return;
        }
        let composite = Arc::new(Stored::new(bare(text.value())));
        let is_used = !is_known && !text.is_revision;
        let who = user.object.clone();
        self.push(Subject { object: who, composite, composition: text, usage: user.usage, is_used });
    }

    /// Adds `composite` to the list `self.found` if it uses `text`, a Composition or CompositionRevision. Returns
    /// whether `composite` uses it. `kind` is the kind of `composite`.
    fn composite_of(&mut self, kind: &'static Kind, composite: Arc<Stored>, text: &Chosen) -> bool {
        let choice = choose(composite.value(), kind.group, kind.plural, self.view);
        let Choice::One(composition) = choice else { return false };
        let is_its = composition.reference() == text.reference();
        if is_its {
            let who = Reference::new(kind, composite.namespace(), composite.name());
            self.push(Subject { object: who, composite, composition, usage: Usage::Optional, is_used: true });
        }
        is_its
    }

    /// Returns whether the catalog contains all composites of the type that `spec.compositeTypeRef` of a Composition
    /// names. `text` is the Composition.
    fn knows_composites_of(&self, text: &Value) -> bool {
        let of = |key| text.pointer("/spec/compositeTypeRef").and_then(|of| of.get(key)?.as_str()).unwrap_or_default();
        let group = of("apiVersion").split_once('/').map_or("", |(group, _)| group);
        let is_it = |kind: &&'static Kind| kind.group == group && kind.kind == of("kind");
        self.view.declared().into_iter().find(is_it).is_some_and(|kind| self.view.is_complete(kind))
    }

    /// Returns whether `text` is a CompositionRevision, and `self.found` already has an entry for the same Composition.
    /// In this case, probably no composite uses the revision, so the caller does not add an empty composite for it.
    fn is_current_found(&self, text: &Chosen) -> bool {
        text.is_revision && self.found.iter().any(|one| one.composition.name == text.name)
    }

    fn push(&mut self, subject: Subject) {
        if !self.found.iter().any(|known| known.object == subject.object) {
            self.found.push(subject);
        }
    }
}

/// Returns an empty composite of the type in the `compositeTypeRef` of a Composition.
fn bare(composition: &Value) -> Value {
    let of =
        |key| composition.pointer("/spec/compositeTypeRef").and_then(|of| of.get(key)).cloned().unwrap_or_default();
    json!({"apiVersion": of("apiVersion"), "kind": of("kind"), "metadata": {}, "spec": {}})
}

/// The problems in computing an environment, and the EnvironmentConfigs that were merged into it. Portcullis computes
/// these results for the state before and after the request, and compares them.
struct Evaluation {
    /// Whether the environment cannot be computed.
    fails: bool,
    /// Messages about failures, such as a required EnvironmentConfig that does not exist, and about patches that read a
    /// missing value.
    problems: Vec<String>,
    /// Names of the EnvironmentConfigs that were merged.
    merged: Vec<String>,
}

impl Subject {
    /// Returns the effect of a change of EnvironmentConfigs from `before` to `after` on this composite. There is an
    /// effect if the change causes new problems, or if the environment no longer contains the data of the
    /// EnvironmentConfig `name`. Otherwise, returns `None`.
    fn effect(&self, name: &str, before: &dyn Configs, after: &dyn Configs) -> Option<Effect> {
        let (known, then) = (self.evaluate(before)?, self.evaluate(after)?);
        let has = |judged: &Evaluation| judged.merged.iter().any(|merged| merged == name);
        let mut effect = Effect {
            object: self.object.clone(),
            composition: self.composition.reference(),
            problems: Vec::new(),
            fails: then.fails && !known.fails,
            loses_data: has(&known) && !has(&then),
            is_used: self.is_used,
        };
        if known.fails {
            return self.effect_on_failing(effect, name, before, after);
        }
        effect.problems = then.problems;
        effect.problems.retain(|problem| !known.problems.contains(problem));
        (!effect.problems.is_empty() || effect.loses_data).then_some(effect)
    }

    /// Returns the effect of the request if the environment could not be computed even before the request. `effect`
    /// contains what the caller has found so far.
    ///
    /// If the affected object is a composite, returns `None`, because the request cannot break the composite further.
    ///
    /// If the affected object is a Composition or CompositionRevision, the environment was computed for an empty
    /// composite. Real composites may work nevertheless. Returns `effect` if the request deletes the EnvironmentConfig
    /// `name`; otherwise, returns `None`.
    fn effect_on_failing(
        &self,
        mut effect: Effect,
        name: &str,
        before: &dyn Configs,
        after: &dyn Configs,
    ) -> Option<Effect> {
        let is_composite = ![&COMPOSITIONS, &REVISIONS].iter().any(|kind| std::ptr::eq(*kind, self.object.kind));
        let is_deleted = before.find(name).is_some() && after.find(name).is_none();
        if is_composite || !is_deleted {
            return None;
        }
        effect.loses_data = true;
        effect.fails = self.usage == Usage::Required;
        Some(effect)
    }

    fn evaluate(&self, configs: &dyn Configs) -> Option<Evaluation> {
        let declaration = composition::declaration(self.composition.value())?;
        let computation = compute(&declaration, self.composite.value(), configs);
        let computed = Computed { composition: self.composition.clone(), declaration, computation };
        let merged = merged(&computed, configs);
        // After an unknown function only the selection before it is certain.
        if computed.is_uncertain() {
            let problems: Vec<_> = computed.sources().filter_map(|(.., source)| source.error.clone()).collect();
            return Some(Evaluation { fails: !problems.is_empty(), problems, merged });
        }
        let patch_problems = computed.patch_problems(None).into_iter().map(|problem| problem.to_string());
        // `patch_problems` reports this failure already, with its field in the Composition.
        let is_reported = computed
            .environment_patches()
            .any(|(_, _, patch, outcome)| writes_composite(patch) && matches!(outcome.ending, Ending::Failed(_)));
        let failure = computed.computation.failure.clone().filter(|_| !is_reported);
        let fails = computed.computation.failure.is_some();
        Some(Evaluation { fails, problems: failure.into_iter().chain(patch_problems).collect(), merged })
    }
}

/// Returns the names of the EnvironmentConfigs that are merged into a computed environment.
fn merged(computed: &Computed, configs: &dyn Configs) -> Vec<String> {
    let mut names = Vec::new();
    for step in &computed.computation.steps {
        let ActionOutcome::Selected { sources, kept, .. } = &step.action else { continue };
        names.extend(sources.iter().flat_map(|source| &source.selected).map(|stored| stored.name().to_owned()));
        names.extend(kept.iter().flatten().filter(|name| configs.find(name).is_some()).cloned());
    }
    names
}
