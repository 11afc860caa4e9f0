//! Formats the plan of `portcullis diff` as JSON. The plan contains the changes of all kustomize roots. docs/changes.md
//! describes the JSON members.

use serde_json::{Value, json};

use crate::kustomize::changes::{Action, Counts, FieldChange, Located, ObjectChange, Owner, Plan, RootChange};
use crate::kustomize::tree::TreePath;

/// Formats the changes of all kustomize roots as JSON. `broken` has a sentence for each limit that the changes exceed.
pub(super) fn render(plan: &Plan, broken: &[String]) -> Value {
    let Counts { create, change, replace, delete, orphan, moved, unchanged } = plan.counts();
    json!({
        "summary": {"create": create, "change": change, "replace": replace, "delete": delete, "orphan": orphan,
                    "move": moved, "unchanged": unchanged},
        "roots": plan.roots.iter().map(root).collect::<Vec<_>>(),
        "untouchedRoots": plan.untouched,
        "brokenLimits": broken,
    })
}

fn root(root: &RootChange) -> Value {
    let reason = root.state.cause().map(
        |cause| json!({"message": cause.message, "file": cause.site.file.as_str(), "line": cause.site.place.line}),
    );
    let owner = |owner: &Owner| json!({"object": owner.object, "cluster": owner.cluster.as_ref().map(TreePath::shown)});
    json!({
        "root": root.root.shown(), "builtBy": root.owners.iter().map(owner).collect::<Vec<_>>(), "state": root.state.as_str(), "reason": reason, "unchanged": root.unchanged,
        "objects": root.objects.iter().map(object).collect::<Vec<_>>(),
    })
}

fn object(object: &ObjectChange) -> Value {
    let id = &object.id;
    let replaces = match &object.action {
        Action::Replace { old } => Some(&old.name),
        _ => None,
    };
    let moved_to = match &object.action {
        Action::Move { to } => Some(to),
        _ => None,
    };
    json!({
        "action": object.action.as_str(), "group": id.group, "kind": id.kind, "namespace": id.namespace,
        "name": id.name, "replaces": replaces, "movedTo": moved_to,
        "fields": object.fields.iter().map(field).collect::<Vec<_>>(),
    })
}

fn field(field: &FieldChange) -> Value {
    json!({"path": field.path, "before": located(&field.before), "after": located(&field.after)})
}

fn located(side: &Option<Located>) -> Value {
    let Some(located) = side else { return Value::Null };
    let place = located.place.as_ref();
    json!({"value": located.value, "file": place.map(|(file, _)| file.as_str()), "line": place.map(|(_, line)| line)})
}
