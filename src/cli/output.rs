//! The output format of most reports.

/// The output format of a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Output {
    /// Text for people
    Text,
    /// JSON for programs
    Json,
}
