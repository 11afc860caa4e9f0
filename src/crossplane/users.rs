//! Who uses an EnvironmentConfig: Compositions that name it or select it by its labels, and composites that refer to it or
//! whose Composition selects it for them.

use std::collections::BTreeSet;

use serde_json::Value;

use super::composite::labels;
use super::composition;
use super::configs::Configs;
use super::environment::{EnvironmentSource, LabelMatcherType, Mode, Profile, Selector, SourceType};
use super::kinds::{BY_COMPOSITION, BY_REFERENCE, BY_REFERRED_CONFIG, BY_SELECTED_LABEL, COMPOSITIONS};
use crate::catalog::{Reference, Stored, View};

/// How many Compositions and composites are looked at. Of a deletion that so many are in the way of, nobody reads more.
pub const MAX_LOOKED_AT: usize = 500;

/// Somebody who uses an EnvironmentConfig.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct User {
    /// Who.
    pub who: Reference,
    /// How.
    pub how: How,
}

/// How an EnvironmentConfig is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum How {
    /// It must be there.
    Needed,
    /// Without it there is less in the environment.
    Merged,
}

/// Those who use an EnvironmentConfig as it is written in `config`, those who need it first.
pub fn users(config: &Value, view: &View<'_>) -> Vec<User> {
    let mut search = Search { config, view, name: name(config), found: Vec::new(), left: MAX_LOOKED_AT };
    search.composites_that_refer();
    for composition in search.compositions() {
        search.composition(&composition);
    }
    let mut found = search.found;
    found.sort_by_key(|user| user.how);
    found
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

    /// The Compositions that name it, or select by a label that it has.
    fn compositions(&self) -> Vec<std::sync::Arc<Stored>> {
        let labels = self.config.get("metadata").and_then(|meta| meta.get("labels")?.as_object());
        let keys = labels.into_iter().flat_map(|labels| labels.keys());
        let mut found = self.view.indexed_everywhere(&COMPOSITIONS, &BY_REFERRED_CONFIG, self.name, self.left);
        for key in keys {
            found.extend(self.view.indexed_everywhere(&COMPOSITIONS, &BY_SELECTED_LABEL, key, self.left));
        }
        let mut seen = BTreeSet::new();
        found.retain(|composition| seen.insert(composition.name().to_owned()));
        found.truncate(self.left);
        found
    }

    fn composition(&mut self, composition: &Stored) {
        self.left = self.left.saturating_sub(1);
        let Some(profile) = composition::profile(composition.value()) else { return };
        for (_, selection) in composition::sources(composition.value()) {
            let is_optional = selection.policy.is_resolution_optional();
            for source in selection.sources.iter().flatten() {
                self.source(source, is_optional, composition, profile);
            }
        }
    }

    fn source(&mut self, source: &EnvironmentSource, is_optional: bool, composition: &Stored, profile: Profile) {
        let user = Reference::new(&COMPOSITIONS, "", composition.name());
        match (source.kind(), &source.reference, &source.selector) {
            (SourceType::Reference, Some(reference), _) if reference.name == self.name => {
                self.add(user, if is_optional { How::Merged } else { How::Needed });
            }
            (SourceType::Selector, _, Some(selector)) => {
                let is_fixed = selector.match_labels.iter().all(|matcher| matcher.kind() == LabelMatcherType::Value);
                if !is_fixed {
                    self.composites(selector, composition, profile);
                } else if let Some(how) = self.selected(selector, &Value::Null, profile) {
                    self.add(user, how);
                }
            }
            _ => {}
        }
    }

    /// The composites of a Composition for whom a selector selects it.
    fn composites(&mut self, selector: &Selector, composition: &Stored, profile: Profile) {
        for kind in self.view.declared() {
            for stored in self.view.indexed_everywhere(kind, &BY_COMPOSITION, composition.name(), self.left) {
                self.left = self.left.saturating_sub(1);
                if let Some(how) = self.selected(selector, stored.value(), profile) {
                    self.add(Reference::new(kind, stored.namespace(), stored.name()), how);
                }
            }
        }
    }

    /// Whether and how a selector selects it on behalf of a composite.
    fn selected(&self, selector: &Selector, composite: &Value, profile: Profile) -> Option<How> {
        let labels = labels::wanted(selector, composite, profile).filter(|labels| !labels.is_empty())?;
        let own = self.config.get("metadata").and_then(|meta| meta.get("labels"));
        let has = |(key, value): (&String, &String)| own.and_then(|own| own.get(key)?.as_str()) == Some(value);
        if !labels.iter().all(has) {
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
