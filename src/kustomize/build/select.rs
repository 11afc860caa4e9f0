//! Selects objects by the selectors of patches, replacements and transformers.
//!
//! Source: kustomize's `types.Selector`, `SelectorRegex` and `resWrangler.Select`.

use super::id::{Gvk, Id, Scope};
use super::label_selector::Labels;
use super::resource::Resource;
use super::stop::Stop;
use crate::go::regexp::Code;
use crate::kustomize::file::Selector;
use crate::kustomize::finding::Site;
use crate::kustomize::pattern::Pattern;
use crate::kustomize::rules::kz014;

/// A selector of objects with compiled regular expressions.
#[derive(Debug)]
pub(super) struct Compiled {
    group: Pattern,
    version: Pattern,
    kind: Pattern,
    name: Pattern,
    namespace: Pattern,
    labels: Option<Labels>,
    annotations: Option<Labels>,
}

/// The reason why a selector cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum BadSelector {
    /// An invalid regular expression.
    Expression(String),
    /// An invalid selector of labels or annotations.
    Labels(String),
    /// A regular expression that Go may accept, and that is not supported here.
    Unsupported(String),
}

impl BadSelector {
    /// Converts the error of a selector at the position `site` to the error that stops the build step.
    pub(super) fn at(self, site: Site) -> Stop {
        match self {
            Self::Expression(text) => Stop::refused(kz014::invalid_expression(site, &text)),
            Self::Labels(text) => Stop::refused(kz014::invalid_selector(site, &text)),
            Self::Unsupported(text) => Stop::unknown(site, format!("`{text}` in a selector is not supported here")),
        }
    }
}

impl Compiled {
    /// Compiles the regular expressions and label selectors of a selector.
    ///
    /// # Errors
    ///
    /// Returns the first invalid part of the selector.
    pub(super) fn new(selector: &Selector) -> Result<Self, BadSelector> {
        let labels = |text: &String| match text.is_empty() {
            true => Ok(None),
            false => Labels::parse(text).map(Some).ok_or_else(|| BadSelector::Labels(text.clone())),
        };
        Ok(Self {
            group: pattern(&selector.group)?,
            version: pattern(&selector.version)?,
            kind: pattern(&selector.kind)?,
            name: pattern(&selector.name)?,
            namespace: pattern(&selector.namespace)?,
            labels: labels(&selector.label_selector)?,
            annotations: labels(&selector.annotation_selector)?,
        })
    }

    /// Returns whether the selector selects an object. Both the current and the original name and namespace can match.
    pub(super) fn selects(&self, resource: &Resource, scope: &Scope) -> bool {
        // compare the kind first: most objects have another one, and an identity is slower to compute
        if !self.kind.matches(resource.kind()) {
            return false;
        }
        let (now, first) = (resource.id(scope), resource.original_id(scope));
        let is_named =
            self.namespace.matches(first.effective_namespace()) || self.namespace.matches(now.effective_namespace());
        is_named
            && (self.name.matches(first.name) || self.name.matches(now.name))
            && self.selects_gvk(&now.gvk)
            && self.selects_labels(resource)
    }

    /// Returns whether the selector selects an object with this identity. Compares the namespace as it is written in
    /// the object: an empty namespace is not `default`.
    pub(super) fn selects_written(&self, id: &Id<'_>) -> bool {
        self.selects_gvk(&id.gvk) && self.name.matches(id.name) && self.namespace.matches(id.namespace)
    }

    /// Returns whether the selector selects objects of this group, version and kind.
    pub(super) fn selects_gvk(&self, gvk: &Gvk<'_>) -> bool {
        self.group.matches(gvk.group) && self.version.matches(gvk.version) && self.kind.matches(gvk.kind)
    }

    /// Returns whether an object satisfies the label selector and the annotation selector.
    pub(super) fn selects_labels(&self, resource: &Resource) -> bool {
        holds(&self.labels, resource, "labels") && holds(&self.annotations, resource, "annotations")
    }
}

/// Returns whether the labels or annotations of an object satisfy a selector. `field` is `labels` or `annotations`.
/// Values that are lists or mappings count as empty.
fn holds(labels: &Option<Labels>, resource: &Resource, field: &str) -> bool {
    let Some(labels) = labels else { return true };
    let values = resource.node.at_path(&["metadata", field]);
    let value = |key: &str| Some(values?.get(key)?.text().unwrap_or_default());
    labels.requirements().iter().all(|requirement| requirement.holds(value(&requirement.key)))
}

fn pattern(text: &str) -> Result<Pattern, BadSelector> {
    Pattern::new(text).map_err(|error| match error.code {
        // Go has other limits, so kustomize may accept the expression
        Code::NestingDepth | Code::Large => BadSelector::Unsupported(text.to_owned()),
        _ => BadSelector::Expression(text.to_owned()),
    })
}

/// Returns the indexes of the objects that a selector selects.
pub(super) fn select(resources: &[Resource], selector: &Compiled, scope: &Scope) -> Vec<usize> {
    let objects = resources.iter().enumerate();
    objects.filter(|(_, resource)| selector.selects(resource, scope)).map(|(at, _)| at).collect()
}
