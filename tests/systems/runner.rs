//! Runs the scenarios of a system on a cluster, several at the same time, and collects the results.

use std::any::Any;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Instant;

use crate::context::{Context, Snapshot};
use crate::log::{self, Decision, Write};
use crate::system::{Scenario, System};
use crate::testbed::{Mode, Testbed};

/// Number of scenarios that run at the same time.
const CONCURRENCY: usize = 4;
/// Prefix of the user names of portcullis itself.
const PORTCULLIS_USERS: &str = "system:serviceaccount:portcullis-system:";
/// The folder for the logs and snapshots of the last run.
const LOGS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/target/systems");

/// The result of one run of a scenario.
pub struct Run {
    /// The name of the scenario.
    pub name: &'static str,
    /// The snapshots with their labels, or the error message if the scenario failed.
    pub outcome: Result<Vec<(String, Snapshot)>, String>,
    /// The writes of controllers to objects of the scenario.
    pub writes: Vec<Write>,
    /// The decisions of portcullis about objects of the scenario.
    pub decisions: Vec<Decision>,
}

/// Runs scenarios on a new cluster, and returns the results in the order of the scenarios. If `record` is set, also
/// saves a recording of the requests to portcullis in this folder.
pub fn run(system: &'static System, mode: Mode, scenarios: &[&Scenario], record: Option<&str>) -> Vec<Run> {
    let begun = Instant::now();
    let testbed = Testbed::start(system, mode);
    eprintln!("systems: {} {mode:?}: ready after {:.1?}", system.name, begun.elapsed());
    let (next, outcomes) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    thread::scope(|scope| {
        for _ in 0..CONCURRENCY {
            scope.spawn(|| {
                while let Some(scenario) = scenarios.get(next.fetch_add(1, Ordering::SeqCst)) {
                    let outcome = attempt(&testbed, scenario);
                    let result = if outcome.is_ok() { "ended" } else { "failed" };
                    eprintln!(
                        "systems: {} {mode:?}: {} {result} after {:.1?}",
                        system.name,
                        scenario.name,
                        begun.elapsed()
                    );
                    outcomes.lock().unwrap_or_else(PoisonError::into_inner).push((scenario.name, outcome));
                }
            });
        }
    });
    let outcomes = outcomes.into_inner().unwrap_or_else(PoisonError::into_inner);
    if let Some(folder) = record {
        testbed.save_recording(Path::new(folder));
    }
    collect(&testbed, scenarios, outcomes)
}

type Outcome = Result<Vec<(String, Snapshot)>, String>;

/// Runs a scenario and returns its snapshots. If the scenario panics, returns the message of the panic, and the log
/// lines that contain the namespace of the scenario.
fn attempt(testbed: &Testbed, scenario: &Scenario) -> Outcome {
    let snapshots = catch_unwind(AssertUnwindSafe(|| {
        let ctx = Context::begin(testbed, scenario.name);
        (scenario.steps)(&ctx);
        ctx.end()
    }));
    let logs = || testbed.logs(&format!("{}-{}", testbed.system.name, scenario.name));
    snapshots.map_err(|panic| format!("{:?}: {}\n{}", testbed.mode, panic_message(&*panic), logs()))
}

/// Returns the message of a panic.
pub fn panic_message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().cloned();
    text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned())).unwrap_or_default()
}

/// Returns a result for each scenario. The result contains the writes and decisions in the logs that are about objects
/// of the scenario. An object belongs to the scenario if it is in the scenario's namespace, or if it is cluster-scoped
/// and its name contains the name of this namespace.
fn collect(testbed: &Testbed, scenarios: &[&Scenario], mut outcomes: Vec<(&'static str, Outcome)>) -> Vec<Run> {
    save_logs(testbed, &outcomes);
    let writes = log::writes(&testbed.cluster.audit_log());
    let decisions = testbed.log_path().map(|path| log::decisions(&path)).unwrap_or_default();
    let mut all = Vec::new();
    for scenario in scenarios {
        let namespace = format!("{}-{}", testbed.system.name, scenario.name);
        let is_in = |place: &str, name: &str| place == namespace || (place.is_empty() && name.contains(&namespace));
        let at = outcomes.iter().position(|(name, _)| *name == scenario.name).expect("every scenario ran");
        let writes = writes.iter().filter(|write| is_of_controller(write) && is_in(&write.namespace, &write.name));
        let decisions = decisions.iter().filter(|decision| is_in(&decision.namespace, &decision.name));
        let (writes, decisions) = (writes.cloned().collect(), decisions.cloned().collect());
        all.push(Run { name: scenario.name, outcome: outcomes.swap_remove(at).1, writes, decisions });
    }
    all
}

fn is_of_controller(write: &Write) -> bool {
    write.user.starts_with("system:serviceaccount:") && !write.user.starts_with(PORTCULLIS_USERS)
}

/// Copies logs and snapshots into the folder [`LOGS`], so that they can be read after the run. Errors are ignored,
/// because they must not fail the run.
fn save_logs(testbed: &Testbed, outcomes: &[(&'static str, Outcome)]) {
    let folder = Path::new(LOGS).join(format!("{}-{:?}", testbed.system.name, testbed.mode).to_lowercase());
    let _ = fs::remove_dir_all(&folder);
    let _ = fs::create_dir_all(&folder);
    let entries = fs::read_dir(testbed.cluster.folder()).into_iter().flatten().flatten();
    for path in entries.map(|entry| entry.path()).filter(|path| path.extension().is_some_and(|end| end == "log")) {
        let _ = fs::copy(&path, folder.join(path.file_name().unwrap_or_default()));
    }
    for (scenario, snapshots) in outcomes.iter().filter_map(|(name, outcome)| Some((name, outcome.as_ref().ok()?))) {
        let text = serde_json::to_string_pretty(snapshots).unwrap_or_default();
        let _ = fs::write(folder.join(format!("{scenario}.json")), text);
    }
    if let Some(log) = testbed.log_path() {
        let _ = fs::copy(log, folder.join("portcullis-serve.log"));
    }
}
