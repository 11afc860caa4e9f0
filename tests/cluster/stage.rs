//! The stage of the scenarios: the node, a shell, and the streams of writes.

use std::thread::sleep;
use std::time::{Duration, Instant};

use tokio::runtime::Runtime;

use crate::documentation::{Answer, Shell};
use crate::node::Node;
use crate::streams::{Counts, Streams};

/// Interval for polling.
const PAUSE: Duration = Duration::from_millis(200);
/// Writes before a scenario begins and after it has ended.
const AROUND: usize = 40;
/// Longest wait for these writes, which the API server may not answer.
const AROUND_LIMIT: Duration = Duration::from_mins(1);

/// The stage of all scenarios.
pub struct Stage {
    /// The node.
    pub node: Node,
    /// A user's shell.
    pub shell: Shell,
    runtime: Runtime,
}

/// A scenario of the suite.
pub struct Scenario {
    /// The name, for filters.
    pub name: &'static str,
    /// The words of the table.
    pub words: &'static str,
    /// What the writes show.
    pub expected: Expected,
    /// What happens. It leaves the release installed as it found it.
    pub run: fn(&mut Stage) -> Result<(), String>,
}

/// What the writes during a scenario must show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expected {
    /// There are no writes.
    NoWrites,
    /// Every write is answered and checked.
    EveryWriteIsChecked,
    /// Every write is answered; it need not be checked, because the scenario removes the webhooks.
    EveryWriteIsAnswered,
    /// Writes may fail until a killed process is replaced.
    FailuresOfKilledProcesses,
}

/// The result of a scenario.
pub struct Row {
    /// The scenario.
    pub scenario: &'static Scenario,
    /// How long it took.
    pub took: Duration,
    /// The counts of both streams: fail closed, fail open.
    pub counts: Option<[Counts; 2]>,
    /// Why it failed.
    pub failure: Option<String>,
}

impl Stage {
    /// Sets the stage up on a node.
    pub fn new(node: Node) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
        Self { shell: Shell::open(&node), node, runtime: runtime.expect("a runtime starts") }
    }

    /// Runs a scenario.
    pub fn play(&mut self, scenario: &'static Scenario) -> Row {
        let start = Instant::now();
        if scenario.expected == Expected::NoWrites {
            let failure = (scenario.run)(self).err();
            return Row { scenario, took: start.elapsed(), counts: None, failure };
        }
        let streams = Streams::start(&self.node, &self.runtime);
        streams.wait_for(AROUND, AROUND_LIMIT);
        let result = (scenario.run)(self);
        streams.wait_for(AROUND, AROUND_LIMIT);
        let counts = streams.stop(&self.runtime);
        let failure = result.err().or_else(|| scenario.expected.violated(&counts));
        Row { scenario, took: start.elapsed(), counts: Some(counts), failure }
    }

    /// Runs a command of a user, which must succeed. Returns its output.
    ///
    /// # Errors
    /// If it fails, with its output.
    pub fn succeed(&self, command: &str) -> Result<String, String> {
        self.shell.run(command).success()
    }

    /// Waits until a command's answer is as wanted.
    ///
    /// # Errors
    /// If it is not within the limit, with the last answer.
    pub fn until(&self, limit: Duration, command: &str, is_so: impl Fn(&Answer) -> bool) -> Result<String, String> {
        let start = Instant::now();
        loop {
            let answer = self.shell.run(command);
            if is_so(&answer) {
                return Ok(answer.text);
            }
            if start.elapsed() > limit {
                return Err(format!("not within {limit:?}: $ {command}\n{}", answer.text));
            }
            sleep(PAUSE);
        }
    }
}

impl Expected {
    /// Returns what the counts violate.
    fn violated(self, [closed, open]: &[Counts; 2]) -> Option<String> {
        let failed = closed.failed + open.failed;
        let unchecked = closed.unchecked + open.unchecked;
        let is_violated = match self {
            Self::NoWrites | Self::FailuresOfKilledProcesses => false,
            Self::EveryWriteIsChecked => failed + unchecked > 0,
            Self::EveryWriteIsAnswered => failed > 0,
        };
        let shown = || closed.shown.iter().chain(&open.shown).cloned().collect::<Vec<_>>().join("\n");
        let too_few = closed.writes.min(open.writes) < AROUND;
        let few = || format!("only {} and {} writes were answered", closed.writes, open.writes);
        (self != Self::NoWrites && too_few).then(few).or_else(|| {
            is_violated.then(|| format!("{failed} writes failed, {unchecked} were not checked\n{}", shown()))
        })
    }
}
