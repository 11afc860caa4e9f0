//! The transformers for the fields `namePrefix` and `nameSuffix` of a kustomization. They add a prefix or suffix to
//! names.
//!
//! Source: kustomize's `PrefixTransformer`, `SuffixTransformer`, `api/filters/prefix` and `api/filters/suffix`.

use super::budget::Budget;
use super::field_spec::{Create, FieldError, FieldSpec, Text, kind_of};
use super::resource::Resource;
use super::setters::overwrite;
use crate::kustomize::identity::{Gvk, Scope};
use crate::kustomize::node::{Node, Origin, Tag};

/// The kinds whose objects get no name prefix and no name suffix.
const SKIPPED: [Gvk<'static>; 3] = [
    Gvk { group: "", version: "", kind: "CustomResourceDefinition" },
    Gvk { group: "apiregistration.k8s.io", version: "", kind: "APIService" },
    Gvk { group: "", version: "", kind: "Namespace" },
];
const NAME: &str = "metadata/name";

/// The position at which a transformer adds a text to a name: before the name for `namePrefix`, after the name for
/// `nameSuffix`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    /// The text is added before the name.
    Prefix,
    /// The text is added after the name.
    Suffix,
}

/// A transformer that adds a prefix or a suffix to names.
#[derive(Debug, Clone)]
pub(super) struct Affix<'s> {
    pub side: Side,
    pub text: &'s str,
    /// The fields to change, such as `metadata/name`.
    pub specs: &'s [FieldSpec],
    /// The file and line of the entry that configures the transformer. The nodes that the transformer changes get this
    /// origin.
    pub origin: Origin,
    /// The memory limit of the build. The size of the new texts is counted against this limit.
    pub budget: &'s Budget,
}

impl Affix<'_> {
    /// Adds the prefix or suffix to those fields of an object that the field specs select, such as its name.
    ///
    /// # Errors
    ///
    /// - If a field is not a scalar, or its path leads through a scalar.
    /// - If the memory limit of the build is exceeded.
    pub(super) fn apply(&self, resource: &mut Resource, scope: &Scope) -> Result<(), FieldError> {
        let id = resource.original_id(scope);
        if SKIPPED.iter().any(|skipped| id.gvk.is_selected(skipped)) {
            return Ok(());
        }
        let kind = (id.gvk.group.to_owned(), id.gvk.version.to_owned(), id.gvk.kind.to_owned());
        let gvk = Gvk { group: &kind.0, version: &kind.1, kind: &kind.2 };
        for spec in self.specs.iter().filter(|spec| gvk.is_selected(&spec.gvk())) {
            if &*spec.path == NAME && !self.text.is_empty() {
                let affixes = match self.side {
                    Side::Prefix => &mut resource.prefixes,
                    Side::Suffix => &mut resource.suffixes,
                };
                affixes.push(self.text.into());
                resource.store_previous_id(scope);
            }
            spec.apply(resource, Create::Scalar(Tag::Str), &mut |node| self.set(node, &spec.path))?;
        }
        Ok(())
    }

    fn set(&self, node: &mut Node, path: &Text) -> Result<(), FieldError> {
        let Some(text) = node.text() else {
            return Err(FieldError::Kind { path: path.clone(), found: kind_of(node), expected: "a scalar" });
        };
        let text = match self.side {
            Side::Prefix => [self.text, text].concat(),
            Side::Suffix => [text, self.text].concat(),
        };
        self.budget.text(&text)?;
        overwrite(node, Node::scalar(text).made_at(self.origin));
        Ok(())
    }
}
