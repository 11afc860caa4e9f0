//! The section `environmentConfigs` of the configuration file. It contains settings for the rules about environments,
//! and for the mutator that computes environments.

use serde::Deserialize;
use serde_json::{Value, json};

use crate::admission::Level;
use crate::catalog::View;

/// The key of this section in the configuration file.
pub const NAME: &str = "environmentConfigs";

/// The section `environmentConfigs` of the configuration file.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct EnvironmentConfigs {
    /// Level of findings about changes to an EnvironmentConfig that would break composites. The rule EN010 reports
    /// them.
    pub on_change: Level,
    /// Whether Crossplane up to 1.17 runs with `--enable-environment-configs`. If it does, Crossplane computes
    /// environments itself.
    pub native: Native,
    /// Names of CompositeResourceDefinitions; `*` means all. In composites of these definitions, the webhook writes the
    /// values that Composition functions patch into `spec` and labels. Without the webhook, these values are lost,
    /// because Crossplane stores only the `status` that functions return.
    pub writes_to: Vec<String>,
}

/// Whether Crossplane up to 1.17 runs with the flag `--enable-environment-configs`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Native {
    /// Assumes `--enable-environment-configs` if at least one composite has references to EnvironmentConfigs.
    #[default]
    Detect,
    /// Crossplane runs with `--enable-environment-configs`.
    Enabled,
    /// Crossplane runs without `--enable-environment-configs`.
    Disabled,
}

impl Default for EnvironmentConfigs {
    fn default() -> Self {
        Self { on_change: Level::Warn, native: Native::default(), writes_to: Vec::new() }
    }
}

impl EnvironmentConfigs {
    /// Returns the section `environmentConfigs` as JSON, with the same keys as in the configuration file. Rules read
    /// this JSON when they check objects.
    pub fn to_value(&self) -> Value {
        let native = match self.native {
            Native::Detect => "detect",
            Native::Enabled => "enabled",
            Native::Disabled => "disabled",
        };
        json!({"onChange": self.on_change.as_str(), "native": native, "writesTo": self.writes_to})
    }
}

/// Returns the section `environmentConfigs` of the configuration file. If the file has no such section, returns the
/// defaults.
pub(super) fn section(view: &View<'_>) -> EnvironmentConfigs {
    let section = view.setting(NAME).and_then(|stored| EnvironmentConfigs::deserialize(stored.value()).ok());
    section.unwrap_or_default()
}

/// Returns the configured level of findings about changes to an EnvironmentConfig that would break composites.
pub(super) fn on_change(view: &View<'_>) -> Level {
    section(view).on_change
}
