//! `portcullis replay`: computes the decisions about recorded requests again, and shows the differences.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::output::Output;
use super::{DENIED, OK, Unusable, inputs, pretty, print};
use crate::recording::{Aspect, Difference, Recording, Replayed, replay};

/// Maximum size of a recording, in bytes. The limit exists because a recording is read as a whole. The default of
/// `serve --record-limit` is a quarter of this limit.
const MAX_FILE_BYTES: u64 = 1024 * 1024 * 1024;
/// Maximum nesting depth of the folders that are searched for recordings. Deeper folders are skipped. Deeper nesting is
/// probably a mistake, such as a symbolic link to a parent folder.
const MAX_FOLDER_DEPTH: usize = 16;

/// Replay requests that `portcullis serve --record` recorded, and show how the decisions differ.
///
/// Use it with a new version or configuration to see what an upgrade changes for the requests of your cluster. Exit
/// codes: 0 no differences, 1 differences, 2 a recording cannot be read.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Recordings, or folders of them
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// The configuration file; default: the recorded configuration
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// The output format
    #[arg(long, short, value_enum, default_value = "text")]
    output: Output,
    /// Also show decisions that differ only in their wording
    #[arg(long)]
    wording: bool,
    /// Write the new decisions into the recordings
    #[arg(long)]
    accept: bool,
}

pub(super) fn run(args: &Args) -> Result<u8, Unusable> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
    let runtime = runtime.map_err(|error| Unusable::because("the runtime cannot start", error))?;
    let mut report = Report::default();
    for file in files(&args.paths)? {
        let (shown, text) = (file.display().to_string(), read(&file)?);
        let because = |error| Unusable::because(&shown, error);
        let recording = Recording::parse(&text).map_err(because)?;
        let policy = match &args.config {
            Some(path) => Some(inputs::policy(Some(path), &recording.registry())?),
            None => None,
        };
        let replayed = runtime.block_on(replay(&recording, policy)).map_err(because)?;
        report.files += 1;
        replayed.iter().for_each(|replayed| report.add(&shown, replayed, args.wording));
        if args.accept {
            accept(&file, &text, &replayed)?;
        }
    }
    print(&match args.output {
        Output::Text => report.text(),
        Output::Json => pretty(&report.json()),
    });
    Ok(if report.differ > 0 && !args.accept { DENIED } else { OK })
}

fn accept(file: &Path, text: &str, replayed: &[Replayed<'_>]) -> Result<(), Unusable> {
    let because = |error: std::io::Error| Unusable::because(file.display(), error);
    let text = Recording::accept(text, replayed).map_err(|error| because(error.into()))?;
    std::fs::write(file, text).map_err(because)
}

fn read(file: &Path) -> Result<String, Unusable> {
    let because = |error: std::io::Error| Unusable::because(file.display(), error);
    let bytes = std::fs::metadata(file).map_err(because)?.len();
    if bytes > MAX_FILE_BYTES {
        return Err(Unusable::because(
            file.display(),
            format!("it has {bytes} bytes, and the maximum is {MAX_FILE_BYTES}"),
        ));
    }
    std::fs::read_to_string(file).map_err(because)
}

/// Returns the files of the recordings at `paths`. The files of a folder are sorted by name.
fn files(paths: &[PathBuf]) -> Result<Vec<PathBuf>, Unusable> {
    let mut found = Vec::new();
    for path in paths {
        let before = found.len();
        collect(path, 0, &mut found).map_err(|error| Unusable::because(path.display(), error))?;
        if found.len() == before {
            return Err(Unusable::because(path.display(), "it contains no recording (*.jsonl)"));
        }
    }
    Ok(found)
}

fn collect(path: &Path, depth: usize, found: &mut Vec<PathBuf>) -> std::io::Result<()> {
    if !std::fs::metadata(path)?.is_dir() {
        found.push(path.to_owned());
        return Ok(());
    }
    let entries = std::fs::read_dir(path)?.map(|entry| entry.map(|entry| entry.path()));
    let mut entries: Vec<_> = entries.collect::<Result<_, _>>()?;
    entries.retain(|entry| entry.is_dir() || entry.extension().is_some_and(|extension| extension == "jsonl"));
    entries.sort();
    let inner = entries.iter().filter(|entry| !entry.is_dir() || depth < MAX_FOLDER_DEPTH);
    inner.into_iter().try_for_each(|entry| collect(entry, depth + 1, found))
}

/// The result of `portcullis replay`.
#[derive(Default)]
struct Report {
    files: usize,
    decisions: usize,
    /// Number of decisions that differ from the recorded ones in more than their wording. The decisions that
    /// `not_comparable` counts are not included.
    differ: usize,
    /// Number of decisions that differ from the recorded ones only in their wording.
    reworded: usize,
    /// Number of decisions that differ, but possibly only because of gaps in the recording.
    not_comparable: usize,
    /// Number of requests without a recorded decision.
    undecided: usize,
    shown: Vec<Shown>,
}

/// A decision that is shown in the report, because it differs from the recorded one.
struct Shown {
    place: String,
    request: String,
    not_comparable: Option<&'static str>,
    differences: Vec<Difference>,
}

impl Report {
    fn add(&mut self, file: &str, replayed: &Replayed<'_>, wording: bool) {
        self.decisions += 1;
        self.undecided += usize::from(replayed.decision.answer.is_none());
        let is_reworded = replayed.differences.iter().all(|difference| difference.aspect == Aspect::Wording);
        match replayed {
            _ if replayed.differences.is_empty() => return,
            _ if is_reworded => self.reworded += 1,
            _ if replayed.not_comparable.is_some() => self.not_comparable += 1,
            _ => self.differ += 1,
        }
        if is_reworded && !wording {
            return;
        }
        self.shown.push(Shown {
            place: format!("{file}:{}", replayed.line),
            request: replayed.request.clone(),
            not_comparable: replayed.not_comparable,
            differences: replayed.differences.clone(),
        });
    }

    fn text(&self) -> String {
        let mut text: String = self.shown.iter().map(Shown::text).collect();
        let Self { files, decisions, differ, .. } = self;
        text.push_str(&format!("recordings: {files}, decisions: {decisions}, different now: {differ}"));
        let more = [
            (self.reworded, "only in their wording (--wording shows them)"),
            (self.not_comparable, "not comparable"),
            (self.undecided, "without a recorded decision"),
        ];
        for (count, what) in more.into_iter().filter(|(count, _)| *count > 0) {
            text.push_str(&format!(", {what}: {count}"));
        }
        text + "\n"
    }

    fn json(&self) -> Value {
        json!({
            "version": env!("CARGO_PKG_VERSION"), "recordings": self.files, "decisions": self.decisions,
            "different": self.differ, "reworded": self.reworded, "notComparable": self.not_comparable,
            "undecided": self.undecided, "differences": self.shown.iter().map(Shown::json).collect::<Vec<_>>(),
        })
    }
}

impl Shown {
    fn text(&self) -> String {
        let mut text = format!("{}: {}\n", self.place, self.request);
        if let Some(not_comparable) = self.not_comparable {
            text.push_str(&format!("  not comparable: {not_comparable}\n"));
        }
        for Difference { before, now, .. } in &self.differences {
            before.iter().for_each(|line| text.push_str(&format!("  - {}\n", line.trim_end())));
            now.iter().for_each(|line| text.push_str(&format!("  + {}\n", line.trim_end())));
        }
        text + "\n"
    }

    fn json(&self) -> Value {
        json!({"place": self.place, "request": self.request, "notComparable": self.not_comparable,
               "differences": self.differences})
    }
}
