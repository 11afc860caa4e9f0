//! Selections of parts of an object, such as the parts that the catalog stores. A selection is a tree of paths.

use crate::admission::Path;

/// The wildcard in a path. It matches every member of an object, or every item of a list.
pub const EVERY: &str = "*";
/// The field paths that select an object with all its fields. Two fields are never stored, even with these paths:
/// `metadata.managedFields` and the annotation `kubectl.kubernetes.io/last-applied-configuration`.
pub(super) const EVERYTHING: &[Path] = &[&[EVERY]];

/// A tree of field paths that selects parts of an object, such as the parts that the catalog stores.
#[derive(Debug)]
pub(super) enum Part {
    /// The whole value is selected, with everything in it.
    Whole,
    /// Only these members of the object are selected. Of each member, only the given part is selected.
    Members(Vec<(&'static str, Part)>),
}

/// The fields of an object that are decoded when it is stored.
#[derive(Debug)]
pub(super) struct Selection {
    /// The fields that the catalog stores.
    pub(super) stored: Part,
    /// The fields that the indexes read. Except for name and namespace, the catalog also stores them.
    pub(super) indexed: Part,
}

static ALL: Part = Part::Whole;

impl Part {
    /// Builds the tree that selects the fields at `paths`, such as `["spec", "template"]`.
    pub(super) fn of(paths: &[Path]) -> Self {
        let mut root = Self::Members(Vec::new());
        paths.iter().for_each(|path| root.add(path));
        root
    }

    fn add(&mut self, path: &[&'static str]) {
        let Self::Members(members) = self else { return };
        let Some((first, rest)) = path.split_first() else {
            *self = Self::Whole;
            return;
        };
        match members.iter_mut().find(|(key, _)| key == first) {
            Some((_, part)) => part.add(rest),
            None => {
                let mut part = Self::Members(Vec::new());
                part.add(rest);
                members.push((*first, part));
            }
        }
    }

    /// Returns the selection of fields inside the object's member `key`. `None` if nothing in this member is selected.
    pub(super) fn member(&self, key: &str) -> Option<&Self> {
        let Self::Members(members) = self else { return Some(&ALL) };
        let named = members.iter().find(|(name, _)| *name == key);
        named.or_else(|| members.iter().find(|(name, _)| *name == EVERY)).map(|(_, part)| part)
    }

    /// Returns which fields are selected in each item of a list. For example, the path `["imports", "*", "name"]`
    /// selects `name` in each item of `imports`. If no path has a `*` at this position, rules do not expect a list
    /// there. In this case, returns a selection of all fields, so that rules can report the list.
    pub(super) fn item(&self) -> &Self {
        match self {
            Self::Whole => &ALL,
            Self::Members(members) => members.iter().find(|(name, _)| *name == EVERY).map_or(&ALL, |(_, part)| part),
        }
    }
}
