//! The state of an object that kustomize stores in annotations during a build, such as its previous names.
//!
//! Portcullis stores this state in fields of [`Resource`]. It imitates the annotations only for build steps that remove
//! or read annotations.

use std::sync::Arc;

use super::identities::Identities;
use super::odd_annotations::Stored;
use super::origin::{ConfiguredBy, ORIGIN, OriginNote, TRANSFORMATIONS};
use super::resource::{Behavior, Resource};
use crate::kustomize::node::{Entry, Node, Tag};
use crate::yaml::core;

/// The prefix of annotations in which kustomize stores its state.
const INTERNAL: &str = "internal.config.kubernetes.io/";

/// A placeholder annotation that an object has while a patch is merged into it. It represents all annotations with the
/// prefix [`INTERNAL`], whose values are kept outside of the YAML node. If the patch removes the placeholder, the
/// values are deleted too.
const STATE: &str = "internal.config.kubernetes.io/state";

impl Resource {
    /// Reads kustomize's internal annotations, such as previous names, from the object into the fields of [`Resource`].
    pub(super) fn absorb(&mut self) {
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

    /// Marks the values of all annotations as created by a transformer, so that they have no position in a file.
    /// kustomize writes all annotations of an object again after a JSON patch.
    ///
    /// Also reproduces a bug of kustomize. Without quotes, a key such as `"true"` is not a string. If an annotation has
    /// such a key, kustomize removes the quotes from the keys of all annotations.
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
    /// names. Portcullis stores this data in fields of [`Resource`]. Call this function if a patch or merge removes all
    /// annotations of the object, because kustomize then loses the data.
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

    /// Returns whether kustomize stores the previous names of the object in an `annotations` field with the tag
    /// `!!null`. kustomize adds the names to the YAML node of this field, but does not change the tag. So a later merge
    /// treats the field as null, and removes it together with the names. An object can have such a field if the user
    /// repeated `annotations` by mistake.
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

    /// Removes the placeholder annotations that [`Resource::write_notes`] added before a patch: one for the origin of
    /// the object, and one for the transformers that changed it. If the patch has already removed the first, also
    /// clears the field `source`. If it has removed the second, also clears the field `transformations`.
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

    /// Adds placeholder annotations to the object. Call this function before a patch is merged into the object, and
    /// [`Resource::take_state`] afterwards.
    ///
    /// During a build, kustomize stores data such as the previous names of an object in annotations. If a patch removes
    /// these annotations, kustomize loses the data. Portcullis stores the data in fields of [`Resource`], and uses the
    /// placeholders to detect this case: if the patch removes them, [`Resource::take_state`] deletes the data.
    ///
    /// Returns true if the placeholder for previous names and similar data was added. Pass this result to
    /// [`Resource::take_state`].
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

    /// Returns the origin of the transformer or generator that this object configures. kustomize records this origin in
    /// annotations of the objects that the transformer changes or that the generator creates. `None` if the origin is
    /// not recorded.
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
}
