//! Which objects a selector selects.
//!
//! Source: `types.Selector`, `SelectorRegex` and `resWrangler.Select`.

use regex::Regex;

use super::labels::Labels;
use super::object::{Id, Object};
use crate::kustomize::file::Selector;

/// A selector with its expressions compiled.
#[derive(Debug)]
pub struct Compiled {
    group: Option<Pattern>,
    version: Option<Pattern>,
    kind: Option<Pattern>,
    name: Option<Pattern>,
    namespace: Option<Pattern>,
    /// Where labels are looked for, and what they must be.
    labels: Vec<(&'static str, Labels)>,
}

/// What a text must be as a whole.
#[derive(Debug)]
enum Pattern {
    /// Just this: most people write names, and an expression takes a while to compile.
    Text(String),
    Expression(Regex),
}

/// Why a selector cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BadSelector {
    /// kustomize refuses this expression.
    Refused(String),
    /// Our reading of it may differ from Go's.
    Unsure(String),
}

/// Whether an object is selected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Selected {
    /// It is.
    Yes,
    /// It is not.
    No,
    /// It depends on labels or annotations, or on an identity that is not certain.
    Perhaps,
}

impl Compiled {
    /// Compiles the expressions of a selector.
    ///
    /// # Errors
    ///
    /// When one is none.
    pub fn new(selector: &Selector) -> Result<Self, BadSelector> {
        let labels = [("labels", &selector.label_selector), ("annotations", &selector.annotation_selector)];
        let labels = labels.into_iter().filter(|(_, text)| !text.is_empty());
        let parsed = |text: &String| Labels::parse(text).ok_or_else(|| BadSelector::Unsure(text.clone()));
        Ok(Self {
            group: anchored(&selector.group)?,
            version: anchored(&selector.version)?,
            kind: anchored(&selector.kind)?,
            name: anchored(&selector.name)?,
            namespace: anchored(&selector.namespace)?,
            labels: labels.map(|(at, text)| Ok((at, parsed(text)?))).collect::<Result<_, _>>()?,
        })
    }

    /// Whether it selects an object by what the object is now and was at first.
    pub fn selects(&self, object: &Object) -> Selected {
        let (now, first) = (&object.id, object.original());
        let either = |pattern: &Option<Pattern>, text: fn(&Id) -> &str| {
            matches(pattern, text(&first)) || matches(pattern, text(now))
        };
        if !object.sure {
            return Selected::Perhaps;
        }
        let selected = either(&self.namespace, Id::effective_namespace)
            && either(&self.name, |id| &id.name)
            && matches(&self.group, &now.group)
            && matches(&self.version, &now.version)
            && matches(&self.kind, &now.kind);
        match selected {
            true if self.labels.is_empty() => Selected::Yes,
            true => self.by_labels(object),
            false => Selected::No,
        }
    }

    /// Whether it selects an object by any one identity that the object has or had, as replacements do.
    pub fn selects_any(&self, object: &Object) -> Selected {
        if !object.sure {
            return Selected::Perhaps;
        }
        if self.names(object) { self.by_labels(object) } else { Selected::No }
    }

    /// Whether it rejects an object as a target of a replacement: by any one identity that the object has or had, or by its
    /// labels and annotations. Each is enough on its own, and what the selector does not say rejects nothing.
    ///
    /// Source: `selectByAnnoAndLabel` in `api/filters/replacement` and `TargetSelectorRegex.RejectsAny`.
    pub fn rejects(&self, object: &Object) -> Selected {
        let patterns = [&self.group, &self.version, &self.kind, &self.name, &self.namespace];
        let by_id = match patterns.iter().any(|pattern| pattern.is_some()) {
            true if !object.sure => Selected::Perhaps,
            true if self.names(object) => Selected::Yes,
            _ => Selected::No,
        };
        let by_labels = if self.labels.is_empty() { Selected::No } else { self.by_labels(object) };
        any([by_id, by_labels].into_iter())
    }

    fn names(&self, object: &Object) -> bool {
        object.ids().any(|id| {
            matches(&self.namespace, &id.namespace)
                && matches(&self.name, &id.name)
                && matches(&self.group, &id.group)
                && matches(&self.version, &id.version)
                && matches(&self.kind, &id.kind)
        })
    }

    fn by_labels(&self, object: &Object) -> Selected {
        for (at, labels) in &self.labels {
            if !object.is_clear(&format!("/metadata/{at}")) {
                return Selected::Perhaps;
            }
            // What is no text counts as an empty one.
            let label = |key: &str| Some(object.raw()["metadata"][at].get(key)?.as_str().unwrap_or_default());
            if !labels.requirements().iter().all(|requirement| requirement.holds(label(&requirement.key))) {
                return Selected::No;
            }
        }
        Selected::Yes
    }
}

/// Whether one of several is the case.
pub fn any(mut all: impl Iterator<Item = Selected>) -> Selected {
    all.try_fold(Selected::No, |so_far, one| match one {
        Selected::Yes => Err(Selected::Yes),
        Selected::Perhaps => Ok(Selected::Perhaps),
        Selected::No => Ok(so_far),
    })
    .unwrap_or_else(|yes| yes)
}

fn matches(pattern: &Option<Pattern>, text: &str) -> bool {
    match pattern {
        None => true,
        Some(Pattern::Text(wanted)) => wanted == text,
        Some(Pattern::Expression(expression)) => expression.is_match(text),
    }
}

/// What Go's expressions allow and ours do not.
const ONLY_IN_GO: [&str; 4] = ["{", "\\Q", "\\C", "[["];

fn anchored(text: &str) -> Result<Option<Pattern>, BadSelector> {
    if text.is_empty() {
        return Ok(None);
    }
    if text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_/".contains(&byte)) {
        return Ok(Some(Pattern::Text(text.to_owned())));
    }
    let wrong = || text.to_owned();
    match Regex::new(&format!("^(?:{text})$")) {
        Ok(regex) if text.contains("&&") || text.contains("\\<") => {
            drop(regex);
            Err(BadSelector::Unsure(wrong()))
        }
        Ok(regex) => Ok(Some(Pattern::Expression(regex))),
        Err(_) if ONLY_IN_GO.iter().any(|part| text.contains(part)) => Err(BadSelector::Unsure(wrong())),
        Err(_) => Err(BadSelector::Refused(wrong())),
    }
}
