//! The real controllers: built with Go, once, from the modules that `assets/pins.json` names, and kept in the user's cache.
//!
//! A module's `replace` directives do not apply to those who require it. So each module is copied into a folder of its own,
//! with the submodules that its directives expect beside its packages, and built there with its own go.mod and go.sum.

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
/// Names a folder of programs that were built elsewhere, in a folder for each pin, with a folder `crds` where it has some.
const VARIABLE: &str = "PORTCULLIS_SYSTEMS";
/// Compilers at once: the machine has other work.
const PARALLEL: &str = "2";
const FLAGS: [&str; 6] = ["-mod=readonly", "-trimpath", "-buildvcs=false", "-ldflags", "-s -w", "-o"];

static PINNED: LazyLock<Vec<Pin>> = LazyLock::new(|| serde_json::from_str(PINS).expect("assets/pins.json is read"));

/// A Go module in one version.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Module {
    module: String,
    version: String,
    /// What go.sum says of it.
    sum: String,
}

/// A submodule, and the folder in which a `replace` directive expects it.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Part {
    folder: String,
    #[serde(flatten)]
    module: Module,
}

/// Programs that are built from one module.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Pin {
    /// The entry in the cache.
    pub name: String,
    #[serde(flatten)]
    module: Module,
    parts: Vec<Part>,
    /// Names of programs, and the packages that they are built from.
    packages: BTreeMap<String, String>,
    /// Folders of CRDs.
    crds: Vec<String>,
}

/// Why a program is not there.
#[derive(Debug, thiserror::Error)]
pub enum ProgramError {
    /// Go does not give the module, or gives another one.
    #[error("{module}: {reason}")]
    Module {
        /// Path and version.
        module: String,
        /// What Go said.
        reason: String,
    },
    /// The system refused something.
    #[error("{doing}: {source}")]
    Io {
        /// What was tried.
        doing: String,
        /// What the system said.
        source: io::Error,
    },
    /// Go does not build it.
    #[error("go build {0} failed")]
    Build(String),
    /// It was to be there already.
    #[error("{0} is not built yet: run `make systems-assets`")]
    Missing(String),
    /// The cache could not be used.
    #[error(transparent)]
    Cache(#[from] CacheError),
}

/// Returns all that is pinned.
pub fn pinned() -> &'static [Pin] {
    &PINNED
}

/// Returns the pin with this name.
///
/// # Panics
///
/// When there is none.
pub fn pin(name: &str) -> &'static Pin {
    PINNED.iter().find(|pin| pin.name == name).unwrap_or_else(|| panic!("{name} is not pinned"))
}

impl Pin {
    /// Returns the version, as the table names it.
    pub fn version(&self) -> &str {
        &self.module.version
    }

    /// Returns whether it is in the cache.
    pub fn is_built(&self) -> bool {
        self.given().is_some() || self.cache().is_ok_and(|cache| cache.has(&self.name))
    }

    /// Builds it unless it is in the cache. Returns its folder.
    pub fn build(&self) -> Result<PathBuf, ProgramError> {
        if let Some(given) = self.given() {
            return Ok(given);
        }
        self.cache()?.entry(&self.name, |folder| self.fill(folder))
    }

    /// Returns the path of one of its programs, which must be built.
    pub fn program(&self, name: &str) -> Result<PathBuf, ProgramError> {
        self.built().map(|folder| folder.join(name))
    }

    /// Returns the folder of its CRDs, which must be there.
    pub fn crds(&self) -> Result<PathBuf, ProgramError> {
        self.built().map(|folder| folder.join("crds"))
    }

    /// Returns its folder among programs that were built elsewhere, if somebody names one.
    fn given(&self) -> Option<PathBuf> {
        Some(cache::folder_in(VARIABLE)?.join(&self.name)).filter(|folder| folder.is_dir())
    }

    fn built(&self) -> Result<PathBuf, ProgramError> {
        if let Some(given) = self.given() {
            return Ok(given);
        }
        let missing = || ProgramError::Missing(self.name.clone());
        self.cache()?.entry(&self.name, |_| Err(missing()))
    }

    fn cache(&self) -> Result<Cache, CacheError> {
        let pin = serde_json::to_string(self).expect("it was read from JSON");
        Cache::open(&cache::key(&[&pin, &FLAGS.join(" "), OS, ARCH]))
    }

    fn fill(&self, target: &Path) -> Result<(), ProgramError> {
        eprintln!("systems: building {} {}", self.name, self.module.version);
        let source = target.join("source");
        copy(&self.module.download()?, &source)?;
        for part in &self.parts {
            copy(&part.module.download()?, &source.join(&part.folder))?;
        }
        self.packages.iter().try_for_each(|(name, package)| compile(&source, package, &target.join(name)))?;
        let crds = target.join("crds");
        fs::create_dir(&crds).map_err(at(&crds))?;
        self.crds.iter().try_for_each(|folder| copy(&source.join(folder), &crds))?;
        fs::remove_dir_all(&source).map_err(at(&source))
    }
}

impl Module {
    /// Has Go download the module. Returns its folder, which cannot be written to.
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
            Some(_) => Err(failed(format!("is not what is pinned: {}", found["Sum"]))),
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
    match ended.map_err(at(source))? {
        status if status.success() => Ok(()),
        _ => Err(ProgramError::Build(format!("{package} for {}", target.display()))),
    }
}

/// Copies the files of a folder, which can be written to afterwards.
fn copy(source: &Path, target: &Path) -> Result<(), ProgramError> {
    fs::create_dir_all(target).map_err(at(target))?;
    for entry in fs::read_dir(source).map_err(at(source))? {
        let entry = entry.map_err(at(source))?;
        let (from, to) = (entry.path(), target.join(entry.file_name()));
        if from.is_dir() {
            copy(&from, &to)?;
        } else {
            let content = fs::read(&from).map_err(at(&from))?;
            fs::write(&to, content).map_err(at(&to))?;
        }
    }
    Ok(())
}

fn at(path: &Path) -> impl FnOnce(io::Error) -> ProgramError + use<> {
    let doing = path.display().to_string();
    move |source| ProgramError::Io { doing, source }
}
