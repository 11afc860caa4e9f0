//! Plays the scenarios of a system on a stage, some at a time, and gathers what happened.

use std::any::Any;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Instant;

use crate::log::{self, Decision, Write};
use crate::scene::{Scene, Snapshot};
use crate::stage::{Mode, Stage};
use crate::system::{Scenario, System};

/// How many scenarios are played at once.
const AT_ONCE: usize = 4;
/// The users of portcullis itself begin like this.
const OURS: &str = "system:serviceaccount:portcullis-system:";
/// Where the logs of the last run are kept.
const LOGS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/target/systems");

/// A scenario that was played once.
pub struct Played {
    /// The scenario.
    pub name: &'static str,
    /// What was seen at its snapshots, or why it failed.
    pub outcome: Result<Vec<(String, Snapshot)>, String>,
    /// What controllers wrote.
    pub writes: Vec<Write>,
    /// What portcullis decided.
    pub decisions: Vec<Decision>,
}

/// Plays scenarios. Gives them in their order.
pub fn play(system: &'static System, mode: Mode, scenarios: &[&Scenario], record: Option<&str>) -> Vec<Played> {
    let begun = Instant::now();
    let stage = Stage::start(system, mode);
    eprintln!("systems: {} {mode:?}: ready after {:.1?}", system.name, begun.elapsed());
    let (next, ended) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                while let Some(scenario) = scenarios.get(next.fetch_add(1, Ordering::SeqCst)) {
                    let outcome = attempt(&stage, scenario);
                    let words = if outcome.is_ok() { "ended" } else { "failed" };
                    eprintln!(
                        "systems: {} {mode:?}: {} {words} after {:.1?}",
                        system.name,
                        scenario.name,
                        begun.elapsed()
                    );
                    ended.lock().unwrap_or_else(PoisonError::into_inner).push((scenario.name, outcome));
                }
            });
        }
    });
    let ended = ended.into_inner().unwrap_or_else(PoisonError::into_inner);
    if let Some(folder) = record {
        stage.keep_recording(Path::new(folder));
    }
    gathered(&stage, scenarios, ended)
}

type Outcome = Result<Vec<(String, Snapshot)>, String>;

fn attempt(stage: &Stage, scenario: &Scenario) -> Outcome {
    let played = catch_unwind(AssertUnwindSafe(|| {
        let scene = Scene::begin(stage, scenario.name);
        (scenario.play)(&scene);
        scene.end()
    }));
    let logs = || stage.logs(&format!("{}-{}", stage.system.name, scenario.name));
    played.map_err(|panic| format!("{:?}: {}\n{}", stage.mode, message(&*panic), logs()))
}

fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().cloned();
    text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned())).unwrap_or_default()
}

fn gathered(stage: &Stage, scenarios: &[&Scenario], mut ended: Vec<(&'static str, Outcome)>) -> Vec<Played> {
    keep_logs(stage, &ended);
    let writes = log::writes(&stage.cluster.audit_log());
    let decisions = stage.decisions().map(|path| log::decisions(&path)).unwrap_or_default();
    let mut all = Vec::new();
    for scenario in scenarios {
        let namespace = format!("{}-{}", stage.system.name, scenario.name);
        let is_in = |place: &str, name: &str| place == namespace || (place.is_empty() && name.contains(&namespace));
        let at = ended.iter().position(|(name, _)| *name == scenario.name).expect("each was played");
        let writes = writes.iter().filter(|write| is_of_controller(write) && is_in(&write.namespace, &write.name));
        let decisions = decisions.iter().filter(|decision| is_in(&decision.namespace, &decision.name));
        let (writes, decisions) = (writes.cloned().collect(), decisions.cloned().collect());
        all.push(Played { name: scenario.name, outcome: ended.swap_remove(at).1, writes, decisions });
    }
    all
}

fn is_of_controller(write: &Write) -> bool {
    write.user.starts_with("system:serviceaccount:") && !write.user.starts_with(OURS)
}

/// Copies logs and snapshots to where somebody can read them after the run. That nobody can is no failure.
fn keep_logs(stage: &Stage, ended: &[(&'static str, Outcome)]) {
    let folder = Path::new(LOGS).join(format!("{}-{:?}", stage.system.name, stage.mode).to_lowercase());
    let _ = fs::remove_dir_all(&folder);
    let _ = fs::create_dir_all(&folder);
    let entries = fs::read_dir(stage.cluster.folder()).into_iter().flatten().flatten();
    for path in entries.map(|entry| entry.path()).filter(|path| path.extension().is_some_and(|end| end == "log")) {
        let _ = fs::copy(&path, folder.join(path.file_name().unwrap_or_default()));
    }
    for (scenario, snapshots) in ended.iter().filter_map(|(name, outcome)| Some((name, outcome.as_ref().ok()?))) {
        let text = serde_json::to_string_pretty(snapshots).unwrap_or_default();
        let _ = fs::write(folder.join(format!("{scenario}.json")), text);
    }
    if let Some(log) = stage.decisions() {
        let _ = fs::copy(log, folder.join("portcullis-serve.log"));
    }
}
