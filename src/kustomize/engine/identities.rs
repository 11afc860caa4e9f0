//! The previous names, namespaces and kinds of an object.
//!
//! kustomize stores them in three annotations, each a list separated by commas. Usually, the lists have the same
//! length. They do not have the same length if the object had no name at one time, or if the user wrote one of the
//! annotations. Source: `PrevIds` in kustomize's `api/internal/utils/makeResIds.go`, and `appendCsvAnnotation` in
//! `api/resource/resource.go`.

use std::sync::Arc;

/// Error message for an object whose annotations with previous names, namespaces and kinds have different numbers of
/// entries.
pub(super) const DISAGREE: &str =
    "the internal annotations of kustomize for former names, namespaces and kinds are inconsistent";

/// The contents of the annotations `previousNames`, `previousNamespaces` and `previousKinds`, oldest first. A list is
/// empty if its annotation is missing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Identities {
    names: Vec<Arc<str>>,
    namespaces: Vec<Arc<str>>,
    kinds: Vec<Arc<str>>,
}

/// A previous name, namespace and kind of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PreviousId<'a> {
    pub(super) name: &'a str,
    /// The namespace for comparisons. `default` if the object had no namespace, and a placeholder for cluster-scoped
    /// objects.
    pub(super) namespace: &'a str,
    pub(super) kind: &'a str,
}

impl Identities {
    /// Parses the annotations of an object. `annotation` returns the value of kustomize's internal annotation with the
    /// given name.
    pub(super) fn read<'t>(annotation: impl Fn(&str) -> Option<&'t str>) -> Self {
        let list = |key: &str| annotation(key).into_iter().flat_map(|text| text.split(',')).map(Arc::from).collect();
        Self { names: list("previousNames"), namespaces: list("previousNamespaces"), kinds: list("previousKinds") }
    }

    /// Appends a name, a namespace and a kind to the lists. Like kustomize, omits empty values, and splits values at
    /// commas.
    pub(super) fn push(&mut self, name: &Arc<str>, namespace: &Arc<str>, kind: &Arc<str>) {
        push(&mut self.names, name);
        push(&mut self.namespaces, namespace);
        push(&mut self.kinds, kind);
    }

    /// Returns whether the lists of previous names, namespaces and kinds have the same length. If not, kustomize fails,
    /// because it combines elements at the same position. An empty list of namespaces or kinds has length 1, because
    /// kustomize splits an empty annotation into one empty string. Returns true if there are no names.
    pub(super) fn agree(&self) -> bool {
        let agrees = |list: &[Arc<str>]| list.len().max(1) == self.names.len();
        self.names.is_empty() || (agrees(&self.namespaces) && agrees(&self.kinds))
    }

    /// Returns the previous names of the object, oldest first, each with a namespace and a kind. The names, namespaces
    /// and kinds are in three lists, and elements at the same position are combined. This is correct only if
    /// [`Identities::agree`] returns true: then the lists have the same length.
    pub(super) fn iter(&self) -> impl Iterator<Item = PreviousId<'_>> {
        self.names.iter().enumerate().map(|(index, name)| PreviousId {
            name,
            namespace: self.namespaces.get(index).map_or("", |namespace| namespace),
            kind: self.kinds.get(index).map_or("", |kind| kind),
        })
    }

    /// Returns whether the object has at least one of the annotations that store previous names, namespaces and kinds.
    pub(super) fn are_stored(&self) -> bool {
        [&self.names, &self.namespaces, &self.kinds].iter().any(|list| !list.is_empty())
    }
}

fn push(list: &mut Vec<Arc<str>>, text: &Arc<str>) {
    match text.contains(',') {
        _ if text.is_empty() => {}
        true => list.extend(text.split(',').map(Arc::from)),
        false => list.push(Arc::clone(text)),
    }
}
