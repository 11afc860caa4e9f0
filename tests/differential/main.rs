//! Analyzes random kustomize trees with Portcullis, and compares the verdicts of this analysis with the results of a
//! real `kubectl kustomize`.
//!
//! A disagreement is a bug in Portcullis. For example, the analysis rejects a tree that kustomize builds, or accepts a
//! tree that kustomize rejects. The test minimizes the tree of a disagreement, writes it to a folder, and prints it
//! with its seed. `cargo test --test differential -- --only SEED` tests this tree again.
#![allow(unreachable_pub, reason = "a test binary has no other crate to reach")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "in a test a panic is the report")]
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a test tells what it does")]

#[allow(dead_code, reason = "the end-to-end tests need more of it")]
#[path = "../e2e/assets.rs"]
mod assets;
#[path = "../e2e/cache.rs"]
mod cache;
mod case;
mod class;
#[allow(dead_code, reason = "the end-to-end tests need more of it")]
#[path = "../e2e/cleanup.rs"]
mod cleanup;
mod damage;
mod dice;
mod engine;
mod generate;
mod minimise;
mod oracle;
mod tally;

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Instant;

use clap::Parser;
use portcullis::kustomize::Verdict;
use serde_json::{Value, json};

use crate::case::Case;
use crate::class::Layer;
use crate::dice::Dice;
use crate::engine::AnalysisResult;
use crate::oracle::{Answer, Oracle};
use crate::tally::Tally;

/// Compares verdicts about random kustomize trees with the results of kubectl.
#[derive(Parser)]
struct Arguments {
    /// Number of random kustomize trees to compare.
    #[arg(long, default_value_t = 300)]
    trees: u64,
    /// Seed of the run, from which the seeds of the trees are derived.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Tests only the tree with this seed, and prints it.
    #[arg(long)]
    only: Option<u64>,
    /// Number of trees that are built at the same time.
    #[arg(long, default_value_t = 2)]
    jobs: usize,
    /// Only prints the tree of `--only`, without a build.
    #[arg(long)]
    show: bool,
    /// Prints each tree for which kustomize reports an error that this test cannot classify.
    #[arg(long)]
    beyond: bool,
}

/// A tree, with the results of analyzing it in memory and on disk, and with the result of kustomize.
struct Comparison {
    case: Case,
    analysis: AnalysisResult,
    analysis_on_disk: AnalysisResult,
    answer: Answer,
}

/// The kind of a disagreement between the analysis and kustomize.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Disagreement {
    /// The analysis rejects the tree because of this rule, but kustomize builds the tree.
    WronglyRejected(&'static str),
    /// The analysis accepts the tree, but kustomize fails with an error of this class.
    WronglyAccepted(&'static str),
    /// The analysis panicked.
    Panicked,
    /// The analysis has different verdicts about the tree in memory and the same tree on disk.
    Inconsistent,
    /// The analysis and kustomize reject the tree, but the first finding of the analysis does not report kustomize's
    /// error. Contains the rule of the finding, and the class of the error.
    WrongFirstFinding(&'static str, &'static str),
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    cleanup::clean_up_on_signals().expect("a process may handle its signals");
    let kubectl = assets::kubectl().and_then(|path| Oracle::new(path).map_err(assets::AssetsError::Run));
    let oracle = match kubectl {
        Ok(oracle) => oracle,
        Err(error) => {
            eprintln!("error: {error}");
            return ExitCode::from(101);
        }
    };
    match arguments.only {
        Some(seed) => test_one(seed, arguments.show, &oracle),
        None => test_many(&arguments, &oracle),
    }
}

fn test_one(seed: u64, show: bool, oracle: &Oracle) -> ExitCode {
    let mut case = tree(seed, &recorded_cases());
    if show {
        print_tree(&case);
        return ExitCode::SUCCESS;
    }
    let comparison = compare(&mut case, oracle).expect("a temporary folder can be written to");
    print_tree(&comparison.case);
    println!("ours: {:?} {}\n{}", comparison.analysis.verdict, comparison.analysis.rule, comparison.analysis.reported);
    println!("kustomize: {:?}", comparison.answer);
    if let Some(disagreement) = comparison.disagreement() {
        print_minimized(&disagreement, &comparison, oracle);
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}

fn test_many(arguments: &Arguments, oracle: &Oracle) -> ExitCode {
    let (recorded, begin) = (recorded_cases(), Instant::now());
    let run = Run { arguments, oracle, recorded, begin, next: AtomicU64::new(0), results: Mutex::default() };
    thread::scope(|scope| (0..arguments.jobs).for_each(|_| drop(scope.spawn(|| run.work()))));
    run.report()
}

/// A run that tests many trees, with the results so far.
struct Run<'a> {
    arguments: &'a Arguments,
    oracle: &'a Oracle,
    recorded: Vec<(bool, Case)>,
    begin: Instant,
    next: AtomicU64,
    results: Mutex<Results>,
}

/// The results of a run.
#[derive(Default)]
struct Results {
    tally: Tally,
    disagreements: BTreeMap<Disagreement, Vec<Comparison>>,
}

impl Run<'_> {
    /// Tests one tree after another until none is left.
    fn work(&self) {
        loop {
            let number = self.next.fetch_add(1, Ordering::Relaxed);
            if number >= self.arguments.trees {
                return;
            }
            if number > 0 && number.is_multiple_of(1000) {
                eprintln!("differential: {number} trees after {:.0?}", self.begin.elapsed());
            }
            let seed = seed(self.arguments.seed, number);
            let mut case = tree(seed, &self.recorded);
            self.record(compare(&mut case, self.oracle).expect("a temporary folder can be written to"));
        }
    }

    fn record(&self, comparison: Comparison) {
        let mut results = self.results.lock().unwrap_or_else(PoisonError::into_inner);
        results.tally.add(&comparison.analysis, &comparison.answer);
        if self.arguments.beyond && comparison.has_unclassified_error() {
            println!(
                "beyond: {}, ours {:?}, {:?}",
                comparison.case.name, comparison.analysis.verdict, comparison.answer
            );
        }
        if let Some(disagreement) = comparison.disagreement() {
            eprintln!("differential: {disagreement:?}, {}", comparison.case.name);
            results.disagreements.entry(disagreement).or_default().push(comparison);
        }
    }

    fn report(self) -> ExitCode {
        let Results { tally, disagreements } = self.results.into_inner().unwrap_or_else(PoisonError::into_inner);
        let Arguments { trees, seed, .. } = self.arguments;
        let Oracle { kubectl, kustomize, .. } = self.oracle;
        println!("{tally}");
        println!(
            "{trees} trees, seed {seed}, {:.1?}, kubectl {kubectl} with kustomize {kustomize}",
            self.begin.elapsed()
        );
        for (disagreement, comparisons) in &disagreements {
            println!("\n{} times {disagreement:?}", comparisons.len());
            let smallest = comparisons.iter().min_by_key(|comparison| comparison.case.size());
            smallest.into_iter().for_each(|comparison| print_minimized(disagreement, comparison, self.oracle));
        }
        if disagreements.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
    }
}

/// Returns the seed of tree number `number` in a run with the seed `first`. A seed has at most ten digits, so that
/// users can easily type it.
fn seed(first: u64, number: u64) -> u64 {
    Dice::new(first.wrapping_mul(0x1_0000_0001).wrapping_add(number)).number() % 10_000_000_000
}

/// Returns the tree of a seed. About two thirds of the trees are generated; the others are recorded cases with random
/// mutations.
fn tree(seed: u64, recorded: &[(bool, Case)]) -> Case {
    let mut dice = Dice::new(seed);
    let mut case = if dice.chance(67) { generate::tree(&mut dice) } else { mutate_recorded(&mut dice, recorded) };
    if !case.is_local() {
        case = generate::tree(&mut dice);
    }
    case.name = format!("seed {seed}");
    case
}

/// Returns a recorded case with one or two random mutations. Prefers cases that kustomize builds: if a case fails to
/// build, most mutations do not change the result.
fn mutate_recorded(dice: &mut Dice, recorded: &[(bool, Case)]) -> Case {
    let builds = dice.chance(75);
    let candidates: Vec<&Case> =
        recorded.iter().filter(|(is_buildable, _)| *is_buildable == builds).map(|(_, case)| case).collect();
    let mut case = dice.any(&candidates).map_or_else(|| panic!("no recorded case is left"), |case| (*case).clone());
    (0..=dice.below(2)).for_each(|_| damage::mutate(dice, &mut case));
    case
}

/// Returns the recorded cases that need neither network nor git. The boolean of each case is whether kustomize builds
/// the case.
fn recorded_cases() -> Vec<(bool, Case)> {
    let texts = [
        include_str!("../vectors/kustomize/trees.json"),
        include_str!("../vectors/kustomize/found.json"),
        include_str!("../vectors/kustomize/components.json"),
        include_str!("../vectors/kustomize/keys.json"),
        include_str!("../vectors/kustomize/definitions.json"),
    ];
    let vectors = texts.iter().flat_map(|text| serde_json::from_str::<Vec<Value>>(text).expect("the cases are JSON"));
    let cases = vectors.map(|vector| (vector["expect"]["accept"] == true, Case::of_vector(&vector)));
    cases.filter(|(_, case)| case.is_local()).collect()
}

/// Writes the tree of `case` to a temporary folder, and builds it with kustomize. Also analyzes the tree with
/// Portcullis, once in memory and once on disk.
fn compare(case: &mut Case, oracle: &Oracle) -> io::Result<Comparison> {
    let folder = tempfile::Builder::new().prefix("portcullis-tree-").tempdir()?;
    let root = fs::canonicalize(folder.path())?;
    case.write(&root);
    let answer = oracle.build(case, &root)?;
    let analysis = engine::judge(case, oracle.kustomize);
    let analysis_on_disk = engine::judge_folder(case, &root, oracle.kustomize);
    Ok(Comparison { case: case.clone(), analysis, analysis_on_disk, answer })
}

impl Comparison {
    fn disagreement(&self) -> Option<Disagreement> {
        if (self.analysis.verdict, self.analysis.rule) != (self.analysis_on_disk.verdict, self.analysis_on_disk.rule) {
            return Some(Disagreement::Inconsistent);
        }
        match (self.analysis.verdict, &self.answer) {
            (None, _) => Some(Disagreement::Panicked),
            (Some(Verdict::Reject), Answer::Builds) => Some(Disagreement::WronglyRejected(self.analysis.rule)),
            (Some(Verdict::Accept), Answer::Fails(error)) => Some(Disagreement::WronglyAccepted(class::of(error).0)),
            (Some(Verdict::Reject), Answer::Fails(error)) => {
                let (class, _) = class::of(error);
                let rules = class::rules(class);
                let is_expected = rules.is_empty() || rules.contains(&self.analysis.rule);
                let wrong = !self.analysis.rule.is_empty() && !is_expected;
                wrong.then_some(Disagreement::WrongFirstFinding(self.analysis.rule, class))
            }
            _ => None,
        }
    }

    /// Returns whether kustomize rejects the tree with an unclassified error. A developer should then examine the tree,
    /// although the verdict of the analysis may be correct.
    fn has_unclassified_error(&self) -> bool {
        let Answer::Fails(error) = &self.answer else { return false };
        class::of(error).1 == Layer::Unclassified
    }
}

/// Minimizes the tree, writes it to a folder, and prints the tree. Also prints the results of the analysis and of
/// kustomize.
fn print_minimized(disagreement: &Disagreement, comparison: &Comparison, oracle: &Oracle) {
    let still_disagrees = |case: &Case| {
        let same = engine::judge(case, oracle.kustomize).verdict == comparison.analysis.verdict;
        let again = || compare(&mut case.clone(), oracle);
        same && again().is_ok_and(|again| again.disagreement().as_ref() == Some(disagreement) && again.case == *case)
    };
    let mut case = minimise::minimise(&comparison.case, still_disagrees);
    let minimized = compare(&mut case, oracle).expect("a temporary folder can be written to");
    println!("{}, minimized:", comparison.case.name);
    print_tree(&minimized.case);
    println!(
        "ours: {:?}\n{}\nkustomize: {:?}",
        minimized.analysis.verdict, minimized.analysis.reported, minimized.answer
    );
    match save(&minimized, oracle) {
        Ok(folder) => println!("written to {}", folder.display()),
        Err(error) => println!("the tree could not be written: {error}"),
    }
}

/// Writes the tree to a permanent folder, together with a test vector that developers can add to `found.json`. Returns
/// the path of the folder.
fn save(comparison: &Comparison, oracle: &Oracle) -> io::Result<PathBuf> {
    let name = format!("portcullis-differential-{}-", comparison.case.name.replace(' ', "-"));
    let folder = tempfile::Builder::new().prefix(&name).tempdir()?.keep();
    let expect = match &comparison.answer {
        Answer::Fails(error) => json!({"accept": false, "error": error}),
        _ => json!({"accept": true}),
    };
    let vector = comparison.case.to_vector(&expect, &oracle.kubectl);
    fs::write(folder.join("vector.json"), serde_json::to_string_pretty(&vector)?)?;
    comparison.case.clone().write(&folder.join("tree"));
    Ok(folder)
}

fn print_tree(case: &Case) {
    println!("build {}{}", case.build, if case.unrestricted { " without load restrictions" } else { "" });
    for (path, text) in &case.files {
        println!("--- {path}\n{}", text.trim_end());
    }
    for (path, target) in &case.links {
        println!("--- {path} -> {target}");
    }
    println!("---");
}
