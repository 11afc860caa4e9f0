//! Patches as they are declared.

use serde::Deserialize;

use super::names::{names, or_default};
use super::{Presence, Profile, Transform};
use crate::crossplane::field_path::MergeOptions;

names! {
    /// From where to where a patch goes. "Composed" means the resource whose patch it is; among `environment.patches`
    /// the other end is the environment instead.
    PatchType {
        /// From the composite to the composed resource; the default.
        FromCompositeFieldPath = "FromCompositeFieldPath",
        /// From the composed resource to the composite.
        ToCompositeFieldPath = "ToCompositeFieldPath",
        /// From several fields of the composite to the composed resource.
        CombineFromComposite = "CombineFromComposite",
        /// From several fields of the composed resource to the composite.
        CombineToComposite = "CombineToComposite",
        /// From the environment to the composed resource.
        FromEnvironmentFieldPath = "FromEnvironmentFieldPath",
        /// From the composed resource to the environment.
        ToEnvironmentFieldPath = "ToEnvironmentFieldPath",
        /// From several fields of the environment to the composed resource.
        CombineFromEnvironment = "CombineFromEnvironment",
        /// From several fields of the composed resource to the environment.
        CombineToEnvironment = "CombineToEnvironment",
        /// The patches of a set.
        PatchSet = "PatchSet",
    }
}

names! {
    /// How the function writes a value over what is there: what `mergeOptions` is natively.
    ToFieldPathPolicy {
        /// It takes its place; the default.
        Replace = "Replace",
        /// Objects are merged, what is there stays.
        MergeObjects = "MergeObjects",
        /// Objects are merged, what is there stays, lists are appended.
        MergeObjectsAppendArrays = "MergeObjectsAppendArrays",
        /// Objects are merged, what is new goes before.
        ForceMergeObjects = "ForceMergeObjects",
        /// Objects are merged, what is new goes before, lists are appended.
        ForceMergeObjectsAppendArrays = "ForceMergeObjectsAppendArrays",
        /// An older name of `MergeObjects`.
        MergeObject = "MergeObject",
        /// An older name of `ForceMergeObjectsAppendArrays`.
        AppendArray = "AppendArray",
    }
}

/// A patch.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Patch {
    /// From where to where it goes.
    #[serde(rename = "type")]
    pub patch_type: PatchType,
    /// What is read.
    pub from_field_path: Option<String>,
    /// What is written; where nothing is said, the same path as is read.
    pub to_field_path: Option<String>,
    /// The name of the set whose patches are meant.
    pub patch_set_name: Option<String>,
    /// How several fields are made into one value.
    pub combine: Option<Combine>,
    /// What the value goes through, in this order.
    #[serde(deserialize_with = "or_default")]
    pub transforms: Vec<Transform>,
    /// What happens where nothing is read, and to what is there already.
    pub policy: Option<PatchPolicy>,
}

/// How several fields are made into one value.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Combine {
    /// The fields.
    #[serde(deserialize_with = "or_default")]
    pub variables: Vec<CombineVariable>,
    /// The only strategy there is: `string`.
    #[serde(deserialize_with = "or_default")]
    pub strategy: String,
    /// The format of the strategy `string`.
    pub string: Option<CombineString>,
}

/// A field that is combined with others.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct CombineVariable {
    /// What is read.
    #[serde(deserialize_with = "or_default")]
    pub from_field_path: String,
}

/// The format of the strategy `string`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct CombineString {
    /// A format of Go's `fmt.Sprintf`, with a verb for each variable.
    #[serde(deserialize_with = "or_default")]
    pub fmt: String,
}

/// What happens where nothing is read, and to what is there already.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PatchPolicy {
    /// Whether there must be something to read; `Optional` where nothing is said.
    pub from_field_path: Presence,
    /// How it is written; the function only.
    pub to_field_path: ToFieldPathPolicy,
    /// How it is written; native only, the function drops it.
    pub merge_options: Option<WireMergeOptions>,
}

/// `mergeOptions` as they are written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct WireMergeOptions {
    /// What is there stays.
    pub keep_map_values: Option<bool>,
    /// Lists are appended.
    pub append_slice: Option<bool>,
}

impl Patch {
    /// From where to where it goes, with the default applied.
    pub fn kind(&self) -> PatchType {
        if self.patch_type.is_unset() { PatchType::FromCompositeFieldPath } else { self.patch_type.clone() }
    }

    /// Whether that nothing is read is an error.
    pub fn is_required(&self) -> bool {
        self.policy.as_ref().is_some_and(|policy| policy.from_field_path == Presence::Required)
    }

    /// How the value is written, for which of the two policies a profile looks at.
    ///
    /// # Errors
    /// The policy, where the function does not know it.
    pub fn merge_options(&self, profile: Profile) -> Result<Option<MergeOptions>, &str> {
        let Some(policy) = &self.policy else { return Ok(None) };
        match profile {
            Profile::Native117 => Ok(policy.merge_options.map(|wire| MergeOptions {
                keep_map_values: wire.keep_map_values == Some(true),
                append_slice: wire.append_slice == Some(true),
            })),
            Profile::Function => policy.to_field_path.merge_options(),
        }
    }
}

impl ToFieldPathPolicy {
    fn merge_options(&self) -> Result<Option<MergeOptions>, &str> {
        let options = |keep_map_values, append_slice| Ok(Some(MergeOptions { keep_map_values, append_slice }));
        match self {
            Self::Replace => Ok(None),
            _ if self.is_unset() => Ok(None),
            Self::MergeObjects | Self::MergeObject => options(true, false),
            Self::MergeObjectsAppendArrays => options(true, true),
            Self::ForceMergeObjects => options(false, false),
            Self::ForceMergeObjectsAppendArrays | Self::AppendArray => options(false, true),
            Self::Other(name) => Err(name),
        }
    }
}
