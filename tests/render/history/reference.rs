//! Runs `kustomize build` for every root of a commit, and measures the time. A root is a folder with a kustomization
//! file to which no other kustomization refers. If several commits contain a root with the same inputs, it is built
//! only once.

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

/// The duration of one clock tick, the unit of the CPU times in `/proc`.
const TICK: Duration = Duration::from_millis(10);
/// Environment variables of `kustomize build`. They prevent kustomize from using the network, and from finding other
/// programs.
const ENVIRONMENT: [(&str, &str); 4] = [
    ("HTTP_PROXY", "http://127.0.0.1:1"),
    ("HTTPS_PROXY", "http://127.0.0.1:1"),
    ("PATH", "/nonexistent"),
    ("HOME", "/nonexistent"),
];

/// The group, kind, namespace and name of an object.
pub type Id = (String, String, String, String);

/// The elapsed time and the CPU time of a process.
#[derive(Debug, Clone, Copy, Default)]
pub struct Cost {
    pub time: Duration,
    /// The user and system time on all cores.
    pub cpu: Duration,
}

/// The result of a build of a root.
pub struct Built {
    /// The output. `None` if kustomize failed.
    pub text: Option<String>,
    objects: OnceCell<BTreeMap<Id, u64>>,
    pub cost: Cost,
}

/// Labels and annotations in the group `kustomize.toolkit.fluxcd.io` that exclude an object from pruning, each with its
/// value.
const PRUNE_EXCLUSIONS: [(&str, &str); 3] = [("prune", "disabled"), ("reconcile", "disabled"), ("ssa", "Ignore")];

impl Built {
    /// Returns a hash of each object in the output, by the id of the object. Returns `None` if kustomize failed.
    pub fn objects(&self) -> Option<&BTreeMap<Id, u64>> {
        self.text.as_ref().map(|text| self.objects.get_or_init(|| objects(text)))
    }

    /// Returns the ids of the objects that a label or an annotation excludes from pruning.
    pub fn excluded_from_pruning(&self) -> BTreeSet<Id> {
        let text = self.text.as_deref().filter(|text| text.contains("kustomize.toolkit.fluxcd.io/"));
        values(text.unwrap_or_default()).filter(is_excluded_from_pruning).map(|value| id(&value)).collect()
    }
}

/// A builder that runs `kustomize build` for the roots in commits of one repository.
pub struct Reference {
    /// The folder with the files of the commit that is checked out.
    folder: TempDir,
    index: PathBuf,
    /// The results of all builds so far. The key is computed from the inputs of a build.
    built: HashMap<String, Rc<Built>>,
}

impl Reference {
    pub fn new() -> Self {
        let folder = tempfile::Builder::new()
            .prefix("portcullis-history-")
            .tempdir()
            .expect("a temporary folder can be created");
        let index = folder.path().join("index");
        fs::create_dir(folder.path().join("files")).expect("the folder can be created");
        Self { folder, index, built: HashMap::new() }
    }

    /// Checks out a commit, and builds all of its roots. Returns a map from the path of each root to its result.
    pub fn build_all(&mut self, repository: &Repository, commit: &Commit) -> BTreeMap<String, Rc<Built>> {
        self.check_out(repository, commit);
        commit.roots().into_iter().map(|root| (root.clone(), self.build(commit, &root))).collect()
    }

    /// Writes the files of a commit, in place of the files of the previous commit.
    fn check_out(&self, repository: &Repository, commit: &Commit) {
        let mut git = Command::new("git");
        git.arg("--git-dir").arg(&repository.git_dir).arg("--work-tree").arg(self.folder.path().join("files"));
        git.env("GIT_INDEX_FILE", &self.index).env("GIT_LFS_SKIP_SMUDGE", "1");
        let written = git.args(["read-tree", "--reset", "-u", &commit.id]).status().expect("git runs");
        assert!(written.success(), "the files of {} are written", commit.id);
    }

    /// Builds a root of the commit that is checked out. If equal inputs were built before, returns the result of that
    /// build.
    fn build(&mut self, commit: &Commit, root: &str) -> Rc<Built> {
        let key = commit.inputs(root);
        if let Some(built) = self.built.get(&key) {
            return Rc::clone(built);
        }
        let mut command = Command::new(kustomize());
        command.arg("build").arg(self.folder.path().join("files").join(root)).env_clear().envs(ENVIRONMENT);
        let (cost, output) = run_measured(&mut command);
        let text = output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned());
        let built = Rc::new(Built { text, objects: OnceCell::new(), cost });
        self.built.insert(key, Rc::clone(&built));
        built
    }
}

/// Returns the path of the program `kustomize` in the `PATH`.
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

/// Runs a process until it ends, and returns its time and output.
pub fn run_measured(command: &mut Command) -> (Cost, Output) {
    let (begin, spent) = (Instant::now(), children_cpu_time());
    let output = command.stdin(Stdio::null()).stderr(Stdio::null()).output().expect("the process starts");
    (Cost { time: begin.elapsed(), cpu: children_cpu_time().saturating_sub(spent) }, output)
}

/// Returns the CPU time of all child processes that have ended, in steps of 10 ms. If the times of many builds are
/// added, the rounding errors cancel out.
fn children_cpu_time() -> Duration {
    let stat = fs::read_to_string("/proc/self/stat").expect("Linux counts CPU times");
    // The second field is the name of the process in parentheses, which can contain any characters.
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let ticks: u32 =
        fields[13..15].iter().map(|field| field.parse::<u32>().expect("the field is a number of clock ticks")).sum();
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

fn is_excluded_from_pruning(object: &Value) -> bool {
    let has = |field: &str, (key, value): &(&str, &str)| {
        let own = object["metadata"][field][format!("kustomize.toolkit.fluxcd.io/{key}")].as_str();
        own.is_some_and(|own| own.eq_ignore_ascii_case(value))
    };
    PRUNE_EXCLUSIONS.iter().any(|exclusion| has("labels", exclusion) || has("annotations", exclusion))
}

fn id(object: &Value) -> Id {
    let field = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
    let group = field("/apiVersion").rsplit_once('/').map(|(group, _)| group.to_owned()).unwrap_or_default();
    (group, field("/kind"), field("/metadata/namespace"), field("/metadata/name"))
}

/// Returns a hash of a value. The hash does not depend on the order of keys.
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
