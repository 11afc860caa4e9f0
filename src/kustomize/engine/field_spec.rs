//! Field specs, and the search for their fields in an object. A field spec selects a field in some objects for a
//! transformer.
//!
//! Source: kustomize's `api/filters/fieldspec` and `api/types/fieldspec.go`.

use std::borrow::Cow;
use std::sync::Arc;

use super::budget::Exceeded;
use super::resource::Resource;
use super::stop::Failed;
use crate::kustomize::identity::{Gvk, split_at_slash};
use crate::kustomize::node::{Entry, Kind, Node, Tag};

/// A string in a field spec, such as a kind or a path. It is borrowed in kustomize's built-in field specs, and owned if
/// it was read from a file.
pub(super) type Text = Cow<'static, str>;

/// A field that a transformer changes, and the group, version and kind of the objects that contain it. Corresponds to
/// kustomize's `FieldSpec`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FieldSpec {
    /// The API group of the objects; empty for any.
    pub group: Text,
    /// The version of the objects; empty for any.
    pub version: Text,
    /// The kind of the objects that contain the field; empty for any kind.
    pub kind: Text,
    /// The path of the field, with `/` between its steps, such as `metadata/labels`.
    pub path: Text,
    /// Whether a missing field is created.
    pub create: bool,
}

/// The value to create for a missing or null field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Create {
    /// Nothing is created. A missing field stays missing, even if the field spec contains `create: true`.
    No,
    /// An empty mapping as the value of the created field.
    Map,
    /// An empty scalar with this YAML tag.
    Scalar(Tag),
}

/// The reason why the field of a field spec cannot be reached or set.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum FieldError {
    /// The path cannot be followed to its end, because a node on the path is a scalar.
    #[error("expected a sequence or mapping on the way to `{path}`")]
    Scalar {
        /// The path of the field spec.
        path: Text,
    },
    /// The node at the end of the path has the wrong type.
    #[error("`{path}` is {found}, which cannot be set: {expected} was expected")]
    Kind {
        /// The path of the field spec.
        path: Text,
        /// The type of the node, such as `a mapping`.
        found: &'static str,
        /// The expected type of node, such as `a scalar`.
        expected: &'static str,
    },
    /// A step of the path is empty.
    #[error("`{0}` has an empty segment")]
    Empty(Text),
    /// Another error, with its message.
    #[error("{0}")]
    Other(String),
    /// The new value exceeds the memory limit of the build.
    #[error(transparent)]
    Exceeded(#[from] Exceeded),
}

impl From<FieldError> for Failed {
    fn from(error: FieldError) -> Self {
        match error {
            FieldError::Exceeded(exceeded) => exceeded.into(),
            error => Self::Refused(error.to_string()),
        }
    }
}

/// Returns the type of a node for messages, such as `a mapping`.
pub(super) fn kind_of(node: &Node) -> &'static str {
    match node.kind {
        Kind::Scalar(_) => "a scalar",
        Kind::Map(_) => "a mapping",
        Kind::Seq(_) => "a sequence",
    }
}

impl FieldSpec {
    /// Creates a field spec for objects of all kinds.
    pub(super) fn of_all(path: impl Into<Text>, create: bool) -> Self {
        let any = Text::Borrowed("");
        Self { group: any.clone(), version: any.clone(), kind: any, path: path.into(), create }
    }

    /// Splits the path of the field into its steps.
    pub(super) fn steps(&self) -> Steps<'_> {
        Steps::of(&self.path)
    }

    /// Returns the group, version and kind of the selected objects.
    pub(super) fn gvk(&self) -> Gvk<'_> {
        Gvk { group: &self.group, version: &self.version, kind: &self.kind }
    }

    /// Calls `set` on every node at the path, if the field spec selects the object. Creates missing fields if both
    /// `create` and the field spec allow it.
    ///
    /// # Errors
    ///
    /// If a node on the path is a scalar, if a step of the path is empty, or if `set` fails.
    pub(super) fn apply(
        &self,
        resource: &mut Resource,
        create: Create,
        set: &mut dyn FnMut(&mut Node) -> Result<(), FieldError>,
    ) -> Result<(), FieldError> {
        // compare the kind first, because splitting the apiVersion is slower
        let is_of_kind = self.kind.is_empty() || self.kind == resource.kind();
        if !is_of_kind
            || !resource.gvk().is_selected(&self.gvk())
            || !(self.create && create != Create::No || self.leads_somewhere(&resource.node, self.steps()))
        {
            return Ok(());
        }
        self.walk(&mut resource.node, self.steps(), create, set)
    }

    /// Returns `false` if `node` certainly has no value at the path `steps`, which is the rest of the field path. The
    /// caller then skips `node` and does not need to copy it, unless it creates missing fields. Returns `true` if there
    /// is a value, or if `walk` would fail at this path.
    fn leads_somewhere(&self, node: &Node, steps: Steps<'_>) -> bool {
        let Some((step, rest)) = steps.split_first() else { return true };
        match &node.kind {
            _ if node.is_null() => false,
            Kind::Seq(items) => items.iter().any(|item| self.leads_somewhere(item, steps)),
            Kind::Map(_) => {
                let field = step.strip_suffix("[]").unwrap_or(&step);
                field.is_empty()
                    || node.get(field).is_some_and(|value| self.leads_somewhere(value, rest) || value.is_null())
            }
            Kind::Scalar(_) => true,
        }
    }

    fn walk(
        &self,
        node: &mut Node,
        steps: Steps<'_>,
        create: Create,
        set: &mut dyn FnMut(&mut Node) -> Result<(), FieldError>,
    ) -> Result<(), FieldError> {
        let Some((step, rest)) = steps.split_first() else { return set(node) };
        if node.is_null() {
            return Ok(());
        }
        match &mut node.kind {
            Kind::Seq(items) => {
                if items.iter().any(|item| self.create && create != Create::No || self.leads_somewhere(item, steps)) {
                    for item in Arc::make_mut(items) {
                        self.walk(item, steps, create, set)?;
                    }
                }
                Ok(())
            }
            Kind::Map(_) => match self.field(node, &step, rest.is_empty(), create)? {
                Some(field) => self.walk(field, rest, create, set),
                None => Ok(()),
            },
            Kind::Scalar(_) => Err(FieldError::Scalar { path: self.path.clone() }),
        }
    }

    /// Returns the value of the field `step` in `map`. `None` if the field is missing and is not created. Creates a
    /// missing or null value if both `create` and the field spec allow it. `is_last` says whether `step` is the last
    /// step of the path.
    ///
    /// If `step` ends with `[]`, a missing field is never created, and a null value always becomes an empty list.
    fn field<'n>(
        &self,
        map: &'n mut Node,
        step: &str,
        is_last: bool,
        create: Create,
    ) -> Result<Option<&'n mut Node>, FieldError> {
        let (name, is_seq) = step.strip_suffix("[]").map_or((step, false), |name| (name, true));
        if name.is_empty() {
            return Err(FieldError::Empty(self.path.clone()));
        }
        let creates = self.create && create != Create::No && !is_seq;
        let made = match (create, is_seq) {
            (_, true) => Some(Node::seq(Vec::new())),
            _ if !creates => None,
            (Create::Scalar(tag), _) if is_last => Some(Node::new(Kind::Scalar("".into()), tag)),
            _ => Some(Node::map(Vec::new())),
        };
        let Some(found) = map.position(name) else {
            let Some(entries) = map.entries_mut().filter(|_| creates) else { return Ok(None) };
            entries.extend(made.map(|node| Entry::new(name, node)));
            return Ok(entries.last_mut().map(|entry| &mut entry.value));
        };
        let Some(field) = map.entries_mut().and_then(|entries| entries.get_mut(found)) else { return Ok(None) };
        if let Some(made) = made.filter(|_| field.value.is_null()) {
            field.value = made.at(field.value.origin);
        }
        Ok(Some(&mut field.value))
    }

    /// Returns whether `other` has the same path as this field spec, and selects all objects that this field spec
    /// selects.
    fn covers(&self, other: &Self) -> bool {
        self.gvk().is_selected(&other.gvk()) && self.path == other.path
    }
}

/// The error for two field specs of the same field that have different values of `create`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("conflicting field specs for `{0}`: one creates the field and the other does not")]
pub(super) struct Conflict(pub String);

/// Adds the field spec `spec` to a list. As in kustomize, does nothing if the list already has a similar field spec. A
/// field spec in the list is similar if it has the same path as `spec`, and `spec` selects all objects that it selects.
///
/// # Errors
///
/// If the list has a similar field spec, but its value of `create` differs from the value in `spec`.
pub(super) fn merge_one(list: &mut Vec<FieldSpec>, spec: &FieldSpec) -> Result<(), Conflict> {
    match list.iter().find(|own| own.covers(spec)) {
        Some(own) if own.create != spec.create => Err(Conflict(spec.path.to_string())),
        Some(_) => Ok(()),
        None => {
            list.push(spec.clone());
            Ok(())
        }
    }
}

/// Adds field specs to a list. As in kustomize, skips a field spec if the list already has a similar one. A field spec
/// in the list is similar if it has the same path, and selects the same objects or fewer.
///
/// # Errors
///
/// If a skipped field spec and the similar one in the list have different values of `create`.
pub(super) fn merge_all(list: &mut Vec<FieldSpec>, specs: &[FieldSpec]) -> Result<(), Conflict> {
    specs.iter().try_for_each(|spec| merge_one(list, spec))
}

/// The remaining steps of a field path such as `metadata/labels`. A slash inside a step is written as `\/`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Steps<'p>(Option<&'p str>);

impl<'p> Steps<'p> {
    /// Splits a path into its steps. A slash at the start is ignored.
    pub(super) fn of(path: &'p str) -> Self {
        Self(Some(path.strip_prefix('/').unwrap_or(path)))
    }

    fn is_empty(self) -> bool {
        self.0.is_none()
    }

    /// Returns the first step and the remaining steps. `None` if no step is left.
    pub(super) fn split_first(self) -> Option<(Cow<'p, str>, Self)> {
        let path = self.0?;
        let (mut step, mut rest) = split_once(path);
        while let (Some(start), Some(more)) = (step.strip_suffix('\\'), rest) {
            let (next, others) = split_once(more);
            step = [start, "/", &next].concat().into();
            rest = others;
        }
        Some((step, Self(rest)))
    }

    /// Returns all remaining steps of the path.
    pub(super) fn to_vec(self) -> Vec<Cow<'p, str>> {
        let pairs = std::iter::successors(self.split_first(), |(_, rest)| rest.split_first());
        pairs.map(|(step, _)| step).collect()
    }
}

fn split_once(path: &str) -> (Cow<'_, str>, Option<&str>) {
    split_at_slash(path).map_or((path.into(), None), |(step, rest)| (step.into(), Some(rest)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_have_steps() {
        let steps = |path| Steps::of(path).to_vec();
        assert_eq!(steps("metadata/name"), ["metadata", "name"]);
        assert_eq!(steps("/spec/"), ["spec", ""]);
        assert_eq!(steps(""), [""]);
        assert_eq!(steps(r"metadata/annotations/a.b\/c/d"), ["metadata", "annotations", "a.b/c", "d"]);
        assert_eq!(steps(r"a\/b\/c\"), [r"a/b/c\"]);
    }
}
