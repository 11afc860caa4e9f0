//! The files below a folder that are worth looking at.

use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use ignore::WalkBuilder;

use crate::catalog::manifests::is_manifest;

/// Manifests and kustomization files below a folder, sorted; hidden files, what `.gitignore` names, and the templates of
/// Helm charts are left out. A file stands for itself.
///
/// # Errors
/// A folder that cannot be read, in words.
pub(super) fn manifests(path: &Path) -> Result<Vec<PathBuf>, String> {
    if !path.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let mut files = Vec::new();
    let mut walk = WalkBuilder::new(path);
    // Outside of a repository `.gitignore` still says what its author wants to be left out; what one person ignores
    // everywhere says nothing about it, and would make the answer another one on each machine.
    walk.require_git(false).git_global(false).filter_entry(|entry| !is_template(entry.path()));
    for entry in walk.build() {
        let entry = entry.map_err(|error| error.to_string())?;
        let wanted = is_manifest(entry.path()) || entry.file_name() == "Kustomization";
        if wanted && !entry.path().is_dir() {
            let path = entry.into_path();
            files.push(path.strip_prefix(".").map(Path::to_owned).unwrap_or(path));
        }
    }
    files.sort();
    Ok(files)
}

/// Whether a folder holds the templates of a Helm chart, which are no manifests until Helm renders them.
fn is_template(path: &Path) -> bool {
    let chart = || path.parent().is_some_and(|chart| chart.join("Chart.yaml").is_file());
    path.file_name().is_some_and(|name| name == "templates") && chart()
}

/// A line on a terminal that says how far a long run is.
pub(super) struct Progress {
    what: &'static str,
    begun: Instant,
    shown: Option<Instant>,
}

/// A shorter run needs no such line.
const LONG: Duration = Duration::from_secs(1);
/// Often enough to be seen moving.
const STEP: Duration = Duration::from_millis(100);

impl Progress {
    /// Begins to watch a run.
    pub(super) fn new(what: &'static str) -> Self {
        Self { what, begun: Instant::now(), shown: None }
    }

    /// Says that `done` of `all` are done, if the run is a long one and somebody looks.
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
