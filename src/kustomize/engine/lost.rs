//! The kind of data that is missing from a build after a part of it failed.

/// The kind of data that is missing because a part of the build failed: none, whole objects, or changes of objects.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Lost {
    #[default]
    Nothing,
    /// Some objects are missing from the build, because the step that reads or creates them failed.
    Objects,
    /// Some objects are incomplete, because a step that changes them failed. Whole objects may be missing too.
    Changes,
}
