//! Kinds that objects in the cluster define at run time. For example, a CompositeResourceDefinition defines a kind of
//! composites.
//!
//! A [`Declaration`] names the kind of the defining objects, such as CompositeResourceDefinition. When a defining
//! object is created, the catalog adds the new kind, and usually begins to watch its objects. When the defining object
//! is deleted, the catalog removes the kind. A kind is added only if its defining object has the label
//! `portcullis.dev/composites` ([`CHOOSING_LABEL`]), or is named in the configuration.

use std::collections::{BTreeMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use serde_json::Value;
use tokio::sync::watch;

use super::store::Store;
use super::{Index, Kind, Scope, Storage};
use crate::admission::Metadata;

/// Label on an object that defines a kind, such as a CompositeResourceDefinition. If the value is `"true"`, Portcullis
/// checks the objects of the defined kind.
pub const CHOOSING_LABEL: &str = "portcullis.dev/composites";
/// Maximum number of kinds that objects such as CompositeResourceDefinitions can declare while a process runs. The
/// limit is needed because the memory of these kinds is never freed. No cluster serves so many kinds.
const MAX_KINDS: usize = 5000;

/// A group of kinds that objects in the cluster define, such as the kinds that CompositeResourceDefinitions define.
/// Contains the kind of the defining objects, and how the catalog stores objects of the defined kinds.
#[derive(Debug)]
pub struct Declaration {
    /// The common name of a group of declared kinds. For example, `composites` is the name of all kinds that
    /// CompositeResourceDefinitions declare. Messages use this name. Rules use it to match the objects of all these
    /// kinds.
    pub name: &'static str,
    /// The kind of the objects that define further kinds, such as CompositeResourceDefinition.
    pub by: &'static Kind,
    /// A function that returns the kind that an object defines. For example, it returns the kind `XDatabase` for a
    /// CompositeResourceDefinition that defines it. `None` if the object defines no kind.
    pub declares: fn(&Value) -> Option<Declared>,
    /// The indexes of the catalog for objects of kinds that are defined at run time, such as Crossplane composites. For
    /// example, one index finds all composites of a Composition.
    pub indexes: &'static [&'static Index],
    /// How the catalog stores objects of kinds that are defined at run time, such as Crossplane composites. It says
    /// which fields are stored, and whether the objects are watched. Rules also check admission requests for objects
    /// that are not watched.
    pub storage: Storage,
}

/// A kind that an object in the cluster defines. For example, a CompositeResourceDefinition defines the kind
/// `XDatabase`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Declared {
    /// The API group, such as `example.org`.
    pub group: String,
    /// The API version in which the objects are watched, such as `v1alpha1`.
    pub version: String,
    /// The kind, such as `XDatabase`.
    pub kind: String,
    /// The plural name of the kind, such as `xdatabases`.
    pub plural: String,
    /// Whether the kind is namespaced or cluster-scoped.
    pub scope: Scope,
}

impl Declared {
    /// Converts this declared kind to a `Kind` with static lifetime. The first call for a kind in the process creates
    /// the `Kind`, and later calls return the same reference. Returns `None` if the process already has [`MAX_KINDS`]
    /// such kinds.
    fn interned(&self, declaration: &'static Declaration) -> Option<&'static Kind> {
        static KNOWN: Mutex<Vec<&'static Kind>> = Mutex::new(Vec::new());
        let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        let is_same = |kind: &&&'static Kind| {
            std::ptr::eq(kind.indexes, declaration.indexes)
                && (kind.group, kind.version, kind.kind, kind.plural, kind.scope)
                    == (&*self.group, &*self.version, &*self.kind, &*self.plural, self.scope)
        };
        if let Some(kind) = known.iter().find(is_same) {
            return Some(kind);
        }
        if known.len() >= MAX_KINDS {
            tracing::error!(
                kind = self.kind,
                "not watched: {MAX_KINDS} kinds were declared since the start, which is the maximum"
            );
            return None;
        }
        let kept = |text: &String| &*Box::leak(text.clone().into_boxed_str());
        let kind: &'static Kind = Box::leak(Box::new(Kind {
            group: kept(&self.group),
            version: kept(&self.version),
            kind: kept(&self.kind),
            plural: kept(&self.plural),
            scope: self.scope,
            indexes: declaration.indexes,
            storage: declaration.storage,
        }));
        known.push(kind);
        Some(kind)
    }
}

/// A kind that an object in the cluster defines, with the store for objects of this kind. For example, a
/// CompositeResourceDefinition defines the kind `XDatabase`.
#[derive(Clone)]
struct Held {
    declaration: &'static Declaration,
    kind: &'static Kind,
    store: Arc<RwLock<Store>>,
}

/// The kind that a CompositeResourceDefinition or a similar object defines, and whether that object has the label
/// [`CHOOSING_LABEL`] with the value `true`. The label makes Portcullis check the objects of the defined kind.
#[derive(Debug, PartialEq, Eq)]
struct Declaring {
    declared: Declared,
    is_labelled: bool,
}

/// The kinds that objects such as CompositeResourceDefinitions define. A key consists of the position of a
/// [`Declaration`] in `DeclaredKinds::declarations`, and the name of the defining object.
type AllDeclaring = BTreeMap<(usize, String), Declaring>;

/// The kinds that objects in a catalog declare at run time, for example the kinds that CompositeResourceDefinitions
/// define. Each kind has a store, which contains the objects of the kind.
pub(super) struct DeclaredKinds {
    declarations: Vec<&'static Declaration>,
    /// A cache of the kinds that each CompositeResourceDefinition, or similar object, declares. When one of these
    /// objects changes, only this object is parsed again. The kinds of all others are taken from the cache.
    declaring: Mutex<AllDeclaring>,
    held: RwLock<Vec<Held>>,
    chosen: RwLock<HashSet<String>>,
    changes: watch::Sender<()>,
    /// Whether the stores contain all fields of each object. If false, they contain only the fields in
    /// [`Declaration::storage`].
    pub(super) is_whole: bool,
}

impl DeclaredKinds {
    pub(super) fn new(declarations: Vec<&'static Declaration>) -> Self {
        let (changes, _) = watch::channel(());
        Self {
            declarations,
            declaring: Mutex::default(),
            held: RwLock::default(),
            chosen: RwLock::default(),
            changes,
            is_whole: false,
        }
    }

    /// Returns the store with the objects of `kind`. A store exists only if a CompositeResourceDefinition or a similar
    /// object in the catalog defines `kind`. In addition, the defining object must have the label [`CHOOSING_LABEL`],
    /// or the configuration must select it. Otherwise, returns `None`.
    pub(super) fn store(&self, kind: &'static Kind) -> Option<Arc<RwLock<Store>>> {
        self.find(|held| std::ptr::eq(held.kind, kind)).map(|held| held.store)
    }

    /// Finds a kind by API group and plural name; `None` if there is none. Searches only kinds that
    /// CompositeResourceDefinitions or similar objects in the cluster define. Returns the kind, and the `Declaration`
    /// that says how the catalog stores its objects.
    pub(super) fn named(&self, group: &str, plural: &str) -> Option<(&'static Declaration, &'static Kind)> {
        let found = self.find(|held| held.kind.plural == plural && held.kind.group == group)?;
        Some((found.declaration, found.kind))
    }

    pub(super) fn kinds(&self) -> Vec<&'static Kind> {
        self.all().into_iter().map(|(_, kind)| kind).filter(|kind| !kind.is_read_by_name()).collect()
    }

    /// Returns the kinds that CompositeResourceDefinitions or similar objects declare. Contains a kind only if its
    /// declaring object has the label [`CHOOSING_LABEL`], or is named in the configuration. Each kind is returned with
    /// the `Declaration` that says how the catalog stores its objects.
    pub(super) fn all(&self) -> Vec<(&'static Declaration, &'static Kind)> {
        let held = self.held.read().unwrap_or_else(PoisonError::into_inner);
        held.iter().map(|held| (held.declaration, held.kind)).collect()
    }

    pub(super) fn changes(&self) -> watch::Receiver<()> {
        self.changes.subscribe()
    }

    /// Returns whether objects of this kind define further kinds, as CompositeResourceDefinitions do.
    pub(super) fn is_declaring(&self, kind: &'static Kind) -> bool {
        self.declarations.iter().any(|declaration| std::ptr::eq(declaration.by, kind))
    }

    fn declaring(&self) -> MutexGuard<'_, AllDeclaring> {
        self.declaring.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets which declared kinds the catalog includes. `names` contains the names of the objects that declare them,
    /// such as CompositeResourceDefinitions. The name `*` includes all declared kinds. Kinds whose declaring object has
    /// the label [`CHOOSING_LABEL`] are always included.
    pub(super) fn choose(&self, names: HashSet<String>) {
        *self.chosen.write().unwrap_or_else(PoisonError::into_inner) = names;
        self.follow(&self.declaring());
    }

    /// Records the creation, change or deletion of an object that may define a kind, such as a
    /// CompositeResourceDefinition. If this changes the set of defined kinds, updates the kinds in the catalog.
    /// `object` is the new content; `None` after a deletion.
    pub(super) fn note(&self, kind: &'static Kind, name: &str, object: Option<&Value>) {
        let mut declaring = self.declaring();
        let mut is_changed = false;
        for (at, declaration) in self.declarations.iter().enumerate().filter(|(_, one)| std::ptr::eq(one.by, kind)) {
            let declared = object.and_then(|object| Some((object, (declaration.declares)(object)?)));
            let now = declared.map(|(object, declared)| Declaring { declared, is_labelled: is_labelled(object) });
            let key = (at, name.to_owned());
            if declaring.get(&key) == now.as_ref() {
                continue;
            }
            is_changed = true;
            match now {
                Some(now) => drop(declaring.insert(key, now)),
                None => drop(declaring.remove(&key)),
            }
        }
        if is_changed {
            self.follow(&declaring);
        }
    }

    /// Updates the set of stored kinds. Must be called after an object that declares a kind changes, such as a
    /// CompositeResourceDefinition, and after the selection of declared kinds changes. Adds a store for each new kind.
    /// Removes the store of each kind that is no longer declared, or no longer selected.
    fn follow(&self, declaring: &AllDeclaring) {
        let chosen = declaring.iter().filter(|((_, name), declaring)| self.is_chosen(name, declaring));
        let mut wanted: Vec<(&'static Declaration, &'static Kind)> = chosen
            .filter_map(|((at, _), declaring)| {
                let declaration = *self.declarations.get(*at)?;
                Some((declaration, declaring.declared.interned(declaration)?))
            })
            .collect();
        let mut held = self.held.write().unwrap_or_else(PoisonError::into_inner);
        let before = held.len();
        held.retain(|held| wanted.iter().any(|(_, kind)| std::ptr::eq(*kind, held.kind)));
        wanted.retain(|(_, kind)| !held.iter().any(|held| std::ptr::eq(held.kind, *kind)));
        let is_same = held.len() == before && wanted.is_empty();
        held.extend(wanted.into_iter().map(|(declaration, kind)| {
            let store = Arc::new(RwLock::new(Store::new(kind, self.is_whole)));
            Held { declaration, kind, store }
        }));
        drop(held);
        if !is_same {
            self.changes.send_replace(());
        }
    }

    fn is_chosen(&self, name: &str, declaring: &Declaring) -> bool {
        let chosen = self.chosen.read().unwrap_or_else(PoisonError::into_inner);
        declaring.is_labelled || chosen.contains(name) || chosen.contains("*")
    }

    fn find(&self, wanted: impl Fn(&Held) -> bool) -> Option<Held> {
        let held = self.held.read().unwrap_or_else(PoisonError::into_inner);
        held.iter().find(|held| wanted(held)).cloned()
    }
}

fn is_labelled(object: &Value) -> bool {
    Metadata::of(object).label(CHOOSING_LABEL) == Some("true")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::Catalog;
    use super::*;

    static SHAPES: Kind = Kind {
        group: "example.org",
        version: "v1",
        kind: "Shape",
        plural: "shapes",
        scope: Scope::Cluster,
        indexes: &[],
        storage: Storage::Parts(&[&["plural"], &["metadata", "labels"]]),
    };
    static OF_SHAPES: Declaration = Declaration {
        name: "things",
        by: &SHAPES,
        declares: |shape| {
            let plural = shape.get("plural")?.as_str()?.to_owned();
            let (group, version, kind) = ("things.org".to_owned(), "v1".to_owned(), plural.to_uppercase());
            Some(Declared { group, version, kind, plural, scope: Scope::Namespaced })
        },
        indexes: &[],
        storage: Storage::Parts(&[]),
    };

    fn shape(name: &str, chosen: &str) -> Value {
        json!({"apiVersion": "example.org/v1", "kind": "Shape", "plural": name,
               "metadata": {"name": name, "labels": {CHOOSING_LABEL: chosen}}})
    }

    fn thing(kind: &str, name: &str) -> Value {
        json!({"apiVersion": "things.org/v1", "kind": kind, "metadata": {"name": name, "namespace": "ns"}})
    }

    fn declared(catalog: &Catalog) -> Vec<&str> {
        catalog.declared().into_iter().map(|kind| kind.plural).collect()
    }

    #[test]
    fn chosen_declared_kinds_are_stored() {
        let catalog = Catalog::new([&SHAPES]).declaring(vec![&OF_SHAPES]);
        catalog.replace_all(vec![
            thing("CUBES", "a"),
            shape("cubes", "true"),
            shape("cones", "false"),
            thing("CONES", "b"),
        ]);
        assert_eq!(declared(&catalog), ["cubes"]);
        let (declaration, cubes) = catalog.declared_as("things.org", "cubes").unwrap();
        assert_eq!((declaration.name, catalog.len(cubes)), ("things", 1));
        assert!(catalog.find(cubes, "ns", "a").is_some());
        assert!(catalog.declared_as("things.org", "cones").is_none());
    }

    #[test]
    fn declared_kinds_follow_objects_and_choice() {
        let catalog = Catalog::new([&SHAPES]).declaring(vec![&OF_SHAPES]);
        let changes = catalog.declared_changes();
        catalog.insert(&SHAPES, shape("cubes", "true"));
        assert!(changes.has_changed().unwrap());
        let before = catalog.declared();
        catalog.insert(&SHAPES, shape("cones", "false"));
        catalog.choose(HashSet::from(["cones".to_owned()]));
        assert_eq!(declared(&catalog), ["cubes", "cones"]);
        catalog.remove(&SHAPES, "", "cubes");
        assert_eq!(declared(&catalog), ["cones"]);
        catalog.insert(&SHAPES, shape("cubes", "true"));
        assert!(
            std::ptr::eq(before[0], catalog.declared_as("things.org", "cubes").unwrap().1),
            "a kind is the same again"
        );
    }
}
