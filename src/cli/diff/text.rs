//! Formats the plan of `portcullis diff` as text for the terminal. The plan contains the changes of all kustomize
//! roots.

use std::fmt::Write as _;

use crate::kustomize::changes::{Action, FieldChange, Located, ObjectChange, Owner, Plan, RootChange, State};

/// Formats the changes of all kustomizations as text, with a part for each kustomization that changes. After the
/// changes come the messages in `broken`, and then a summary line. `broken` contains error messages about exceeded
/// limits, such as the maximum number of deletions.
pub(super) fn render(plan: &Plan, broken: &[String]) -> String {
    let mut out = String::new();
    for root in plan.roots.iter().filter(|root| root.is_changed()) {
        part(&mut out, root);
        out.push('\n');
    }
    for sentence in broken {
        let _ = writeln!(out, "error: {sentence}");
    }
    let _ = writeln!(out, "{}", summary(plan));
    out
}

/// Returns a line with the numbers of objects in all roots that are created, changed, deleted or moved.
pub(super) fn summary(plan: &Plan) -> String {
    format!("Plan: {}", plan.counts())
}

fn part(out: &mut String, root: &RootChange) {
    let _ = writeln!(out, "{}{}{}", root.root.shown(), owners(root), note(&root.state));
    if let Some(cause) = root.state.cause() {
        let _ = writeln!(out, "  {} ({}:{})", cause.message, cause.site.file, cause.site.place.line);
    }
    for object in &root.objects {
        let _ = writeln!(out, "  {} {:<8} {}", mark(&object.action), object.action.as_str(), subject(object));
        for field in &object.fields {
            let _ = writeln!(out, "      {}", line(field));
        }
    }
}

/// Maximum number of owners in the line about a folder, so that the line stays short. The owners are the objects that
/// build the folder, such as Flux Kustomizations. If there are more, the list ends with a text such as `2 more`.
const MAX_OWNERS: usize = 3;

/// Returns a text with the names of the objects, such as Flux Kustomizations, that build the kustomization in `root`.
/// If there are several objects, each name is followed by its cluster, if known. The text is empty if there are no such
/// objects.
pub(super) fn owners(root: &RootChange) -> String {
    let with_cluster = |owner: &Owner| match &owner.cluster {
        Some(cluster) if root.owners.len() > 1 => format!("{} in {}", owner.object, cluster.shown()),
        _ => owner.object.clone(),
    };
    let mut names: Vec<_> = root.owners.iter().take(MAX_OWNERS).map(with_cluster).collect();
    if root.owners.len() > MAX_OWNERS {
        names.push(format!("{} more", root.owners.len() - MAX_OWNERS));
    }
    if names.is_empty() { String::new() } else { format!(": {}", names.join(", ")) }
}

fn mark(action: &Action) -> char {
    match action {
        Action::Create => '+',
        Action::Change => '~',
        Action::Replace { .. } => '±',
        Action::Delete => '-',
        Action::Orphan => '!',
        Action::Move { .. } => '>',
    }
}

/// Returns a suffix that describes the state of a root, such as ` (new)`. The text output shows the suffix after the
/// path of the root. The suffix is empty if the root builds before and after the change.
pub(super) fn note(state: &State) -> &'static str {
    match state {
        State::Builds => "",
        State::Appears => " (new)",
        State::Vanishes => " (removed)",
        State::BeginsToBuild => " (builds now)",
        State::StopsBuilding(_) => " (no longer builds)",
        State::Fails(_) => " (does not build)",
        State::Unknown(_) => " (unknown)",
    }
}

/// Returns the name of a changed object. If the object replaces another one, the result also contains the name of the
/// replaced object. If the object moves to another kustomize root, the result also contains this root.
pub(super) fn subject(object: &ObjectChange) -> String {
    match &object.action {
        Action::Replace { old } => format!("{} -> {}", old, object.id.name),
        Action::Move { to } => format!("{} -> {to}", object.id),
        Action::Orphan => format!("{} (stays in the cluster: pruning is off)", object.id),
        Action::Create | Action::Change | Action::Delete => object.id.to_string(),
    }
}

fn line(field: &FieldChange) -> String {
    let value = |side: &Option<Located>| side.as_ref().map_or("(none)".to_owned(), |located| located.value.clone());
    let values = match (&field.before, &field.after) {
        (None, Some(after)) => format!("set to {}", after.value),
        (Some(before), None) => format!("removed, was {}", before.value),
        (before, after) => format!("{} -> {}", value(before), value(after)),
    };
    let places = places(field);
    format!("{}: {values}{}", field.path, if places.is_empty() { places } else { format!("  ({places})") })
}

/// Returns the positions of the old and the new value of a field, as file and line. If the positions are equal, returns
/// only one.
pub(super) fn places(field: &FieldChange) -> String {
    let place = |side: &Option<Located>| {
        let (file, line) = side.as_ref()?.place.as_ref()?;
        Some(format!("{file}:{line}"))
    };
    match (place(&field.before), place(&field.after)) {
        (Some(before), Some(after)) if before != after => format!("{before} -> {after}"),
        (Some(place), _) | (None, Some(place)) => place,
        (None, None) => String::new(),
    }
}
