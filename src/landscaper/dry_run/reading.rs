//! Finds the DryRunConfiguration of a DeployItem or Execution in dry run. Also finds the exports that have no value in
//! the DryRunConfiguration.

use std::sync::Arc;

use serde_json::Value;

use super::export::{Export, Failure};
use super::item::{Item, items};
use super::{annotations_and_spec, unless_unchanged};
use crate::admission::{Finding, Level, Request};
use crate::catalog::{LiveRead, Reference, Stored, View};
use crate::landscaper::dry_run_annotations::DryRunAnnotations;
use crate::landscaper::kinds::{
    self, BY_DRY_RUN_CONFIGURATION, DEPLOY_ITEMS, DRY_RUN_CONFIGURATIONS, EXECUTIONS, WRITES,
};
use crate::rule::{FailurePolicy, Match};

/// The request matchers of the rules that check exports in a dry run. They match writes of DeployItems and Executions,
/// which contain exports. They also match writes of DryRunConfigurations, which contain the values of exports.
pub(in crate::landscaper) static MATCHERS: [Match; 3] = [
    kinds::matches(&DEPLOY_ITEMS, WRITES, FailurePolicy::Ignore),
    kinds::matches(&EXECUTIONS, WRITES, FailurePolicy::Ignore),
    kinds::matches(&DRY_RUN_CONFIGURATIONS, WRITES, FailurePolicy::Fail),
];

/// Maximum number of DeployItems that Portcullis looks up in the catalog for one DryRunConfiguration, because they use
/// it. The same maximum applies to Installations. The limit bounds the time of a decision.
pub(in crate::landscaper) const MAX_ITEMS: usize = 200;

/// The result of looking up the DryRunConfiguration of a DeployItem or Execution.
pub(in crate::landscaper) enum Configuration {
    /// The DeployItem or Execution needs no DryRunConfiguration. It is not in dry run, or none of its exports reads a
    /// value from an object on the target.
    NotNeeded,
    /// The DeployItem or Execution needs a DryRunConfiguration, but does not name one.
    NotNamed,
    /// It is unknown whether the named DryRunConfiguration exists. The cache of objects does not contain it, but the
    /// cache may be incomplete.
    NotKnown,
    /// The DryRunConfiguration with this name does not exist.
    Missing(String),
    /// The DryRunConfiguration that the DeployItem or Execution names.
    Found(Arc<Stored>),
}

/// The exports of a DeployItem or Execution in dry run, and the DryRunConfiguration from which their values are read.
pub(in crate::landscaper) struct Reading {
    pub(in crate::landscaper) items: Vec<Item>,
    pub(in crate::landscaper) configuration: Configuration,
}

impl Reading {
    pub(in crate::landscaper) fn of(object: &Value, namespace: &str, view: &View<'_>) -> Self {
        let annotations = DryRunAnnotations::of(object);
        // Landscaper's own webhook denies templates that cannot be read.
        let items = if annotations.is_dry_run() { items(object).unwrap_or_default() } else { Vec::new() };
        let reads = items.iter().flat_map(|item| &item.exports).any(|export| export.from_resource.is_some());
        let configuration = match annotations.configuration.filter(|name| !name.is_empty()) {
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

    /// Returns the exports that have no value in the DryRunConfiguration `configuration`. Each result contains the
    /// index of the DeployItem or template, the index of the export in it, and the reason.
    pub(in crate::landscaper) fn failures(&self, configuration: &Value) -> Vec<(usize, usize, Failure)> {
        let mut failures = Vec::new();
        for (at, item) in self.items.iter().enumerate() {
            for (number, export) in item.exports.iter().enumerate() {
                failures.extend(export.evaluate(configuration).err().map(|failure| (at, number, failure)));
            }
        }
        failures
    }
}

/// Returns a reference to the DryRunConfiguration that the object in the request names. The caller must read this
/// DryRunConfiguration from the API server, because the cached copy may be outdated. The result is empty if the object
/// does not name a DryRunConfiguration, or does not need one.
pub(in crate::landscaper) fn live_reads(request: &Request<'_>, view: &View<'_>) -> Vec<Reference> {
    if kinds::is(&DRY_RUN_CONFIGURATIONS, request) {
        return Vec::new();
    }
    let reading = Reading::of(request.object(), &request.namespace, view);
    let name = DryRunAnnotations::of(request.object()).configuration.filter(|name| !name.is_empty());
    let needed = !matches!(reading.configuration, Configuration::NotNeeded);
    name.filter(|_| needed).map(|name| reference(request, name)).into_iter().collect()
}

fn reference(request: &Request<'_>, name: &str) -> Reference {
    Reference::new(&DRY_RUN_CONFIGURATIONS, &request.namespace, name)
}

/// Returns the level for a finding about the object in a request. This is `level`, but at most `warn` in these cases:
/// - It is not certain whether the DryRunConfiguration exists. It was not read from the API server, or the read failed.
/// - The request changes neither the dry-run annotations nor the spec.
pub(in crate::landscaper) fn level(request: &Request<'_>, view: &View<'_>, level: Level) -> Level {
    let name = DryRunAnnotations::of(request.object()).configuration.unwrap_or_default();
    let asked = view.live_read(&reference(request, name));
    let is_certain = name.is_empty() || matches!(asked, Some(LiveRead::Exists(_) | LiveRead::Gone));
    let level = if is_certain { level } else { level.min(Level::Warn) };
    unless_unchanged(request, level, annotations_and_spec)
}

/// Returns the findings about exports that have no value in the DryRunConfiguration.
///
/// If the request writes a DeployItem or an Execution, `of_item` creates the findings. If the request writes a
/// DryRunConfiguration, `of_configuration` creates findings for the stored DeployItems that use it. These findings have
/// the level `warn`.
pub(in crate::landscaper) fn findings(
    request: &Request<'_>,
    view: &View<'_>,
    of_item: impl Fn(&Item, &Export, &Stored, &Failure) -> Option<Finding>,
    of_configuration: impl Fn(&Stored, &Failure) -> Option<Finding>,
) -> Vec<Finding> {
    if kinds::is(&DRY_RUN_CONFIGURATIONS, request) {
        let of_user = |stored: &Arc<Stored>| {
            let failures = Reading::of(stored.value(), &request.namespace, view).failures(request.object());
            let findings = failures.iter().filter_map(|(.., failure)| of_configuration(stored, failure));
            findings.map(|finding| Finding { level: Level::Warn, ..finding }).collect::<Vec<_>>()
        };
        return users(&request.namespace, &request.display_name(), view).iter().flat_map(of_user).collect();
    }
    let reading = Reading::of(request.object(), &request.namespace, view);
    let Configuration::Found(configuration) = &reading.configuration else { return Vec::new() };
    let finding = |(at, number, failure): (usize, usize, Failure)| {
        let item = reading.items.get(at)?;
        let finding = of_item(item, item.exports.get(number)?, configuration, &failure)?;
        Some(Finding { level: level(request, view, finding.level), ..finding })
    };
    reading.failures(configuration.value()).into_iter().filter_map(finding).collect()
}

/// Finds DeployItems in the catalog that are in dry run and use the DryRunConfiguration with the name `configuration`.
/// Returns at most [`MAX_ITEMS`] DeployItems.
pub(in crate::landscaper) fn users(namespace: &str, configuration: &str, view: &View<'_>) -> Vec<Arc<Stored>> {
    view.indexed(&DEPLOY_ITEMS, &BY_DRY_RUN_CONFIGURATION, namespace, configuration, MAX_ITEMS)
}
