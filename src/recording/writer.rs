//! Writes a recording on a separate thread.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, TryRecvError};

use serde_json::Value;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use super::entry::{Entry, Options, RecordedDecision, Shared};
use super::line::{self, Line, LiveRead};
use super::{Answer, redact};
use crate::catalog::Change;

/// Creates the file of a recording, and returns its path and the open file. Creates `folder` if it does not exist. Only
/// the owner of the file may read it, because it contains objects of the cluster.
pub(super) fn create(folder: &Path) -> io::Result<(PathBuf, File)> {
    DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    let now = OffsetDateTime::now_utc();
    let (date, time) = (now.date(), now.time());
    let stamp = format!("{date}T{:02}{:02}{:02}Z", time.hour(), time.minute(), time.second());
    let path = folder.join(format!("portcullis-{stamp}-{}.jsonl", std::process::id()));
    let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path)?;
    Ok((path, file))
}

/// The reason why the writer ends a recording.
enum End {
    Requested,
    Limit,
    Failed(io::Error),
}

impl From<io::Error> for End {
    fn from(error: io::Error) -> Self {
        Self::Failed(error)
    }
}

pub(super) struct Writer {
    file: BufWriter<File>,
    path: PathBuf,
    written: u64,
    limit: u64,
    families: Vec<String>,
    shared: Arc<Shared>,
}

impl Writer {
    pub(super) fn new(file: File, path: PathBuf, options: &Options, shared: Arc<Shared>) -> Self {
        let families = options.families.iter().map(|&family| family.to_owned()).collect();
        Self { file: BufWriter::new(file), path, written: 0, limit: options.limit, families, shared }
    }

    /// Writes the received entries until the recorder ends the recording, the recording reaches its maximum size, or
    /// writing fails.
    pub(super) fn run(mut self, entries: &Receiver<Entry>) {
        let end = self.write_all(entries);
        self.shared.has_ended.store(true, Ordering::Release);
        let (flushed, file) = (self.file.flush(), self.path.display());
        match end {
            End::Requested => {}
            End::Limit => {
                let (bytes, limit) = (self.written, self.limit);
                tracing::warn!(%file, bytes, limit, "the recording ends here: it has reached --record-limit");
            }
            End::Failed(error) => tracing::error!(%file, %error, "the recording ends here: it cannot be written"),
        }
        if let Err(error) = flushed {
            tracing::error!(%file, %error, "the end of the recording cannot be written");
        }
    }

    fn write_all(&mut self, entries: &Receiver<Entry>) -> End {
        if let Err(end) = self.write_header() {
            return end;
        }
        loop {
            let entry = match entries.try_recv() {
                Ok(entry) => entry,
                Err(TryRecvError::Empty) => {
                    if let Err(error) = self.file.flush() {
                        return End::Failed(error);
                    }
                    let Ok(entry) = entries.recv() else { return End::Requested };
                    entry
                }
                Err(TryRecvError::Disconnected) => return End::Requested,
            };
            if let Err(end) = self.take(entry) {
                return end;
            }
        }
    }

    fn write_header(&mut self) -> Result<(), End> {
        self.write(&Line::Recording(line::Header {
            format: line::FORMAT,
            portcullis: env!("CARGO_PKG_VERSION").to_owned(),
            families: self.families.clone(),
            started: rfc3339(OffsetDateTime::now_utc()),
        }))
    }

    fn take(&mut self, entry: Entry) -> Result<(), End> {
        let line = match entry {
            Entry::Configuration { change, text } => Line::Configuration(line::Configuration { change, text }),
            Entry::Coverage { change, kind, coverage } => {
                Line::Coverage(line::Coverage { change, kind: line::kind_name(kind), coverage })
            }
            Entry::Changed { change, of } => changed(change, &of),
            Entry::Decision(decided) => {
                self.shared.queued_bytes.fetch_sub(decided.bytes, Ordering::Relaxed);
                match decision(*decided) {
                    Ok(decision) => Line::Decision(Box::new(decision)),
                    Err(error) => {
                        tracing::warn!(%error, "a decision cannot be recorded");
                        return Ok(());
                    }
                }
            }
            Entry::End => {
                self.write_lost(u64::MAX)?;
                return Err(End::Requested);
            }
        };
        self.write_lost(line.position().0)?;
        self.write(&line)
    }

    /// Writes a [`Line::Lost`] with the numbers of changes and decisions that were dropped since the last call. Writes
    /// nothing if both numbers are 0.
    ///
    /// `change` is the sequence number of the change that the caller writes next. If the caller writes a decision, it
    /// is the number of the last change before the decision. At the end of the recording, it is `u64::MAX`.
    fn write_lost(&mut self, change: u64) -> Result<(), End> {
        let changes = self.shared.lost_changes.swap(0, Ordering::Relaxed);
        let decisions = self.shared.lost_decisions.swap(0, Ordering::Relaxed);
        if changes == 0 && decisions == 0 {
            return Ok(());
        }
        tracing::warn!(
            changes,
            decisions,
            "entries are missing in the recording: they came faster than they are written"
        );
        self.write(&Line::Lost(line::Lost { change, changes, decisions }))
    }

    fn write(&mut self, line: &Line) -> Result<(), End> {
        let mut text = serde_json::to_vec(line).map_err(io::Error::from)?;
        text.push(b'\n');
        let bytes = text.len() as u64;
        if self.written + bytes > self.limit {
            return Err(End::Limit);
        }
        self.file.write_all(&text)?;
        self.written += bytes;
        self.shared.metrics.bytes.inc_by(bytes);
        Ok(())
    }
}

fn changed(change: u64, of: &Change) -> Line {
    let reference = of.reference();
    let kind = line::kind_name(reference.kind);
    match &of.now {
        Some(stored) => {
            let mut object = stored.value().clone();
            redact::redact(&mut object);
            Line::Stored(line::Stored { change, kind, object: named(object, reference.kind) })
        }
        None => Line::Deleted(line::Deleted { change, kind, namespace: reference.namespace, name: reference.name }),
    }
}

/// Adds `apiVersion` and `kind` to an object that lacks them.
fn named(mut object: Value, kind: &crate::catalog::Kind) -> Value {
    if let Some(members) = object.as_object_mut() {
        members.entry("apiVersion").or_insert_with(|| kind.api_version().into());
        members.entry("kind").or_insert_with(|| kind.kind.into());
    }
    object
}

fn decision(decided: RecordedDecision) -> Result<line::Decision, serde_json::Error> {
    let (review, redacted) = decided.request.review()?;
    let reads = decided.inputs.reads.into_iter();
    Ok(line::Decision {
        changes: decided.changes,
        changes_at_end: Some(decided.changes_at_end).filter(|at_end| *at_end != decided.changes),
        at: rfc3339(decided.at),
        phase: decided.phase,
        review,
        redacted,
        live_reads: reads.map(|(reference, answer)| LiveRead::of(&reference, answer)).collect(),
        trees: decided.inputs.trees,
        answer: decided.verdict.as_ref().map(Answer::from),
    })
}

fn rfc3339(at: OffsetDateTime) -> String {
    // Fails only for years that have more than four digits.
    at.format(&Rfc3339).unwrap_or_default()
}
