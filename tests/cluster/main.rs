//! Tests the Helm chart on a real one-node cluster: installation, upgrades, faults and removal, while clients write
//! objects.
//!
//! `make test-cluster` builds the image and runs all scenarios. To run only some of them, pass parts of their names, as
//! in `cargo test --features otlp --test cluster -- restart`. The first scenario, which installs the release, always
//! runs. Options:
//!
//! - `--check` only reports missing requirements.
//! - `--write` writes the table of results into docs/reliability.md.
#![allow(unreachable_pub, reason = "a test binary has no other crate to reach")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "in a test a panic is the report")]
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "the table is the result")]
#![allow(dead_code, reason = "the programs of the end-to-end tests can do more")]

#[path = "../e2e/assets.rs"]
mod assets;
#[path = "../e2e/cache.rs"]
mod cache;
mod certificates;
mod changes;
#[path = "../e2e/cleanup.rs"]
mod cleanup;
#[path = "../e2e/daemon.rs"]
mod daemon;
mod documentation;
mod faults;
mod files;
#[path = "../e2e/http.rs"]
mod http;
mod images;
#[path = "../e2e/kubectl.rs"]
mod kubectl;
mod network;
mod node;
mod packages;
#[path = "../page/mod.rs"]
mod page;
mod pki;
mod programs;
mod reboot;
mod removal;
mod sandbox;
mod scenarios;
mod stage;
mod streams;
mod table;

use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use crate::node::Node;
use crate::programs::Programs;
use crate::stage::{Row, Scenario, TestEnvironment};

/// Environment variable with the path of the archive that `make image-archive` writes.
const ARCHIVE: &str = "PORTCULLIS_IMAGE_ARCHIVE";

/// Shell command that prints all pods and the last 20 events.
const STATE: &str = "kubectl get pods -A; kubectl get events -A --sort-by=.lastTimestamp \
                     -o custom-columns=REASON:.reason,OBJECT:.involvedObject.name,MESSAGE:.message | tail -n 20";

/// The command-line options of this test.
struct Options {
    check: bool,
    write: bool,
    filters: Vec<String>,
}

fn main() -> ExitCode {
    cleanup::clean_up_on_signals().expect("a process may handle its signals");
    match run(&options()) {
        Ok(code) => code,
        Err(error) => {
            println!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn options() -> Options {
    let (options, filters): (Vec<_>, Vec<_>) =
        std::env::args().skip(1).partition(|argument| argument.starts_with("--"));
    let has = |name: &str| options.iter().any(|option| option == name);
    Options { check: has("--check"), write: has("--write"), filters }
}

fn run(options: &Options) -> Result<ExitCode, Box<dyn Error>> {
    if let Some(folder) = sandbox::folder() {
        return run_in_namespaces(options, &folder);
    }
    let mut missing = packages::missing();
    if options.check && !Programs::are_built() {
        missing.push("the programs of the node are not built: `make test-cluster` builds them".to_owned());
    }
    missing.iter().for_each(|sentence| println!("{sentence}"));
    if options.check || !missing.is_empty() {
        return Ok(if missing.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE });
    }
    // Builds missing programs now, because the namespaces have no network connection.
    Programs::find()?;
    archive()?;
    Ok(sandbox::run()?)
}

/// Returns the path of the image archive, which the environment variable [`ARCHIVE`] contains.
fn archive() -> Result<PathBuf, String> {
    let path = std::env::var_os(ARCHIVE).map(PathBuf::from).ok_or("run `make test-cluster`, which builds the image")?;
    if path.is_file() { Ok(path) } else { Err(format!("{ARCHIVE} is {}, which does not exist", path.display())) }
}

/// Starts the node, runs the selected scenarios, and prints the table of results.
fn run_in_namespaces(options: &Options, folder: &Path) -> Result<ExitCode, Box<dyn Error>> {
    let begun = Instant::now();
    let mut environment = TestEnvironment::new(Node::start(Programs::find()?, folder, &archive()?)?);
    println!("cluster: ready after {:.0?}", begun.elapsed());
    let rows: Vec<_> = scenarios::ALL
        .iter()
        .filter(|scenario| is_selected(scenario, options))
        .map(|scenario| {
            let row = environment.run_scenario(scenario);
            report(&row, &environment);
            row
        })
        .collect();
    let table = table::render(&rows, assets::pinned_kubernetes());
    println!("{table}\ncluster: {:.0?}", begun.elapsed());
    if options.write {
        table::write(&table)?;
    }
    Ok(if rows.iter().all(|row| row.failure.is_none()) { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Returns whether the options select a scenario. The first scenario installs the release, so it is always selected.
fn is_selected(scenario: &Scenario, options: &Options) -> bool {
    let is_named = options.filters.iter().any(|filter| scenario.name.contains(filter.as_str()));
    options.filters.is_empty() || scenario.name == scenarios::ALL[0].name || is_named
}

fn report(row: &Row, environment: &TestEnvironment) {
    let name = row.scenario.name;
    match &row.failure {
        None => println!("{name}: ok after {:.0?}", row.duration),
        Some(failure) => {
            let state = environment.shell.run(STATE).text;
            println!("{name}: FAILED\n{failure}\n{state}\n{}", environment.node.log_ends());
        }
    }
}
