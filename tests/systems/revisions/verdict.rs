//! Compares plans with what kustomize-controller did.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::kinds;
use super::model::Pair;
use super::player::{self, Played};
use super::trace::{self, Effects};

/// What plans say about objects.
#[derive(Debug, Default)]
struct Predicted {
    /// Objects that are certainly deleted.
    deleted: BTreeSet<String>,
    /// Objects that may be deleted.
    possible: BTreeSet<String>,
    /// Objects that are created.
    created: BTreeSet<String>,
    /// Whether the comparison of both revisions knows all names. It does not know ConfigMaps of the cluster.
    is_compared: bool,
    /// Objects whose content changes, by the comparison of both revisions.
    changed: BTreeSet<String>,
    /// Changed objects that differ in `apiVersion` only. The API server may store the same as before.
    converted: BTreeSet<String>,
    /// Objects that exist, and that another Kustomization applies from now on.
    taken: BTreeSet<String>,
    /// Objects that more than one Kustomization renders.
    shared: BTreeSet<String>,
}

/// Returns how the effects differ from the plans, one line each.
pub fn differences(pair: &Pair, played: &Played, effects: &Effects) -> Vec<String> {
    let predicted = Predicted::of(played);
    let without_plan = played.plans.iter().filter_map(|plan| plan.as_ref().err().cloned());
    let deletions = predicted.deletions(effects).into_iter();
    // Who creates or changes an object that several Kustomizations render, or that somebody changed, is not known.
    let is_usual = |id: &str| !played.edited.contains(id) && !predicted.shared.contains(&comparable(id));
    let others = predicted.creations(effects).into_iter().chain(predicted.changes(pair, effects));
    let others = others.filter(|(_, id)| is_usual(id));
    without_plan.chain(deletions.chain(others).map(|(words, id)| format!("{words}: {id}"))).collect()
}

/// What is wrong about an object, and its identity.
type Difference<'a> = (&'static str, &'a String);

fn all<'a>(words: &'static str, ids: impl Iterator<Item = &'a String>) -> Vec<Difference<'a>> {
    ids.map(|id| (words, id)).collect()
}

/// Returns the objects that more than one Kustomization applied.
fn shared(kustomizations: &[Value]) -> BTreeSet<String> {
    let mut seen = BTreeSet::new();
    let all = kustomizations.iter().flat_map(player::applied);
    all.filter(|id| !seen.insert(id.clone())).map(|id| comparable(&id)).collect()
}

/// Returns an identity as it can be compared with that of an inventory, where `__` in a name is also a colon.
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

    /// Compares created objects. An object that was deleted before is created by the Kustomization to which it moves.
    fn creations<'a>(&'a self, effects: &'a Effects) -> Vec<Difference<'a>> {
        let missing = self.created.difference(&effects.created);
        let unexpected = effects.created.difference(&self.created).filter(|id| !effects.deleted.contains(*id));
        [all("the plan creates it, Flux does not", missing), all("Flux creates it, the plan does not", unexpected)]
            .concat()
    }

    /// Compares objects that stay, with the comparison of both revisions if it knows all names.
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

    fn of(played: &Played) -> Self {
        let shared = played.states.iter().flat_map(|state| shared(state)).collect();
        let mut predicted = Self { shared, ..Self::default() };
        for plan in played.plans.iter().flatten() {
            for row in plan["objects"].as_array().into_iter().flatten() {
                predicted.add(row);
            }
        }
        let roots = played.diff["roots"].as_array().into_iter().flatten();
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

/// Returns the identity of the object of a row.
fn identity(row: &Value) -> String {
    let text = |key: &str| row[key].as_str().unwrap_or_default();
    let has_namespace = kinds::of_kind(text("group"), text("kind")).is_none_or(|template| template.namespaced);
    trace::id(text("group"), text("kind"), if has_namespace { text("namespace") } else { "" }, text("name"))
}
