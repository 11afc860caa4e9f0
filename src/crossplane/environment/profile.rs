//! The two implementations of environments: Crossplane itself, and Composition functions.

/// The software that computes the environment of a composite. This is either Crossplane itself, in versions up to 1.17,
/// or the Composition functions in a pipeline.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Profile {
    /// Crossplane 1.17.6 without Composition functions. It is the last version that computes environments itself.
    Native117,
    /// Composition functions compute the environment. function-environment-configs selects and merges
    /// EnvironmentConfigs. function-patch-and-transform applies patches.
    Function,
}
