//! Selects objects by selectors.
//!
//! Source: `types.Selector`, `SelectorRegex` and `resWrangler.Select`.

use super::labels::Labels;
use super::object::{Id, Object};
use crate::go::regexp::Code;
use crate::kustomize::file::Selector;
use crate::kustomize::pattern::Pattern;

/// A selector with its expressions compiled.
#[derive(Debug)]
pub struct Compiled {
    group: Pattern,
    version: Pattern,
    kind: Pattern,
    name: Pattern,
    namespace: Pattern,
    /// Selectors of `labels` and of `annotations`.
    labels: Vec<(&'static str, Labels)>,
}

/// The error of a selector.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BadSelector {
    /// An expression that kustomize rejects.
    Invalid(String),
    /// An expression or label selector that kustomize may accept, but this module does not support.
    Unsupported(String),
}

/// Whether a selector selects an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Selected {
    /// It does.
    Yes,
    /// The selector does not match.
    No,
    /// It depends on labels, annotations or an identity that are unknown.
    Unknown,
}

impl Compiled {
    /// Compiles the expressions of a selector.
    ///
    /// # Errors
    ///
    /// The first invalid or unsupported part.
    pub fn new(selector: &Selector) -> Result<Self, BadSelector> {
        let labels = [("labels", &selector.label_selector), ("annotations", &selector.annotation_selector)];
        let labels = labels.into_iter().filter(|(_, text)| !text.is_empty());
        let parsed = |text: &String| Labels::parse(text).ok_or_else(|| BadSelector::Unsupported(text.clone()));
        Ok(Self {
            group: pattern(&selector.group)?,
            version: pattern(&selector.version)?,
            kind: pattern(&selector.kind)?,
            name: pattern(&selector.name)?,
            namespace: pattern(&selector.namespace)?,
            labels: labels.map(|(at, text)| Ok((at, parsed(text)?))).collect::<Result<_, _>>()?,
        })
    }

    /// Reports whether it selects an object by its current or its original identity.
    pub fn selects(&self, object: &Object) -> Selected {
        let (now, first) = (&object.id, object.original());
        let either =
            |pattern: &Pattern, text: fn(&Id) -> &str| pattern.matches(text(&first)) || pattern.matches(text(now));
        if !object.sure {
            return Selected::Unknown;
        }
        let selected = either(&self.namespace, Id::effective_namespace)
            && either(&self.name, |id| &id.name)
            && self.group.matches(&now.group)
            && self.version.matches(&now.version)
            && self.kind.matches(&now.kind);
        match selected {
            true if self.labels.is_empty() => Selected::Yes,
            true => self.by_labels(object),
            false => Selected::No,
        }
    }

    /// Reports whether it selects an object by any current or previous identity, as replacements do.
    pub fn selects_any(&self, object: &Object) -> Selected {
        if !object.sure {
            return Selected::Unknown;
        }
        if self.names(object) { self.by_labels(object) } else { Selected::No }
    }

    /// Reports whether it rejects an object as a target of a replacement: by any current or previous identity, or by labels
    /// and annotations. Either is sufficient; empty parts of the selector reject nothing.
    ///
    /// Source: `selectByAnnoAndLabel` in `api/filters/replacement` and `TargetSelectorRegex.RejectsAny`.
    pub fn rejects(&self, object: &Object) -> Selected {
        let patterns = [&self.group, &self.version, &self.kind, &self.name, &self.namespace];
        let by_id = match patterns.iter().any(|pattern| pattern.is_some()) {
            true if !object.sure => Selected::Unknown,
            true if self.names(object) => Selected::Yes,
            _ => Selected::No,
        };
        let by_labels = if self.labels.is_empty() { Selected::No } else { self.by_labels(object) };
        any([by_id, by_labels].into_iter())
    }

    fn names(&self, object: &Object) -> bool {
        object.ids().any(|id| {
            self.namespace.matches(&id.namespace)
                && self.name.matches(&id.name)
                && self.group.matches(&id.group)
                && self.version.matches(&id.version)
                && self.kind.matches(&id.kind)
        })
    }

    fn by_labels(&self, object: &Object) -> Selected {
        for (at, labels) in &self.labels {
            if !object.is_clear(&format!("/metadata/{at}")) {
                return Selected::Unknown;
            }
            // Values that are not strings count as empty.
            let label = |key: &str| Some(object.raw()["metadata"][at].get(key)?.as_str().unwrap_or_default());
            if !labels.requirements().iter().all(|requirement| requirement.holds(label(&requirement.key))) {
                return Selected::No;
            }
        }
        Selected::Yes
    }
}

/// Combines results: `Yes` if one of them is, else `Unknown` if one of them is.
pub fn any(mut all: impl Iterator<Item = Selected>) -> Selected {
    all.try_fold(Selected::No, |so_far, one| match one {
        Selected::Yes => Err(Selected::Yes),
        Selected::Unknown => Ok(Selected::Unknown),
        Selected::No => Ok(so_far),
    })
    .unwrap_or_else(|yes| yes)
}

/// Compiles an expression.
fn pattern(text: &str) -> Result<Pattern, BadSelector> {
    Pattern::new(text).map_err(|error| match error.code {
        // Go has other limits.
        Code::NestingDepth | Code::Large => BadSelector::Unsupported(text.to_owned()),
        _ => BadSelector::Invalid(text.to_owned()),
    })
}
