//! The real controllers of Flux, Landscaper and Crossplane on a real kube-apiserver, each scenario without and with
//! portcullis, and what they end with compared.
//!
//! `make systems-assets` builds the controllers, once; `make test-systems` runs the scenarios. A name runs a part:
//! `cargo test --features otlp --test systems -- flux::`. `--write` puts the table into docs/systems.md, `--record FOLDER`
//! has portcullis record what it is sent.
#![allow(unreachable_pub, reason = "a test binary has no other crate to reach")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "in a test a panic is the report")]
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "the table is the result")]
#![allow(dead_code, reason = "the cluster of the end-to-end tests can do more")]

mod account;
#[path = "../e2e/assets.rs"]
mod assets;
#[path = "../e2e/cache.rs"]
mod cache;
#[path = "../e2e/cleanup.rs"]
mod cleanup;
#[path = "../e2e/cluster.rs"]
mod cluster;
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
mod flux;
#[path = "../e2e/gate.rs"]
mod gate;
mod git;
#[path = "../e2e/helm.rs"]
mod helm;
#[path = "../e2e/http.rs"]
mod http;
mod judge;
#[path = "../e2e/kubectl.rs"]
mod kubectl;
mod landscaper;
mod log;
#[path = "../e2e/manifests.rs"]
mod manifests;
mod normal;
#[path = "../support/pki.rs"]
mod pki;
mod play;
mod programs;
#[path = "../registry/push.rs"]
mod push;
#[path = "../registry/server.rs"]
mod registry;
mod scene;
mod stage;
mod system;
mod table;
#[path = "../e2e/user.rs"]
mod user;

use std::process::ExitCode;
use std::time::Instant;

use libtest_mimic::{Arguments, Trial};

use crate::judge::Pair;
use crate::programs::ProgramError;
use crate::stage::Mode;
use crate::system::{Scenario, System};
use crate::table::Chapter;

/// Every system.
const SYSTEMS: [&System; 5] =
    [&flux::SYSTEM, &flux::DEFAULTS, &landscaper::SYSTEM, &crossplane::SYSTEM, &crossplane_one::SYSTEM];

/// How many lines of a failure are repeated at the end.
const EXCERPT_LINES: usize = 8;
/// How many characters of each.
const EXCERPT_WIDTH: usize = 400;

/// What is asked for besides what every test binary can do.
#[derive(Default)]
struct Own {
    /// Build the programs, and no more.
    assets: bool,
    /// Say whether the programs are there, and no more.
    check: bool,
    /// Write the table.
    write: bool,
    /// Run both times without portcullis: what differs then varies in the controllers themselves.
    control: bool,
    /// Where to record.
    record: Option<String>,
}

fn main() -> ExitCode {
    let (own, others) = own(std::env::args().collect());
    cleanup::clear_on_signals().expect("a process may handle its signals");
    if own.check {
        return check();
    }
    if own.assets {
        return build();
    }
    run(&own, &Arguments::from_iter(others))
}

fn own(arguments: Vec<String>) -> (Own, Vec<String>) {
    let (mut own, mut others) = (Own::default(), Vec::new());
    let mut arguments = arguments.into_iter();
    while let Some(argument) = arguments.next() {
        match &*argument {
            "--assets" => own.assets = true,
            "--check" => own.check = true,
            "--write" => own.write = true,
            "--control" => own.control = true,
            "--record" => own.record = arguments.next(),
            _ => others.push(argument),
        }
    }
    (own, others)
}

/// Fails where a program is missing that any system cannot do without.
fn check() -> ExitCode {
    let pins = SYSTEMS.iter().flat_map(|system| system.pins);
    let missing: Vec<_> = pins.filter(|pin| !programs::pin(pin).is_built()).collect();
    if missing.is_empty() {
        return ExitCode::SUCCESS;
    }
    println!("not built: {missing:?}; `make systems-assets` builds them");
    ExitCode::FAILURE
}

fn build() -> ExitCode {
    let begun = Instant::now();
    let failed: Vec<(&str, ProgramError)> =
        programs::pinned().iter().filter_map(|pin| pin.build().err().map(|error| (&*pin.name, error))).collect();
    for (name, error) in &failed {
        println!("{name} is not there: {error}");
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

fn run(own: &Own, arguments: &Arguments) -> ExitCode {
    let begun = Instant::now();
    let chapters: Vec<_> = SYSTEMS.iter().filter_map(|system| chapter(system, own, arguments)).collect();
    let table = table::render(&chapters);
    let failures: Vec<_> = chapters.iter().flat_map(failures).collect();
    let tests = chapters.into_iter().flat_map(tests).collect();
    let conclusion = libtest_mimic::run(arguments, tests);
    println!("{table}\nsystems: {:.0?}", begun.elapsed());
    // Last, so that the end of a log has them.
    failures.iter().for_each(|failure| println!("{failure}"));
    if own.write {
        table::write(&table).expect("the page can be written");
    }
    conclusion.exit_code()
}

/// Plays what is asked for of a system; none, where nothing is.
fn chapter(system: &'static System, own: &Own, arguments: &Arguments) -> Option<Chapter<'static>> {
    let is_asked = |scenario: &&Scenario| {
        let test = Trial::test(format!("{}::{}", system.name, scenario.name), || Ok(()));
        !arguments.is_filtered_out(&test)
    };
    let lacks = |scenario: &Scenario| scenario.needs.filter(|pin| !programs::pin(pin).is_built());
    let asked: Vec<_> = system.scenarios.iter().filter(is_asked).collect();
    let (recorded, played): (Vec<_>, Vec<_>) = asked.into_iter().partition(|scenario| lacks(scenario).is_some());
    if arguments.list || played.is_empty() {
        return None;
    }
    let without = play::play(system, Mode::Without, &played, None);
    let second = if own.control { Mode::Control } else { Mode::With };
    let with = play::play(system, second, &played, own.record.as_deref());
    let pairs = played.into_iter().zip(without).zip(with);
    let pairs = pairs.map(|((scenario, without), with)| Pair { scenario, without, with }).collect();
    Some(Chapter { system, pairs, recorded })
}

/// Returns the failed scenarios, each with its first differences, a line each.
fn failures(chapter: &Chapter<'static>) -> Vec<String> {
    let failed = chapter.pairs.iter().filter_map(|pair| Some((pair.scenario.name, pair.judge().err()?)));
    let name = chapter.system.name;
    failed.map(|(scenario, why)| format!("FAILED {name}::{scenario}\n{}", excerpt(&why))).collect()
}

/// Returns the first lines of a text, each up to [`EXCERPT_WIDTH`] characters.
fn excerpt(text: &str) -> String {
    let (shown, left_out) = (text.lines().take(EXCERPT_LINES), text.lines().count().saturating_sub(EXCERPT_LINES));
    let lines = shown.map(|line| format!("  {}\n", line.chars().take(EXCERPT_WIDTH).collect::<String>()));
    let more = if left_out == 0 { String::new() } else { format!("  ({left_out} more lines above)\n") };
    lines.collect::<String>() + &more
}

fn tests(chapter: Chapter<'static>) -> Vec<Trial> {
    let name = chapter.system.name;
    let judged = chapter.pairs.into_iter().map(|pair| {
        let judged = pair.judge();
        Trial::test(format!("{name}::{}", pair.scenario.name), move || judged.map_err(Into::into))
    });
    judged.collect()
}
