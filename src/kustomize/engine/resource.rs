//! An object with its state in a build: previous identities, affixes, and generator options.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::identities::{self, Identities};
use super::lost::Lost;
use super::odd_annotations::{self, Stored};
use super::origin::OriginNote;
use super::setters::{map_at, set_scalar};
use crate::kustomize::identity::{Gvk, Id, Scope};
use crate::kustomize::node::{Entry, Node, Origin};

/// The [`Resource::uid`] of the next object that is created.
static NEXT: AtomicU64 = AtomicU64::new(0);

/// The `behavior` of a generator: whether its object is added, or replaces an existing object, or is merged into it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Behavior {
    /// The object was not generated.
    #[default]
    None,
    /// The generated object is added. It is an error if an object with its identity exists.
    Create,
    /// The data of the generated object replaces the data of the existing object.
    Replace,
    /// The generated object is merged into the existing object.
    Merge,
}

impl Behavior {
    /// Returns the value of `behavior` in kustomization files, such as `merge`.
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::None | Self::Create => "create",
            Self::Replace => "replace",
            Self::Merge => "merge",
        }
    }
}

/// A Kubernetes object in a build, with its state, such as its previous names.
#[derive(Debug, Clone)]
pub struct Resource {
    /// The content of the object.
    pub node: Node,
    /// The position of the object in its file, or of the entry that generates it.
    pub(super) origin: Origin,
    /// Whether the object may lack changes because a step of the build failed. The value is `Lost::Changes` if it may
    /// lack changes, and otherwise `Lost::Nothing`.
    pub(super) lost: Lost,
    /// A number that identifies the object in this process.
    pub(super) uid: u64,
    /// The previous names, namespaces and kinds of the object.
    pub(super) identities: Identities,
    /// The prefixes that transformers added to the name, in the order in which they were added.
    pub(super) prefixes: Vec<Arc<str>>,
    /// The suffixes that transformers added to the name, in the order in which they were added.
    pub(super) suffixes: Vec<Arc<str>>,
    /// The value of `behavior` of the generator that created the object.
    pub(super) behavior: Behavior,
    /// Whether a hash of the content is appended to the name.
    pub(super) needs_hash: bool,
    /// The names of the vars whose values come from the object.
    pub(super) vars: Vec<Arc<str>>,
    /// The origin of the object for the annotation `config.kubernetes.io/origin`, if the build records origins.
    pub(super) source: Option<OriginNote>,
    /// The transformers that changed the object, if the build records them.
    pub(super) transformations: Vec<OriginNote>,
    /// The number of groups of linked fields in the object. kustomize links fields if it puts one YAML node into
    /// several of them, for example when it adds a label. The fields of a group always have the same value; see
    /// [`super::shared`]. The groups are numbered from 1, so this is also the ID of the newest group.
    pub(super) groups: u32,
    /// The groups of fields that share one value, as pairs of the group's ID and its current value. kustomize puts one
    /// YAML node into all fields of a group, so they always change together; see [`super::shared`].
    pub(super) shared: Vec<(u32, Node)>,
    /// The reason why kustomize panics when it stores the previous name of the object in its annotations. For example,
    /// the annotations are a list. `None` if kustomize does not panic.
    pub(super) unstorable_identity: Option<&'static str>,
    /// A copy of the object directly after the last JSON patch; `None` if no JSON patch was applied. A JSON patch
    /// changes the line numbers of all nodes, because kustomize prints the patched object and parses it again. This
    /// copy is compared before and after each validator, because a validator must not change line numbers.
    pub(super) rebuilt: Option<Arc<Node>>,
}

impl Resource {
    /// Creates an object from its YAML content, and reads its state from kustomize's internal annotations.
    pub(super) fn new(node: Node) -> Self {
        let mut resource = Self {
            origin: node.origin,
            lost: Lost::Nothing,
            node,
            uid: NEXT.fetch_add(1, Ordering::Relaxed),
            identities: Identities::default(),
            prefixes: Vec::new(),
            suffixes: Vec::new(),
            behavior: Behavior::None,
            needs_hash: false,
            vars: Vec::new(),
            source: None,
            transformations: Vec::new(),
            groups: 0,
            shared: Vec::new(),
            unstorable_identity: None,
            rebuilt: None,
        };
        resource.absorb();
        resource
    }

    /// Returns the value of the field `field` of `metadata`; empty if it is missing or not a scalar.
    fn meta(&self, field: &str) -> &str {
        let value = self.node.get("metadata").and_then(|metadata| metadata.get(field));
        value.filter(|value| !value.is_null()).and_then(Node::text).unwrap_or_default()
    }

    /// Returns the value of the field `field` of `metadata` as a shared string; empty if it is missing or not a scalar.
    fn shared_meta(&self, field: &str) -> Arc<str> {
        let value = self.node.get("metadata").and_then(|metadata| metadata.get(field));
        value.filter(|value| !value.is_null()).and_then(Node::shared_text).unwrap_or_default()
    }

    /// Returns `metadata.name`; empty if it is missing or not a scalar.
    pub fn name(&self) -> &str {
        self.meta("name")
    }

    /// Returns the name that the object had before the first change. For example, a prefix or a hash changes the name.
    pub fn original_name(&self) -> &str {
        self.identities.iter().next().map_or_else(|| self.name(), |id| id.name)
    }

    /// Returns `metadata.namespace`; empty if it is missing or not a scalar.
    pub fn namespace(&self) -> &str {
        self.meta("namespace")
    }

    /// Returns the kind; empty if it is missing or not a scalar.
    pub fn kind(&self) -> &str {
        self.node.get("kind").and_then(Node::text).unwrap_or_default()
    }

    /// Returns group, version and kind of the object, from its fields `apiVersion` and `kind`.
    pub(super) fn gvk(&self) -> Gvk<'_> {
        Gvk::new(self.node.get("apiVersion").and_then(Node::text).unwrap_or_default(), self.kind())
    }

    /// Returns the current identity of the object.
    pub(super) fn id(&self, scope: &Scope) -> Id<'_> {
        let gvk = self.gvk();
        Id { gvk, name: self.name(), namespace: self.namespace(), is_cluster: scope.is_cluster(&gvk) }
    }

    /// Returns the previous identities of the object, oldest first. They contain the current group and version, because
    /// kustomize stores only previous names, namespaces and kinds.
    pub(super) fn previous_ids(&self) -> impl Iterator<Item = Id<'_>> {
        let gvk = self.gvk();
        self.identities.iter().map(move |id| Id {
            gvk: Gvk { kind: id.kind, ..gvk },
            name: id.name,
            namespace: id.namespace,
            is_cluster: false,
        })
    }

    /// Returns the oldest identity of the object. This is the first previous identity, or the current identity if there
    /// is no previous one.
    pub(super) fn original_id(&self, scope: &Scope) -> Id<'_> {
        self.previous_ids().next().unwrap_or_else(|| self.id(scope))
    }

    /// Returns whether `condition` returns true for the current identity or for a previous identity of the object.
    pub(super) fn any_id(&self, scope: &Scope, condition: impl Fn(&Id<'_>) -> bool) -> bool {
        self.previous_ids().any(|id| condition(&id)) || condition(&self.id(scope))
    }

    /// Adds the current identity of the object to its previous identities. kustomize stores them in annotations. If the
    /// object has duplicate fields `metadata` or `annotations`, changes these fields in the same way as kustomize does.
    pub(super) fn store_previous_id(&mut self, scope: &Scope) {
        let name = self.shared_meta("name");
        let namespace = match self.id(scope).effective_namespace() {
            namespace if namespace == self.namespace() => self.shared_meta("namespace"),
            namespace => namespace.into(),
        };
        let kind = self.node.get("kind").and_then(Node::shared_text).unwrap_or_default();
        let was_stored = self.identities.are_stored();
        self.identities.push(&name, &namespace, &kind);
        self.drop_second_metadata();
        if self.node.get("metadata").is_some_and(odd_annotations::hinder_storing) {
            let stored = Stored { state: was_stored, notes: self.has_notes() };
            let metadata = self.node.get_mut("metadata");
            let written = metadata.map(|metadata| odd_annotations::store_identity(metadata, stored));
            self.unstorable_identity = written.and_then(Result::err).or(self.unstorable_identity);
        }
    }

    /// Returns the error with which kustomize fails when it reads the previous names, namespaces and kinds of the
    /// object. kustomize stores them in annotations of the object. `None` if kustomize can read them.
    pub(super) fn unreadable_identities(&self) -> Option<&'static str> {
        let metadata = self.node.get("metadata");
        let is_odd = metadata.is_some_and(odd_annotations::have_odd_list).then_some(odd_annotations::ODD_LIST);
        let disagree = || (!self.identities.agree()).then_some(identities::DISAGREE);
        self.unstorable_identity.or(is_odd).or_else(disagree)
    }

    /// Deletes the recorded previous names, namespaces and kinds of the object. A caller that has recorded an error
    /// about these identities calls this function, so that later steps do not record the same error again.
    pub(super) fn forget_identities(&mut self) {
        self.identities = Identities::default();
        self.unstorable_identity = None;
    }

    /// Removes a duplicate of the field `metadata` if the duplicate is empty. The user may have repeated the field by
    /// mistake. kustomize removes the duplicate when it writes annotations into the first field `metadata`.
    fn drop_second_metadata(&mut self) {
        let is_metadata = |entry: &&Entry| &*entry.key == "metadata";
        if self.node.entries().iter().filter(is_metadata).count() < 2 {
            return;
        }
        let mut is_first = true;
        if let Some(entries) = self.node.entries_mut() {
            entries.retain(|entry| {
                let is_kept = !is_metadata(&entry) || is_first || !entry.value.is_null_or_empty();
                is_first &= !is_metadata(&entry);
                is_kept
            });
        }
    }

    /// Returns the value of an annotation; `None` if it is missing or not a scalar.
    pub(super) fn annotation(&self, key: &str) -> Option<&str> {
        self.node.at_path(&["metadata", "annotations", key])?.text()
    }

    /// Returns the mapping in the field `field` of `metadata`. Creates the mapping if it is missing or null. `None` if
    /// the value of `metadata` or of the field is not a mapping.
    pub(super) fn metadata_map(&mut self, field: &str) -> Option<&mut Node> {
        let metadata = map_at(&mut self.node, "metadata")?;
        map_at(metadata, field)
    }

    /// Returns the field `metadata`. Creates the field if it is missing or null. `None` if its value is not a mapping.
    pub(super) fn metadata(&mut self) -> Option<&mut Node> {
        map_at(&mut self.node, "metadata")
    }

    /// Sets the name of the object, and keeps the YAML style of the old name.
    pub(super) fn set_name(&mut self, name: &str) {
        self.set_meta("name", name);
    }

    /// Sets the namespace, or removes the field if the namespace is empty.
    pub(super) fn set_namespace(&mut self, namespace: &str) {
        if namespace.is_empty() {
            if let Some(metadata) = self.node.get_mut("metadata") {
                metadata.remove("namespace");
            }
        } else {
            self.set_meta("namespace", namespace);
        }
    }

    fn set_meta(&mut self, field: &str, text: &str) {
        if let Some(metadata) = map_at(&mut self.node, "metadata") {
            set_scalar(metadata, field, Node { made: true, ..Node::scalar(text) });
        }
    }

    /// Sets the kind of the object, and keeps the YAML style of the old kind.
    pub(super) fn set_kind(&mut self, kind: &str) {
        set_scalar(&mut self.node, "kind", Node::scalar(kind));
    }
}
