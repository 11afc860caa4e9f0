//! Builds random trees with the engine and with the libraries of kustomize. The outputs must be equal byte by byte.
//!
//! If the outputs differ, the test minimizes the tree, and prints it with its seed. This command tests the tree again:
//! `cargo test --test render -- --only SEED`. kustomize's order of keys has cycles: a key can be before a second key,
//! the second before a third, and the third before the first. So the output of kustomize for some trees changes between
//! runs. The test counts these trees and does not compare them.
#![allow(unreachable_pub, reason = "a test binary has no other crate to reach")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "in a test a panic is the report")]
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a test tells what it does")]

mod argo;
#[path = "../e2e/cache.rs"]
mod cache;
#[allow(dead_code, reason = "the differential test needs more of it")]
#[path = "../differential/case.rs"]
mod case;
#[allow(dead_code, reason = "the end-to-end tests need more of it")]
#[path = "../e2e/cleanup.rs"]
mod cleanup;
mod controller;
#[path = "../differential/damage.rs"]
mod damage;
#[path = "../differential/dice.rs"]
mod dice;
mod engine;
#[path = "../differential/generate/mod.rs"]
mod generate;
mod history;
#[path = "../differential/minimise.rs"]
mod minimise;
mod oracle;
mod repositories;

use std::collections::BTreeMap;
use std::process::ExitCode;

use clap::Parser;

use crate::case::Case;
use crate::dice::Dice;
use crate::engine::Built;
use crate::oracle::{Answer, Oracle};

/// Number of additional builds with kustomize if the outputs differ. The test then checks whether the output of
/// kustomize itself varies between builds.
const REPEATS: usize = 4;

/// Compares random kustomize trees, rendered by the engine and by kustomize.
#[derive(Parser)]
struct Arguments {
    /// Number of trees.
    #[arg(long, default_value_t = 300)]
    trees: u64,
    /// Seed of the run, from which the seeds of the trees are derived.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Tests only the tree with this seed, and prints it.
    #[arg(long)]
    only: Option<u64>,
    /// Tests the kustomizations of public repositories instead of random trees.
    #[arg(long)]
    repositories: bool,
    /// Tests the Flux Kustomizations of public repositories instead, with kustomize-controller as the reference.
    #[arg(long, requires = "repositories")]
    controller: bool,
    /// Tests only the repository with this name, such as `OWNER/NAME`.
    #[arg(long)]
    repository: Option<String>,
    /// Tests this many random Argo CD sources with kustomize options instead.
    #[arg(long, value_name = "SOURCES")]
    argo: Option<u64>,
    /// Number of repositories that are built at the same time.
    #[arg(long, default_value_t = 2)]
    jobs: usize,
    /// Tests the output of `portcullis diff --git` for this many commits of each repository instead.
    #[arg(long, value_name = "COMMITS")]
    history: Option<usize>,
    /// Writes the measured times into docs/performance.md.
    #[arg(long, requires = "history", conflicts_with = "repository")]
    write: bool,
}

/// The numbers of compared trees, one number for each result.
#[derive(Default)]
struct Counts {
    equal: usize,
    refused: usize,
    unknown: usize,
    varying: usize,
    remote: usize,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    cleanup::clean_up_on_signals().expect("a process may handle its signals");
    if let Some(commits) = arguments.history {
        let repository = arguments.repository.as_deref();
        return history::run(&history::Request { commits, repository, write: arguments.write });
    }
    if let Some(sources) = arguments.argo {
        return argo::run(sources, arguments.seed);
    }
    if arguments.controller {
        return controller::run(&repositories::folders(arguments.repository.as_deref()));
    }
    if arguments.repositories {
        return repositories::run(arguments.jobs, arguments.repository.as_deref());
    }
    let mut oracle = Oracle::start();
    match arguments.only {
        Some(seed) => test_one(seed, &mut oracle),
        None => test_many(&arguments, &mut oracle),
    }
}

fn test_one(seed: u64, oracle: &mut Oracle) -> ExitCode {
    let mut case = tree(seed);
    let answer = oracle.build(&mut case);
    print_tree(&case);
    let built = engine::build(&case, &oracle.root());
    println!("kustomize: {answer:?}\nours: {built:?}");
    if difference(&built, &answer).is_none() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn test_many(arguments: &Arguments, oracle: &mut Oracle) -> ExitCode {
    let (mut counts, mut differences) = (Counts::default(), BTreeMap::<&str, Vec<u64>>::new());
    for number in 0..arguments.trees {
        let seed = Dice::new(arguments.seed.wrapping_mul(0x1_0000_0001).wrapping_add(number)).number() % 10_000_000_000;
        if let Some(difference) = compare(seed, oracle, &mut counts) {
            differences.entry(difference).or_default().push(seed);
        }
    }
    let Counts { equal, refused, unknown, varying, remote } = counts;
    println!(
        "{} trees, seed {}: {equal} with equal bytes, {refused} refused by both, {unknown} unknown, {varying} left out because \
         kustomize's output varies, {remote} because they need the network",
        arguments.trees, arguments.seed
    );
    for (difference, seeds) in &differences {
        println!("\n{} times {difference}: seeds {:?}", seeds.len(), &seeds[..seeds.len().min(5)]);
        seeds.first().into_iter().for_each(|seed| print_minimized(difference, *seed, oracle));
    }
    if differences.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Generates a tree from `seed`, and builds it with Portcullis and with kustomize. Compares the results, and adds the
/// outcome to `counts`.
///
/// Returns the kind of difference; `None` if the results are equal. Also returns `None` if the build needs the network,
/// or if repeated builds with kustomize have different results.
fn compare(seed: u64, oracle: &mut Oracle, counts: &mut Counts) -> Option<&'static str> {
    let mut case = tree(seed);
    if !case.is_local() {
        counts.remote += 1;
        return None;
    }
    let answer = oracle.build(&mut case);
    let built = engine::build(&case, &oracle.root());
    let difference = difference(&built, &answer);
    let varies = difference.is_some() && (0..REPEATS).any(|_| oracle.build(&mut case) != answer);
    counts.add(&built, difference.is_some(), varies);
    difference.filter(|_| !varies)
}

impl Counts {
    fn add(&mut self, built: &Built, differs: bool, varies: bool) {
        match built {
            _ if varies => self.varying += 1,
            _ if differs => {}
            Built::Text(_) => self.equal += 1,
            Built::Refused(_) => self.refused += 1,
            Built::Unknown(_) => self.unknown += 1,
            Built::Panicked => {}
        }
    }
}

fn difference(built: &Built, answer: &Answer) -> Option<&'static str> {
    match (built, answer) {
        (Built::Panicked, _) => Some("the engine panicked"),
        (Built::Text(ours), Answer::Builds(text)) if ours == text => None,
        (Built::Text(_), Answer::Builds(_)) => Some("the bytes differ"),
        (Built::Text(_), Answer::Fails(_)) => Some("the engine builds a tree that kustomize rejects"),
        (Built::Refused(_), Answer::Builds(_)) => Some("the engine rejects a tree that kustomize builds"),
        (Built::Unknown(_), Answer::Builds(_)) => {
            Some("the result of the engine is unknown for a tree that kustomize builds")
        }
        (Built::Refused(_) | Built::Unknown(_), Answer::Fails(_)) => None,
    }
}

fn tree(seed: u64) -> Case {
    let mut case = generate::tree(&mut Dice::new(seed));
    case.name = format!("seed {seed}");
    case
}

/// Minimizes the tree that is generated from `seed`, and prints the smaller tree with the results of kustomize and of
/// Portcullis. `expected` is the kind of difference that the smaller tree must still have.
fn print_minimized(expected: &str, seed: u64, oracle: &mut Oracle) {
    let minimized = minimise::minimise(&tree(seed), |case| {
        let mut written = case.clone();
        let answer = oracle.build(&mut written);
        written == *case && difference(&engine::build(case, &oracle.root()), &answer) == Some(expected)
    });
    print_tree(&minimized);
    println!(
        "kustomize: {:?}\nours: {:?}",
        oracle.build(&mut minimized.clone()),
        engine::build(&minimized, &oracle.root())
    );
}

fn print_tree(case: &Case) {
    println!(
        "{}: build {}{}",
        case.name,
        case.build,
        if case.unrestricted { " without load restrictions" } else { "" }
    );
    for (path, text) in &case.files {
        println!("--- {path}\n{}", text.trim_end());
    }
    for (path, target) in &case.links {
        println!("--- {path} -> {target}");
    }
    println!("---");
}
