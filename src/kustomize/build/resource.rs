//! An object with its state in a build: previous identities, affixes, and generator options.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::gvk::Gvk;
use super::id::{Id, Scope};
use super::identities::{self, Identities};
use super::lost::Lost;
use super::odd_annotations::{self, Stored};
use super::origin::{ConfiguredBy, ORIGIN, OriginNote, TRANSFORMATIONS};
use super::setters::{map_at, set_scalar};
use crate::kustomize::node::{Entry, Node, Origin, Tag};
use crate::yaml::core;

/// The prefix of annotations in which kustomize stores its state.
const INTERNAL: &str = "internal.config.kubernetes.io/";

/// A placeholder annotation that an object has while a patch is merged into it. It represents all annotations with the
/// prefix [`INTERNAL`], whose values are kept outside of the YAML node. If the patch removes the placeholder, the
/// values are deleted too.
const STATE: &str = "internal.config.kubernetes.io/state";

/// The [`Resource::uid`] of the next object that is created.
static NEXT: AtomicU64 = AtomicU64::new(0);

/// The way in which a generated object changes an existing object.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Behavior {
    /// The object was not generated.
    #[default]
    None,
    /// The object must not exist yet.
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
    /// The content of the object after the last JSON patch. `None` if there was no JSON patch. kustomize prints the
    /// patched object and parses it again, which changes the line numbers of its nodes. This copy is used to find out
    /// whether two versions of the object have the same line numbers.
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

    /// Returns `metadata.name`; empty if it is not a scalar.
    pub fn name(&self) -> &str {
        self.meta("name")
    }

    /// Returns the name that the object had before the first change. For example, a prefix or a hash changes the name.
    pub fn original_name(&self) -> &str {
        self.identities.iter().next().map_or_else(|| self.name(), |id| id.name)
    }

    /// Returns `metadata.namespace`; empty if it is not a scalar.
    pub fn namespace(&self) -> &str {
        self.meta("namespace")
    }

    /// Returns the kind; empty if it is not a scalar.
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

    /// Returns whether the current identity or a previous identity of the object satisfies a condition.
    pub(super) fn any_id(&self, scope: &Scope, condition: impl Fn(&Id<'_>) -> bool) -> bool {
        self.previous_ids().any(|id| condition(&id)) || condition(&self.id(scope))
    }

    /// Adds the current identity of the object to its previous identities.
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
    /// object. kustomize stores them in annotations of the object. `None` if it can read them.
    pub(super) fn unreadable_identities(&self) -> Option<&'static str> {
        let metadata = self.node.get("metadata");
        let is_odd = metadata.is_some_and(odd_annotations::have_odd_list).then_some(odd_annotations::ODD_LIST);
        let disagree = || (!self.identities.agree()).then_some(identities::DISAGREE);
        self.unstorable_identity.or(is_odd).or_else(disagree)
    }

    /// Deletes the recorded previous names, namespaces and kinds of the object. The caller does this when it records an
    /// error about them. So later steps do not record the same error again.
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

    /// Changes the annotations of the object as kustomize does after a JSON patch, when it writes all annotations
    /// again. Their values no longer have a position in a file.
    ///
    /// Also imitates an error of kustomize: if at least one key needs its quotes, such as `"true"`, kustomize removes
    /// the quotes from all keys.
    pub(super) fn rewrite_annotations(&mut self) {
        let Some(annotations) = self.node.at_path(&["metadata", "annotations"]) else { return };
        let is_quoted = |entry: &Entry| !matches!(entry.key_tag, Tag::None) && core::tag_of(&entry.key) != Tag::Str;
        let has_quotes = annotations.entries().iter().any(is_quoted);
        let annotations = self.metadata().and_then(|metadata| metadata.get_mut("annotations"));
        for entry in annotations.and_then(Node::entries_mut).into_iter().flatten() {
            entry.value.made = true;
            if has_quotes {
                entry.key_tag = Tag::None;
            }
        }
    }

    /// Deletes the internal data that kustomize stores in annotations of the object during a build, such as previous
    /// names. Portcullis stores this data in other fields of this type. Call this function if a patch or merge removes
    /// all annotations of the object, because kustomize then loses the data.
    pub(super) fn forget(&mut self) {
        self.identities = Identities::default();
        self.prefixes.clear();
        self.suffixes.clear();
        (self.behavior, self.needs_hash) = (Behavior::None, false);
        self.source = None;
        self.transformations.clear();
    }

    /// Returns whether kustomize stores state, such as previous names, in annotations of the object.
    pub(super) fn has_internal_annotations(&self) -> bool {
        let has_affixes = !self.prefixes.is_empty() || !self.suffixes.is_empty();
        self.identities.are_stored() || has_affixes || self.needs_hash || self.behavior != Behavior::None
    }

    /// Returns which kinds of state kustomize stores in annotations of the object.
    pub(super) fn stored(&self) -> Stored {
        Stored { state: self.has_internal_annotations(), notes: self.has_notes() }
    }

    /// Returns whether kustomize stores the previous names of the object in an `annotations` field that later merges
    /// treat as null. Such a merge removes the field together with the names. The reason is that kustomize adds the
    /// names to the YAML node of the field, but the node keeps the tag `!!null`. An object can have such a field if the
    /// user repeated `annotations` by mistake.
    pub(super) fn is_stored_in_null(&self) -> bool {
        let are_null = self.node.at_path(&["metadata", "annotations"]).is_some_and(Node::is_null);
        are_null && self.identities.are_stored() && !self.has_notes()
    }

    /// Returns whether kustomize stores the origin of the object, or the transformers that changed it, in annotations.
    pub(super) fn has_notes(&self) -> bool {
        self.source.is_some() || !self.transformations.is_empty()
    }

    /// Adds placeholder annotations to the object before a patch is applied, to find out whether the patch removes
    /// them. They stand for two annotations that kustomize adds to the object during the build: the origin of the
    /// object, and the transformers that changed it (`buildMetadata`). Portcullis stores this data outside of the
    /// object.
    ///
    /// A placeholder is added only if there is data for it.
    pub(super) fn write_notes(&mut self) {
        let keys = [(ORIGIN, self.source.is_some()), (TRANSFORMATIONS, !self.transformations.is_empty())];
        for (key, _) in keys.into_iter().filter(|(_, is_recorded)| *is_recorded) {
            if let Some(annotations) = self.metadata_map("annotations") {
                annotations.set(key, Node::string(""));
            }
        }
    }

    /// Removes the placeholder annotations that [`Resource::write_notes`] added before a patch. They represent the
    /// origin of the object, and the transformers that changed it. If the patch has already removed a placeholder, also
    /// deletes the recorded origin or transformers.
    pub(super) fn take_notes(&mut self) {
        if !self.has_notes() {
            return;
        }
        let mut take = |key: &str| {
            let metadata = self.node.get_mut("metadata");
            let annotations = metadata.and_then(|metadata| metadata.get_mut("annotations"));
            annotations.is_some_and(|annotations| annotations.remove(key).is_some())
        };
        let (has_origin, has_transformations) = (take(ORIGIN), take(TRANSFORMATIONS));
        self.source = self.source.take().filter(|_| has_origin);
        if !has_transformations {
            self.transformations.clear();
        }
    }

    /// Adds placeholder annotations to the object before a patch is merged into it. If the patch removes them,
    /// [`Resource::take_state`] deletes data such as previous names of the object. kustomize stores this data in
    /// annotations during a build, so it loses the data in the same case.
    ///
    /// Returns true if the object has previous names or similar data. Pass this result to [`Resource::take_state`].
    pub(super) fn write_state(&mut self) -> bool {
        self.write_notes();
        if !self.has_internal_annotations() {
            return false;
        }
        let annotations = self.metadata_map("annotations");
        annotations.map(|annotations| annotations.set(STATE, Node::string(""))).is_some()
    }

    /// Removes the placeholder annotations that [`Resource::write_state`] added before a patch was merged into the
    /// object. Each placeholder stands for data that kustomize stores in annotations, such as previous names of the
    /// object. If the patch has removed a placeholder, this function deletes the data too. `has_state` is the return
    /// value of [`Resource::write_state`].
    pub(super) fn take_state(&mut self, has_state: bool) {
        let had_notes = self.has_notes();
        self.take_notes();
        let metadata = self.node.get_mut("metadata");
        let annotations = metadata.and_then(|metadata| metadata.get_mut("annotations"));
        let is_kept = annotations.is_some_and(|annotations| annotations.remove(STATE).is_some());
        if has_state && !is_kept {
            self.forget();
        }
        if has_state || had_notes {
            self.drop_empty_annotations();
        }
    }

    /// Removes the field `annotations` if it is an empty mapping.
    fn drop_empty_annotations(&mut self) {
        let Some(metadata) = self.node.get_mut("metadata") else { return };
        if metadata
            .get("annotations")
            .is_some_and(|annotations| annotations.is_map() && annotations.entries().is_empty())
        {
            metadata.remove("annotations");
        }
    }

    /// Returns the origin of the transformer or generator that this object configures, as it is recorded in
    /// annotations. `None` if the origin of this object is not recorded.
    pub(super) fn plugin_note(&self) -> Option<OriginNote> {
        let source = self.source.as_ref()?;
        let text = |key: &str| self.node.get(key).and_then(|node| node.text()).unwrap_or_default().to_owned();
        Some(OriginNote {
            path: String::new(),
            repo: source.repo.clone(),
            reference: source.reference.clone(),
            configured_in: source.path.clone(),
            configured_by: ConfiguredBy {
                api_version: text("apiVersion"),
                kind: text("kind"),
                name: self.name().to_owned(),
                namespace: self.namespace().to_owned(),
            },
        })
    }

    /// Returns the value of an annotation; `None` if it is missing or not a scalar.
    pub(super) fn annotation(&self, key: &str) -> Option<&str> {
        self.node.at_path(&["metadata", "annotations", key])?.text()
    }

    /// Returns the mapping in the field `field` of `metadata`. Creates the mapping if it is missing or null.
    pub(super) fn metadata_map(&mut self, field: &str) -> Option<&mut Node> {
        let metadata = map_at(&mut self.node, "metadata")?;
        map_at(metadata, field)
    }

    /// Returns the field `metadata`. Creates the field if it is missing or null.
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

    /// Reads kustomize's internal annotations, such as previous names, from the object into the fields of this type.
    fn absorb(&mut self) {
        let annotations = self.node.at_path(&["metadata", "annotations"]);
        if !annotations.is_some_and(|map| map.entries().iter().any(|entry| entry.key.starts_with(INTERNAL))) {
            return;
        }
        let list = |resource: &Self, key: &str| -> Vec<Arc<str>> {
            let text = resource.annotation(&format!("{INTERNAL}{key}"));
            text.map(|text| text.split(',').map(Arc::from).collect()).unwrap_or_default()
        };
        self.identities = Identities::read(|key| self.annotation(&format!("{INTERNAL}{key}")));
        (self.prefixes, self.suffixes) = (list(self, "prefixes"), list(self, "suffixes"));
        self.needs_hash = self.annotation(&format!("{INTERNAL}needsHashSuffix")) == Some("enabled");
        self.behavior = match self.annotation(&format!("{INTERNAL}generatorBehavior")) {
            Some("merge") => Behavior::Merge,
            Some("replace") => Behavior::Replace,
            _ => Behavior::None,
        };
    }
}
