//! Builds roots of commits with `kustomize build`, each distinct input once, and measures processes.

use std::cell::OnceCell;
use std::collections::hash_map::DefaultHasher;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;
use std::fs;
use std::hash::{Hash, Hasher};
use std::ops::AddAssign;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::rc::Rc;
use std::time::{Duration, Instant};

use portcullis::yaml::{self, Limits};
use serde_json::Value;
use tempfile::TempDir;

use super::commit::{Commit, Repository};

/// Length of a tick of the kernel's CPU times.
const TICK: Duration = Duration::from_millis(10);
/// Nothing is fetched, and no program is started.
const ENVIRONMENT: [(&str, &str); 4] = [
    ("HTTP_PROXY", "http://127.0.0.1:1"),
    ("HTTPS_PROXY", "http://127.0.0.1:1"),
    ("PATH", "/nonexistent"),
    ("HOME", "/nonexistent"),
];

/// Group, kind, namespace and name of an object.
pub type Id = (String, String, String, String);

/// The time of a process.
#[derive(Debug, Clone, Copy, Default)]
pub struct Cost {
    pub time: Duration,
    /// Of all cores, user and system.
    pub cpu: Duration,
}

/// A build of a root.
pub struct Built {
    /// The output; `None` if kustomize refuses.
    pub text: Option<String>,
    objects: OnceCell<BTreeMap<Id, u64>>,
    pub cost: Cost,
}

/// Labels and annotations with which Flux keeps an object that is not rendered any more.
const KEEPS: [(&str, &str); 3] = [("prune", "disabled"), ("reconcile", "disabled"), ("ssa", "Ignore")];

impl Built {
    /// Returns a hash of the value of each object; `None` if kustomize refuses.
    pub fn objects(&self) -> Option<&BTreeMap<Id, u64>> {
        self.text.as_ref().map(|text| self.objects.get_or_init(|| objects(text)))
    }

    /// Returns the objects that a label or annotation excludes from pruning.
    pub fn kept(&self) -> BTreeSet<Id> {
        let text = self.text.as_deref().filter(|text| text.contains("kustomize.toolkit.fluxcd.io/"));
        values(text.unwrap_or_default()).filter(is_kept).map(|value| id(&value)).collect()
    }
}

/// Builds roots of the commits of one repository.
pub struct Reference {
    /// The files of a commit.
    folder: TempDir,
    index: PathBuf,
    /// Builds by the key of their inputs.
    built: HashMap<String, Rc<Built>>,
}

impl Reference {
    pub fn new() -> Self {
        let folder = tempfile::Builder::new().prefix("portcullis-history-").tempdir().expect("there is room");
        let index = folder.path().join("index");
        fs::create_dir(folder.path().join("files")).expect("there is room");
        Self { folder, index, built: HashMap::new() }
    }

    /// Builds all roots of a commit.
    pub fn build_all(&mut self, repository: &Repository, commit: &Commit) -> BTreeMap<String, Rc<Built>> {
        self.check_out(repository, commit);
        commit.roots().into_iter().map(|root| (root.clone(), self.build(commit, &root))).collect()
    }

    /// Writes the files of a commit in place of those of the one before.
    fn check_out(&self, repository: &Repository, commit: &Commit) {
        let mut git = Command::new("git");
        git.arg("--git-dir").arg(&repository.git_dir).arg("--work-tree").arg(self.folder.path().join("files"));
        git.env("GIT_INDEX_FILE", &self.index).env("GIT_LFS_SKIP_SMUDGE", "1");
        let written = git.args(["read-tree", "--reset", "-u", &commit.id]).status().expect("git runs");
        assert!(written.success(), "the files of {} are written", commit.id);
    }

    /// Builds a root of the commit that is checked out, unless the same inputs were built before.
    fn build(&mut self, commit: &Commit, root: &str) -> Rc<Built> {
        let key = commit.inputs(root);
        if let Some(built) = self.built.get(&key) {
            return Rc::clone(built);
        }
        let mut command = Command::new(kustomize());
        command.arg("build").arg(self.folder.path().join("files").join(root)).env_clear().envs(ENVIRONMENT);
        let (cost, output) = measured(&mut command);
        let text = output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned());
        let built = Rc::new(Built { text, objects: OnceCell::new(), cost });
        self.built.insert(key, Rc::clone(&built));
        built
    }
}

/// Returns the program `kustomize` in the `PATH`.
fn kustomize() -> PathBuf {
    let folders = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&folders).map(|folder| folder.join("kustomize")).find(|path| path.is_file());
    found.expect("`kustomize` is in the PATH")
}

/// Returns the version of kustomize.
pub fn version() -> String {
    let output = Command::new(kustomize()).arg("version").output().expect("kustomize runs");
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

/// Runs a process.
pub fn measured(command: &mut Command) -> (Cost, Output) {
    let (begin, spent) = (Instant::now(), children());
    let output = command.stdin(Stdio::null()).stderr(Stdio::null()).output().expect("the process starts");
    (Cost { time: begin.elapsed(), cpu: children().saturating_sub(spent) }, output)
}

/// Returns the CPU time of all finished child processes, in steps of ten milliseconds. The steps cancel out in sums.
fn children() -> Duration {
    let stat = fs::read_to_string("/proc/self/stat").expect("Linux counts CPU times");
    // the name of the process, which may hold anything, is in brackets
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let ticks: u32 = fields[13..15].iter().map(|field| field.parse::<u32>().expect("a number of ticks")).sum();
    TICK * ticks
}

impl fmt::Display for Cost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.1} s, {:.1} s of CPU time", self.time.as_secs_f64(), self.cpu.as_secs_f64())
    }
}

impl AddAssign for Cost {
    fn add_assign(&mut self, other: Self) {
        self.time += other.time;
        self.cpu += other.cpu;
    }
}

fn objects(text: &str) -> BTreeMap<Id, u64> {
    values(text).map(|value| (id(&value), hash(&value))).collect()
}

fn values(text: &str) -> impl Iterator<Item = Value> {
    let limits = Limits::default();
    let documents: Vec<_> = yaml::documents(text, &limits).collect();
    documents.into_iter().map(|document| document.expect("kustomize prints YAML").value).filter(Value::is_object)
}

fn is_kept(object: &Value) -> bool {
    let has = |field: &str, (key, value): &(&str, &str)| {
        let own = object["metadata"][field][format!("kustomize.toolkit.fluxcd.io/{key}")].as_str();
        own.is_some_and(|own| own.eq_ignore_ascii_case(value))
    };
    KEEPS.iter().any(|keep| has("labels", keep) || has("annotations", keep))
}

fn id(object: &Value) -> Id {
    let field = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
    let group = field("/apiVersion").rsplit_once('/').map(|(group, _)| group.to_owned()).unwrap_or_default();
    (group, field("/kind"), field("/metadata/namespace"), field("/metadata/name"))
}

/// Returns a hash that does not depend on the order of keys.
fn hash(value: &Value) -> u64 {
    let mut hasher = DefaultHasher::new();
    match value {
        Value::Object(map) => {
            let sorted: BTreeMap<&String, u64> = map.iter().map(|(key, value)| (key, hash(value))).collect();
            ("map", sorted).hash(&mut hasher);
        }
        Value::Array(items) => ("list", items.iter().map(hash).collect::<Vec<_>>()).hash(&mut hasher),
        other => ("scalar", other.to_string()).hash(&mut hasher),
    }
    hasher.finish()
}
