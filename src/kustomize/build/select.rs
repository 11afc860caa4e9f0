//! Selects objects by selectors.
//!
//! Source: kustomize's `types.Selector`, `SelectorRegex` and `resWrangler.Select`.

use super::id::{Gvk, Id, Scope};
use super::resource::Resource;
use crate::kustomize::accumulate::labels::Labels;
use crate::kustomize::file::Selector;
use crate::kustomize::pattern::Pattern;

/// A selector with its expressions compiled.
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

impl Compiled {
    /// Compiles the expressions of a selector.
    ///
    /// # Errors
    ///
    /// The invalid expression.
    pub(super) fn new(selector: &Selector) -> Result<Self, String> {
        let pattern = |text: &String| Pattern::new(text).map_err(|_| text.clone());
        let labels = |text: &String| match text.is_empty() {
            true => Ok(None),
            false => Labels::parse(text).map(Some).ok_or_else(|| text.clone()),
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

    /// Reports whether it selects an object by its current or its original identity.
    pub(super) fn selects(&self, resource: &Resource, scope: &Scope) -> bool {
        let (now, first) = (resource.id(scope), resource.original_id(scope));
        let is_named =
            self.namespace.matches(first.effective_namespace()) || self.namespace.matches(now.effective_namespace());
        is_named
            && (self.name.matches(first.name) || self.name.matches(now.name))
            && self.selects_gvk(&now.gvk)
            && self.selects_labels(resource)
    }

    /// Reports whether it selects an identity, without the default namespace.
    pub(super) fn selects_written(&self, id: &Id<'_>) -> bool {
        self.selects_gvk(&id.gvk) && self.name.matches(id.name) && self.namespace.matches(id.namespace)
    }

    /// Reports whether it selects group, version and kind.
    pub(super) fn selects_gvk(&self, gvk: &Gvk<'_>) -> bool {
        self.group.matches(gvk.group) && self.version.matches(gvk.version) && self.kind.matches(gvk.kind)
    }

    /// Reports whether it selects the labels and annotations of an object.
    pub(super) fn selects_labels(&self, resource: &Resource) -> bool {
        holds(&self.labels, resource, "labels") && holds(&self.annotations, resource, "annotations")
    }
}

/// Reports whether the labels or annotations of an object satisfy a selector. Values that are not strings count as empty.
fn holds(labels: &Option<Labels>, resource: &Resource, field: &str) -> bool {
    let Some(labels) = labels else { return true };
    let values = resource.node.at_path(&["metadata", field]);
    let value = |key: &str| Some(values?.get(key)?.text().unwrap_or_default());
    labels.requirements().iter().all(|requirement| requirement.holds(value(&requirement.key)))
}

/// Returns the indexes of the objects that a selector selects.
pub(super) fn select(resources: &[Resource], selector: &Compiled, scope: &Scope) -> Vec<usize> {
    let objects = resources.iter().enumerate();
    objects.filter(|(_, resource)| selector.selects(resource, scope)).map(|(at, _)| at).collect()
}
