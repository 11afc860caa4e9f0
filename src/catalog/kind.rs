//! Kinds of objects that rules look up, and the indexes over them.

use serde_json::Value;

use super::parts::Part;
use super::storage::Storage;
use crate::admission::Path;

/// A kind of objects in the catalog, declared as a `static`. Kinds are compared by address.
#[derive(Debug)]
pub struct Kind {
    /// API group, empty for the core group.
    pub group: &'static str,
    /// API version that is watched.
    pub version: &'static str,
    /// Kind, such as `Context`.
    pub kind: &'static str,
    /// Plural name, such as `contexts`.
    pub plural: &'static str,
    /// Whether objects live in namespaces.
    pub scope: Scope,
    /// Indexes for looking objects up other than by name.
    pub indexes: &'static [&'static Index],
    /// The part of its objects that the catalog stores.
    pub storage: Storage,
}

/// The scope of a kind: namespaced or cluster-scoped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// Objects belong to a namespace.
    Namespaced,
    /// Objects belong to no namespace.
    Cluster,
}

/// An index: computes keys under which an object is found within its namespace.
#[derive(Debug)]
pub struct Index {
    /// A description of the keys.
    pub name: &'static str,
    /// The paths that `keys` reads, besides the name and the namespace. Only these are parsed when an object is stored.
    pub parts: &'static [Path],
    /// Returns the keys of an object.
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
    /// Returns the `apiVersion` of its objects.
    pub fn api_version(&self) -> String {
        if self.group.is_empty() { self.version.to_owned() } else { format!("{}/{}", self.group, self.version) }
    }

    /// Returns the parts of its objects that its indexes read.
    pub(super) fn indexed_parts(&self) -> Part {
        let paths: Vec<Path> = self.indexes.iter().flat_map(|index| index.parts).copied().collect();
        Part::of(&paths)
    }

    /// Returns whether this is the `apiVersion` of its objects.
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

    /// Returns whether its objects are never watched, and only read live by name.
    pub fn is_read_by_name(&self) -> bool {
        !self.storage.is_watched()
    }

    /// Returns whether its objects are never watched, and read live by name in any namespace.
    pub fn is_read_everywhere(&self) -> bool {
        matches!(self.storage, Storage::Live(_))
    }

    /// Returns the full resource name: `contexts.landscaper.gardener.cloud`.
    pub fn full_name(&self) -> String {
        if self.group.is_empty() { self.plural.to_owned() } else { format!("{}.{}", self.plural, self.group) }
    }
}

impl Scope {
    /// Returns the namespace under which an object of this scope is stored.
    pub(super) fn namespace(self, namespace: &str) -> &str {
        match self {
            Self::Namespaced => namespace,
            Self::Cluster => "",
        }
    }
}
