//! Stores the sections of the configuration file that Portcullis looks up by name, such as `environmentConfigs`. Most
//! of these sections contain settings for the rules about one system, such as Crossplane.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use super::Stored;

/// Sections of the configuration file, by name, such as `environmentConfigs`.
#[derive(Debug, Clone, Default)]
pub struct Settings(BTreeMap<&'static str, Arc<Stored>>);

impl Settings {
    /// Empty settings, as if the configuration file were empty.
    pub(super) const NONE: &'static Self = &Self(BTreeMap::new());

    /// Adds a section of the configuration file.
    #[must_use]
    pub fn with(mut self, name: &'static str, section: Value) -> Self {
        self.0.insert(name, Arc::new(Stored::new(section)));
        self
    }

    /// Returns the section with this name; `None` if it is not set.
    pub fn section(&self, name: &str) -> Option<&Stored> {
        self.0.get(name).map(|section| &**section)
    }
}

impl PartialEq for Settings {
    fn eq(&self, other: &Self) -> bool {
        let sections = |settings: &Self| -> Vec<(&str, Value)> {
            settings.0.iter().map(|(name, section)| (*name, section.value().clone())).collect()
        };
        sections(self) == sections(other)
    }
}

impl Eq for Settings {}
