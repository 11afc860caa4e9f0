//! Finds EnvironmentConfigs in the catalog, by name or by labels.

use std::sync::Arc;

use super::environment;
use super::kinds::{self, BY_LABEL, BY_LABEL_KEY, BY_NAME_PREFIX};
use crate::catalog::{Kind, Stored, View};
use crate::suggestion::by_similarity;

/// Maximum number of EnvironmentConfigs in a selection. Larger selections are truncated, because real Compositions do
/// not merge so many.
pub const MAX_SELECTED: usize = 1000;
/// Maximum number of EnvironmentConfigs that are compared to suggest a similar name or label value in a message. The
/// limit bounds the time that one message costs.
const MAX_COMPARED: usize = 200;
/// Maximum number of similar names or label values that a message suggests, so that the message stays short.
const MAX_SUGGESTIONS: usize = 5;

/// A lookup of EnvironmentConfigs, by name or by labels. It finds them in the catalog, which caches objects of the
/// cluster.
#[derive(Clone, Copy)]
pub struct Configs<'v> {
    view: &'v View<'v>,
    kind: &'static Kind,
}

impl<'v> Configs<'v> {
    /// Creates a lookup of EnvironmentConfigs in the API version that the cluster serves.
    pub fn of(view: &'v View<'v>) -> Self {
        Self { view, kind: kinds::served(view) }
    }

    /// Returns whether the catalog contains all EnvironmentConfigs. If it does, an EnvironmentConfig that is not in the
    /// catalog does not exist.
    pub fn is_complete(&self) -> bool {
        self.view.is_complete(self.kind)
    }

    /// Returns the EnvironmentConfig with this name; `None` if the catalog does not contain it.
    pub fn find(&self, name: &str) -> Option<Arc<Stored>> {
        self.view.find(self.kind, "", name)
    }

    /// Returns the EnvironmentConfigs that have all these labels, sorted by name, at most [`MAX_SELECTED`]. An empty
    /// list of labels selects nothing.
    pub fn matching(&self, labels: &[(&str, &str)]) -> Vec<Arc<Stored>> {
        let count =
            |(key, value): &&(&str, &str)| self.view.count(self.kind, &BY_LABEL, "", &kinds::label_key(key, value));
        // The label with the fewest objects leaves the fewest to compare.
        let Some((key, value)) = labels.iter().min_by_key(count) else { return Vec::new() };
        let mut found = self.view.indexed(self.kind, &BY_LABEL, "", &kinds::label_key(key, value), usize::MAX);
        found.retain(|stored| labels.iter().all(|(key, value)| label(stored, key) == Some(value)));
        found.truncate(MAX_SELECTED);
        found
    }

    /// Returns suggestions for `value`, a value of the label `key`. These are the most similar values that this label
    /// has in existing EnvironmentConfigs.
    pub fn similar_values(&self, key: &str, value: &str) -> Vec<String> {
        let found = self.view.indexed(self.kind, &BY_LABEL_KEY, "", key, MAX_COMPARED);
        nearest(value, found.iter().filter_map(|stored| label(stored, key)))
    }

    /// Returns suggestions for `name`. These are the most similar names of EnvironmentConfigs that have the same first
    /// letters as `name`.
    pub fn similar_names(&self, name: &str) -> Vec<String> {
        let found = self.view.indexed(self.kind, &BY_NAME_PREFIX, "", &kinds::name_prefix(name), MAX_COMPARED);
        nearest(name, found.iter().map(|stored| stored.name()))
    }
}

impl environment::Configs for Configs<'_> {
    fn find(&self, name: &str) -> Option<Arc<Stored>> {
        self.find(name)
    }

    fn matching(&self, labels: &[(&str, &str)]) -> Vec<Arc<Stored>> {
        self.matching(labels)
    }
}

/// The EnvironmentConfigs in a catalog, as if one EnvironmentConfig were added or replaced. Rule EN010 uses it to
/// compare environments before and after a request.
pub struct ConfigsWith<'v> {
    /// The EnvironmentConfigs of the catalog.
    pub configs: Configs<'v>,
    /// The EnvironmentConfig to add. It replaces an EnvironmentConfig of the same name.
    pub config: Arc<Stored>,
}

impl environment::Configs for ConfigsWith<'_> {
    fn find(&self, name: &str) -> Option<Arc<Stored>> {
        if name == self.config.name() { Some(self.config.clone()) } else { self.configs.find(name) }
    }

    fn matching(&self, labels: &[(&str, &str)]) -> Vec<Arc<Stored>> {
        let mut found = self.configs.matching(labels);
        found.retain(|stored| stored.name() != self.config.name());
        if !labels.is_empty() && labels.iter().all(|(key, value)| label(&self.config, key) == Some(value)) {
            found.push(self.config.clone());
            found.sort_by(|one, other| one.name().cmp(other.name()));
        }
        found
    }
}

/// The EnvironmentConfigs of a catalog, except one that is treated as deleted.
pub struct ConfigsWithout<'v> {
    /// The EnvironmentConfigs of the catalog.
    pub configs: Configs<'v>,
    /// The name of the EnvironmentConfig that is treated as deleted.
    pub name: &'v str,
}

impl environment::Configs for ConfigsWithout<'_> {
    fn find(&self, name: &str) -> Option<Arc<Stored>> {
        if name == self.name { None } else { self.configs.find(name) }
    }

    fn matching(&self, labels: &[(&str, &str)]) -> Vec<Arc<Stored>> {
        let mut found = self.configs.matching(labels);
        found.retain(|stored| stored.name() != self.name);
        found
    }
}

fn label<'s>(stored: &'s Stored, key: &str) -> Option<&'s str> {
    environment::label(stored.value(), key)
}

fn nearest<'t>(wanted: &str, texts: impl Iterator<Item = &'t str>) -> Vec<String> {
    by_similarity(wanted, texts, MAX_SUGGESTIONS).into_iter().map(str::to_owned).collect()
}
