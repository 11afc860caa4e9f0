//! Compares the plans of `portcullis plan` with the actions of kustomize-controller.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::kinds;
use super::model::Pair;
use super::player::{self, PairOutcome};
use super::trace::{self, Effects};

/// The effects of a revision that `portcullis plan` and `portcullis diff` predict. The strings are identities of
/// objects.
#[derive(Debug, Default)]
struct Predicted {
    /// Objects that Flux deletes, according to `portcullis plan`.
    deleted: BTreeSet<String>,
    /// Objects that Flux may delete. The test accepts either result: Flux deletes the object, or Flux keeps it.
    possible: BTreeSet<String>,
    created: BTreeSet<String>,
    /// Whether the test compares `changed` with the actual changes. The test cannot compare them if the names of some
    /// objects contain variables from ConfigMaps in the cluster, because `portcullis diff` cannot substitute these
    /// variables.
    is_compared: bool,
    /// Objects whose content changes, according to `portcullis diff`.
    changed: BTreeSet<String>,
    /// Objects whose two revisions differ only in `apiVersion`. After the API server has converted the version, the
    /// stored object can be the same as before.
    converted: BTreeSet<String>,
    /// Existing objects that move to another Kustomization.
    taken: BTreeSet<String>,
    /// Objects that more than one Kustomization applies.
    shared: BTreeSet<String>,
}

/// Returns the differences between the predictions of portcullis and the actions of Flux, one line for each.
pub fn differences(pair: &Pair, outcome: &PairOutcome, effects: &Effects) -> Vec<String> {
    let predicted = Predicted::of(outcome);
    let without_plan = outcome.plans.iter().filter_map(|plan| plan.as_ref().err().cloned());
    let deletions = predicted.deletions(effects).into_iter();
    // The plans cannot predict creations and changes of objects that several Kustomizations render, or that were
    // edited.
    let is_usual = |id: &str| !outcome.edited.contains(id) && !predicted.shared.contains(&comparable(id));
    let others = predicted.creations(effects).into_iter().chain(predicted.changes(pair, effects));
    let others = others.filter(|(_, id)| is_usual(id));
    without_plan.chain(deletions.chain(others).map(|(words, id)| format!("{words}: {id}"))).collect()
}

/// A description of the difference, and the identity of the object.
type Difference<'a> = (&'static str, &'a String);

fn all<'a>(words: &'static str, ids: impl Iterator<Item = &'a String>) -> Vec<Difference<'a>> {
    ids.map(|id| (words, id)).collect()
}

/// Returns the objects that are in the inventories of several Kustomizations.
fn shared(kustomizations: &[Value]) -> BTreeSet<String> {
    let mut seen = BTreeSet::new();
    let all = kustomizations.iter().flat_map(player::inventory_ids);
    all.filter(|id| !seen.insert(id.clone())).map(|id| comparable(&id)).collect()
}

/// Replaces colons in an identity with `__`. Flux's inventories contain `__` instead of colons, so identities can only
/// be compared in this form.
fn comparable(id: &str) -> String {
    id.replace(':', "__")
}

impl Predicted {
    fn deletions<'a>(&'a self, effects: &'a Effects) -> Vec<Difference<'a>> {
        let missing = self.deleted.difference(&effects.deleted);
        let unknown = |id: &&String| !self.possible.contains(*id);
        let unexpected = effects.deleted.difference(&self.deleted).filter(unknown);
        [all("the plan deletes it, Flux does not", missing), all("Flux deletes it, the plan does not", unexpected)]
            .concat()
    }

    /// Returns the objects that Flux creates although portcullis did not predict it, and the objects that Flux does not
    /// create although portcullis predicted it. If an object moves to another Kustomization, Flux may delete the object
    /// and create it again. This does not count as a difference.
    fn creations<'a>(&'a self, effects: &'a Effects) -> Vec<Difference<'a>> {
        let missing = self.created.difference(&effects.created);
        let unexpected = effects.created.difference(&self.created).filter(|id| !effects.deleted.contains(*id));
        [all("the plan creates it, Flux does not", missing), all("Flux creates it, the plan does not", unexpected)]
            .concat()
    }

    /// Returns the objects that Flux changes although `portcullis diff` did not predict it, and the objects that Flux
    /// does not change although `portcullis diff` predicted it. Returns nothing if the test cannot compare the changes
    /// (see `is_compared`).
    fn changes<'a>(&'a self, pair: &Pair, effects: &'a Effects) -> Vec<Difference<'a>> {
        if !self.is_compared {
            return Vec::new();
        }
        let is_applied = |id: &&String| !pair.unapplied().iter().any(|name| id.contains(name));
        let stays = |id: &&String| !effects.deleted.contains(*id);
        let missing = self.changed.difference(&effects.changed).filter(is_applied).filter(stays);
        let missing = missing.filter(|id| !self.converted.contains(*id));
        let unexpected = effects.changed.difference(&self.changed).filter(|id| !self.taken.contains(*id));
        [all("the diff changes it, Flux does not", missing), all("Flux changes it, the diff does not", unexpected)]
            .concat()
    }

    fn of(outcome: &PairOutcome) -> Self {
        let shared = outcome.states.iter().flat_map(|state| shared(state)).collect();
        let mut predicted = Self { shared, ..Self::default() };
        for plan in outcome.plans.iter().flatten() {
            for row in plan["objects"].as_array().into_iter().flatten() {
                predicted.add(row);
            }
        }
        let roots = outcome.diff["roots"].as_array().into_iter().flatten();
        let rows = roots.filter_map(|root| root["objects"].as_array()).flatten();
        let changed: Vec<_> = rows.filter(|row| row["action"] == "change").collect();
        predicted.converted = changed.iter().filter(|row| is_converted(row)).map(|row| identity(row)).collect();
        predicted.changed = changed.into_iter().map(identity).collect();
        predicted.is_compared = !predicted.changed.iter().any(|id| id.contains("${"));
        predicted
    }

    fn add(&mut self, row: &Value) {
        let text = |key: &str| row[key].as_str().unwrap_or_default();
        let old = identity(&json!({"name": row["replaces"].as_str().unwrap_or(text("name")), "group": row["group"],
                                   "kind": row["kind"], "namespace": row["namespace"]}));
        match text("deletion") {
            "certain" => self.deleted.insert(old),
            "possible" => self.possible.insert(old),
            _ => false,
        };
        match text("action") {
            "create" | "replace" => self.created.insert(identity(row)),
            "take" => self.taken.insert(identity(row)),
            _ => false,
        };
    }
}

fn is_converted(row: &Value) -> bool {
    let fields = row["fields"].as_array().into_iter().flatten();
    fields.map(|field| &field["path"]).eq(["apiVersion"])
}

/// Returns the identity of an object. `row` is the entry of this object in the JSON output of `portcullis plan` or
/// `portcullis diff`.
fn identity(row: &Value) -> String {
    let text = |key: &str| row[key].as_str().unwrap_or_default();
    let has_namespace = kinds::of_kind(text("group"), text("kind")).is_none_or(|template| template.namespaced);
    trace::id(text("group"), text("kind"), if has_namespace { text("namespace") } else { "" }, text("name"))
}
