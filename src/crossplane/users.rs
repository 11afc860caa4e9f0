//! Who uses an EnvironmentConfig: Compositions and CompositionRevisions that name it or select it by its labels, and
//! composites that refer to it.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::Value;

use super::composite::labels;
use super::composition;
use super::composition::pipeline::Required;
use super::configs::Configs;
use super::environment::{EnvironmentSource, LabelMatcherType, Mode, Profile, Selector, SourceType};
use super::kinds::{BY_REFERENCE, BY_REFERRED_CONFIG, BY_SELECTED_LABEL, COMPOSITIONS, REVISIONS};
use crate::catalog::{Kind, Reference, Stored, View};

/// How many Compositions, revisions and composites are looked at. Nobody reads more names in a message.
pub const MAX_LOOKED_AT: usize = 500;

/// An object that uses an EnvironmentConfig.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct User {
    /// A Composition, a CompositionRevision, or a composite that refers to it.
    pub who: Reference,
    /// How it uses it, as far as that can be told without a composite.
    pub how: How,
}

/// How an EnvironmentConfig is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum How {
    /// It must exist.
    Needed,
    /// Without it there is less in the environment.
    Merged,
    /// A pipeline step requires it, and the function decides what that means.
    Handed,
}

/// Returns the users of an EnvironmentConfig as it is written in `config`.
pub fn users(config: &Value, view: &View<'_>) -> Vec<User> {
    let mut search = Search { config, view, name: name(config), found: Vec::new(), left: MAX_LOOKED_AT };
    search.composites_that_refer();
    for kind in [&COMPOSITIONS, &REVISIONS] {
        for text in search.texts(kind) {
            search.text(kind, &text);
        }
    }
    search.found
}

struct Search<'s> {
    config: &'s Value,
    view: &'s View<'s>,
    name: &'s str,
    found: Vec<User>,
    left: usize,
}

fn name(object: &Value) -> &str {
    object.get("metadata").and_then(|meta| meta.get("name")?.as_str()).unwrap_or_default()
}

impl Search<'_> {
    fn composites_that_refer(&mut self) {
        for kind in self.view.declared() {
            for stored in self.view.indexed_everywhere(kind, &BY_REFERENCE, self.name, self.left) {
                self.left = self.left.saturating_sub(1);
                if super::composite::references(stored.value()).contains(&self.name) {
                    self.add(Reference::new(kind, stored.namespace(), stored.name()), How::Needed);
                }
            }
        }
    }

    /// The Compositions or revisions that name it, or select by a label that it has.
    fn texts(&self, kind: &'static Kind) -> Vec<Arc<Stored>> {
        let labels = self.config.get("metadata").and_then(|meta| meta.get("labels")?.as_object());
        let keys = labels.into_iter().flat_map(|labels| labels.keys());
        let mut found = self.view.indexed_everywhere(kind, &BY_REFERRED_CONFIG, self.name, self.left);
        for key in keys {
            found.extend(self.view.indexed_everywhere(kind, &BY_SELECTED_LABEL, key, self.left));
        }
        let mut seen = BTreeSet::new();
        found.retain(|text| seen.insert(text.name().to_owned()));
        found.truncate(self.left);
        found
    }

    fn text(&mut self, kind: &'static Kind, text: &Stored) {
        self.left = self.left.saturating_sub(1);
        if composition::pipeline::required(text.value()).iter().any(|required| self.is_required(required)) {
            self.add(Reference::new(kind, "", text.name()), How::Handed);
        }
        let Some(profile) = composition::profile(text.value()) else { return };
        for (_, selection) in composition::sources(text.value()) {
            let is_optional = selection.policy.is_resolution_optional();
            for source in selection.sources.iter().flatten() {
                if let Some(how) = self.source(source, is_optional, profile) {
                    self.add(Reference::new(kind, "", text.name()), how);
                }
            }
        }
    }

    /// Whether a pipeline step requires it.
    fn is_required(&self, required: &Required) -> bool {
        let own = self.config.get("metadata").and_then(|meta| meta.get("labels"));
        match required {
            Required::Named(name) => name == self.name,
            Required::Labelled(labels) => {
                labels.iter().all(|(key, value)| own.and_then(|own| own.get(key)?.as_str()) == Some(value))
            }
        }
    }

    /// Whether a source may give it, and how.
    fn source(&self, source: &EnvironmentSource, is_optional: bool, profile: Profile) -> Option<How> {
        match (source.kind(), &source.reference, &source.selector) {
            (SourceType::Reference, Some(reference), _) if reference.name == self.name => {
                Some(if is_optional { How::Merged } else { How::Needed })
            }
            (SourceType::Selector, _, Some(selector)) => self.selected(selector, profile),
            _ => None,
        }
    }

    /// Whether and how a selector may select it. What a matcher reads from a composite may be any value.
    fn selected(&self, selector: &Selector, profile: Profile) -> Option<How> {
        let is_fixed = |kind| kind == LabelMatcherType::Value;
        let own = self.config.get("metadata").and_then(|meta| meta.get("labels"));
        let label = |key: &str| own.and_then(|own| own.get(key)?.as_str());
        if !selector.match_labels.iter().all(|matcher| is_fixed(matcher.kind())) {
            let may_have =
                |key: &str, value: Option<&str>| label(key).is_some_and(|own| value.is_none_or(|it| it == own));
            let mut matchers = selector.match_labels.iter().filter(|matcher| !matcher.is_optional());
            let is_possible = matchers
                .all(|matcher| may_have(&matcher.key, matcher.value.as_deref().filter(|_| is_fixed(matcher.kind()))));
            return is_possible.then_some(How::Merged);
        }
        let labels = labels::wanted(selector, &Value::Null, profile).filter(|labels| !labels.is_empty())?;
        if !labels.iter().all(|(key, value)| label(key) == Some(value)) {
            return None;
        }
        let labels: Vec<_> = labels.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
        let others = Configs::of(self.view).matching(&labels).iter().filter(|other| other.name() != self.name).count();
        let is_needed = match selector.effective_mode() {
            Mode::Multiple => (others as u64) < selector.min_match.unwrap_or_default(),
            _ => others == 0,
        };
        Some(if is_needed { How::Needed } else { How::Merged })
    }

    fn add(&mut self, who: Reference, how: How) {
        match self.found.iter_mut().find(|user| user.who == who) {
            Some(known) => known.how = known.how.min(how),
            None => self.found.push(User { who, how }),
        }
    }
}
