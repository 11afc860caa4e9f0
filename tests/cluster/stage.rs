//! Runs scenarios on the node, and checks the results of the writes during each scenario.

use std::thread::sleep;
use std::time::{Duration, Instant};

use tokio::runtime::Runtime;

use crate::documentation::{Answer, Shell};
use crate::node::Node;
use crate::streams::{Counts, Streams};

/// Time between two runs of a command in [`TestEnvironment::wait_until`].
const PAUSE: Duration = Duration::from_millis(200);
/// Minimum number of test writes before and after a scenario. There are two streams of writes. Each stream makes this
/// number of writes before the scenario starts, and the same number after its end. The scenario fails if, in one of the
/// streams, fewer writes than this number are answered in total.
const MIN_WRITES: usize = 40;
/// Maximum time to wait for [`MIN_WRITES`] writes, both before and after a scenario. The timeout is needed because the
/// API server may not answer the writes.
const MIN_WRITES_TIMEOUT: Duration = Duration::from_mins(1);

/// The environment of the scenarios: the node, a shell, and the Tokio runtime for continuous test writes to the API
/// server.
pub struct TestEnvironment {
    pub node: Node,
    pub shell: Shell,
    runtime: Runtime,
}

/// A scenario of the suite.
pub struct Scenario {
    /// The name by which command-line arguments select the scenario.
    pub name: &'static str,
    /// The description of the scenario, as printed in a table of docs/reliability.md.
    pub description: &'static str,
    /// The requirement that the results of the writes during the scenario must meet.
    pub expected: Expected,
    /// The function that runs the scenario. The next scenario starts with the state of the cluster that this function
    /// leaves.
    pub run: fn(&mut TestEnvironment) -> Result<(), String>,
}

/// A requirement that the results of the writes during a scenario must meet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expected {
    /// No stream of writes runs during the scenario.
    NoWrites,
    /// Every write succeeds, or a rule denies it. The API server admits no object that a rule denies.
    EveryWriteIsChecked,
    /// Every write succeeds, or a rule denies it. The API server may admit invalid objects, because the scenario
    /// removes the webhooks.
    EveryWriteIsAnswered,
    /// Writes may fail, and the API server may admit invalid objects, because the scenario kills processes.
    FailuresOfKilledProcesses,
}

/// The result of a scenario.
pub struct Row {
    pub scenario: &'static Scenario,
    /// The duration of the scenario, including the writes before and after it.
    pub duration: Duration,
    /// The number of writes of each stream, by outcome. The webhook of the first stream fails closed, and the webhook
    /// of the second stream fails open. `None` if the scenario has no writes.
    pub counts: Option<[Counts; 2]>,
    /// The error message, if the scenario failed.
    pub failure: Option<String>,
}

impl TestEnvironment {
    /// Creates the environment of the scenarios on a running node.
    pub fn new(node: Node) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
        Self { shell: Shell::open(&node), node, runtime: runtime.expect("a runtime starts") }
    }

    /// Runs a scenario, and returns its result. The two streams of writes ([`Streams`]) run during the scenario, unless
    /// `scenario.expected` is [`Expected::NoWrites`].
    pub fn run_scenario(&mut self, scenario: &'static Scenario) -> Row {
        let start = Instant::now();
        if scenario.expected == Expected::NoWrites {
            let failure = (scenario.run)(self).err();
            return Row { scenario, duration: start.elapsed(), counts: None, failure };
        }
        let streams = Streams::start(&self.node, &self.runtime);
        streams.wait_for(MIN_WRITES, MIN_WRITES_TIMEOUT);
        let result = (scenario.run)(self);
        streams.wait_for(MIN_WRITES, MIN_WRITES_TIMEOUT);
        let counts = streams.stop(&self.runtime);
        let failure = result.err().or_else(|| scenario.expected.check_counts(&counts));
        Row { scenario, duration: start.elapsed(), counts: Some(counts), failure }
    }

    /// Runs a shell command, and returns its output.
    ///
    /// # Errors
    /// If the command fails. The error contains its output.
    pub fn succeed(&self, command: &str) -> Result<String, String> {
        self.shell.run(command).success()
    }

    /// Repeats a shell command until `is_expected` returns true for the result of a run. Returns the output of the last
    /// run.
    ///
    /// # Errors
    /// If `is_expected` does not return true within `limit`. The error contains the last output.
    pub fn wait_until(
        &self,
        limit: Duration,
        command: &str,
        is_expected: impl Fn(&Answer) -> bool,
    ) -> Result<String, String> {
        let start = Instant::now();
        loop {
            let answer = self.shell.run(command);
            if is_expected(&answer) {
                return Ok(answer.text);
            }
            if start.elapsed() > limit {
                return Err(format!("no expected output after {limit:?}: $ {command}\n{}", answer.text));
            }
            sleep(PAUSE);
        }
    }
}

impl Expected {
    /// Returns an error message if the outcomes of the writes do not meet this requirement. Except for `NoWrites`, also
    /// returns one if a stream has fewer than [`MIN_WRITES`] answered writes.
    ///
    /// `closed` counts the outcomes in the stream of writes whose webhook has the failure policy `Fail`. `open` counts
    /// those in the stream whose webhook has the failure policy `Ignore`.
    fn check_counts(self, [closed, open]: &[Counts; 2]) -> Option<String> {
        let failed = closed.failed + open.failed;
        let unchecked = closed.unchecked + open.unchecked;
        let is_violated = match self {
            Self::NoWrites | Self::FailuresOfKilledProcesses => false,
            Self::EveryWriteIsChecked => failed + unchecked > 0,
            Self::EveryWriteIsAnswered => failed > 0,
        };
        let shown = || closed.shown.iter().chain(&open.shown).cloned().collect::<Vec<_>>().join("\n");
        let too_few = closed.writes.min(open.writes) < MIN_WRITES;
        let too_few_message = || format!("only {} and {} writes were answered", closed.writes, open.writes);
        (self != Self::NoWrites && too_few).then(too_few_message).or_else(|| {
            is_violated.then(|| format!("{failed} writes failed, {unchecked} were not checked\n{}", shown()))
        })
    }
}
