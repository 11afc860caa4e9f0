//! Selects objects by the selectors of patches, replacements and transformers.
//!
//! Source: kustomize's `types.Selector`, `SelectorRegex` and `resWrangler.Select`.

use super::label_selector::Labels;
use super::lost::Lost;
use super::odd_annotations;
use super::resource::Resource;
use super::stop::Stop;
use crate::go::regexp::Code;
use crate::kustomize::file::Selector;
use crate::kustomize::finding::Site;
use crate::kustomize::identity::{Gvk, Id, Scope};
use crate::kustomize::pattern::Pattern;
use crate::kustomize::rules::{kz014, kz031};

/// A selector of objects with compiled regular expressions.
#[derive(Debug)]
pub(super) struct Compiled {
    group: Pattern,
    version: Pattern,
    kind: Pattern,
    name: Pattern,
    namespace: Pattern,
    labels: MetadataSelector,
    annotations: MetadataSelector,
}

/// The reason why a selector cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum BadSelector {
    /// An invalid regular expression.
    Expression(String),
    /// An invalid selector of labels or annotations.
    Labels(String),
    /// An object with labels or annotations that are a list with an odd number of items. kustomize reads the list as
    /// alternating keys and values, and panics. Contains the name of the field.
    OddList(&'static str),
    /// A regular expression that Portcullis does not support, although Go may accept it.
    Unsupported(String),
}

impl BadSelector {
    /// Converts the error of a selector at the position `site` to the error that stops the build step.
    pub(super) fn at(self, site: Site) -> Stop {
        match self {
            Self::Expression(text) => Stop::refused(kz014::invalid_expression(site, &text)),
            Self::Labels(text) => Stop::refused(kz014::invalid_selector(site, &text)),
            Self::OddList(field) => {
                Stop::of_content(kz031::found(site, &format!("metadata.{field} of an object is a list, not a mapping")))
            }
            Self::Unsupported(text) => Stop::unknown(site, format!("`{text}` in a selector is not supported here")),
        }
    }
}

impl Compiled {
    /// Compiles the regular expressions of a selector, and parses its selectors of labels and annotations.
    ///
    /// # Errors
    ///
    /// If a regular expression is invalid or not supported. An invalid label or annotation selector is an error only
    /// when it is applied to an object.
    pub(super) fn new(selector: &Selector) -> Result<Self, BadSelector> {
        Ok(Self {
            group: pattern(&selector.group)?,
            version: pattern(&selector.version)?,
            kind: pattern(&selector.kind)?,
            name: pattern(&selector.name)?,
            namespace: pattern(&selector.namespace)?,
            labels: MetadataSelector::new("labels", &selector.label_selector),
            annotations: MetadataSelector::new("annotations", &selector.annotation_selector),
        })
    }

    /// Returns whether the selector selects an object. The name in the selector must match the current or the original
    /// name of the object. The same applies to the namespace.
    ///
    /// # Errors
    ///
    /// If the label selector or the annotation selector is invalid, or cannot be applied to the object. As in
    /// kustomize, these selectors are evaluated last. So there is no error if the group, version, kind, name or
    /// namespace does not match.
    pub(super) fn selects(&self, resource: &Resource, scope: &Scope) -> Result<bool, BadSelector> {
        // compare the kind first: most objects have another one, and an identity is slower to compute
        if !self.kind.matches(resource.kind()) {
            return Ok(false);
        }
        let (now, first) = (resource.id(scope), resource.original_id(scope));
        let is_named =
            self.namespace.matches(first.effective_namespace()) || self.namespace.matches(now.effective_namespace());
        let is_selected =
            is_named && (self.name.matches(first.name) || self.name.matches(now.name)) && self.selects_gvk(&now.gvk);
        Ok(is_selected && self.labels.selects(resource)? && self.annotations.selects(resource)?)
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

    /// Returns whether an object satisfies the label selector and the annotation selector. Evaluates both, even if the
    /// first one does not match, because kustomize does so for replacements. So an invalid selector is always an error.
    ///
    /// # Errors
    ///
    /// If one of the selectors is invalid, or cannot be applied to the object.
    pub(super) fn selects_labels(&self, resource: &Resource) -> Result<bool, BadSelector> {
        let (by_annotations, by_labels) = (self.annotations.selects(resource)?, self.labels.selects(resource)?);
        Ok(by_annotations && by_labels)
    }
}

/// A selector of labels or annotations, such as `app=web`. An invalid selector is an error only when it is applied to
/// an object, because kustomize parses it at that time.
#[derive(Debug)]
struct MetadataSelector {
    /// `labels` or `annotations`.
    field: &'static str,
    text: String,
    /// The parsed form of the label or annotation selector, such as `app=web`. `None` if the selector is invalid.
    parsed: Option<Labels>,
}

impl MetadataSelector {
    fn new(field: &'static str, text: &str) -> Self {
        Self { field, text: text.to_owned(), parsed: Labels::parse(text) }
    }

    /// Returns whether the labels or annotations of an object satisfy the selector. If the value of a label or
    /// annotation is a list or mapping, it counts as an empty string.
    fn selects(&self, resource: &Resource) -> Result<bool, BadSelector> {
        let labels = self.parsed.as_ref().ok_or_else(|| BadSelector::Labels(self.text.clone()))?;
        let values = resource.node.at_path(&["metadata", self.field]);
        let listed = values.map_or(Some(Vec::new()), odd_annotations::listed);
        // if an earlier step failed on the object, its error was already reported
        let listed = listed.or_else(|| (resource.lost != Lost::Nothing).then(Vec::new));
        let listed = listed.ok_or(BadSelector::OddList(self.field))?;
        let value = |key: &str| {
            let in_list = || listed.iter().rev().find(|entry| &*entry.key == key).map(|entry| &entry.value);
            let found = values.and_then(|values| values.get(key)).or_else(in_list);
            found.map(|value| value.text().unwrap_or_default())
        };
        Ok(labels.requirements().iter().all(|requirement| requirement.holds(value(&requirement.key))))
    }
}

fn pattern(text: &str) -> Result<Pattern, BadSelector> {
    Pattern::new(text).map_err(|error| match error.code {
        // Go has other limits, so kustomize may accept the expression
        Code::NestingDepth | Code::Large => BadSelector::Unsupported(text.to_owned()),
        _ => BadSelector::Expression(text.to_owned()),
    })
}

/// Returns the indexes of the objects that a selector selects.
///
/// # Errors
///
/// If the label selector or the annotation selector is invalid, or cannot be applied to an object.
pub(super) fn select(resources: &[Resource], selector: &Compiled, scope: &Scope) -> Result<Vec<usize>, BadSelector> {
    let mut places = Vec::new();
    for (at, resource) in resources.iter().enumerate() {
        if selector.selects(resource, scope)? {
            places.push(at);
        }
    }
    Ok(places)
}
