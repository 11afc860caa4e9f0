//! The programs of the real controllers. They are built with Go from the modules in `assets/pins.json`, and stored in
//! the user's cache.
//!
//! The `replace` directives of a Go module have an effect only in the main module. So each module is copied into its
//! own folder and built there with its own go.mod and go.sum. Submodules that `replace` directives refer to are copied
//! into the same folder.

use std::collections::BTreeMap;
use std::env::consts::{ARCH, OS};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::LazyLock;

use serde::{Deserialize, Serialize};

use crate::cache::{self, Cache, CacheError};
use crate::cleanup::Process;

const PINS: &str = include_str!("assets/pins.json");
/// Environment variable that names a folder with programs that were built elsewhere. The folder contains a subfolder
/// for each entry of `assets/pins.json`, with the programs and optionally a folder `crds`.
const VARIABLE: &str = "PORTCULLIS_SYSTEMS";
/// Number of parallel compilations (`go build -p`). It is low, because the machine has other work.
const PARALLEL: &str = "2";
const FLAGS: [&str; 6] = ["-mod=readonly", "-trimpath", "-buildvcs=false", "-ldflags", "-s -w", "-o"];

static PINNED: LazyLock<Vec<Pin>> = LazyLock::new(|| serde_json::from_str(PINS).expect("assets/pins.json is read"));

/// A version of a Go module.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Module {
    module: String,
    version: String,
    /// The checksum of the module, as in go.sum.
    sum: String,
}

/// A Go submodule, and the folder in which a `replace` directive of the main module expects it.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Part {
    folder: String,
    #[serde(flatten)]
    module: Module,
}

/// An entry of `assets/pins.json`: a Go module in a fixed version, and the programs that are built from it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Pin {
    /// The name of the entry. The folder in the cache with its programs has the same name.
    pub name: String,
    #[serde(flatten)]
    module: Module,
    parts: Vec<Part>,
    /// The Go package of each program, by the name of the program.
    packages: BTreeMap<String, String>,
    /// The folders of the CRDs in the Go module, such as `config/crd/bases`.
    crds: Vec<String>,
}

/// The reason why a program is not available.
#[derive(Debug, thiserror::Error)]
pub enum ProgramError {
    /// Go cannot download the module, or the checksum of the module is not the pinned one.
    #[error("{module}: {reason}")]
    Module {
        /// The path and version of the module.
        module: String,
        reason: String,
    },
    /// A file operation failed, or `go` could not be started.
    #[error("{path}: {source}")]
    Io {
        /// The path of the file or folder.
        path: String,
        source: io::Error,
    },
    /// `go build` failed for this program.
    #[error("go build {0} failed")]
    Build(String),
    /// The programs of this entry of `assets/pins.json` are not built.
    #[error("{0} is not built yet: run `make systems-assets`")]
    Missing(String),
    /// The cache could not be used.
    #[error(transparent)]
    Cache(#[from] CacheError),
}

/// Returns all entries of `assets/pins.json`.
pub fn pinned() -> &'static [Pin] {
    &PINNED
}

/// Returns the entry of `assets/pins.json` with this name.
///
/// # Panics
///
/// If there is no such entry.
pub fn pin(name: &str) -> &'static Pin {
    PINNED.iter().find(|pin| pin.name == name).unwrap_or_else(|| panic!("{name} is not pinned"))
}

impl Pin {
    /// Returns the version of the Go module, as shown in the table of results.
    pub fn version(&self) -> &str {
        &self.module.version
    }

    /// Returns whether the programs of this module version are built.
    pub fn is_built(&self) -> bool {
        self.folder_from_env().is_some() || self.cache().is_ok_and(|cache| cache.has(&self.name))
    }

    /// Builds the programs, unless they are built already. Returns the path of their folder.
    pub fn build(&self) -> Result<PathBuf, ProgramError> {
        if let Some(given) = self.folder_from_env() {
            return Ok(given);
        }
        self.cache()?.entry(&self.name, |folder| self.build_into(folder))
    }

    /// Returns the path of a program. Fails if it is not built.
    pub fn program(&self, name: &str) -> Result<PathBuf, ProgramError> {
        self.built().map(|folder| folder.join(name))
    }

    /// Returns the path of the folder with the CRDs of this entry of `assets/pins.json`. Fails if the programs of this
    /// entry are not built, because the CRDs are in the folder of the programs.
    pub fn crds(&self) -> Result<PathBuf, ProgramError> {
        self.built().map(|folder| folder.join("crds"))
    }

    /// Returns the folder of this entry of `assets/pins.json`. It is a subfolder of the folder that the environment
    /// variable [`VARIABLE`] names. `None` if the variable is not set, or if the subfolder does not exist.
    fn folder_from_env(&self) -> Option<PathBuf> {
        Some(cache::path_from_env(VARIABLE)?.join(&self.name)).filter(|folder| folder.is_dir())
    }

    fn built(&self) -> Result<PathBuf, ProgramError> {
        if let Some(given) = self.folder_from_env() {
            return Ok(given);
        }
        let missing = || ProgramError::Missing(self.name.clone());
        self.cache()?.entry(&self.name, |_| Err(missing()))
    }

    fn cache(&self) -> Result<Cache, CacheError> {
        let pin = serde_json::to_string(self).expect("the value can be serialized");
        Cache::open(&cache::key(&[&pin, &FLAGS.join(" "), OS, ARCH]))
    }

    fn build_into(&self, target: &Path) -> Result<(), ProgramError> {
        eprintln!("systems: building {} {}", self.name, self.module.version);
        let source = target.join("source");
        copy(&self.module.download()?, &source)?;
        for part in &self.parts {
            copy(&part.module.download()?, &source.join(&part.folder))?;
        }
        self.packages.iter().try_for_each(|(name, package)| compile(&source, package, &target.join(name)))?;
        let crds = target.join("crds");
        fs::create_dir(&crds).map_err(io_error_at(&crds))?;
        self.crds.iter().try_for_each(|folder| copy(&source.join(folder), &crds))?;
        fs::remove_dir_all(&source).map_err(io_error_at(&source))
    }
}

impl Module {
    /// Downloads the module with Go. Returns the path of its folder, which is read-only.
    fn download(&self) -> Result<PathBuf, ProgramError> {
        let module = format!("{}@{}", self.module, self.version);
        let failed = |reason: String| ProgramError::Module { module: module.clone(), reason };
        let mut go = go(&std::env::temp_dir());
        let answer = go.args(["mod", "download", "-json", &module]).stderr(Stdio::inherit()).output();
        let answer = answer.map_err(|error| failed(format!("running go: {error}")))?;
        let found: serde_json::Value =
            serde_json::from_slice(&answer.stdout).map_err(|error| failed(error.to_string()))?;
        match found["Dir"].as_str() {
            Some(folder) if found["Sum"] == self.sum.as_str() => Ok(folder.into()),
            Some(_) => Err(failed(format!("the checksum differs from the pinned checksum: {}", found["Sum"]))),
            None => Err(failed(found["Error"].as_str().unwrap_or("not downloaded").to_owned())),
        }
    }
}

fn go(folder: &Path) -> Command {
    let mut command = Command::new("go");
    command.current_dir(folder).env("GOWORK", "off").env_remove("GOOS").env_remove("GOARCH");
    command
}

fn compile(source: &Path, package: &str, target: &Path) -> Result<(), ProgramError> {
    let mut command = go(source);
    command.args(["build", "-p", PARALLEL]).args(FLAGS).arg(target).arg(package);
    let ended = Process::start(&mut command).and_then(|process| process.wait());
    match ended.map_err(io_error_at(source))? {
        status if status.success() => Ok(()),
        _ => Err(ProgramError::Build(format!("{package} for {}", target.display()))),
    }
}

/// Copies a folder and its subfolders. The copies are writable, even if the originals are not.
fn copy(source: &Path, target: &Path) -> Result<(), ProgramError> {
    fs::create_dir_all(target).map_err(io_error_at(target))?;
    for entry in fs::read_dir(source).map_err(io_error_at(source))? {
        let entry = entry.map_err(io_error_at(source))?;
        let (from, to) = (entry.path(), target.join(entry.file_name()));
        if from.is_dir() {
            copy(&from, &to)?;
        } else {
            let content = fs::read(&from).map_err(io_error_at(&from))?;
            fs::write(&to, content).map_err(io_error_at(&to))?;
        }
    }
    Ok(())
}

fn io_error_at(path: &Path) -> impl FnOnce(io::Error) -> ProgramError + use<> {
    let path = path.display().to_string();
    move |source| ProgramError::Io { path, source }
}
