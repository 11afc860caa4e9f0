//! Kinds of objects that rules look up, and the indexes over them.

use serde_json::Value;

use super::storage::Storage;

/// A kind of objects in the catalog. Declared as a `static`; two kinds are the same when they are the same static.
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
    /// The ways in which rules look objects up, other than by name.
    pub indexes: &'static [&'static Index],
    /// What the catalog stores of its objects.
    pub storage: Storage,
}

/// Whether objects live in namespaces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// In a namespace.
    Namespaced,
    /// In none.
    Cluster,
}

/// Files objects under keys, within their namespace.
#[derive(Debug)]
pub struct Index {
    /// The description of the keys.
    pub name: &'static str,
    /// The keys of an object.
    pub keys: fn(&Value) -> Vec<String>,
}

/// The core kind `Namespace`: rules ask whether one is terminating.
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

    /// Reports whether its objects are read only when a rule names one, and never watched.
    pub fn is_read_by_name(&self) -> bool {
        !self.storage.is_watched()
    }

    /// Returns the full name: `contexts.landscaper.gardener.cloud`.
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
