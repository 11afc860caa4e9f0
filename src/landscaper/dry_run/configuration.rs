//! The section `dryRun` of the configuration file: which DeployItems the dry-run deployer processes.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::run::TYPES;
use crate::catalog::View;
use crate::rule::Section;

/// The section, for the registry.
pub static SECTION: Section = Section {
    name: "dryRun",
    rules: &["DR012"],
    example: "\
dryRun:
  types:
    - landscaper.gardener.cloud/kubernetes-manifest
    - landscaper.gardener.cloud/helm
",
    user: "system:serviceaccount:landscaper:landscaper",
};

/// The section as it is written in the file. It says that `portcullis reconcile --dry-run-deployer` runs.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct DryRunFile {
    /// The types of DeployItems that it processes, as in its `--dry-run-type`.
    pub types: Vec<String>,
}

impl Default for DryRunFile {
    fn default() -> Self {
        Self { types: TYPES.map(str::to_owned).to_vec() }
    }
}

impl DryRunFile {
    /// What is wrong with it.
    pub fn problem(&self) -> Option<&'static str> {
        self.types.is_empty().then_some("dryRun.types: names no type; leave it out for manifest and helm")
    }
}

/// What rules and mutators know of dry runs from the configuration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DryRuns {
    /// The types of DeployItems that the dry-run deployer processes.
    pub types: Vec<String>,
    /// Whether admission routes items of these types past their deployers: whether the mutator `dry-run` is at `apply`.
    pub routes: bool,
}

impl DryRuns {
    /// Returns what the configuration says. Without the section, the dry-run deployer is not known to run.
    pub fn of(view: &View<'_>) -> Arc<Self> {
        let section = view.setting(SECTION.name);
        let read = section.and_then(|section| section.view(|value| Self::deserialize(value).ok().map(Arc::new)));
        read.unwrap_or_else(|| Arc::new(Self { types: DryRunFile::default().types, routes: false }))
    }

    /// The section as rules look it up.
    pub fn to_value(&self) -> Value {
        // Strings and a Boolean: serializing them cannot fail.
        serde_json::to_value(self).unwrap_or_default()
    }

    /// Whether the dry-run deployer processes items of a type.
    pub fn processes(&self, type_name: &str) -> bool {
        self.types.iter().any(|processed| processed == type_name)
    }
}
