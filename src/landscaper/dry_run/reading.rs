//! What a dry run reads for its exports: the DryRunConfiguration of the DeployItems and Executions that have any.

use std::sync::Arc;

use serde_json::Value;

use super::export::Failure;
use super::item::{Item, items};
use super::mark::Mark;
use super::{marks_and_spec, unless_unchanged};
use crate::admission::{Level, Request};
use crate::catalog::{Confirmation, Reference, Stored, View};
use crate::landscaper::kinds::{self, BY_DRY_RUN_CONFIGURATION, DEPLOY_ITEMS, DRY_RUN_CONFIGURATIONS};

/// The most DeployItems that are looked at for one DryRunConfiguration: a decision is bounded, whatever is stored.
pub(super) const MAX_ITEMS: usize = 200;

/// The configuration of an object in dry run.
pub(super) enum Configuration {
    /// There is no need for one: it is no dry run, or no export reads an object.
    NotNeeded,
    /// It names none.
    NotNamed,
    /// The one that it names is not known yet.
    NotKnown,
    /// The one that it names does not exist.
    Missing(String),
    /// There it is.
    Found(Arc<Stored>),
}

/// A DeployItem or an Execution, and what it reads.
pub(super) struct Reading {
    pub(super) items: Vec<Item>,
    pub(super) configuration: Configuration,
}

impl Reading {
    pub(super) fn of(object: &Value, namespace: &str, view: &View<'_>) -> Self {
        let mark = Mark::of(object);
        // Templates that cannot be read are refused by Landscaper's own webhook.
        let items = if mark.is_dry_run() { items(object).unwrap_or_default() } else { Vec::new() };
        let reads = items.iter().flat_map(|item| &item.exports).any(|export| export.from_resource.is_some());
        let configuration = match mark.configuration.filter(|name| !name.is_empty()) {
            _ if !reads => Configuration::NotNeeded,
            None => Configuration::NotNamed,
            Some(name) => match view.find(&DRY_RUN_CONFIGURATIONS, namespace, name) {
                Some(found) => Configuration::Found(found),
                None if view.is_missing(&DRY_RUN_CONFIGURATIONS, namespace, name) => {
                    Configuration::Missing(name.to_owned())
                }
                None => Configuration::NotKnown,
            },
        };
        Self { items, configuration }
    }

    /// The exports that have no value: which DeployItem's, which of its exports, and why.
    pub(super) fn failures(&self, configuration: &Value) -> Vec<(usize, usize, Failure)> {
        let mut failures = Vec::new();
        for (at, item) in self.items.iter().enumerate() {
            for (number, export) in item.exports.iter().enumerate() {
                failures.extend(export.evaluate(configuration).err().map(|failure| (at, number, failure)));
            }
        }
        failures
    }
}

/// What to confirm before an object is refused for its configuration: it may have come, or been changed, a moment ago.
pub(super) fn confirm(request: &Request<'_>, view: &View<'_>) -> Vec<Reference> {
    if kinds::is(&DRY_RUN_CONFIGURATIONS, request) {
        return Vec::new();
    }
    let reading = Reading::of(request.object(), &request.namespace, view);
    let name = Mark::of(request.object()).configuration.filter(|name| !name.is_empty());
    let needed = !matches!(reading.configuration, Configuration::NotNeeded);
    name.filter(|_| needed).map(|name| reference(request, name)).into_iter().collect()
}

fn reference(request: &Request<'_>, name: &str) -> Reference {
    Reference::new(&DRY_RUN_CONFIGURATIONS, &request.namespace, name)
}

/// The level of what is found wrong with the configuration of an object: a warning where it may have changed since the
/// catalog saw it, and for what the request leaves as it was.
pub(super) fn level(request: &Request<'_>, view: &View<'_>, level: Level) -> Level {
    let name = Mark::of(request.object()).configuration.unwrap_or_default();
    let asked = view.confirmation(&reference(request, name));
    let is_certain = name.is_empty() || matches!(asked, Some(Confirmation::Exists(_) | Confirmation::Gone));
    let level = if is_certain { level } else { level.min(Level::Warn) };
    unless_unchanged(request, level, marks_and_spec)
}

/// The DeployItems in dry run that use a DryRunConfiguration, as far as the catalog knows.
pub(super) fn users(namespace: &str, configuration: &str, view: &View<'_>) -> Vec<Arc<Stored>> {
    view.indexed(&DEPLOY_ITEMS, &BY_DRY_RUN_CONFIGURATION, namespace, configuration, MAX_ITEMS)
}
