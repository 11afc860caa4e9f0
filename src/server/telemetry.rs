//! The log: one line for each decision, and what else is worth knowing. Never the content of an object.
//!
//! A line costs its formatting and a copy into a buffer; a thread writes the buffer out ten times a second. Where
//! the reader of the log does not keep up, lines are dropped and counted rather than calls held up.

use std::fmt;
use std::io::{self, Write};
use std::mem;
use std::str::FromStr as _;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use tracing::Subscriber;
use tracing::subscriber::SetGlobalDefaultError;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::ParseError;
use tracing_subscriber::fmt::MakeWriter;

use crate::admission::{Finding, Phase, Request, Verdict};

/// How late a line may be.
const FLUSH: Duration = Duration::from_millis(100);
/// A buffer this full is written out at once.
const FULL: usize = 64 * 1024;
/// Ten thousand lines or so: beyond it the log's reader is stuck, and lines are dropped.
const MOST: usize = 4 * 1024 * 1024;
/// Rule ids in one line; the answer and the metrics have them all.
const RULES: usize = 16;

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
    buffer: Arc<Buffer>,
    thread: Option<JoinHandle<()>>,
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
        let buffer = Arc::new(Buffer::default());
        let writer = Arc::clone(&buffer);
        let thread = thread::Builder::new().name("log".to_owned()).spawn(move || writer.write_out(out))?;
        let lines =
            tracing_subscriber::fmt().with_env_filter(parsed).with_ansi(false).with_writer(Lines(Arc::clone(&buffer)));
        let subscriber: Box<dyn Subscriber + Send + Sync> = match format {
            Format::Text => Box::new(lines.finish()),
            Format::Json => Box::new(lines.json().flatten_event(true).with_current_span(false).finish()),
        };
        Ok((Self { buffer, thread: Some(thread) }, subscriber))
    }
}

impl Drop for Telemetry {
    fn drop(&mut self) {
        self.buffer.state().closed = true;
        self.buffer.wake.notify_one();
        if let Some(thread) = self.thread.take() {
            // A panic in the thread has lost its lines already.
            let _ = thread.join();
        }
    }
}

/// Lines on their way out.
#[derive(Debug, Default)]
struct Buffer {
    state: Mutex<State>,
    wake: Condvar,
}

#[derive(Debug, Default)]
struct State {
    bytes: Vec<u8>,
    dropped: usize,
    closed: bool,
}

impl Buffer {
    fn state(&self) -> MutexGuard<'_, State> {
        // Lines are appended whole: a panic elsewhere leaves none half-written.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn append(&self, line: &[u8]) {
        let mut state = self.state();
        if state.bytes.len() + line.len() > MOST {
            state.dropped += 1;
            return;
        }
        let was_full = state.bytes.len() >= FULL;
        state.bytes.extend_from_slice(line);
        if !was_full && state.bytes.len() >= FULL {
            self.wake.notify_one();
        }
    }

    fn write_out(&self, mut out: impl Write) {
        let mut batch = Vec::new();
        loop {
            let wait = |state: &mut State| !state.closed && state.bytes.len() < FULL;
            let waited = self.wake.wait_timeout_while(self.state(), FLUSH, wait);
            let mut state = waited.unwrap_or_else(PoisonError::into_inner).0;
            mem::swap(&mut batch, &mut state.bytes);
            let (dropped, closed) = (mem::take(&mut state.dropped), state.closed);
            drop(state);
            // There is nowhere to tell of a log that cannot be written.
            let _ = out.write_all(&batch).and_then(|()| tell_dropped(&mut out, dropped)).and_then(|()| out.flush());
            batch.clear();
            if closed {
                return;
            }
        }
    }
}

fn tell_dropped(out: &mut impl Write, dropped: usize) -> io::Result<()> {
    if dropped == 0 { Ok(()) } else { writeln!(out, "{{\"dropped_log_lines\":{dropped}}}") }
}

/// Hands each line to the buffer.
#[derive(Debug, Clone)]
struct Lines(Arc<Buffer>);

impl Write for &Lines {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.0.append(line);
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Lines {
    type Writer = &'a Lines;

    fn make_writer(&'a self) -> Self::Writer {
        self
    }
}

/// Tells of a decision. Texts that a user chose are quoted and escaped: they cannot begin a line of their own.
pub(super) fn decision(phase: Phase, request: &Request<'_>, verdict: &Verdict, took: Duration) {
    if !tracing::enabled!(target: "decision", tracing::Level::INFO) {
        return;
    }
    let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
    let name = request.display_name();
    tracing::info!(
        target: "decision",
        uid = &*request.uid,
        webhook = phase.as_str(),
        operation = request.operation.as_str(),
        group = &*request.resource.group,
        resource = &*request.resource.plural,
        subresource = &*request.resource.subresource,
        namespace = &*request.namespace,
        name = name.as_str(),
        user = &*request.user.name,
        dry_run = request.dry_run,
        allowed = verdict.is_allowed(),
        rules = %Rules(&verdict.findings),
        micros,
    );
}

/// Tells of a request that no rule looks at.
pub(super) fn unhandled(phase: Phase, request: &Request<'_>) {
    tracing::debug!(
        target: "decision",
        uid = &*request.uid,
        webhook = phase.as_str(),
        operation = request.operation.as_str(),
        group = &*request.resource.group,
        resource = &*request.resource.plural,
        "no rule looks at it"
    );
}

/// The rules that found something, as `KZ001=deny,KZ003=warn`.
struct Rules<'a>(&'a [Finding]);

impl fmt::Display for Rules<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, finding) in self.0.iter().take(RULES).enumerate() {
            let comma = if at == 0 { "" } else { "," };
            write!(f, "{comma}{}={}", finding.rule, finding.level)?;
        }
        match self.0.len().saturating_sub(RULES) {
            0 => Ok(()),
            more => write!(f, ",+{more}"),
        }
    }
}
