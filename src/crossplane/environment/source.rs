//! Where an environment comes from.

use serde::Deserialize;

use super::Profile;
use super::names::{names, or_default};

names! {
    /// How a source names its EnvironmentConfigs.
    SourceType {
        /// By name; the default.
        Reference = "Reference",
        /// By labels.
        Selector = "Selector",
    }
}

names! {
    /// How many EnvironmentConfigs a selector selects.
    Mode {
        /// Exactly one; the default.
        Single = "Single",
        /// Those that match, sorted, between a minimum and a maximum.
        Multiple = "Multiple",
    }
}

names! {
    /// Where the value of a label comes from.
    LabelMatcherType {
        /// From the composite; the default.
        FromCompositeFieldPath = "FromCompositeFieldPath",
        /// It is written out.
        Value = "Value",
    }
}

names! {
    /// Whether what a path reads must be there. The default depends on where it stands: `Required` for labels and
    /// for the resolution of references, `Optional` for patches.
    Presence {
        /// It may be missing.
        Optional = "Optional",
        /// That it is missing is an error.
        Required = "Required",
    }
}

names! {
    /// When the references of a composite are worked out.
    Resolve {
        /// Each time.
        Always = "Always",
        /// Only while there are none; the default.
        IfNotPresent = "IfNotPresent",
    }
}

/// An entry of `environmentConfigs`.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct EnvironmentSource {
    /// How it names its EnvironmentConfigs.
    #[serde(rename = "type")]
    pub source_type: SourceType,
    /// The one EnvironmentConfig of a Reference.
    #[serde(rename = "ref")]
    pub reference: Option<Reference>,
    /// What a Selector selects.
    pub selector: Option<Selector>,
    /// Where in the environment its data goes; the function only, since its version 0.7.
    pub to_field_path: Option<String>,
}

/// Names an EnvironmentConfig.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Reference {
    /// Its name.
    #[serde(deserialize_with = "or_default")]
    pub name: String,
}

/// Selects EnvironmentConfigs by their labels.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Selector {
    /// How many it selects.
    pub mode: Mode,
    /// How many it takes at most, in the mode Multiple.
    pub max_match: Option<u64>,
    /// How many there must be at least, in the mode Multiple.
    pub min_match: Option<u64>,
    /// What is sorted by, in the mode Multiple: a path in the whole EnvironmentConfig. Nothing said means
    /// `metadata.name`, an empty path is another thing.
    pub sort_by_field_path: Option<String>,
    /// The labels, all of which must be equal.
    #[serde(deserialize_with = "or_default")]
    pub match_labels: Vec<LabelMatcher>,
}

/// A label that an EnvironmentConfig must have.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct LabelMatcher {
    /// Where its value comes from.
    #[serde(rename = "type")]
    pub matcher_type: LabelMatcherType,
    /// The label.
    #[serde(deserialize_with = "or_default")]
    pub key: String,
    /// The path that its value is read from.
    pub value_from_field_path: Option<String>,
    /// Its value.
    pub value: Option<String>,
    /// Whether the path must lead to something; `Required` where nothing is said.
    pub from_field_path_policy: Presence,
}

/// When references are resolved, and whether they must be.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Policy {
    /// When; native only, the function always does.
    pub resolve: Resolve,
    /// Whether what is referred to must exist; `Required` where nothing is said.
    pub resolution: Presence,
}

impl EnvironmentSource {
    /// How it names its EnvironmentConfigs, with the default applied.
    pub fn kind(&self) -> SourceType {
        or(&self.source_type, self.source_type.is_unset(), SourceType::Reference)
    }
}

impl Selector {
    /// How many it selects, with the default applied.
    pub fn effective_mode(&self) -> Mode {
        or(&self.mode, self.mode.is_unset(), Mode::Single)
    }

    /// What is sorted by, with the default applied. To the function an empty path is as good as none.
    pub fn sort_path(&self, profile: Profile) -> &str {
        let path = self.sort_by_field_path.as_deref();
        path.filter(|path| profile == Profile::Native117 || !path.is_empty()).unwrap_or("metadata.name")
    }
}

impl LabelMatcher {
    /// Where its value comes from, with the default applied.
    pub fn kind(&self) -> LabelMatcherType {
        or(&self.matcher_type, self.matcher_type.is_unset(), LabelMatcherType::FromCompositeFieldPath)
    }

    /// Whether the label is left out where its path leads to nothing.
    pub fn is_optional(&self) -> bool {
        self.from_field_path_policy == Presence::Optional
    }
}

impl Policy {
    /// Whether references to what does not exist are passed over.
    pub fn is_resolution_optional(&self) -> bool {
        self.resolution == Presence::Optional
    }

    /// Whether references are worked out also where a composite has some.
    pub fn always_resolves(&self) -> bool {
        self.resolve == Resolve::Always
    }
}

fn or<T: Clone>(said: &T, is_unset: bool, default: T) -> T {
    if is_unset { default } else { said.clone() }
}
