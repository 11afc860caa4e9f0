//! Kinds of objects that rules look up, and the indexes over them.

use serde_json::Value;

use super::parts::{Part, Selection};
use super::storage::Storage;
use crate::admission::Path;

/// A kind of objects in the catalog. Each kind exists only once in memory, in most cases as a `static`. So kinds are
/// compared by address.
#[derive(Debug)]
pub struct Kind {
    /// API group, empty for the core group.
    pub group: &'static str,
    /// API version in which the objects are watched, such as `v1`.
    pub version: &'static str,
    /// Kind, such as `Context`.
    pub kind: &'static str,
    /// Plural name, such as `contexts`.
    pub plural: &'static str,
    /// Whether the kind is namespaced or cluster-scoped.
    pub scope: Scope,
    /// Indexes for look-ups other than by name, for example by label.
    pub indexes: &'static [&'static Index],
    /// Which fields of an object the catalog stores, and whether the catalog watches the objects of this kind.
    pub storage: Storage,
}

/// The scope of a kind: namespaced or cluster-scoped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// Objects of the kind belong to a namespace.
    Namespaced,
    /// Objects of the kind belong to no namespace.
    Cluster,
}

/// An index of the catalog. It finds the objects of a kind by computed keys, such as their labels, instead of by name.
/// A look-up with a key returns the objects that have this key, in one namespace or in all namespaces.
#[derive(Debug)]
pub struct Index {
    /// The name of the index, such as `label` for an index that finds objects by their labels.
    pub name: &'static str,
    /// The paths of the fields that `keys` reads. Only the fields at these paths are parsed when an object is stored.
    pub parts: &'static [Path],
    /// Returns the index keys of an object. A look-up with one of these keys finds the object.
    pub keys: fn(&Value) -> Vec<String>,
}

/// The core kind `Namespace`. Rules look up whether a namespace is terminating.
pub static NAMESPACES: Kind = Kind {
    group: "",
    version: "v1",
    kind: "Namespace",
    plural: "namespaces",
    scope: Scope::Cluster,
    indexes: &[],
    storage: Storage::Parts(&[&["metadata", "deletionTimestamp"], &["status", "phase"]]),
};

impl Kind {
    /// Returns the `apiVersion` of the kind's objects, such as `landscaper.gardener.cloud/v1alpha1`.
    pub fn api_version(&self) -> String {
        if self.group.is_empty() { self.version.to_owned() } else { format!("{}/{}", self.group, self.version) }
    }

    /// Returns which fields of an object the catalog stores, and which are needed to compute its keys in all indexes of
    /// this kind.
    pub(super) fn selection(&self) -> Selection {
        let indexed: Vec<Path> = self.indexes.iter().flat_map(|index| index.parts).copied().collect();
        Selection { stored: Part::of(self.storage.parts()), indexed: Part::of(&indexed) }
    }

    /// Returns whether `api_version` has the group and the version of this kind.
    pub(super) fn is_api_version(&self, api_version: &str) -> bool {
        api_version.rsplit_once('/').unwrap_or(("", api_version)) == (self.group, self.version)
    }

    /// Returns whether an object is of this kind, in any version of its group.
    pub fn is_kind_of(&self, object: &Value) -> bool {
        let text = |key| object.get(key).and_then(Value::as_str).unwrap_or_default();
        let api_version = text("apiVersion");
        let group = api_version.rsplit_once('/').map_or("", |(group, _)| group);
        text("kind") == self.kind && group == self.group
    }

    /// Returns whether Portcullis only reads objects of this kind from the API server by name, and does not watch them.
    pub fn is_read_by_name(&self) -> bool {
        !self.storage.is_watched()
    }

    /// Returns whether Portcullis reads objects of this kind by name from the API server, in any namespace. It does not
    /// watch these objects. It needs the permission `get` for them in all namespaces.
    pub fn is_read_everywhere(&self) -> bool {
        matches!(self.storage, Storage::Live(_))
    }

    /// Returns the full resource name, such as `contexts.landscaper.gardener.cloud`.
    pub fn full_name(&self) -> String {
        if self.group.is_empty() { self.plural.to_owned() } else { format!("{}.{}", self.plural, self.group) }
    }
}

impl Scope {
    /// Returns the namespace under which an object of this scope is stored; empty for cluster-scoped objects.
    pub(super) fn namespace(self, namespace: &str) -> &str {
        match self {
            Self::Namespaced => namespace,
            Self::Cluster => "",
        }
    }
}
