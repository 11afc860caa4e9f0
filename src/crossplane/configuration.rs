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
}

impl Default for EnvironmentConfigs {
    fn default() -> Self {
        Self { on_change: Level::Warn }
    }
}

impl EnvironmentConfigs {
    /// The section as rules read it.
    pub fn to_value(&self) -> Value {
        json!({"onChange": self.on_change.as_str()})
    }
}

/// What follows when an EnvironmentConfig is written so that somebody who uses it breaks.
pub(super) fn on_change(view: &View<'_>) -> Level {
    let section = view.setting(NAME).and_then(|stored| EnvironmentConfigs::deserialize(stored.value()).ok());
    section.unwrap_or_default().on_change
}
