//! Builds every kustomization of public repositories with Portcullis and with the libraries of kustomize. The outputs
//! must be equal byte by byte.
//!
//! `tests/repositories/public.txt` lists the repositories and their commits. The environment variable
//! `PORTCULLIS_CHECKOUTS` contains the path of a folder. The checkout of each repository is in the subfolder
//! `OWNER/NAME`.

use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::panic::{self, AssertUnwindSafe};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

use portcullis::kustomize::Files;
use portcullis::kustomize::engine::{Settings, Shared, build_shared};
use portcullis::kustomize::file::NAMES;
use portcullis::kustomize::options::Options;
use portcullis::kustomize::tree::{Tree, TreePath};

use crate::Counts;
use crate::engine::Built;
use crate::oracle::{Answer, Oracle};

const LIST: &str = include_str!("../repositories/public.txt");
const FOLDER: &str = "PORTCULLIS_CHECKOUTS";

/// A checkout of a listed repository.
struct Checkout {
    name: &'static str,
    folder: PathBuf,
    /// The paths of the folders with a kustomization file.
    roots: Vec<PathBuf>,
    /// Whether a kustomization file in the checkout contains the word `openapi`, and so possibly sets a schema.
    has_schema: bool,
}

/// The results for all repositories.
#[derive(Default)]
struct Results {
    counts: Counts,
    differences: Vec<String>,
    /// The number of unknown results by reason.
    reasons: BTreeMap<String, usize>,
}

/// Returns the name and the path of each listed repository that is checked out. `only` is the name of the only
/// repository to return; `None` for all.
pub fn folders(only: Option<&str>) -> Vec<(&'static str, PathBuf)> {
    let base = env::var_os(FOLDER).unwrap_or_else(|| panic!("{FOLDER} names the folder of the checkouts"));
    let names = LIST.lines().filter(|line| !line.starts_with('#')).filter_map(|line| Some(line.split_once(' ')?.0));
    let names = names.filter(|name| only.is_none_or(|only| *name == only));
    names.map(|name| (name, Path::new(&base).join(name))).filter(|(_, folder)| folder.join(".git").exists()).collect()
}

/// Builds all kustomizations in the checkouts of the listed repositories with Portcullis and with the libraries of
/// kustomize, and compares the outputs. `jobs` is the number of threads. `only` is the name of the only repository to
/// test; `None` for all.
pub fn run(jobs: usize, only: Option<&str>) -> ExitCode {
    let base = env::var_os(FOLDER).unwrap_or_else(|| panic!("{FOLDER} names the folder of the checkouts"));
    let listed = LIST.lines().filter(|line| !line.starts_with('#')).filter_map(|line| line.split_once(' '));
    let listed = listed.filter(|(name, _)| only.is_none_or(|only| *name == only));
    let checkouts: Vec<Checkout> = listed.map(|(name, commit)| checkout(Path::new(&base), name, commit)).collect();
    let (next, results) = (AtomicUsize::new(0), Mutex::new(Results::default()));
    let work = || {
        let mut oracle = Oracle::start();
        while let Some(checkout) = checkouts.get(next.fetch_add(1, Ordering::Relaxed)) {
            compare(checkout, &mut oracle, &results);
        }
    };
    thread::scope(|scope| (0..jobs).for_each(|_| drop(scope.spawn(work))));
    report(&checkouts, results.into_inner().unwrap_or_else(PoisonError::into_inner))
}

fn report(checkouts: &[Checkout], results: Results) -> ExitCode {
    let Results { counts: Counts { equal, refused, unknown, varying, .. }, differences, reasons } = results;
    let roots: usize = checkouts.iter().map(|checkout| checkout.roots.len()).sum();
    println!(
        "{} repositories, {roots} kustomizations: {equal} with equal bytes, {refused} refused by both, {unknown} unknown \
         and not built offline by kustomize, {varying} left out because kustomize's output varies, {} differences",
        checkouts.len(),
        differences.len()
    );
    reasons.iter().for_each(|(reason, count)| println!("unknown {count} times: {reason}"));
    differences.iter().for_each(|difference| println!("\n{difference}"));
    if differences.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn checkout(base: &Path, name: &'static str, commit: &str) -> Checkout {
    let folder = fs::canonicalize(base.join(name)).unwrap_or_else(|error| panic!("{name} is not checked out: {error}"));
    let head = Command::new("git").arg("-C").arg(&folder).args(["rev-parse", "HEAD"]).output().expect("git runs");
    assert_eq!(String::from_utf8_lossy(&head.stdout).trim(), commit, "{name} has another commit checked out");
    let (mut roots, mut has_schema) = (Vec::new(), false);
    find(&folder, &mut roots, &mut has_schema);
    roots.sort();
    Checkout { name, folder, roots, has_schema }
}

/// Adds the paths of folders with a kustomization file to `roots`, without following symbolic links. Sets `has_schema`
/// if a kustomization file contains the word `openapi`.
fn find(folder: &Path, roots: &mut Vec<PathBuf>, has_schema: &mut bool) {
    for entry in fs::read_dir(folder).expect("a checkout can be read") {
        let entry = entry.expect("a checkout can be read");
        let (kind, name) = (entry.file_type().expect("a checkout can be read"), entry.file_name());
        if kind.is_dir() && name != ".git" {
            find(&entry.path(), roots, has_schema);
        } else if kind.is_file() && NAMES.iter().any(|own| name == *own) {
            roots.push(folder.to_owned());
            *has_schema |= fs::read_to_string(entry.path()).is_ok_and(|text| text.contains("openapi"));
        }
    }
    roots.dedup();
}

fn compare(checkout: &Checkout, oracle: &mut Oracle, results: &Mutex<Results>) {
    let tree = Tree::folder(Path::new("/")).expect("the root of the file system can be read");
    let (options, files, shared) = (Options::default(), Files::default(), Shared::default());
    for root in &checkout.roots {
        let path = TreePath::from(root.to_str().expect("a path is UTF-8").trim_start_matches('/'));
        let build = || {
            let built = build_shared(&tree, &path, &options, &Settings::default(), (&files, &shared));
            built.and_then(|built| built.text())
        };
        let built = panic::catch_unwind(AssertUnwindSafe(build)).map_or(Built::Panicked, Built::from);
        let answer = oracle.build_folder(root, false, checkout.has_schema);
        let difference = crate::difference(&built, &answer);
        let varies = difference.is_some()
            && (0..crate::REPEATS).any(|_| oracle.build_folder(root, false, checkout.has_schema) != answer);
        let mut results = results.lock().unwrap_or_else(PoisonError::into_inner);
        results.counts.add(&built, difference.is_some(), varies);
        match (&built, difference) {
            (_, Some(difference)) if !varies => {
                let below = root.strip_prefix(&checkout.folder).unwrap_or(root).display();
                let details = details(&built, &answer);
                results.differences.push(format!("{} {below}: {difference}\n{details}", checkout.name));
            }
            (Built::Unknown(reason), None) => *results.reasons.entry(class(reason)).or_default() += 1,
            _ => {}
        }
    }
    eprintln!("render: {} with {} kustomizations", checkout.name, checkout.roots.len());
}

/// Removes the quoted names from a reason, so that reasons that differ only in names are counted together.
fn class(reason: &str) -> String {
    reason.split('"').step_by(2).collect::<Vec<_>>().join("…")
}

/// Returns a description of the difference between `built`, the result of Portcullis, and `answer`, the result of
/// kustomize.
fn details(built: &Built, answer: &Answer) -> String {
    let (Built::Text(ours), Answer::Builds(theirs)) = (built, answer) else {
        let shorten = |text: String| text.chars().take(600).collect::<String>();
        return format!("ours: {}\nkustomize: {}", shorten(format!("{built:?}")), shorten(format!("{answer:?}")));
    };
    let differs = |(_, (our, their)): &(usize, (&str, &str))| our != their;
    let first = ours.lines().zip(theirs.lines()).enumerate().find(differs);
    match first {
        Some((line, (our, their))) => format!("line {}\nours: {our}\nkustomize: {their}", line + 1),
        None => format!("{} bytes of ours, {} of kustomize", ours.len(), theirs.len()),
    }
}
