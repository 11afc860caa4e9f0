//! Runs the real controllers of Flux, Landscaper and Crossplane on a real kube-apiserver. Each scenario runs without
//! and with portcullis, and the results are compared.
//!
//! `make systems-assets` builds the controllers once; `make test-systems` runs the scenarios. A filter selects some of
//! them: `cargo test --features otlp --test systems -- flux::`. Options:
//!
//! - `--write` writes the table of results into docs/systems.md.
//! - `--record FOLDER` records the requests to portcullis in a folder.
//! - `--pairs NUMBER` sets how many pairs of revisions are tested. For each pair, the plans of portcullis are compared
//!   with the actions of Flux. `--seed NUMBER` sets the seed of the first pair.
//! - `--control` makes both runs of a scenario without portcullis. All differences then come from the controllers
//!   themselves.
#![allow(unreachable_pub, reason = "a test binary has no other crate to reach")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "in a test a panic is the report")]
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "the table is the result")]
#![allow(dead_code, reason = "the cluster of the end-to-end tests can do more")]

mod account;
mod artifact;
#[path = "../e2e/assets.rs"]
mod assets;
#[path = "../e2e/cache.rs"]
mod cache;
#[path = "../e2e/cleanup.rs"]
mod cleanup;
#[path = "../e2e/cluster.rs"]
mod cluster;
mod comparison;
mod context;
#[path = "../e2e/control_plane.rs"]
mod control_plane;
#[path = "../e2e/controller_manager.rs"]
mod controller_manager;
mod crossplane;
mod crossplane_one;
#[path = "../e2e/daemon.rs"]
mod daemon;
#[path = "../support/deadline.rs"]
mod deadline;
#[path = "../e2e/delivery_crds.rs"]
mod delivery_crds;
#[path = "../differential/dice.rs"]
mod dice;
mod flux;
mod flux_defaults;
#[path = "../e2e/gate.rs"]
mod gate;
mod git;
mod guard;
mod held;
#[path = "../e2e/helm.rs"]
mod helm;
#[path = "../e2e/http.rs"]
mod http;
#[path = "../e2e/kubectl.rs"]
mod kubectl;
mod landscaper;
mod log;
#[path = "../e2e/manifests.rs"]
mod manifests;
mod normalize;
mod orphans;
#[path = "../page/mod.rs"]
mod page;
#[path = "../support/pki.rs"]
mod pki;
mod programs;
#[path = "../registry/push.rs"]
mod push;
#[path = "../registry/server.rs"]
mod registry;
mod revisions;
mod runner;
mod system;
mod table;
mod testbed;
#[path = "../e2e/user.rs"]
mod user;

use std::process::ExitCode;
use std::time::Instant;

use libtest_mimic::{Arguments, Trial};

use crate::comparison::Comparison;
use crate::programs::ProgramError;
use crate::system::{Scenario, System};
use crate::table::SystemResult;
use crate::testbed::Mode;

/// All systems that this test runs, such as an API server with Flux. Each system is run with and without Portcullis.
const SYSTEMS: [&System; 8] = [
    &flux::SYSTEM,
    &flux_defaults::SYSTEM,
    &guard::SYSTEM,
    &held::SYSTEM,
    &orphans::SYSTEM,
    &landscaper::SYSTEM,
    &crossplane::SYSTEM,
    &crossplane_one::SYSTEM,
];

/// Maximum number of lines of each failure in the summary at the end of the output.
const EXCERPT_LINES: usize = 8;
/// Maximum length of a line in the summary of failures, in characters.
const EXCERPT_WIDTH: usize = 400;

/// Options of this test suite, in addition to the standard options of test binaries.
#[derive(Default)]
struct Options {
    /// Whether to only build the programs of the controllers.
    assets: bool,
    /// Whether to only check that the programs of the controllers are built.
    check: bool,
    /// Whether to write the table of results into docs/systems.md.
    write: bool,
    /// Whether the second run of each scenario is also without portcullis. Normally, the first run is without
    /// portcullis, and the second run is with it. If both are without, all differences come from the controllers.
    control: bool,
    /// The folder for recordings of requests to portcullis.
    record: Option<String>,
    /// The number of pairs of revisions to test, and the seed of the first pair.
    pairs: revisions::Range,
}

fn main() -> ExitCode {
    let (options, arguments) = parse(std::env::args().collect());
    cleanup::clean_up_on_signals().expect("a process may handle its signals");
    if options.check {
        return check();
    }
    if options.assets {
        return build();
    }
    run(&options, &Arguments::from_iter(arguments))
}

/// Parses the command line. Returns the options of this test suite, and the other arguments, which are standard options
/// of test binaries.
fn parse(arguments: Vec<String>) -> (Options, Vec<String>) {
    let (mut options, mut others) = (Options::default(), Vec::new());
    let mut arguments = arguments.into_iter();
    while let Some(argument) = arguments.next() {
        match &*argument {
            "--assets" => options.assets = true,
            "--check" => options.check = true,
            "--write" => options.write = true,
            "--control" => options.control = true,
            "--record" => options.record = arguments.next(),
            "--pairs" => options.pairs.number = number(arguments.next()),
            "--seed" => options.pairs.seed = number(arguments.next()),
            _ => others.push(argument),
        }
    }
    (options, others)
}

fn number(argument: Option<String>) -> u64 {
    argument.and_then(|text| text.parse().ok()).expect("this option needs a number")
}

/// Checks that all programs for the tests of all systems, such as `crossplane`, are built. If not, prints the missing
/// programs and returns a failure.
fn check() -> ExitCode {
    let pins = SYSTEMS.iter().flat_map(|system| system.pins);
    let missing: Vec<_> = pins.filter(|pin| !programs::pin(pin).is_built()).collect();
    if missing.is_empty() {
        return ExitCode::SUCCESS;
    }
    println!("not built: {missing:?}; `make systems-assets` builds them");
    ExitCode::FAILURE
}

/// Builds the programs of all entries of `assets/pins.json`. Returns a failure if a system needs a program that cannot
/// be built.
fn build() -> ExitCode {
    let begun = Instant::now();
    let failed: Vec<(&str, ProgramError)> =
        programs::pinned().iter().filter_map(|pin| pin.build().err().map(|error| (&*pin.name, error))).collect();
    for (name, error) in &failed {
        println!("{name} cannot be built: {error}");
    }
    println!(
        "systems: {} of {} built after {:.1?}",
        programs::pinned().len() - failed.len(),
        programs::pinned().len(),
        begun.elapsed()
    );
    let is_needed = |name: &str| SYSTEMS.iter().any(|system| system.pins.contains(&name));
    if failed.iter().any(|(name, _)| is_needed(name)) { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

/// Runs the selected scenarios, compares the results, and prints the table of results.
fn run(options: &Options, arguments: &Arguments) -> ExitCode {
    let begun = Instant::now();
    let results: Vec<_> = SYSTEMS.iter().filter_map(|system| run_system(system, options, arguments)).collect();
    let table = table::render(&results);
    let failures: Vec<_> = results.iter().flat_map(failures).collect();
    let comparisons = results.iter().flat_map(|result| &result.comparisons);
    for comparison in comparisons.filter(|comparison| comparison.scenario.name == guard::WITHIN) {
        println!("guard: the deletions of a revision take {:+.1} ms together", comparison.added_deletion_time());
    }
    let compared = revisions::run(options.pairs, arguments);
    let fetched = artifact::run(arguments);
    let tests = results.into_iter().flat_map(tests).chain(compared).chain(fetched).collect();
    let conclusion = libtest_mimic::run(arguments, tests);
    println!("{table}\nsystems: {:.0?}", begun.elapsed());
    // The failures are printed last, so that they are at the end of a log.
    failures.iter().for_each(|failure| println!("{failure}"));
    if options.write {
        table::write(&table).expect("the page can be written");
    }
    conclusion.exit_code()
}

/// Runs the selected scenarios of a system, without and with portcullis. Returns `None` if no scenario is selected.
fn run_system(system: &'static System, options: &Options, arguments: &Arguments) -> Option<SystemResult<'static>> {
    let is_selected = |scenario: &&Scenario| {
        let test = Trial::test(format!("{}::{}", system.name, scenario.name), || Ok(()));
        !arguments.is_filtered_out(&test)
    };
    let missing_program = |scenario: &Scenario| scenario.needs.filter(|pin| !programs::pin(pin).is_built());
    let selected: Vec<_> = system.scenarios.iter().filter(is_selected).collect();
    let (skipped, runnable): (Vec<_>, Vec<_>) =
        selected.into_iter().partition(|scenario| missing_program(scenario).is_some());
    if arguments.list || runnable.is_empty() {
        return None;
    }
    let without = runner::run(system, Mode::Without, &runnable, None);
    let second = if options.control { Mode::Control } else { Mode::With };
    let with = runner::run(system, second, &runnable, options.record.as_deref());
    let comparisons = runnable.into_iter().zip(without).zip(with);
    let comparisons = comparisons.map(|((scenario, without), with)| Comparison { scenario, without, with }).collect();
    Some(SystemResult { system, comparisons, skipped })
}

/// Returns the failed scenarios, each with the first lines of its error message.
fn failures(result: &SystemResult<'static>) -> Vec<String> {
    let failed =
        result.comparisons.iter().filter_map(|comparison| Some((comparison.scenario.name, comparison.check().err()?)));
    let name = result.system.name;
    failed.map(|(scenario, why)| format!("FAILED {name}::{scenario}\n{}", excerpt(&why))).collect()
}

/// Returns the first [`EXCERPT_LINES`] lines of a text. Each line is cut to [`EXCERPT_WIDTH`] characters.
fn excerpt(text: &str) -> String {
    let (shown, left_out) = (text.lines().take(EXCERPT_LINES), text.lines().count().saturating_sub(EXCERPT_LINES));
    let lines = shown.map(|line| format!("  {}\n", line.chars().take(EXCERPT_WIDTH).collect::<String>()));
    let more = if left_out == 0 { String::new() } else { format!("  ({left_out} more lines above)\n") };
    lines.collect::<String>() + &more
}

/// Returns a test for each scenario that has run.
fn tests(result: SystemResult<'static>) -> Vec<Trial> {
    let name = result.system.name;
    let tests = result.comparisons.into_iter().map(|comparison| {
        let checked = comparison.check();
        Trial::test(format!("{name}::{}", comparison.scenario.name), move || checked.map_err(Into::into))
    });
    tests.collect()
}
