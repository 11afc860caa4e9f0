//! Field specs, which select a field in some objects for a transformer, and the walk to that field.
//!
//! Source: kustomize's `api/filters/fieldspec` and `api/types/fieldspec.go`.

use std::sync::Arc;

use super::budget::Exceeded;
use super::id::Gvk;
use super::resource::Resource;
use super::stop::Failed;
use crate::kustomize::node::{Entry, Kind, Node, Tag};

/// A field in objects of some kinds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FieldSpec {
    /// The group; empty for any.
    pub group: Arc<str>,
    /// The version; empty for any.
    pub version: Arc<str>,
    /// The kind; empty for any.
    pub kind: Arc<str>,
    /// The path, with `/` between its steps.
    pub path: Arc<str>,
    /// Whether a missing field is created.
    pub create: bool,
    steps: Arc<[Box<str>]>,
}

/// The value to create for a missing or null field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Create {
    /// Creates nothing.
    No,
    /// A mapping.
    Map,
    /// A scalar with this tag.
    Scalar(Tag),
}

/// The reason why a field cannot be reached or set.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum FieldError {
    /// The path leads through a scalar.
    #[error("expected a sequence or mapping on the way to `{path}`")]
    Scalar {
        /// The path of the field spec.
        path: Arc<str>,
    },
    /// The value at the end has the wrong kind.
    #[error("`{path}` is {found}, which cannot be set: {expected} was expected")]
    Kind {
        /// The path of the field spec.
        path: Arc<str>,
        /// The kind of the node.
        found: &'static str,
        /// The expected kind.
        expected: &'static str,
    },
    /// A step of the path is empty.
    #[error("`{0}` has an empty step")]
    Empty(Arc<str>),
    /// Another error, with its message.
    #[error("{0}")]
    Other(String),
    /// The value to set is too large.
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

/// Returns the name of a node's kind.
pub(super) fn kind_of(node: &Node) -> &'static str {
    match node.kind {
        Kind::Scalar(_) => "a scalar",
        Kind::Map(_) => "a mapping",
        Kind::Seq(_) => "a sequence",
    }
}

impl FieldSpec {
    /// Creates a field spec; an empty part of `gvk` matches everything.
    pub(super) fn new(gvk: Gvk<'_>, path: &str, create: bool) -> Self {
        Self {
            group: gvk.group.into(),
            version: gvk.version.into(),
            kind: gvk.kind.into(),
            path: path.into(),
            create,
            steps: split(path),
        }
    }

    /// Returns the steps of its path.
    pub(super) fn steps(&self) -> &[Box<str>] {
        &self.steps
    }

    /// Returns the group, version and kind of the objects that it selects.
    pub(super) fn gvk(&self) -> Gvk<'_> {
        Gvk { group: &self.group, version: &self.version, kind: &self.kind }
    }

    /// Calls a function on every node at the path in a selected object.
    ///
    /// # Errors
    ///
    /// If the path leads through a scalar, or the function fails.
    pub(super) fn apply(
        &self,
        resource: &mut Resource,
        create: Create,
        set: &mut dyn FnMut(&mut Node) -> Result<(), FieldError>,
    ) -> Result<(), FieldError> {
        if !resource.gvk().is_selected(&self.gvk())
            || !(self.create && create != Create::No || self.leads_somewhere(&resource.node, 0))
        {
            return Ok(());
        }
        self.walk(&mut resource.node, 0, create, set)
    }

    /// Returns whether the path leads to a node, or to a scalar that it cannot pass. A shared node is copied only then.
    fn leads_somewhere(&self, node: &Node, at: usize) -> bool {
        let Some(step) = self.steps.get(at) else { return true };
        match &node.kind {
            _ if node.is_null() => false,
            Kind::Seq(items) => items.iter().any(|item| self.leads_somewhere(item, at)),
            Kind::Map(_) => {
                let field = step.strip_suffix("[]").unwrap_or(step);
                field.is_empty()
                    || node.get(field).is_some_and(|value| self.leads_somewhere(value, at + 1) || value.is_null())
            }
            Kind::Scalar(_) => true,
        }
    }

    fn walk(
        &self,
        node: &mut Node,
        at: usize,
        create: Create,
        set: &mut dyn FnMut(&mut Node) -> Result<(), FieldError>,
    ) -> Result<(), FieldError> {
        let Some(step) = self.steps.get(at) else { return set(node) };
        if node.is_null() {
            return Ok(());
        }
        match &mut node.kind {
            Kind::Seq(items) => {
                if items.iter().any(|item| self.create && create != Create::No || self.leads_somewhere(item, at)) {
                    for item in Arc::make_mut(items) {
                        self.walk(item, at, create, set)?;
                    }
                }
                Ok(())
            }
            Kind::Map(_) => match self.field(node, step, at, create)? {
                Some(field) => self.walk(field, at + 1, create, set),
                None => Ok(()),
            },
            Kind::Scalar(_) => Err(FieldError::Scalar { path: Arc::clone(&self.path) }),
        }
    }

    /// Returns the field of a mapping that a step names, and creates it if requested and missing or null.
    fn field<'n>(
        &self,
        map: &'n mut Node,
        step: &str,
        at: usize,
        create: Create,
    ) -> Result<Option<&'n mut Node>, FieldError> {
        let (name, is_seq) = step.strip_suffix("[]").map_or((step, false), |name| (name, true));
        if name.is_empty() {
            return Err(FieldError::Empty(Arc::clone(&self.path)));
        }
        let creates = self.create && create != Create::No && !is_seq;
        let is_last = at + 1 == self.steps.len();
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

    /// Returns whether another spec with the same path selects the same objects, or some or more of them.
    fn covers(&self, other: &Self) -> bool {
        self.gvk().is_selected(&other.gvk()) && self.path == other.path
    }
}

/// The error of two field specs for the same field that disagree about creating it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("conflicting field specs for `{0}`: one creates the field and the other does not")]
pub(super) struct Conflict(pub String);

/// Adds a field spec to a list that lacks it.
///
/// # Errors
///
/// If the list has it with another value of `create`.
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

/// Adds all field specs that a list lacks.
///
/// # Errors
///
/// If two disagree about creating the field.
pub(super) fn merge_all(list: &mut Vec<FieldSpec>, specs: &[FieldSpec]) -> Result<(), Conflict> {
    specs.iter().try_for_each(|spec| merge_one(list, spec))
}

/// Returns the steps of a path; `\/` is a slash within a step.
pub(super) fn split(path: &str) -> Arc<[Box<str>]> {
    let mut steps: Vec<String> = Vec::new();
    let path = path.strip_prefix('/').unwrap_or(path);
    for part in path.split('/') {
        match steps.last_mut() {
            Some(last) if last.ends_with('\\') => {
                last.pop();
                last.push('/');
                last.push_str(part);
            }
            _ => steps.push(part.to_owned()),
        }
    }
    steps.into_iter().map(String::into_boxed_str).collect()
}
