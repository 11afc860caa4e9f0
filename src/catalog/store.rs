//! The objects of one kind, by name and by index.

use std::any::Any;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Index, Kind};
use crate::admission::Kept;

/// How much is known of a kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Coverage {
    /// Not listed yet: that an object is not found says nothing.
    Pending,
    /// The cluster does not have the kind.
    Absent,
    /// Everything: an object that is not found does not exist.
    Complete,
}

/// An object in the catalog, with the typed view that a system made of it.
#[derive(Debug)]
pub struct Stored {
    value: Value,
    view: Kept,
}

impl Stored {
    /// Keeps an object.
    pub fn new(value: Value) -> Self {
        Self { value, view: Kept::default() }
    }

    /// The object.
    pub fn value(&self) -> &Value {
        &self.value
    }

    /// `metadata.name`.
    pub fn name(&self) -> &str {
        text(&self.value, "name")
    }

    /// `metadata.namespace`.
    pub fn namespace(&self) -> &str {
        text(&self.value, "namespace")
    }

    /// What `make` makes of the object, made once and kept with it. See [`Kept::or_make`].
    pub fn view<T: Any + Send + Sync + Clone>(&self, make: fn(&Value) -> T) -> T {
        self.view.or_make(|| make(&self.value))
    }
}

fn text<'v>(object: &'v Value, key: &str) -> &'v str {
    object.get("metadata").and_then(|meta| meta.get(key)?.as_str()).unwrap_or_default()
}

/// The names that an index files under one key.
pub(super) type Users = BTreeSet<Arc<str>>;
type Keys = HashMap<String, Users>;

pub(super) struct Store {
    kind: &'static Kind,
    coverage: Coverage,
    objects: HashMap<String, HashMap<Arc<str>, Arc<Stored>>>,
    /// For each index, namespace → key → names.
    indexes: Vec<HashMap<String, Keys>>,
}

impl Store {
    pub(super) fn new(kind: &'static Kind) -> Self {
        let indexes = kind.indexes.iter().map(|_| HashMap::new()).collect();
        Self { kind, coverage: Coverage::Pending, objects: HashMap::new(), indexes }
    }

    pub(super) fn coverage(&self) -> Coverage {
        self.coverage
    }

    pub(super) fn set_coverage(&mut self, coverage: Coverage) {
        self.coverage = coverage;
    }

    pub(super) fn len(&self) -> usize {
        self.objects.values().map(HashMap::len).sum()
    }

    pub(super) fn find(&self, namespace: &str, name: &str) -> Option<Arc<Stored>> {
        self.objects.get(namespace)?.get(name).cloned()
    }

    pub(super) fn all(&self) -> Vec<Arc<Stored>> {
        self.objects.values().flat_map(HashMap::values).cloned().collect()
    }

    pub(super) fn users(&self, index: &'static Index, namespace: &str, key: &str) -> Option<&Users> {
        let at = self.kind.indexes.iter().position(|declared| std::ptr::eq(*declared, index))?;
        self.indexes.get(at)?.get(namespace)?.get(key)
    }

    /// As [`Store::indexed`], in all namespaces.
    pub(super) fn indexed_everywhere(&self, index: &'static Index, key: &str, limit: usize) -> Vec<Arc<Stored>> {
        let Some(at) = self.kind.indexes.iter().position(|declared| std::ptr::eq(*declared, index)) else {
            return Vec::new();
        };
        let filed = self.indexes[at].iter().filter_map(|(namespace, keys)| Some((namespace, keys.get(key)?)));
        let mut filed: Vec<_> =
            filed.flat_map(|(namespace, users)| users.iter().map(move |name| (namespace, name))).collect();
        filed.sort_unstable();
        filed.into_iter().take(limit).filter_map(|(namespace, name)| self.find(namespace, name)).collect()
    }

    pub(super) fn indexed(&self, index: &'static Index, namespace: &str, key: &str, limit: usize) -> Vec<Arc<Stored>> {
        let names = self.users(index, namespace, key).into_iter().flatten().take(limit);
        names.filter_map(|name| self.find(namespace, name)).collect()
    }

    /// Puts an object in; gives it, and the one whose place it takes.
    pub(super) fn insert(&mut self, mut object: Value) -> (Option<Arc<Stored>>, Arc<Stored>) {
        trim(&mut object);
        if self.kind.is_metadata_only() {
            keep_metadata(&mut object);
        }
        let stored = Arc::new(Stored::new(object));
        let namespace = self.kind.scope.namespace(stored.namespace()).to_owned();
        let name: Arc<str> = stored.name().into();
        let before = self.remove(&namespace, &name);
        for (index, filed) in self.kind.indexes.iter().zip(&mut self.indexes) {
            for key in (index.keys)(stored.value()) {
                filed.entry(namespace.clone()).or_default().entry(key).or_default().insert(name.clone());
            }
        }
        self.objects.entry(namespace).or_default().insert(name, stored.clone());
        (before, stored)
    }

    pub(super) fn remove(&mut self, namespace: &str, name: &str) -> Option<Arc<Stored>> {
        let stored = self.objects.get_mut(namespace)?.remove(name)?;
        for (index, filed) in self.kind.indexes.iter().zip(&mut self.indexes) {
            let Some(keys) = filed.get_mut(namespace) else { continue };
            for key in (index.keys)(stored.value()) {
                let Some(users) = keys.get_mut(&key) else { continue };
                users.remove(name);
                if users.is_empty() {
                    keys.remove(&key);
                }
            }
        }
        Some(stored)
    }
}

/// Drops what no rule reads and every object carries: often more than half of its size.
pub(super) fn trim(object: &mut Value) {
    const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";
    let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) else { return };
    metadata.remove("managedFields");
    if let Some(annotations) = metadata.get_mut("annotations").and_then(Value::as_object_mut) {
        annotations.remove(LAST_APPLIED);
    }
}

fn keep_metadata(object: &mut Value) {
    if let Some(members) = object.as_object_mut() {
        members.retain(|key, _| ["apiVersion", "kind", "metadata"].contains(&key.as_str()));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::{Catalog, Scope};
    use super::*;

    static BY_COLOUR: Index = Index {
        name: "colour",
        keys: |object| object.get("colour").and_then(Value::as_str).map(str::to_owned).into_iter().collect(),
    };
    static THINGS: Kind = Kind {
        group: "example.org",
        version: "v1",
        kind: "Thing",
        plural: "things",
        scope: Scope::Namespaced,
        indexes: &[&BY_COLOUR],
    };

    fn thing(name: &str, colour: &str) -> Value {
        json!({"apiVersion": "example.org/v1", "kind": "Thing", "colour": colour,
               "metadata": {"name": name, "namespace": "ns"}})
    }

    #[test]
    fn indexes_follow_changes() {
        let catalog = Catalog::of([&THINGS], vec![thing("b", "red"), thing("a", "red")]);
        let red = |catalog: &Catalog| -> Vec<String> {
            catalog.indexed(&THINGS, &BY_COLOUR, "ns", "red", 10).iter().map(|o| o.name().to_owned()).collect()
        };
        assert_eq!(red(&catalog), ["a", "b"]);
        catalog.insert(&THINGS, thing("a", "blue"));
        assert_eq!(red(&catalog), ["b"]);
        catalog.remove(&THINGS, "ns", "b");
        assert_eq!(catalog.count(&THINGS, &BY_COLOUR, "ns", "red"), 0);
        assert_eq!(catalog.len(&THINGS), 1);
    }

    #[test]
    fn what_nobody_should_have_is_not_kept() {
        static SAFES: Kind = Kind { indexes: &[&super::super::METADATA_ONLY], ..THINGS };
        let catalog = Catalog::of([&SAFES], vec![thing("a", "red")]);
        let kept = catalog.find(&SAFES, "ns", "a").unwrap();
        assert_eq!((kept.name(), kept.value().get("colour")), ("a", None));
    }

    #[test]
    fn what_is_not_complete_is_pending() {
        let catalog = Catalog::new([&THINGS]);
        assert_eq!(catalog.pending().len(), 1);
        catalog.set_coverage(&THINGS, Coverage::Absent);
        assert!(catalog.pending().is_empty());
    }
}
