//! The plan of a Kustomization as text and as JSON. docs/changes.md describes both.

use std::fmt::Write as _;

use serde_json::{Value, json};

use crate::kustomize::delivery::{Fate, Plan};
use crate::kustomize::object_id::ObjectId;

/// The plan of a Kustomization.
pub(super) struct Report {
    title: String,
    /// The reason why nothing is known, if the tree cannot be built.
    pub(super) broken: Option<String>,
    rows: Vec<Row>,
    /// Number of rendered objects that Flux applied before.
    applied: usize,
    warnings: Vec<String>,
}

/// What happens to one object.
struct Row {
    action: &'static str,
    id: ObjectId,
    note: Option<String>,
}

/// The actions, in the order of the report, with their marks.
const ACTIONS: [(&str, char); 7] =
    [("delete", '-'), ("possible", '?'), ("move", '>'), ("keep", '='), ("orphan", '='), ("gone", '='), ("create", '+')];

impl Report {
    /// Creates the report about a tree that cannot be built.
    pub(super) fn broken(title: String, reason: String) -> Self {
        Self { title, broken: Some(reason), rows: Vec::new(), applied: 0, warnings: Vec::new() }
    }

    /// Creates the report of a plan, with the fates of its stale objects.
    pub(super) fn of(title: String, plan: &Plan<'_>, fates: Vec<(ObjectId, Fate)>) -> Self {
        let moved = plan.moved();
        let mut rows: Vec<Row> = Vec::new();
        for (id, fate) in fates {
            let to = moved.iter().find(|(moving, _)| **moving == id).map(|(_, to)| (*to).to_owned());
            rows.push(match (to, &fate) {
                (Some(to), Fate::Deleted | Fate::Possible(_)) => {
                    Row { action: "move", id, note: Some(format!("to {to}")) }
                }
                _ => Row { action: fate.as_str(), id, note: fate.reason().map(str::to_owned) },
            });
        }
        if !plan.prunes() {
            let orphan =
                |id: &ObjectId| Row { action: "orphan", id: id.clone(), note: Some("spec.prune is off".to_owned()) };
            rows.extend(plan.dropped().into_iter().map(orphan));
        }
        let created: Vec<_> = plan.created().into_iter().cloned().collect();
        let applied = plan.rendered.len() - created.len();
        rows.extend(created.into_iter().map(|id| Row { action: "create", id, note: None }));
        rows.sort_by_key(|row| ACTIONS.iter().position(|(action, _)| *action == row.action));
        let warnings = plan.findings().iter().map(|finding| format!("{} {}", finding.rule, finding.message)).collect();
        Self { title, broken: None, rows, applied, warnings }
    }

    /// Returns whether an object is deleted, or may be.
    pub(super) fn deletes(&self) -> bool {
        self.rows.iter().any(|row| ["delete", "possible", "move"].contains(&row.action))
    }

    fn count(&self, action: &str) -> usize {
        self.rows.iter().filter(|row| row.action == action).count()
    }

    /// Returns the report for people.
    pub(super) fn text(&self) -> String {
        let mut out = format!("{}\n", self.title);
        if let Some(broken) = &self.broken {
            let _ = writeln!(out, "  cannot be built, so Flux deletes nothing: {broken}");
            return out;
        }
        for Row { action, id, note } in &self.rows {
            let mark = ACTIONS.iter().find(|(known, _)| known == action).map_or(' ', |(_, mark)| *mark);
            let note = note.as_ref().map(|note| format!("  ({note})")).unwrap_or_default();
            let _ = writeln!(out, "  {mark} {action:<8} {id}{note}");
        }
        for warning in &self.warnings {
            let _ = writeln!(out, "  warning: {warning}");
        }
        let [create, delete, possible, moved, gone] =
            ["create", "delete", "possible", "move", "gone"].map(|action| self.count(action));
        let kept = self.count("keep") + self.count("orphan");
        let _ = writeln!(
            out,
            "\nPlan: {create} to create, {delete} to delete, {possible} possibly, {moved} moved, {kept} kept, {gone} gone already, \
             {} applied as before",
            self.applied
        );
        out
    }

    /// Returns the report for programs.
    pub(super) fn json(&self) -> Value {
        let row = |row: &Row| {
            let ObjectId { group, kind, namespace, name } = &row.id;
            json!({"action": row.action, "group": group, "kind": kind, "namespace": namespace, "name": name,
                   "reason": row.note})
        };
        let summary: serde_json::Map<_, _> =
            ACTIONS.iter().map(|(action, _)| ((*action).to_owned(), json!(self.count(action)))).collect();
        json!({"plan": self.title, "error": self.broken, "objects": self.rows.iter().map(row).collect::<Vec<_>>(),
               "summary": summary, "applied": self.applied, "warnings": self.warnings})
    }
}
