//! Types for the entries of `environmentConfigs`. Each entry selects EnvironmentConfigs by name or by labels. Their
//! data is merged into the environment of a composite.

use serde::Deserialize;

use super::Profile;
use super::names::{names, or_default};

names! {
    /// The type of an entry of `environmentConfigs`: whether the entry selects EnvironmentConfigs by name or by labels.
    SourceType {
        /// Selects one EnvironmentConfig by name. This is the default.
        Reference = "Reference",
        /// Selects EnvironmentConfigs by labels.
        Selector = "Selector",
    }
}

names! {
    /// The mode of a selector: whether it selects exactly one EnvironmentConfig or several.
    Mode {
        /// Selects exactly one EnvironmentConfig. This is the default.
        Single = "Single",
        /// Selects all EnvironmentConfigs that match, in sorted order. Fails if fewer than `minMatch` match. If more
        /// than `maxMatch` match, selects only the first `maxMatch`.
        Multiple = "Multiple",
    }
}

names! {
    /// The type of a label matcher: whether the required label value is literal or read from the composite.
    LabelMatcherType {
        /// Reads the value from the composite. This is the default.
        FromCompositeFieldPath = "FromCompositeFieldPath",
        /// Uses the literal value in the field `value`.
        Value = "Value",
    }
}

names! {
    /// Whether the value at a field path, or the EnvironmentConfig to which a reference refers, must exist. The default
    /// is `Required` for label values and references, and `Optional` for patches.
    Presence {
        /// The value or the EnvironmentConfig may be missing.
        Optional = "Optional",
        /// A missing value or EnvironmentConfig is an error.
        Required = "Required",
    }
}

names! {
    /// The policy for selecting EnvironmentConfigs again for the same composite. When Crossplane selects
    /// EnvironmentConfigs, it stores references to them in the composite. This is called "resolving" the references.
    /// Only Crossplane up to 1.17 uses this policy.
    Resolve {
        /// Selects EnvironmentConfigs at each reconciliation, and replaces the references in the composite.
        Always = "Always",
        /// Resolves the references only if the composite has none; the default.
        IfNotPresent = "IfNotPresent",
    }
}

/// An entry of the list `environmentConfigs`. It selects EnvironmentConfigs by name or by labels. Their data is merged
/// into the environment of a composite.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct EnvironmentSource {
    /// Whether the entry selects EnvironmentConfigs by name or by labels.
    #[serde(rename = "type")]
    pub source_type: SourceType,
    /// The EnvironmentConfig to select, for entries of type `Reference`.
    #[serde(rename = "ref")]
    pub reference: Option<Reference>,
    /// The selector of EnvironmentConfigs, for entries of type `Selector`.
    pub selector: Option<Selector>,
    /// The path in the environment under which the data is merged. Only function-environment-configs reads this field,
    /// since version 0.7.
    pub to_field_path: Option<String>,
}

/// A reference to an EnvironmentConfig.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Reference {
    /// The name of the EnvironmentConfig.
    #[serde(deserialize_with = "or_default")]
    pub name: String,
}

/// A selector of EnvironmentConfigs by labels.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Selector {
    /// Whether the selector selects exactly one EnvironmentConfig or several.
    pub mode: Mode,
    /// Maximum number of EnvironmentConfigs that a selector in mode Multiple selects.
    pub max_match: Option<u64>,
    /// Minimum number of EnvironmentConfigs that a selector in mode Multiple must select.
    pub min_match: Option<u64>,
    /// The field path in an EnvironmentConfig by which the matching EnvironmentConfigs are sorted. Only the mode
    /// Multiple uses it. `None` means `metadata.name`. For function-environment-configs, an empty path also means
    /// `metadata.name`. Crossplane up to 1.17 cannot sort by an empty path.
    pub sort_by_field_path: Option<String>,
    /// The labels that an EnvironmentConfig must have.
    #[serde(deserialize_with = "or_default")]
    pub match_labels: Vec<LabelMatcher>,
}

/// A label that an EnvironmentConfig must have.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct LabelMatcher {
    /// Whether the value of the label is literal or read from the composite.
    #[serde(rename = "type")]
    pub matcher_type: LabelMatcherType,
    /// The key of the label.
    #[serde(deserialize_with = "or_default")]
    pub key: String,
    /// The path in the composite from which the value is read.
    pub value_from_field_path: Option<String>,
    /// The value of the label, for matchers of type Value.
    pub value: Option<String>,
    /// Whether the value at the path must exist; `Required` by default.
    pub from_field_path_policy: Presence,
}

/// The policy for resolving references. It determines when references are resolved, and whether the referenced
/// EnvironmentConfigs must exist.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Policy {
    /// The policy for repeating the selection of EnvironmentConfigs: at each reconcile, or only while the composite has
    /// no references to them. Only Crossplane up to 1.17 uses it. function-environment-configs always selects at each
    /// reconcile.
    pub resolve: Resolve,
    /// Whether referenced EnvironmentConfigs must exist; `Required` by default.
    pub resolution: Presence,
}

impl EnvironmentSource {
    /// Returns the type of this entry. If the entry sets no type, returns the default.
    pub fn kind(&self) -> SourceType {
        or(&self.source_type, self.source_type.is_unset(), SourceType::Reference)
    }
}

impl Selector {
    /// Returns the mode of the selector. If the selector sets no mode, returns the default.
    pub fn effective_mode(&self) -> Mode {
        or(&self.mode, self.mode.is_unset(), Mode::Single)
    }

    /// Returns the field path by which the selected EnvironmentConfigs are sorted. The default is `metadata.name`. For
    /// function-environment-configs, an empty path means the default too.
    pub fn sort_path(&self, profile: Profile) -> &str {
        let path = self.sort_by_field_path.as_deref();
        path.filter(|path| profile == Profile::Native117 || !path.is_empty()).unwrap_or("metadata.name")
    }
}

impl LabelMatcher {
    /// Returns the type of the matcher. If the matcher sets no type, returns the default.
    pub fn kind(&self) -> LabelMatcherType {
        or(&self.matcher_type, self.matcher_type.is_unset(), LabelMatcherType::FromCompositeFieldPath)
    }

    /// Returns whether the label is optional. If the value of an optional label is missing in the composite, the
    /// selector ignores this label.
    pub fn is_optional(&self) -> bool {
        self.from_field_path_policy == Presence::Optional
    }
}

impl Policy {
    /// Returns whether references to missing EnvironmentConfigs are skipped.
    pub fn is_resolution_optional(&self) -> bool {
        self.resolution == Presence::Optional
    }

    /// Returns whether each reconciliation selects the EnvironmentConfigs again (policy `resolve: Always`). Otherwise,
    /// a composite keeps the references to the EnvironmentConfigs that were selected before.
    pub fn always_resolves(&self) -> bool {
        self.resolve == Resolve::Always
    }
}

fn or<T: Clone>(said: &T, is_unset: bool, default: T) -> T {
    if is_unset { default } else { said.clone() }
}
