//! The users of an EnvironmentConfig: Compositions and CompositionRevisions that reference it or select it by labels,
//! and composites that reference it.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::Value;

use super::composite::labels;
use super::composition;
use super::composition::required::Required;
use super::configs::Configs;
use super::environment::{EnvironmentSource, LabelMatcherType, Mode, Profile, Selector, SourceType};
use super::kinds::{BY_REFERENCE, BY_REFERRED_CONFIG, BY_SELECTED_LABEL, COMPOSITIONS, REVISIONS};
use crate::admission::Metadata;
use crate::catalog::{Kind, Reference, Stored, View};

/// Maximum number of objects that the search for users of an EnvironmentConfig examines. The objects are Compositions,
/// CompositionRevisions and composites. The limit bounds the duration of a decision.
pub const MAX_USERS: usize = 500;

/// An object that uses an EnvironmentConfig.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct User {
    /// The Composition, CompositionRevision or composite that uses the EnvironmentConfig.
    pub object: Reference,
    /// How the object uses the EnvironmentConfig. If there are several ways, this is the strictest of them. A selector
    /// that reads label values from a composite counts as `Optional`, because these values are unknown here.
    pub usage: Usage,
}

/// How an object uses an EnvironmentConfig.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Usage {
    /// The EnvironmentConfig must exist.
    Required,
    /// The EnvironmentConfig may be missing. Then the environment has less data.
    Optional,
    /// A pipeline step selects the EnvironmentConfig in `requirements.requiredResources`, and Crossplane passes it to
    /// the function of this step. The function decides what happens if the EnvironmentConfig is missing.
    PassedToFunction,
}

/// Returns the Compositions, CompositionRevisions and composites that use an EnvironmentConfig with the name and labels
/// of `config`.
pub fn users(config: &Value, view: &View<'_>) -> Vec<User> {
    let mut search = Search { config, view, name: name(config), found: Vec::new(), left: MAX_USERS };
    search.composites_that_refer();
    for kind in [&COMPOSITIONS, &REVISIONS] {
        for text in search.compositions(kind) {
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
    Metadata::of(object).name()
}

impl Search<'_> {
    fn composites_that_refer(&mut self) {
        for kind in self.view.declared() {
            for stored in self.view.indexed_everywhere(kind, &BY_REFERENCE, self.name, self.left) {
                self.left = self.left.saturating_sub(1);
                if super::composite_references::references(stored.value()).contains(&self.name) {
                    self.add(Reference::new(kind, stored.namespace(), stored.name()), Usage::Required);
                }
            }
        }
    }

    /// Returns at most `self.left` objects of `kind` that may use the EnvironmentConfig. `kind` is Composition or
    /// CompositionRevision. An object may use the EnvironmentConfig if it names the EnvironmentConfig, or if it has a
    /// label selector with the key of one of the EnvironmentConfig's labels.
    fn compositions(&self, kind: &'static Kind) -> Vec<Arc<Stored>> {
        let labels = Metadata::of(self.config).labels();
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
        if composition::required::required(text.value()).iter().any(|required| self.is_required(required)) {
            self.add(Reference::new(kind, "", text.name()), Usage::PassedToFunction);
        }
        let Some(profile) = composition::profile(text.value()) else { return };
        for (_, selection) in composition::sources(text.value()) {
            let is_optional = selection.policy.is_resolution_optional();
            for source in selection.sources.iter().flatten() {
                if let Some(usage) = self.source(source, is_optional, profile) {
                    self.add(Reference::new(kind, "", text.name()), usage);
                }
            }
        }
    }

    /// Returns whether a `requiredResources` entry of a pipeline step matches the EnvironmentConfig.
    fn is_required(&self, required: &Required) -> bool {
        let own = Metadata::of(self.config);
        match required {
            Required::Named(name) => name == self.name,
            Required::Labelled(labels) => labels.iter().all(|(key, value)| own.label(key) == Some(value)),
        }
    }

    /// Returns how `source`, an entry of `environmentConfigs`, uses the EnvironmentConfig. `None` if `source` never
    /// selects it. `is_optional` is true if `source` may refer to an EnvironmentConfig that does not exist.
    fn source(&self, source: &EnvironmentSource, is_optional: bool, profile: Profile) -> Option<Usage> {
        match (source.kind(), &source.reference, &source.selector) {
            (SourceType::Reference, Some(reference), _) if reference.name == self.name => {
                Some(if is_optional { Usage::Optional } else { Usage::Required })
            }
            (SourceType::Selector, _, Some(selector)) => self.selected(selector, profile),
            _ => None,
        }
    }

    /// Returns how a selector uses the EnvironmentConfig. `None` if the selector never selects it. A selector can
    /// compare a label with a value from the composite. This function does not know the composite, so it assumes that
    /// the values are equal, and only checks that the EnvironmentConfig has the label.
    fn selected(&self, selector: &Selector, profile: Profile) -> Option<Usage> {
        let is_fixed = |kind| kind == LabelMatcherType::Value;
        let own = Metadata::of(self.config);
        let label = |key: &str| own.label(key);
        if !selector.match_labels.iter().all(|matcher| is_fixed(matcher.kind())) {
            let may_have =
                |key: &str, value: Option<&str>| label(key).is_some_and(|own| value.is_none_or(|it| it == own));
            let mut matchers = selector.match_labels.iter().filter(|matcher| !matcher.is_optional());
            let is_possible = matchers
                .all(|matcher| may_have(&matcher.key, matcher.value.as_deref().filter(|_| is_fixed(matcher.kind()))));
            return is_possible.then_some(Usage::Optional);
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
        Some(if is_needed { Usage::Required } else { Usage::Optional })
    }

    fn add(&mut self, who: Reference, usage: Usage) {
        match self.found.iter_mut().find(|user| user.object == who) {
            Some(known) => known.usage = known.usage.min(usage),
            None => self.found.push(User { object: who, usage }),
        }
    }
}
