//! The section `dryRun` of the configuration file. It lists the types of DeployItems that the dry-run deployer
//! processes.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::run::TYPES;
use crate::catalog::View;

/// The key of the section `dryRun` in the configuration file.
pub const SECTION: &str = "dryRun";

/// The section `dryRun` as written in the configuration file. If the section is present, Portcullis assumes that
/// `portcullis reconcile --dry-run-deployer` runs.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct DryRunFile {
    /// The types of DeployItems that the dry-run deployer processes, as in its flag `--dry-run-type`.
    pub types: Vec<String>,
}

impl Default for DryRunFile {
    fn default() -> Self {
        Self { types: TYPES.map(str::to_owned).to_vec() }
    }
}

impl DryRunFile {
    /// Returns a description of the error in the section `dryRun`; `None` if the section is valid.
    pub fn problem(&self) -> Option<&'static str> {
        self.types.is_empty().then_some("dryRun.types: must not be empty; remove it to use manifest and helm")
    }
}

/// The settings for dry runs that rules and mutators use. They are computed from the section `dryRun` of the
/// configuration file and the mode of the mutator `dry-run`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DryRuns {
    /// The types of DeployItems that the dry-run deployer processes.
    pub types: Vec<String>,
    /// Whether admission routes DeployItems of the types in `types` to the dry-run deployer. This is the case if the
    /// mutator `dry-run` is in mode `apply`.
    pub routes: bool,
}

impl DryRuns {
    /// Returns the settings for dry runs, for rules and mutators. The settings are computed from the configuration
    /// file.
    ///
    /// If the file has no section `dryRun`, the dry-run deployer processes manifest and helm DeployItems, and admission
    /// routes no DeployItems to it.
    pub fn of(view: &View<'_>) -> Arc<Self> {
        let section = view.setting(SECTION);
        let read = section.and_then(|section| section.view(|value| Self::deserialize(value).ok().map(Arc::new)));
        read.unwrap_or_else(|| Arc::new(Self { types: DryRunFile::default().types, routes: false }))
    }

    /// Serializes the configuration of dry runs for the catalog, where rules look it up.
    pub fn to_value(&self) -> Value {
        // Strings and a Boolean: serializing them cannot fail.
        serde_json::to_value(self).unwrap_or_default()
    }

    /// Reports whether the dry-run deployer processes DeployItems of a type.
    pub fn processes(&self, type_name: &str) -> bool {
        self.types.iter().any(|processed| processed == type_name)
    }
}
