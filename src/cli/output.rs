//! The output format of commands that print a report: text or JSON.

/// The output format of a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Output {
    /// Human-readable text
    Text,
    /// JSON for programs
    Json,
}
