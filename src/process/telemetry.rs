//! The log, set up once for the whole process. Never the content of an object.

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

use super::line;
use super::outlet::{Lines, Outlet};

/// How long the end of a process waits for the last lines: the reader of the log may be gone or stuck.
const LAST_LINES: Duration = Duration::from_secs(2);

/// How lines look.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Format {
    /// For people.
    #[default]
    Text,
    /// One JSON object each.
    Json,
}

/// Why there is no log.
#[derive(Debug, thiserror::Error)]
pub enum TelemetryError {
    /// The filter cannot be read.
    #[error("the log filter {filter:?} cannot be read: {source}")]
    Filter {
        /// The filter.
        filter: String,
        /// What is wrong.
        source: ParseError,
    },
    /// The thread that writes cannot be started.
    #[error("the log's thread cannot be started: {0}")]
    Thread(#[from] io::Error),
    /// There is a log already.
    #[error("the log is set up already: {0}")]
    Installed(#[from] SetGlobalDefaultError),
}

/// Keeps the log going; dropped, it writes out what is left.
#[derive(Debug)]
pub struct Telemetry {
    outlet: Arc<Outlet>,
}

impl Telemetry {
    /// Sets up the log of the whole process, to standard error. Hold the value until the end of `main`.
    ///
    /// `filter` is as in `RUST_LOG`: `info`, or `warn,decision=debug`.
    ///
    /// # Errors
    /// When the filter cannot be read, or there is a log already.
    pub fn init(format: Format, filter: &str) -> Result<Self, TelemetryError> {
        let (telemetry, subscriber) = Self::new(format, filter, io::stderr())?;
        tracing::subscriber::set_global_default(subscriber)?;
        Ok(telemetry)
    }

    /// A log to `out`, for whoever installs the subscriber.
    ///
    /// # Errors
    /// When the filter cannot be read.
    pub fn new(
        format: Format,
        filter: &str,
        out: impl Write + Send + 'static,
    ) -> Result<(Self, Box<dyn Subscriber + Send + Sync>), TelemetryError> {
        let parsed = EnvFilter::from_str(filter)
            .map_err(|source| TelemetryError::Filter { filter: filter.to_owned(), source })?;
        let outlet = Arc::new(Outlet::default());
        let writer = Arc::clone(&outlet);
        thread::Builder::new().name("log".to_owned()).spawn(move || writer.write_out(out))?;
        let lines = tracing_subscriber::fmt().with_env_filter(parsed).with_writer(Lines(Arc::clone(&outlet)));
        let subscriber: Box<dyn Subscriber + Send + Sync> = match format {
            Format::Text => Box::new(lines.event_format(line::Text).finish()),
            Format::Json => Box::new(lines.event_format(line::Json).finish()),
        };
        Ok((Self { outlet }, subscriber))
    }

    /// Counts the lines that were dropped, as the log could not be written.
    pub fn lost(&self) -> Counter {
        self.outlet.lost()
    }
}

impl Drop for Telemetry {
    fn drop(&mut self) {
        self.outlet.close(LAST_LINES);
    }
}
