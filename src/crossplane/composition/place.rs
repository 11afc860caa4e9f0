//! The lists in a Composition that contain patches, and the patch types that are allowed in each list. The lists are
//! `environment.patches`, and the `patches` of composed resources and patch sets.

/// The place of a patch in a Composition. The place determines which types the patch may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// A patch in `environment.patches`, between the composite and the environment.
    Environment,
    /// A patch in `patches` of a composed resource.
    Resource,
    /// A patch in a patch set. Composed resources include patch sets by name.
    Set,
}

const OF_COMPOSITE: &[&str] =
    &["FromCompositeFieldPath", "ToCompositeFieldPath", "CombineFromComposite", "CombineToComposite"];
const PLAIN_OF_ENVIRONMENT: &[&str] = &["FromEnvironmentFieldPath", "ToEnvironmentFieldPath"];
const COMBINED_OF_ENVIRONMENT: &[&str] = &["CombineFromEnvironment", "CombineToEnvironment"];

impl Place {
    /// Returns the types that a patch at this position in a Composition may have. The first type is the default.
    /// `is_native` says whether Crossplane up to 1.17 itself applies the patch, instead of a Composition function.
    pub(super) fn types(self, is_native: bool) -> Vec<&'static str> {
        let plain = if self == Self::Environment && is_native { &[] } else { PLAIN_OF_ENVIRONMENT };
        let combined = if self == Self::Environment { &[] } else { COMBINED_OF_ENVIRONMENT };
        let set: &[&str] = if self == Self::Resource { &["PatchSet"] } else { &[] };
        [OF_COMPOSITE, plain, combined, set].concat()
    }
}
