//! Compares the run of a scenario without portcullis with the run with it.

use crate::normalize;
use crate::runner::Run;
use crate::system::Scenario;

/// The maximum number of additional writes of controllers with portcullis: retries after conflicts, and a dry run, which
/// does not happen without it.
const MAX_ADDITIONAL_WRITES: usize = 60;
/// The maximum number of differences of a failure.
const MAX_DIFFERENCES: usize = 60;

/// Two runs of a scenario.
pub struct Comparison<'a> {
    /// The scenario.
    pub scenario: &'a Scenario,
    /// The run without portcullis.
    pub without: Run,
    /// The run with it.
    pub with: Run,
}

impl Comparison<'_> {
    /// Returns why the scenario failed, or how the runs differ.
    pub fn check(&self) -> Result<(), String> {
        let (without, with) = (self.without.outcome.as_ref()?, self.with.outcome.as_ref()?);
        let mut wrong: Vec<String> = self.unexpected_denials();
        for ((label, before), (again, after)) in without.iter().zip(with) {
            assert_eq!(label, again, "a scenario takes the same snapshots in both modes");
            let differences = normalize::differences(before, after);
            wrong.extend(differences.into_iter().map(|line| format!("{label}: {line}")));
        }
        if self.with.writes.len() > 2 * self.without.writes.len() + MAX_ADDITIONAL_WRITES {
            wrong.push(format!("{} writes instead of {}", self.with.writes.len(), self.without.writes.len()));
        }
        wrong.truncate(MAX_DIFFERENCES);
        if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n")) }
    }

    fn unexpected_denials(&self) -> Vec<String> {
        let denials = || self.with.writes.iter().filter_map(|write| Some((write, write.denied.as_ref()?)));
        let is_expected = |message: &str| self.scenario.denial.is_some_and(|part| message.contains(part));
        let unexpected = denials().filter(|(_, message)| !is_expected(message));
        let mut wrong: Vec<_> =
            unexpected.map(|(write, message)| format!("{} {}: {message}", write.user, write.what)).collect();
        wrong.dedup();
        if let Some(part) = self.scenario.denial.filter(|part| !denials().any(|(_, message)| message.contains(part))) {
            wrong.push(format!("no controller was denied anything with {part:?}"));
        }
        wrong
    }

    /// Returns the number of denied writes of controllers.
    pub fn denied(&self) -> usize {
        self.with.writes.iter().filter(|write| write.denied.is_some()).count()
    }

    /// Returns how much longer all deletions of controllers take together, in milliseconds.
    pub fn added_to_deletions(&self) -> f64 {
        deletions(&self.with) - deletions(&self.without)
    }

    /// Returns the additional mean duration of a controller's write, in milliseconds.
    pub fn added_latency(&self) -> f64 {
        mean(&self.with) - mean(&self.without)
    }
}

/// Returns the duration of all deletions together, in milliseconds.
fn deletions(run: &Run) -> f64 {
    let deletions = run.writes.iter().filter(|write| write.what.starts_with("delete "));
    let sum: i128 = deletions.map(|write| write.micros).sum();
    #[allow(clippy::cast_precision_loss, reason = "it is printed with one digit")]
    let sum = sum as f64 / 1000.0;
    sum
}

/// Returns the mean duration of a write, in milliseconds.
fn mean(run: &Run) -> f64 {
    let sum: i128 = run.writes.iter().map(|write| write.micros).sum();
    #[allow(clippy::cast_precision_loss, reason = "it is printed with one digit")]
    let mean = sum as f64 / run.writes.len().max(1) as f64 / 1000.0;
    mean
}
