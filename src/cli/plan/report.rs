//! Formats the plan of a Flux Kustomization as text and as JSON. The plan says what Flux does with each object.
//! docs/changes.md describes both formats.

use std::collections::HashMap;
use std::fmt::Write as _;

use serde_json::{Value, json};

use crate::kustomize::Excluded;
use crate::kustomize::delivery::{Deletion, Fate, Plan};
use crate::kustomize::identity::ObjectId;

/// The plan of a Flux Kustomization. Each row says what Flux does with one object.
pub(super) struct Report {
    pub(super) title: String,
    /// The error that stops the build; `None` if the build succeeds. A report with an error has neither rows nor
    /// warnings.
    pub(super) broken: Option<String>,
    pub(super) rows: Vec<Row>,
    /// Number of objects that Flux applied before and applies again.
    pub(super) applied: usize,
    pub(super) warnings: Vec<String>,
}

/// A row of the plan: what happens to one object, and why.
pub(super) struct Row {
    pub(super) action: &'static str,
    deletion: Deletion,
    id: ObjectId,
    /// The name of the old object that the object in this row replaces; `None` if it replaces none.
    replaces: Option<String>,
    pub(super) note: Option<String>,
}

/// The live state of the objects of a Flux Kustomization: which objects exist in the cluster, and which ones Flux will
/// delete. Covers the objects that the new revision renders, and the objects that it no longer renders.
#[derive(Debug, Default)]
pub(super) struct Live {
    /// For each object that the new revision does not render any more, whether Flux deletes or keeps the object.
    pub(super) fates: HashMap<ObjectId, Fate>,
    /// For each object that the new revision renders, whether it exists in the cluster.
    pub(super) presence: HashMap<ObjectId, Presence>,
}

/// The state of a rendered object in the cluster: whether it exists.
#[derive(Debug)]
pub(super) enum Presence {
    /// The object does not exist in the cluster.
    Absent,
    /// The object exists in the cluster. Contains a text that says who owns the object.
    Exists(String),
    /// It is unknown whether the object exists in the cluster. Contains the reason why the object cannot be read.
    Unknown(String),
}

/// The actions of Flux that a report can show for an object, each with its symbol in the text output. Reports sort
/// objects by action, in the order of this array.
const ACTIONS: [(&str, char); 10] = [
    ("delete", '-'),
    ("possible", '?'),
    ("replace", '±'),
    ("move", '>'),
    ("keep", '='),
    ("orphan", '='),
    ("gone", '='),
    ("create", '+'),
    ("take", '~'),
    ("skip", '='),
];

impl Row {
    /// Returns kind, namespace and name of the object. If the object replaces another one, returns `OLD -> NEW`: the
    /// kind, namespace and name of the old object, and the name of the new object.
    pub(super) fn subject(&self) -> String {
        match &self.replaces {
            Some(old) => format!("{} -> {}", ObjectId { name: old.clone(), ..self.id.clone() }, self.id.name),
            None => self.id.to_string(),
        }
    }

    pub(super) fn new(action: &'static str, id: &ObjectId) -> Self {
        Self { action, deletion: Deletion::Never, id: id.clone(), replaces: None, note: None }
    }

    pub(super) fn because(self, note: impl Into<String>) -> Self {
        Self { note: Some(note.into()), ..self }
    }

    /// Changes this row of the report from `create` to `replace`: the new object replaces `old`. This happens if the
    /// hash in the name of a generated object changes. `deletion` predicts whether Flux deletes `old`.
    fn replacing(self, old: &ObjectId, deletion: Deletion) -> Self {
        Self { action: "replace", deletion, replaces: Some(old.name.clone()), ..self }
    }

    /// Creates the report row of an object that the new revision of a Flux source no longer renders. `fate` predicts
    /// whether Flux deletes the object. The row shows this prediction and, if there is one, the reason.
    fn of_fate(id: &ObjectId, fate: &Fate) -> Self {
        let note = fate.reason().map(str::to_owned);
        Self { deletion: deletion(fate), note, ..Self::new(fate.as_str(), id) }
    }

    /// Creates the report row for an object that moves to another Flux Kustomization. `to` is the name of this
    /// Kustomization. `on_the_way` predicts whether Flux deletes the object before this Kustomization applies it.
    ///
    /// `fate` predicts what Flux would do with the object if no other Kustomization applied it. If `fate` predicts no
    /// deletion, the row shows `fate` instead of the move.
    fn of_move(id: &ObjectId, (to, on_the_way): (&str, Deletion), fate: &Fate) -> Self {
        let deletion = match (deletion(fate), on_the_way) {
            (Deletion::Never, _) => return Self::of_fate(id, fate),
            (_, Deletion::Never) => Deletion::Never,
            (Deletion::Certain, Deletion::Certain) => Deletion::Certain,
            _ => Deletion::Possible,
        };
        Self { deletion, ..Self::new("move", id) }.because(format!("to {to}"))
    }
}

/// Returns whether Flux certainly, possibly or never deletes an object. `fate` is the prediction for the object.
fn deletion(fate: &Fate) -> Deletion {
    match fate {
        Fate::Deleted => Deletion::Certain,
        Fate::Possible(_) => Deletion::Possible,
        Fate::Kept(_) | Fate::Gone => Deletion::Never,
    }
}

/// Returns the rows of the report, sorted by action. Each row says what Flux does with one object.
fn rows(plan: &Plan<'_>, excluded: &[Excluded], live: &Live) -> Vec<Row> {
    let moved: HashMap<_, _> = plan.moved().into_iter().map(|(id, to, deletion)| (id, (to, deletion))).collect();
    let fate = |id: &ObjectId| live.fates.get(id).cloned().unwrap_or(Fate::Possible("it was not read".to_owned()));
    let of_stale = |id: &ObjectId| match moved.get(id) {
        Some(to) => Row::of_move(id, *to, &fate(id)),
        None => Row::of_fate(id, &fate(id)),
    };
    let mut rows: Vec<Row> = plan.stale().into_iter().map(of_stale).collect();
    let mut successors: HashMap<&ObjectId, &ObjectId> = HashMap::new();
    for (old, new) in plan.replaced() {
        let is_new = created_row(new, excluded, live).action == "create" && !successors.contains_key(new);
        if is_new && deletion(&fate(old)) != Deletion::Never {
            successors.insert(new, old);
        } else {
            rows.push(Row::of_fate(old, &fate(old)));
        }
    }
    rows.extend(plan.created().into_iter().map(|id| {
        let row = created_row(id, excluded, live);
        match successors.get(id) {
            Some(old) => row.replacing(old, deletion(&fate(old))),
            None => row,
        }
    }));
    rows.extend(plan.applied().into_iter().filter_map(|id| missing_row(id, excluded, live)));
    rows.extend(plan.orphaned().into_iter().map(|id| Row::new("orphan", id).because("spec.prune is off")));
    rows.sort_by_key(|row| ACTIONS.iter().position(|(action, _)| *action == row.action));
    rows
}

/// Returns the row of the object `id`, which the Kustomization did not apply before. Flux creates the object, takes
/// over an existing object, or skips the object. `live` says whether the object exists. Flux skips only objects in
/// `excluded`.
fn created_row(id: &ObjectId, excluded: &[Excluded], live: &Live) -> Row {
    let presence = live.presence.get(id);
    let exclusion = excluded.iter().find(|excluded| excluded.id == *id);
    match (presence, exclusion) {
        (_, Some(Excluded { by, is_created: false, .. })) | (Some(Presence::Exists(_)), Some(Excluded { by, .. })) => {
            Row::new("skip", id).because(by)
        }
        (Some(Presence::Exists(owner)), None) => Row::new("take", id).because(owner),
        (Some(Presence::Unknown(why)), _) => Row::new("create", id).because(format!("unless it exists: {why}")),
        (Some(Presence::Absent) | None, _) => Row::new("create", id),
    }
}

/// Returns the report row for an object that Flux creates, although the inventory of the Kustomization already lists
/// it. The object is missing in the cluster, for example because somebody deleted it. Returns `None` for other objects.
fn missing_row(id: &ObjectId, excluded: &[Excluded], live: &Live) -> Option<Row> {
    live.presence.get(id).filter(|presence| matches!(presence, Presence::Absent))?;
    let row = created_row(id, excluded, live);
    (row.action == "create").then(|| row.because("the inventory lists it, but it does not exist"))
}

impl Report {
    /// Creates the report for a kustomize tree that cannot be built.
    pub(super) fn broken(title: String, reason: String) -> Self {
        Self { title, broken: Some(reason), rows: Vec::new(), applied: 0, warnings: Vec::new() }
    }

    /// Creates a report about what Flux does with the objects of a Kustomization. `live` is the state of the objects in
    /// the cluster. `excluded` are the rendered objects that Flux does not apply.
    pub(super) fn of(title: String, plan: &Plan<'_>, excluded: &[Excluded], live: &Live) -> Self {
        let applied = plan.applied();
        let missing = applied.iter().filter(|id| missing_row(id, excluded, live).is_some()).count();
        let applied = applied.len() - missing;
        let warnings = plan.findings().iter().map(|finding| format!("{} {}", finding.rule, finding.message)).collect();
        Self { title, broken: None, rows: rows(plan, excluded, live), applied, warnings }
    }

    /// Returns whether Flux certainly or possibly deletes at least one object.
    pub(super) fn deletes(&self) -> bool {
        self.rows.iter().any(|row| row.deletion != Deletion::Never)
    }

    pub(super) fn count(&self, action: &str) -> usize {
        self.rows.iter().filter(|row| row.action == action).count()
    }

    /// Formats the report as text for the terminal.
    pub(super) fn text(&self) -> String {
        let mut out = format!("{}\n", self.title);
        if let Some(broken) = &self.broken {
            let _ = writeln!(out, "  cannot be built, so Flux deletes nothing: {broken}");
            return out;
        }
        for row in &self.rows {
            let (Row { action, note, .. }, id) = (row, row.subject());
            let mark = ACTIONS.iter().find(|(known, _)| known == action).map_or(' ', |(_, mark)| *mark);
            let note = note.as_ref().map(|note| format!("  ({note})")).unwrap_or_default();
            let _ = writeln!(out, "  {mark} {action:<8} {id}{note}");
        }
        for warning in &self.warnings {
            let _ = writeln!(out, "  warning: {warning}");
        }
        let _ = writeln!(out, "\n{}", self.summary());
        out
    }

    /// Returns a line with the number of objects for each action.
    pub(super) fn summary(&self) -> String {
        let [create, take, delete, replace, possible, moved, gone, skipped] =
            ["create", "take", "delete", "replace", "possible", "move", "gone", "skip"]
                .map(|action| self.count(action));
        let kept = self.count("keep") + self.count("orphan");
        format!(
            "Plan: {create} to create, {take} to take over, {replace} to replace, {delete} to delete, {possible} possibly, {moved} \
             moved, {kept} kept, {gone} gone already, {skipped} skipped, {} applied as before",
            self.applied
        )
    }

    /// Formats the report as JSON.
    pub(super) fn json(&self) -> Value {
        let row = |row: &Row| {
            let ObjectId { group, kind, namespace, name } = &row.id;
            json!({"action": row.action, "group": group, "kind": kind, "namespace": namespace, "name": name,
                   "replaces": row.replaces, "deletion": row.deletion.as_str(), "reason": row.note})
        };
        let summary: serde_json::Map<_, _> =
            ACTIONS.iter().map(|(action, _)| ((*action).to_owned(), json!(self.count(action)))).collect();
        json!({"plan": self.title, "error": self.broken, "objects": self.rows.iter().map(row).collect::<Vec<_>>(),
               "summary": summary, "applied": self.applied, "warnings": self.warnings})
    }
}
