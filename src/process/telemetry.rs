//! Configures the log of the process. Log records never contain the contents of objects.

use std::io::{self, Write};
use std::str::FromStr as _;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use prometheus_client::metrics::counter::Counter;
use tracing::Subscriber;
use tracing::subscriber::SetGlobalDefaultError;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::ParseError;

use super::log_format;
use super::log_writer::{LogWriter, Records};

/// Maximum time that the process waits at exit for the last log records to be written. Without this limit, a process
/// with blocked log output would never exit.
const LAST_RECORDS: Duration = Duration::from_secs(2);

/// The format of log records.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Format {
    /// One line of plain text per record.
    #[default]
    Text,
    /// One line with a JSON object per record.
    Json,
}

/// The reason why the log cannot be configured.
#[derive(Debug, thiserror::Error)]
pub enum TelemetryError {
    /// The log filter is invalid.
    #[error("invalid log filter {filter:?}: {source}")]
    Filter {
        /// The invalid log filter, as configured.
        filter: String,
        /// The error of parsing the log filter.
        source: ParseError,
    },
    /// The thread that writes log records cannot be started.
    #[error("cannot start the log writer: {0}")]
    Thread(#[from] io::Error),
    /// This process already has a global logger (a subscriber of `tracing`).
    #[error("the log is already configured: {0}")]
    Installed(#[from] SetGlobalDefaultError),
}

/// A handle to the log of the process. Dropping it writes the remaining records.
#[derive(Debug)]
pub struct Telemetry {
    writer: Arc<LogWriter>,
}

impl Telemetry {
    /// Configures the log of the process, which is written to standard error. Keep the returned handle until the end of
    /// `main`.
    ///
    /// `filter` has the syntax of `RUST_LOG`, such as `info` or `warn,decision=debug`.
    ///
    /// # Errors
    /// Fails if the filter is invalid, if the thread that writes the log cannot be started, or if a log is already
    /// configured.
    pub fn init(format: Format, filter: &str) -> Result<Self, TelemetryError> {
        let (telemetry, subscriber) = Self::new(format, filter, io::stderr())?;
        tracing::subscriber::set_global_default(subscriber)?;
        Ok(telemetry)
    }

    /// Creates a log that writes to `out`. Returns its handle, and the tracing subscriber to install.
    ///
    /// # Errors
    ///
    /// Fails if the filter is invalid, or if the thread that writes the log cannot be started.
    pub fn new(
        format: Format,
        filter: &str,
        out: impl Write + Send + 'static,
    ) -> Result<(Self, Box<dyn Subscriber + Send + Sync>), TelemetryError> {
        let parsed = EnvFilter::from_str(filter)
            .map_err(|source| TelemetryError::Filter { filter: filter.to_owned(), source })?;
        let writer = Arc::new(LogWriter::default());
        let background = Arc::clone(&writer);
        thread::Builder::new().name("log".to_owned()).spawn(move || background.write_out(out))?;
        let records = tracing_subscriber::fmt().with_env_filter(parsed).with_writer(Records(Arc::clone(&writer)));
        let subscriber: Box<dyn Subscriber + Send + Sync> = match format {
            Format::Text => Box::new(records.event_format(log_format::Text).finish()),
            Format::Json => Box::new(records.event_format(log_format::Json).finish()),
        };
        Ok((Self { writer }, subscriber))
    }

    /// Returns the counter of dropped log records.
    pub fn dropped(&self) -> Counter {
        self.writer.dropped()
    }
}

impl Drop for Telemetry {
    fn drop(&mut self) {
        self.writer.close(LAST_RECORDS);
    }
}
