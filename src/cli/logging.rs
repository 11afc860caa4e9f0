//! Logging of long-running commands.

use super::Unusable;
use crate::process::{Format, Telemetry};

/// The arguments for logging.
#[derive(Debug, clap::Args)]
pub(super) struct Logging {
    /// The format of log records
    #[arg(long, value_enum, default_value = "text")]
    log_format: LogFormat,
    /// The log filter, such as `info` or `warn,decision=debug`
    // The Kubernetes client logs every failed request to the API server. The default filter turns this off, because the
    // catalog logs such failures once a minute.
    #[arg(long, env = "PORTCULLIS_LOG", default_value = "info,kube_client=off")]
    log: String,
}

#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum LogFormat {
    /// Human-readable text
    Text,
    /// One JSON object per line
    Json,
}

impl Logging {
    /// Initializes logging. Log records are written until the returned value is dropped.
    pub(super) fn init(&self) -> Result<Telemetry, Unusable> {
        let format = match self.log_format {
            LogFormat::Text => Format::Text,
            LogFormat::Json => Format::Json,
        };
        Telemetry::init(format, &self.log).map_err(|error| Unusable::because("--log", error))
    }
}
