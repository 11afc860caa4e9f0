//! How the log of a command that runs for long is set up.

use super::Unusable;
use crate::process::{Format, Telemetry};

/// How the log is written.
#[derive(Debug, clap::Args)]
pub(super) struct Logging {
    /// How log lines are written
    #[arg(long, value_enum, default_value = "text")]
    log_format: LogFormat,
    /// What is logged, such as `info` or `warn,decision=debug`
    // The client tells of every attempt to reach an API server; the catalog tells of it once a minute.
    #[arg(long, env = "PORTCULLIS_LOG", default_value = "info,kube_client=off")]
    log: String,
}

#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum LogFormat {
    /// For people
    Text,
    /// One JSON object a line
    Json,
}

impl Logging {
    /// Sets the log up; it goes on as long as the value is held.
    pub(super) fn init(&self) -> Result<Telemetry, Unusable> {
        let format = match self.log_format {
            LogFormat::Text => Format::Text,
            LogFormat::Json => Format::Json,
        };
        Telemetry::init(format, &self.log).map_err(|error| Unusable::because("--log", error))
    }
}
