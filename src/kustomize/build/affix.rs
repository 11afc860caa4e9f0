//! The transformers of `namePrefix` and `nameSuffix`.
//!
//! Source: kustomize's `PrefixTransformer`, `SuffixTransformer`, `api/filters/prefix` and `api/filters/suffix`.

use super::budget::Budget;
use super::field_spec::{Create, FieldError, FieldSpec, Text, kind_of};
use super::id::{Gvk, Scope};
use super::resource::{Resource, overwrite};
use crate::kustomize::node::{Node, Origin, Tag};

/// Objects that keep their names.
const SKIPPED: [Gvk<'static>; 3] = [
    Gvk { group: "", version: "", kind: "CustomResourceDefinition" },
    Gvk { group: "apiregistration.k8s.io", version: "", kind: "APIService" },
    Gvk { group: "", version: "", kind: "Namespace" },
];
const NAME: &str = "metadata/name";

/// The side on which a text is added.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    /// Before the name.
    Prefix,
    /// After the name.
    Suffix,
}

/// The transformer.
#[derive(Debug, Clone)]
pub(super) struct Affix<'s> {
    pub side: Side,
    pub text: &'s str,
    /// The fields.
    pub specs: &'s [FieldSpec],
    /// Its position.
    pub origin: Origin,
    /// Limits the size of the results.
    pub budget: &'s Budget,
}

impl Affix<'_> {
    /// Adds the text to the name of an object, or to the other fields of the specs.
    ///
    /// # Errors
    ///
    /// If a field is not a scalar.
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
