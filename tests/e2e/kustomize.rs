//! Verdicts on kustomize trees against `kubectl kustomize`.
//!
//! Random trees that mix every construct: nothing that kubectl builds may be rejected, and nothing that it refuses may be
//! accepted. `PORTCULLIS_DIFFERENTIAL` says how many (`make differential`: 10 000), `PORTCULLIS_SEED` where they begin.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::thread;

use portcullis::kustomize::options::{Options, Restrictor};
use portcullis::kustomize::tree::{Memory, Tree, TreePath};
use portcullis::kustomize::{Report, Verdict, analyse};

use serde_json::Value;

use crate::Case;
use crate::context::Context;
use crate::trees::{self, RandomTree};

/// The trials of this file.
pub const CASES: &[Case] = &[
    ("kustomize::random_trees_are_judged_as_kubectl_does", random_trees_are_judged_as_kubectl_does),
    ("kustomize::cases_with_slips_are_judged_as_kubectl_does", cases_with_slips_are_judged_as_kubectl_does),
    ("kustomize::what_was_found_before_is_judged_as_kubectl_does", what_was_found_before_is_judged_as_kubectl_does),
];

const CASES_JSON: &str = include_str!("../vectors/kustomize/trees.json");
/// In a normal run: some seconds on two cores.
const TREES: u64 = 100;
/// Seeds of trees that were once judged wrongly (also in `vectors/kustomize/found.json`): components that make two objects one, metadata of
/// what a generator merges into, values of another type.
const REGRESSIONS: [u64; 3] = [245, 14_685, 25_703];

fn number(variable: &str, otherwise: u64) -> u64 {
    std::env::var(variable).ok().and_then(|text| text.parse().ok()).unwrap_or(otherwise)
}

fn random_trees_are_judged_as_kubectl_does(ctx: &Context) {
    let from = number("PORTCULLIS_SEED", 0);
    let seeds: Vec<_> = (from..from + number("PORTCULLIS_DIFFERENTIAL", TREES)).collect();
    compare(ctx, &seeds, &trees::tree);
}

fn cases_with_slips_are_judged_as_kubectl_does(ctx: &Context) {
    let cases = cases();
    let from = number("PORTCULLIS_SEED", 0);
    let seeds: Vec<_> = (from..from + number("PORTCULLIS_DIFFERENTIAL", TREES)).collect();
    compare(ctx, &seeds, &|seed| trees::with_slips(&cases[seed as usize % cases.len()], seed));
}

/// The trees of the executed cases that say nothing absolute.
fn cases() -> Vec<RandomTree> {
    let cases: Vec<Value> = serde_json::from_str(CASES_JSON).expect("the cases are JSON");
    let strings = |value: &Value| -> BTreeMap<String, String> {
        let members = value.as_object().into_iter().flatten();
        members.map(|(path, text)| (path.clone(), text.as_str().unwrap_or_default().to_owned())).collect()
    };
    let usable =
        cases.iter().filter(|case| case["load_restrictor"] == "root-only" && !case.to_string().contains("://"));
    let trees = usable.map(|case| RandomTree {
        files: strings(&case["files"]),
        links: strings(&case["symlinks"]),
        root: case["build"].as_str().unwrap_or_default().to_owned(),
    });
    trees.collect()
}

fn what_was_found_before_is_judged_as_kubectl_does(ctx: &Context) {
    compare(ctx, &REGRESSIONS, &trees::tree);
}

fn compare(ctx: &Context, seeds: &[u64], tree: &(dyn Fn(u64) -> RandomTree + Sync)) {
    let workers = thread::available_parallelism().map_or(1, usize::from);
    let share = seeds.len().div_ceil(workers).max(1);
    let differences: Vec<_> = thread::scope(|scope| {
        let shares = seeds.chunks(share).map(|seeds| {
            scope
                .spawn(move || seeds.iter().filter_map(|seed| difference(ctx, *seed, &tree(*seed))).collect::<Vec<_>>())
        });
        let workers: Vec<_> = shares.collect();
        workers.into_iter().flat_map(|worker| worker.join().expect("a worker does not panic")).collect()
    });
    assert!(differences.is_empty(), "{} of {} differ:\n{}", differences.len(), seeds.len(), differences.join("\n\n"));
}

/// What kubectl and we say of a tree, if that is not the same.
fn difference(ctx: &Context, seed: u64, tree: &RandomTree) -> Option<String> {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    write(tree, folder.path());
    let root = folder.path().join(&tree.root).display().to_string();
    let output = ctx.cluster.kubectl().args(["kustomize", &root]).run();
    let built = output.status.success();
    [judged_in_memory(tree, folder.path()), judged_on_disk(tree, folder.path())].into_iter().find_map(|report| {
        let agrees = report.verdict == if built { Verdict::Accept } else { Verdict::Reject };
        let findings: Vec<_> = report.findings.iter().map(|finding| finding.paragraph()).collect();
        let told = || format!("seed {seed}: {}\n{}\n{output}", report.verdict, findings.join("\n"));
        (!agrees && report.verdict != Verdict::Unknown).then(told)
    })
}

fn write(tree: &RandomTree, folder: &Path) {
    for (path, content) in &tree.files {
        let file = folder.join(path);
        fs::create_dir_all(file.parent().expect("a file is in a folder")).expect("folders can be made");
        fs::write(file, content).expect("files can be written");
    }
    for (path, target) in &tree.links {
        let link = folder.join(path);
        fs::create_dir_all(link.parent().expect("a link is in a folder")).expect("folders can be made");
        symlink(target, link).expect("links can be made");
    }
}

fn options() -> Options {
    Options { restrictor: Restrictor::RootOnly, ..Options::default() }
}

fn judged_in_memory(tree: &RandomTree, folder: &Path) -> Report {
    let files = tree.files.iter().fold(Memory::new(), |files, (path, content)| files.file(path, content));
    let files = tree.links.iter().fold(files, |files, (path, target)| files.link(path, target));
    analyse(&Tree::new(files, &folder.display().to_string()), &TreePath::from(tree.root.as_str()), &options())
}

fn judged_on_disk(tree: &RandomTree, folder: &Path) -> Report {
    let files = Tree::folder(folder).expect("the folder is there");
    analyse(&files, &TreePath::from(tree.root.as_str()), &options())
}
