//! The engine for composition environments. It merges EnvironmentConfigs and applies patches.
//!
//! Crossplane up to version 1.17 computes environments itself, from `Composition.spec.environment`. In later versions,
//! two functions compute them from the inputs of pipeline steps. Crossplane and the functions differ in many details,
//! so [`Profile`] selects the behavior. Both forms of Compositions are decoded into the same [`Declaration`].
//!
//! The behavior of Crossplane 1.17.6, function-environment-configs and function-patch-and-transform is recorded in
//! `tests/vectors/crossplane/`.

mod apply;
mod compute;
mod declaration;
mod document;
mod merge;
mod names;
mod patch;
mod patching;
mod profile;
mod resolve;
mod select;
mod sort;
mod source;
mod transform;
mod validate;

pub use apply::{Ending, PatchOutcome, Read};
pub use compute::{ActionOutcome, Computation, StepOutcome, compute, references};
pub use declaration::{Action, Declaration, PatchSet, Patches, Selection, Step, Template};
pub use document::{MAX_WRITTEN, with_kind};
pub use merge::{Layer, LayerName, Merged, Origin, Overwrite, Replaced};
pub use patch::{
    Combine, CombineString, CombineVariable, Patch, PatchPolicy, PatchType, ToFieldPathPolicy, WireMergeOptions,
};
pub use patching::{Patching, TemplateOutcome};
pub use profile::Profile;
pub use resolve::TransformError;
pub use select::{Configs, SourceOutcome, label, select};
pub use sort::sort;
pub use source::{
    EnvironmentSource, LabelMatcher, LabelMatcherType, Mode, Policy, Presence, Reference, Resolve, Selector, SourceType,
};
pub use transform::{
    ConvertTransform, FallbackTo, Join, MatchPattern, MatchTransform, MathTransform, MathType, PatternType, Regexp,
    Replace, StringTransform, StringType, Transform, TransformType,
};
pub use validate::{Invalid, invalid_environment_patches};
