//! Compares the plans of `portcullis plan` with the actions of the real kustomize-controller.
//!
//! Each pair of revisions is generated from a seed, and has its own namespaces, repository and Kustomizations. The test
//! waits until Flux has applied the first revision. Then `portcullis plan` computes the plan of the second revision
//! from the live inventories, and the test publishes the second revision. The API server's audit log shows which
//! objects the controller creates, changes and deletes.

mod generate;
mod kinds;
mod model;
mod player;
mod trace;
mod verdict;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Instant;

use libtest_mimic::{Arguments, Trial};

use crate::flux;
use crate::runner;
use crate::system::System;
use crate::testbed::{Mode, Testbed};
use model::{Files, Pair};
use player::PairOutcome;
use trace::{Effects, Write};

/// Name of the test.
const NAME: &str = "plan::revisions";
/// Maximum number of pairs of revisions that run on one cluster. With more pairs, the audit log would be split into
/// several files.
const BATCH: u64 = 250;
/// Number of pairs of revisions that run at the same time.
const CONCURRENCY: usize = 12;
/// Maximum number of pairs of revisions whose files are printed. They are printed if the predicted changes differ from
/// what Flux did.
const MAX_PRINTED: usize = 5;

/// The test system with Flux. Its controllers process many Kustomizations at the same time.
const SYSTEM: System = System {
    name: "plan",
    start: |cluster, fixtures| {
        flux::start_with(
            cluster,
            fixtures,
            flux::KUSTOMIZE_PIN,
            &["--concurrent=8", "--kube-api-qps=500", "--kube-api-burst=1000"],
        )
    },
    scenarios: &[],
    ..flux::SYSTEM
};

/// The pairs of revisions that the test generates.
#[derive(Debug, Clone, Copy)]
pub struct Range {
    /// The number of pairs.
    pub number: u64,
    /// The seed from which the first pair of revisions is generated. The seed of each further pair is higher by one.
    pub seed: u64,
}

impl Default for Range {
    fn default() -> Self {
        Self { number: 100, seed: 1 }
    }
}

/// Totals for all pairs of revisions: the numbers of objects that Flux deleted, created and changed, and how often each
/// action occurs in the plans.
#[derive(Debug, Default)]
struct Tally {
    deleted: usize,
    created: usize,
    changed: usize,
    actions: BTreeMap<String, usize>,
}

/// Tests the pairs of revisions, and returns the result. `None` if `arguments` do not select the test.
pub fn run(range: Range, arguments: &Arguments) -> Option<Trial> {
    let is_selected = !arguments.is_filtered_out(&Trial::test(NAME, || Ok(())));
    if arguments.list || !is_selected {
        return None;
    }
    let (begun, mut tally, mut wrong) = (Instant::now(), Tally::default(), Vec::new());
    for first in (0..range.number).step_by(BATCH as usize) {
        let seeds: Vec<_> = (first..range.number.min(first + BATCH)).map(|at| range.seed + at).collect();
        wrong.extend(batch(&seeds, &mut tally));
        eprintln!("systems: plan: {} pairs after {:.0?}", first + seeds.len() as u64, begun.elapsed());
    }
    println!("plan: {} pairs from seed {}, {} with a difference; {tally:?}", range.number, range.seed, wrong.len());
    // The files of the pairs are printed first, so that the list of differences is at the end of a log.
    wrong.iter().take(MAX_PRINTED).for_each(|(lines, pair)| println!("{lines}{pair}"));
    wrong.iter().for_each(|(lines, _)| print!("{lines}"));
    let failed = wrong.len();
    Some(Trial::test(NAME, move || match failed {
        0 => Ok(()),
        _ => Err(format!("{failed} pairs differ").into()),
    }))
}

/// Tests pairs of revisions on a new cluster. Returns a [`report`] for each pair with differences.
fn batch(seeds: &[u64], tally: &mut Tally) -> Vec<(String, String)> {
    let testbed = Testbed::start(&SYSTEM, Mode::Without);
    player::define_kinds(&testbed);
    let pairs: Vec<_> = seeds.iter().map(|seed| (*seed, generate::pair(*seed, &format!("pair-{seed}")))).collect();
    let outcomes = run_all(&testbed, &pairs);
    let writes = trace::by_pair(trace::read(&testbed.cluster.audit_log()));
    let compare = |((seed, pair), outcome): (&(u64, Pair), Result<PairOutcome, String>)| {
        let lines = match &outcome {
            Ok(outcome) => tally.compare(pair, outcome, writes.get(&pair.name).map(Vec::as_slice).unwrap_or_default()),
            Err(why) => vec![why.clone()],
        };
        (!lines.is_empty()).then(|| report(*seed, pair, &lines, outcome.as_ref().ok()))
    };
    pairs.iter().zip(outcomes).filter_map(compare).collect()
}

/// Runs pairs of revisions on the cluster, several at the same time. Returns the results in the order of the pairs.
fn run_all(testbed: &Testbed, pairs: &[(u64, Pair)]) -> Vec<Result<PairOutcome, String>> {
    let (next, outcomes) = (AtomicUsize::new(0), Mutex::new(BTreeMap::new()));
    thread::scope(|scope| {
        for _ in 0..CONCURRENCY {
            scope.spawn(|| {
                loop {
                    let at = next.fetch_add(1, Ordering::SeqCst);
                    let Some((_, pair)) = pairs.get(at) else { break };
                    let outcome = catch_unwind(AssertUnwindSafe(|| player::run_pair(testbed, pair)));
                    let outcome = outcome.unwrap_or_else(|panic| Err(runner::panic_message(&*panic)));
                    outcomes.lock().unwrap_or_else(PoisonError::into_inner).insert(at, outcome);
                }
            });
        }
    });
    outcomes.into_inner().unwrap_or_else(PoisonError::into_inner).into_values().collect()
}

impl Tally {
    /// Compares the changes that Portcullis predicts for a pair of revisions with the changes that Flux makes. Returns
    /// one line for each difference. Also counts the changes by Flux, and the actions in the plans, in the totals.
    fn compare(&mut self, pair: &Pair, outcome: &PairOutcome, writes: &[Write]) -> Vec<String> {
        let effects = Effects::since(writes, outcome.published);
        self.deleted += effects.deleted.len();
        self.created += effects.created.len();
        self.changed += effects.changed.len();
        for plan in outcome.plans.iter().flatten() {
            for row in plan["objects"].as_array().into_iter().flatten() {
                *self.actions.entry(row["action"].as_str().unwrap_or_default().to_owned()).or_default() += 1;
            }
        }
        verdict::differences(pair, outcome, &effects)
    }
}

/// Returns two texts about a pair of revisions. The first text lists the differences `lines`. The second text contains
/// the details: the objects of the cluster, the files of both revisions, and the outputs of the commands `diff` and
/// `plan`.
fn report(seed: u64, pair: &Pair, lines: &[String], outcome: Option<&PairOutcome>) -> (String, String) {
    let mut differences = format!("DIFFERENCE of the pair with --pairs 1 --seed {seed}\n");
    lines.iter().for_each(|line| differences += &format!("  {line}\n"));
    let mut text = String::new();
    let _ = writeln!(text, "--- objects of the cluster\n{}", pair.manifests("http://…").join("---\n"));
    for (title, folders) in [("first revision", &pair.before), ("second revision", &pair.after)] {
        let files: Files = pair.files(folders);
        files.iter().for_each(|(path, content)| text += &format!("--- {title}: {path}\n{content}"));
    }
    let _ = writeln!(text, "--- changed in the cluster: {:?}", pair.edits);
    if let Some(outcome) = outcome {
        let _ = writeln!(text, "--- diff\n{:#}", outcome.diff);
    }
    for plan in outcome.iter().flat_map(|outcome| &outcome.plans) {
        let _ = writeln!(text, "--- plan\n{}", plan.as_ref().map_or_else(Clone::clone, |plan| format!("{plan:#}")));
    }
    (differences, text)
}
