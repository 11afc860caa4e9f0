//! Formats the plan of `portcullis diff` in the style of `diff -u`. The plan contains the changes of all kustomize
//! roots.

use similar::TextDiff;

use crate::kustomize::changes::{Action, ObjectChange, Plan};

/// Number of unchanged lines that are shown before and after a difference.
const CONTEXT: usize = 3;

/// Formats the changes of all kustomize roots in the style of `diff -u`, one object after another.
pub(super) fn render(plan: &Plan) -> String {
    let parts =
        plan.roots.iter().flat_map(|root| root.objects.iter().map(move |change| object(root.root.shown(), change)));
    parts.collect()
}

/// Returns the differences of one object in the format of `diff -u`. `root` is the folder of the kustomization that
/// renders the object. Returns an empty text if the content of the object is unchanged. This is the case if the object
/// only moves to another kustomization.
pub(super) fn object(root: &str, change: &ObjectChange) -> String {
    let (kind, place) = (&change.id.kind, change.id.place());
    let name = |place: &str| format!("{root}/{kind}/{place}");
    let none = || "/dev/null".to_owned();
    let (before, after) = match &change.action {
        Action::Create => (none(), name(&place)),
        Action::Delete | Action::Orphan => (name(&place), none()),
        Action::Replace { old } => (name(&old.place()), name(&place)),
        Action::Change => (name(&place), name(&place)),
        Action::Move { to } => (name(&place), format!("{to}/{kind}/{place}")),
    };
    let difference = TextDiff::from_lines(&change.before, &change.after);
    difference.unified_diff().context_radius(CONTEXT).header(&before, &after).to_string()
}
