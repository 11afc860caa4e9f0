//! The objects in the output of a kustomize build. Portcullis compares the output before a change of files with the
//! output after this change.

use crate::kustomize::engine::{Built, Resource, Step};
use crate::kustomize::identity::ObjectId;
use crate::kustomize::node::{Kind, Node, printed};
use crate::kustomize::options::{CommonMetadata, PostBuild};
use crate::kustomize::{emit, flux};

/// An object in the output of a kustomize build.
#[derive(Debug, Clone)]
pub struct Object {
    /// The identity of the object in a cluster.
    pub id: ObjectId,
    /// The `apiVersion` of the object.
    pub api_version: String,
    /// The name of the object in its file or generator, without prefixes and hashes.
    pub original_name: String,
    /// The content of the object as YAML nodes. Each node also stores the file and line from which it comes.
    pub node: Node,
    /// The YAML text of the object, as kustomize prints it.
    pub text: String,
}

impl Object {
    /// Returns the objects of a build.
    ///
    /// # Errors
    ///
    /// If kustomize cannot write an object as YAML.
    pub(super) fn of_build(built: &Built<'_>) -> Step<Vec<Self>> {
        let object = |(resource, text)| Self::new(resource, text);
        Ok(built.resources().iter().zip(built.texts()?).map(object).collect())
    }

    fn new(resource: &Resource, text: String) -> Self {
        let api_version = resource.node.get("apiVersion").and_then(Node::text).unwrap_or_default().to_owned();
        let id = ObjectId {
            group: api_version.rsplit_once('/').map(|(group, _)| group.to_owned()).unwrap_or_default(),
            kind: resource.kind().to_owned(),
            namespace: resource.namespace().to_owned(),
            name: resource.name().to_owned(),
        };
        let original_name = resource.original_name().to_owned();
        Self { id, api_version, original_name, node: resource.node.clone(), text }
    }

    /// Substitutes the known variables of Flux's `postBuild` in the object. Strings with an unknown variable stay
    /// unchanged.
    pub(super) fn substitute(&mut self, post_build: &PostBuild) {
        if !self.text.contains('$') || flux::is_left_alone(&self.node) {
            return;
        }
        substitute(&mut self.node, post_build);
        self.print();
        let field = |path: &[&str]| self.node.at_path(path).and_then(Node::text).unwrap_or_default().to_owned();
        (self.id.name, self.id.namespace) = (field(&["metadata", "name"]), field(&["metadata", "namespace"]));
    }

    /// Sets the labels and annotations of `spec.commonMetadata`, as Flux does after the build.
    pub(super) fn set_common_metadata(&mut self, common: &CommonMetadata) {
        let metadata = self.node.get_mut("metadata");
        let Some(metadata) = metadata else { return };
        for (field, values) in [("labels", &common.labels), ("annotations", &common.annotations)] {
            if !values.is_empty() && !metadata.get(field).is_some_and(Node::is_map) {
                metadata.set(field, Node::map(Vec::new()));
            }
            for (key, value) in values {
                metadata.get_mut(field).into_iter().for_each(|map| map.set(key, Node::string(value.as_str())));
            }
        }
        self.print();
    }

    fn print(&mut self) {
        let mut text = String::new();
        if printed(&self.node).is_ok_and(|value| emit::document(&value, &mut text).is_ok()) {
            self.text = text;
        }
    }

    /// Returns whether a label or annotation excludes the object from pruning by Flux. Flux does not delete such an
    /// object when the Kustomization no longer contains it.
    pub(super) fn opts_out_of_pruning(&self) -> bool {
        let is = |of: &str, key: &str, value: &str| {
            let text = self.node.at_path(&["metadata", of, key]).and_then(Node::text);
            text.is_some_and(|text| text.eq_ignore_ascii_case(value))
        };
        let flags = [("prune", "disabled"), ("reconcile", "disabled"), ("ssa", "Ignore")];
        let opts_out = |(name, value): &(&str, &str)| {
            let key = format!("kustomize.toolkit.fluxcd.io/{name}");
            is("annotations", &key, value) || is("labels", &key, value)
        };
        flags.iter().any(opts_out)
    }

    /// Returns whether the object is a Secret, whose values must not be shown.
    pub fn is_secret(&self) -> bool {
        self.id.group.is_empty() && self.id.kind == "Secret"
    }
}

/// Substitutes the variables of Flux's `postBuild` in all strings and keys below a node. A string without quotes may
/// become a number or a boolean, because Flux substitutes in the YAML text.
fn substitute(node: &mut Node, post_build: &PostBuild) {
    match &mut node.kind {
        Kind::Scalar(text) if text.contains('$') => {
            let Some(result) = flux::evaluated(text, post_build) else { return };
            let new = if is_plain(text) { Node::resolved(result) } else { Node::string(result) };
            (node.tag, node.kind) = (new.tag, new.kind);
        }
        Kind::Scalar(_) => {}
        Kind::Seq(_) => node.items_mut().into_iter().flatten().for_each(|item| substitute(item, post_build)),
        Kind::Map(_) => {
            for entry in node.entries_mut().into_iter().flatten() {
                if let Some(key) = Some(&entry.key).filter(|key| key.contains('$')) {
                    entry.key = flux::evaluated(key, post_build).map_or_else(|| key.clone(), Into::into);
                }
                substitute(&mut entry.value, post_build);
            }
        }
    }
}

/// Returns whether kustomize writes a string without quotes.
fn is_plain(text: &str) -> bool {
    let mut printed = String::new();
    emit::document(&emit::Value::Text(text.into()), &mut printed).is_ok_and(|()| printed.trim_end() == text)
}
