//! What the configuration file says about environments.

use serde::Deserialize;
use serde_json::{Value, json};

use crate::admission::Level;
use crate::catalog::View;

/// The section's key in the file.
pub const NAME: &str = "environmentConfigs";

/// The section `environmentConfigs`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct EnvironmentConfigs {
    /// The level of an EnvironmentConfig that is written so that somebody who uses it breaks; see EN010.
    pub on_change: Level,
    /// Whether Crossplane computes environments itself.
    pub native: Native,
    /// CompositeResourceDefinitions of whose composites `spec` and labels are written as environment patches of functions
    /// say, which Crossplane does not; `*` for all.
    pub writes_to: Vec<String>,
}

/// Whether Crossplane up to 1.17 runs with `--enable-environment-configs`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Native {
    /// It does as soon as a composite has references to EnvironmentConfigs.
    #[default]
    Detect,
    /// It does.
    Enabled,
    /// It does not.
    Disabled,
}

impl Default for EnvironmentConfigs {
    fn default() -> Self {
        Self { on_change: Level::Warn, native: Native::default(), writes_to: Vec::new() }
    }
}

impl EnvironmentConfigs {
    /// The section as rules read it.
    pub fn to_value(&self) -> Value {
        let native = match self.native {
            Native::Detect => "detect",
            Native::Enabled => "enabled",
            Native::Disabled => "disabled",
        };
        json!({"onChange": self.on_change.as_str(), "native": native, "writesTo": self.writes_to})
    }
}

/// Returns what the configuration says about environments.
pub(super) fn section(view: &View<'_>) -> EnvironmentConfigs {
    let section = view.setting(NAME).and_then(|stored| EnvironmentConfigs::deserialize(stored.value()).ok());
    section.unwrap_or_default()
}

/// What follows when an EnvironmentConfig is written so that somebody who uses it breaks.
pub(super) fn on_change(view: &View<'_>) -> Level {
    section(view).on_change
}
