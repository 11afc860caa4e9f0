//! Which objects a selector selects.
//!
//! Source: kustomize's `types.Selector`, `SelectorRegex` and `resWrangler.Select`.

use regex::Regex;

use super::go_regex;
use super::id::{Gvk, Id, Scope};
use super::resource::Resource;
use crate::kustomize::accumulate::labels::Labels;
use crate::kustomize::file::Selector;

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

/// A pattern that must match a whole text.
#[derive(Debug)]
enum Pattern {
    Any,
    /// Just this: most people write names, and an expression takes a while to compile.
    Text(String),
    Expression(Regex),
}

impl Compiled {
    /// Compiles the expressions of a selector.
    ///
    /// # Errors
    ///
    /// The part that is not a valid expression.
    pub(super) fn new(selector: &Selector) -> Result<Self, String> {
        let labels = |text: &String| match text.is_empty() {
            true => Ok(None),
            false => Labels::parse(text).map(Some).ok_or_else(|| text.clone()),
        };
        Ok(Self {
            group: Pattern::new(&selector.group)?,
            version: Pattern::new(&selector.version)?,
            kind: Pattern::new(&selector.kind)?,
            name: Pattern::new(&selector.name)?,
            namespace: Pattern::new(&selector.namespace)?,
            labels: labels(&selector.label_selector)?,
            annotations: labels(&selector.annotation_selector)?,
        })
    }

    /// Returns whether the present or original identity of an object matches.
    pub(super) fn selects(&self, resource: &Resource, scope: &Scope) -> bool {
        let (now, first) = (resource.id(scope), resource.original_id(scope));
        let is_named =
            self.namespace.fits(first.effective_namespace()) || self.namespace.fits(now.effective_namespace());
        is_named
            && (self.name.fits(first.name) || self.name.fits(now.name))
            && self.selects_gvk(&now.gvk)
            && self.selects_labels(resource)
    }

    /// Returns whether an identity matches, with the namespace as in the object.
    pub(super) fn selects_written(&self, id: &Id<'_>) -> bool {
        self.selects_gvk(&id.gvk) && self.name.fits(id.name) && self.namespace.fits(id.namespace)
    }

    /// Returns whether group, version and kind fit.
    pub(super) fn selects_gvk(&self, gvk: &Gvk<'_>) -> bool {
        self.group.fits(gvk.group) && self.version.fits(gvk.version) && self.kind.fits(gvk.kind)
    }

    /// Returns whether labels and annotations fit.
    pub(super) fn selects_labels(&self, resource: &Resource) -> bool {
        holds(&self.labels, resource, "labels") && holds(&self.annotations, resource, "annotations")
    }
}

/// Returns whether the labels or annotations of an object match a selector; values that are not strings are treated as
/// empty.
fn holds(labels: &Option<Labels>, resource: &Resource, field: &str) -> bool {
    let Some(labels) = labels else { return true };
    let values = resource.node.at_path(&["metadata", field]);
    let value = |key: &str| Some(values?.get(key)?.text().unwrap_or_default());
    labels.requirements().iter().all(|requirement| requirement.holds(value(&requirement.key)))
}

impl Pattern {
    fn new(text: &str) -> Result<Self, String> {
        if text.is_empty() {
            return Ok(Self::Any);
        }
        if text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_/".contains(&byte)) {
            return Ok(Self::Text(text.to_owned()));
        }
        go_regex::compile(&format!("^(?:{text})$")).map(Self::Expression).map_err(|_| text.to_owned())
    }

    fn fits(&self, text: &str) -> bool {
        match self {
            Self::Any => true,
            Self::Text(wanted) => wanted == text,
            Self::Expression(expression) => expression.is_match(text),
        }
    }
}

/// Returns the places of the objects that a selector selects.
pub(super) fn select(resources: &[Resource], selector: &Compiled, scope: &Scope) -> Vec<usize> {
    let objects = resources.iter().enumerate();
    objects.filter(|(_, resource)| selector.selects(resource, scope)).map(|(at, _)| at).collect()
}
