//! The fields of patches in a Composition.

use serde::Deserialize;

use super::names::{names, or_default};
use super::{Presence, Profile, Transform};
use crate::crossplane::field_path::MergeOptions;

names! {
    /// The type of a patch. It determines which object the patch reads and which object it writes. The comments of the
    /// variants describe the patches of a composed resource. In `environment.patches`, the environment replaces the
    /// composed resource: `FromCompositeFieldPath` copies a field of the composite to the environment.
    PatchType {
        /// Copies a field of the composite to the composed resource; the default.
        FromCompositeFieldPath = "FromCompositeFieldPath",
        /// Copies a field of the composed resource to the composite.
        ToCompositeFieldPath = "ToCompositeFieldPath",
        /// Combines several fields of the composite into one field of the composed resource.
        CombineFromComposite = "CombineFromComposite",
        /// Combines several fields of the composed resource into one field of the composite.
        CombineToComposite = "CombineToComposite",
        /// Copies a field of the environment to the composed resource.
        FromEnvironmentFieldPath = "FromEnvironmentFieldPath",
        /// Copies a field of the composed resource to the environment.
        ToEnvironmentFieldPath = "ToEnvironmentFieldPath",
        /// Combines several fields of the environment into one field of the composed resource.
        CombineFromEnvironment = "CombineFromEnvironment",
        /// Combines several fields of the composed resource into one field of the environment.
        CombineToEnvironment = "CombineToEnvironment",
        /// Includes the patches of the patch set in `patchSetName`.
        PatchSet = "PatchSet",
    }
}

names! {
    /// The policy of function-patch-and-transform for merging a value into its target. For the same purpose, Crossplane
    /// up to 1.17 has the field `mergeOptions`.
    ToFieldPathPolicy {
        /// Replaces the existing value. This is the default.
        Replace = "Replace",
        /// Merges objects. Existing values are kept.
        MergeObjects = "MergeObjects",
        /// Merges objects and appends lists. Other existing values are kept.
        MergeObjectsAppendArrays = "MergeObjectsAppendArrays",
        /// Merges objects. New values replace existing values.
        ForceMergeObjects = "ForceMergeObjects",
        /// Merges objects and appends lists. New values replace other existing values.
        ForceMergeObjectsAppendArrays = "ForceMergeObjectsAppendArrays",
        /// An older name of `MergeObjects`.
        MergeObject = "MergeObject",
        /// An older name of `ForceMergeObjectsAppendArrays`.
        AppendArray = "AppendArray",
    }
}

/// A patch, which copies or combines values. It reads from one of these objects and writes to another: the composite,
/// the environment, and a composed resource.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Patch {
    /// The type of the patch. It determines what the patch reads and what it writes.
    #[serde(rename = "type")]
    pub patch_type: PatchType,
    /// The path of the field that the patch reads.
    pub from_field_path: Option<String>,
    /// The path to which the patch writes. By default, this is the path that the patch reads.
    pub to_field_path: Option<String>,
    /// The name of the patch set to include.
    pub patch_set_name: Option<String>,
    /// The combination of several fields into one value. Only patches whose type begins with `Combine` use it.
    pub combine: Option<Combine>,
    /// The transforms of the value, in order.
    #[serde(deserialize_with = "or_default")]
    pub transforms: Vec<Transform>,
    /// The policy of the patch: whether its source value must exist, and how the value is merged into the target.
    pub policy: Option<PatchPolicy>,
}

/// The combination of several fields into one value.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Combine {
    /// The fields to combine.
    #[serde(deserialize_with = "or_default")]
    pub variables: Vec<CombineVariable>,
    /// The strategy for combining the fields. `string` is the only strategy.
    #[serde(deserialize_with = "or_default")]
    pub strategy: String,
    /// The settings of the strategy `string`.
    pub string: Option<CombineString>,
}

/// One of the fields that a patch combines into one value.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct CombineVariable {
    /// The path of the field to combine.
    #[serde(deserialize_with = "or_default")]
    pub from_field_path: String,
}

/// The settings of the combine strategy `string`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct CombineString {
    /// A format of Go's `fmt.Sprintf`, with one verb for each variable.
    #[serde(deserialize_with = "or_default")]
    pub fmt: String,
}

/// The policy of a patch. It says whether the source value must exist, and how the value is merged into the target.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PatchPolicy {
    /// Whether the value that the patch reads must exist; `Optional` by default.
    pub from_field_path: Presence,
    /// The policy for merging the value into the target. Crossplane itself ignores this policy; only functions apply
    /// it.
    pub to_field_path: ToFieldPathPolicy,
    /// The options for merging the value into the target. Only Crossplane up to 1.17 uses them.
    pub merge_options: Option<WireMergeOptions>,
}

/// The options `mergeOptions` of a patch policy, as in the API.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct WireMergeOptions {
    /// Whether non-empty values that already exist in the target are kept when the patch merges a value into it. Maps
    /// are merged key by key. `None` means false: new values replace existing values.
    pub keep_map_values: Option<bool>,
    /// Whether lists are appended to existing lists.
    pub append_slice: Option<bool>,
}

impl Patch {
    /// Returns the type of the patch, with the default applied.
    pub fn kind(&self) -> PatchType {
        if self.patch_type.is_unset() { PatchType::FromCompositeFieldPath } else { self.patch_type.clone() }
    }

    /// Returns whether the patch fails if the value that it reads is missing.
    pub fn is_required(&self) -> bool {
        self.policy.as_ref().is_some_and(|policy| policy.from_field_path == Presence::Required)
    }

    /// Returns the options for merging the value into its target. `None` if the value replaces the target. `profile`
    /// says whether Crossplane up to 1.17 or function-patch-and-transform applies the patch. They read the options from
    /// different fields.
    ///
    /// # Errors
    /// Returns the name of the policy if function-patch-and-transform does not support this policy.
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
