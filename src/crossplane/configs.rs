//! EnvironmentConfigs in the catalog, found by name and by labels without walking through all of them.

use std::sync::Arc;

use super::environment;
use super::kinds::{self, BY_BEGINNING, BY_LABEL, BY_LABEL_KEY};
use crate::catalog::{Kind, Stored, View};
use crate::near::nearest_first;

/// A selection of more is cut off, and said to be: nobody merges so many.
pub const MAX_SELECTED: usize = 1000;
/// How many EnvironmentConfigs are looked at for a hint.
const LOOKED_AT: usize = 200;
/// How many hints are given.
const HINTS: usize = 5;

/// EnvironmentConfigs of a catalog.
#[derive(Clone, Copy)]
pub struct Configs<'v> {
    view: &'v View<'v>,
    kind: &'static Kind,
}

impl<'v> Configs<'v> {
    /// Those that the cluster serves.
    pub fn of(view: &'v View<'v>) -> Self {
        Self { view, kind: kinds::served(view) }
    }

    /// Whether what is not found does not exist.
    pub fn is_complete(&self) -> bool {
        self.view.is_complete(self.kind)
    }

    /// The one of a name.
    pub fn find(&self, name: &str) -> Option<Arc<Stored>> {
        self.view.find(self.kind, "", name)
    }

    /// Those that have every one of some labels, sorted by name; at most [`MAX_SELECTED`]. None for no labels.
    pub fn matching(&self, labels: &[(&str, &str)]) -> Vec<Arc<Stored>> {
        let count =
            |(key, value): &&(&str, &str)| self.view.count(self.kind, &BY_LABEL, "", &kinds::label_key(key, value));
        // The rarest label leaves the fewest to look at.
        let Some((key, value)) = labels.iter().min_by_key(count) else { return Vec::new() };
        let mut found = self.view.indexed(self.kind, &BY_LABEL, "", &kinds::label_key(key, value), usize::MAX);
        found.retain(|stored| labels.iter().all(|(key, value)| label(stored, key) == Some(value)));
        found.truncate(MAX_SELECTED);
        found
    }

    /// Values that EnvironmentConfigs have for a label, the nearest to `value` first.
    pub fn values_near(&self, key: &str, value: &str) -> Vec<String> {
        let found = self.view.indexed(self.kind, &BY_LABEL_KEY, "", key, LOOKED_AT);
        nearest(value, found.iter().filter_map(|stored| label(stored, key)))
    }

    /// Names of EnvironmentConfigs that begin as `name` does, the nearest first.
    pub fn names_near(&self, name: &str) -> Vec<String> {
        let found = self.view.indexed(self.kind, &BY_BEGINNING, "", &kinds::beginning(name), LOOKED_AT);
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

/// EnvironmentConfigs of a catalog, one of which is another than there.
pub struct Instead<'v> {
    /// The catalog's.
    pub configs: Configs<'v>,
    /// The one that takes the place of the one of its name.
    pub config: Arc<Stored>,
}

impl environment::Configs for Instead<'_> {
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

/// EnvironmentConfigs of a catalog without one of them.
pub struct Without<'v> {
    /// The catalog's.
    pub configs: Configs<'v>,
    /// The name of the one that is left out.
    pub name: &'v str,
}

impl environment::Configs for Without<'_> {
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
    nearest_first(wanted, texts, HINTS).into_iter().map(str::to_owned).collect()
}
