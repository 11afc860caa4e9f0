//! Finds the files to check below a folder.

use std::fs::FileType;
use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use ignore::{DirEntry, WalkBuilder, WalkState};

use crate::catalog::manifests::is_manifest;

/// Returns the manifests and kustomization files below a folder, sorted by path. If `path` is a file, returns only this
/// path. Excludes hidden files, files in `.gitignore`, and templates of Helm charts.
///
/// # Errors
///
/// Fails with a message if a folder cannot be read.
pub(super) fn manifests(path: &Path) -> Result<Vec<PathBuf>, String> {
    if !path.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let mut walk = WalkBuilder::new(path);
    // `.gitignore` is honored outside of repositories too. The user's global ignore file is not, because the result
    // would depend on the machine.
    walk.require_git(false).git_global(false).filter_entry(|entry| !is_template(entry.path()));
    let (send, receive) = channel();
    // The parallel walk opens only ignore files that the listing of a folder contains. The sequential walk is slower:
    // it tries to open ignore files in every folder.
    walk.build_parallel().run(|| {
        let send = send.clone();
        Box::new(move |entry| {
            let file = entry.map(wanted).map_err(|error| error.to_string()).transpose();
            file.map_or(Ok(()), |file| send.send(file)).map_or(WalkState::Quit, |()| WalkState::Continue)
        })
    });
    drop(send);
    let mut files: Vec<Result<PathBuf, String>> = receive.into_iter().collect();
    files.sort();
    files.into_iter().collect()
}

/// Returns the path of a folder entry if the entry is a manifest or a kustomization file, otherwise `None`.
fn wanted(entry: DirEntry) -> Option<PathBuf> {
    // The listing of a folder contains the types of its entries. Only the targets of symbolic links are looked up.
    let is_folder = |kind: FileType| kind.is_dir() || kind.is_symlink() && entry.path().is_dir();
    let is_named = is_manifest(entry.path()) || entry.file_name() == "Kustomization";
    let is_wanted = is_named && !entry.file_type().is_some_and(is_folder);
    let path = is_wanted.then(|| entry.into_path())?;
    Some(path.strip_prefix(".").map(Path::to_owned).unwrap_or(path))
}

/// Returns whether a folder contains the templates of a Helm chart. Such templates are not valid manifests.
fn is_template(path: &Path) -> bool {
    let chart = || path.parent().is_some_and(|chart| chart.join("Chart.yaml").is_file());
    path.file_name().is_some_and(|name| name == "templates") && chart()
}

/// A progress line on the terminal.
pub(super) struct Progress {
    what: &'static str,
    begun: Instant,
    shown: Option<Instant>,
}

/// Minimum run time before the progress line is shown.
const LONG: Duration = Duration::from_secs(1);
/// Minimum interval between updates of the progress line.
const STEP: Duration = Duration::from_millis(100);

impl Progress {
    /// Creates a progress display for the terminal, and starts measuring its run time. `what` is the text before the
    /// numbers, such as `built kustomize roots:`.
    pub(super) fn new(what: &'static str) -> Self {
        Self { what, begun: Instant::now(), shown: None }
    }

    /// Shows on the progress line that `done` of `all` items are done. Shows nothing if the run is short, or if the
    /// output is not a terminal.
    pub(super) fn step(&mut self, done: usize, all: usize) {
        let due = self.shown.map_or(self.begun.elapsed() > LONG, |shown| shown.elapsed() > STEP);
        if due && std::io::stderr().is_terminal() {
            self.shown = Some(Instant::now());
            let _ = write!(std::io::stderr(), "\r{} {done} of {all}", self.what);
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if self.shown.is_some() {
            let _ = write!(std::io::stderr(), "\r\x1b[K");
        }
    }
}
