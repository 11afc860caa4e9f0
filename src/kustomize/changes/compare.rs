//! Compares the objects that one kustomization renders before and after a change.

use std::collections::BTreeMap;

use super::fields::{self, FieldChange};
use super::object::Object;
use super::secret;
use crate::kustomize::engine::Built;
use crate::kustomize::identity::ObjectId;

/// Length of the hash that kustomize appends to the names of generated objects.
const HASH: usize = 10;

/// The effect of a change of files on an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// The object is created: the kustomization renders it only after the change of files.
    Create,
    /// The kustomization renders the object both before and after the change of files, but some fields of the object
    /// differ.
    Change,
    /// The hash in the name of a generated object changes. The object with the old name is deleted, and an object with
    /// the new name is created.
    Replace {
        /// The identity of the deleted object.
        old: ObjectId,
    },
    /// The object is deleted: the kustomization renders it only before the change of files.
    Delete,
    /// No kustomization renders the object after the change, but the object stays in the cluster. Either pruning is
    /// disabled, or the object is excluded from pruning.
    Orphan,
    /// Another kustomization renders the object after the change of files.
    Move {
        /// The folder of the kustomization that renders the object after the change.
        to: String,
    },
}

impl Action {
    /// Returns the name of the action in reports, such as `create`.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Change => "change",
            Self::Replace { .. } => "replace",
            Self::Delete => "delete",
            Self::Orphan => "orphan",
            Self::Move { .. } => "move",
        }
    }
}

/// The effect of a change of files on one rendered object, with the YAML of the object before and after the change.
#[derive(Debug, Clone)]
pub struct ObjectChange {
    /// The effect of the change on the object, such as [`Action::Create`].
    pub action: Action,
    /// The identity of the object. For a replacement, the identity of the new object.
    pub id: ObjectId,
    /// The changed fields, if the object is changed or replaced. Otherwise empty.
    pub fields: Vec<FieldChange>,
    /// The YAML of the object before the change, without values of Secrets. Empty for a created object.
    pub before: String,
    /// The YAML of the object after the change, without values of Secrets. Empty for a deleted or orphaned object.
    pub after: String,
}

/// The objects that a kustomization renders before or after a change, with the build that renders them.
pub(super) type Rendered<'b, 'a> = (&'b [Object], &'b Built<'a>);

/// Compares the objects of a folder before (`old`) and after (`new`) a change. Returns the changed objects, sorted by
/// identity, and the number of unchanged objects. `old` or `new` is `None` if there are no objects, because the folder
/// does not exist or its build fails. `prunes` says whether objects that are no longer rendered are deleted from the
/// cluster.
pub(super) fn objects(
    old: Option<Rendered<'_, '_>>,
    new: Option<Rendered<'_, '_>>,
    prunes: bool,
) -> (Vec<ObjectChange>, usize) {
    let by_id = |side: Option<Rendered<'_, '_>>| -> BTreeMap<ObjectId, usize> {
        let objects = side.map(|(objects, _)| objects).unwrap_or_default();
        objects.iter().enumerate().map(|(at, object)| (object.id.clone(), at)).collect()
    };
    let (mut gone, mut came, mut changes, mut unchanged) = (by_id(old), by_id(new), Vec::new(), 0);
    if let (Some(old), Some(new)) = (old, new) {
        came.retain(|id, at| match gone.remove(id) {
            None => true,
            Some(before) => {
                match changed(&old.0[before], &new.0[*at], (old.1, new.1), Action::Change) {
                    Some(change) => changes.push(change),
                    None => unchanged += 1,
                }
                false
            }
        });
        replace(&mut gone, &mut came, (old, new), &mut changes);
    }
    let texts = |side: Option<Rendered<'_, '_>>, at: usize| {
        side.map(|(objects, _)| secret::shown(&objects[at])).unwrap_or_default()
    };
    let is_kept = |at: usize| !prunes || old.is_some_and(|(objects, _)| objects[at].opts_out_of_pruning());
    changes.extend(gone.into_iter().map(|(id, at)| ObjectChange {
        action: if is_kept(at) { Action::Orphan } else { Action::Delete },
        id,
        fields: Vec::new(),
        before: texts(old, at),
        after: String::new(),
    }));
    changes.extend(came.into_iter().map(|(id, at)| ObjectChange {
        action: Action::Create,
        id,
        fields: Vec::new(),
        before: String::new(),
        after: texts(new, at),
    }));
    changes.sort_by(|a, b| a.id.cmp(&b.id));
    (changes, unchanged)
}

/// Finds generated objects whose hash changes. `gone` contains the deleted objects, and `came` contains the created
/// objects. If a deleted object and a created object have the same name except for the hash, removes both objects from
/// `gone` and `came`, and adds a replacement to `changes`.
fn replace(
    gone: &mut BTreeMap<ObjectId, usize>,
    came: &mut BTreeMap<ObjectId, usize>,
    (old, new): (Rendered<'_, '_>, Rendered<'_, '_>),
    changes: &mut Vec<ObjectChange>,
) {
    came.retain(|id, at| {
        let object = &new.0[*at];
        let pair = gone.iter().find(|(_, before)| is_regenerated(&old.0[**before], object));
        let Some((former, before)) = pair.map(|(former, before)| (former.clone(), *before)) else { return true };
        gone.remove(&former);
        let action = Action::Replace { old: former };
        let change = changed(&old.0[before], object, (old.1, new.1), action.clone());
        changes.push(change.unwrap_or_else(|| ObjectChange {
            action,
            id: id.clone(),
            fields: Vec::new(),
            before: secret::shown(&old.0[before]),
            after: secret::shown(object),
        }));
        false
    });
}

/// Returns whether two objects are the same generated object with different hashes in their names.
fn is_regenerated(old: &Object, new: &Object) -> bool {
    let without_hash = |object: &Object| -> Option<String> {
        let (name, hash) = object.id.name.rsplit_once('-')?;
        (hash.len() == HASH).then(|| name.to_owned())
    };
    let is_same_kind =
        (&old.id.group, &old.id.kind, &old.id.namespace) == (&new.id.group, &new.id.kind, &new.id.namespace);
    let stem = without_hash(old);
    is_same_kind && old.original_name == new.original_name && stem.is_some() && stem == without_hash(new)
}

/// Compares the old and the new version of an object, and returns the differences as a change with the given `action`.
/// `None` if the YAML texts of both versions are equal.
fn changed(
    old: &Object,
    new: &Object,
    (before, after): (&Built<'_>, &Built<'_>),
    action: Action,
) -> Option<ObjectChange> {
    if old.text == new.text {
        return None;
    }
    let mut fields = fields::between((old, before), (new, after));
    // A replaced object is reported with its new name, so this change is not repeated.
    fields.retain(|field| action == Action::Change || field.path != "metadata.name");
    Some(ObjectChange { action, id: new.id.clone(), fields, before: secret::shown(old), after: secret::shown(new) })
}
