//! Compares two runs of a scenario: one without portcullis, and one with portcullis.

use crate::normalize;
use crate::runner::Run;
use crate::system::Scenario;

/// Number of writes by which the run with portcullis may exceed twice the writes of the run without portcullis. The
/// run with portcullis has more writes, because only this run includes dry runs. Retries after conflicts can add more.
const MAX_ADDITIONAL_WRITES: usize = 60;
/// Maximum number of differences that the error message of a scenario lists.
const MAX_DIFFERENCES: usize = 60;

/// The results of two runs of a scenario, without and with portcullis.
pub struct Comparison<'a> {
    pub scenario: &'a Scenario,
    /// The run without portcullis.
    pub without: Run,
    /// The run with portcullis. With the option `--control`, it is a second run without portcullis.
    pub with: Run,
}

impl Comparison<'_> {
    /// Compares the run without portcullis with the run with portcullis. Checks that:
    ///
    /// - both runs succeeded
    /// - both runs have equal snapshots of the objects in the cluster
    /// - portcullis denied the writes that the scenario expects to be denied, and no others
    /// - the controllers did not make too many additional writes
    ///
    /// # Errors
    ///
    /// If one of the checks fails. The error lists the differences.
    pub fn check(&self) -> Result<(), String> {
        let (without, with) = (self.without.outcome.as_ref()?, self.with.outcome.as_ref()?);
        let mut problems: Vec<String> = self.unexpected_denials();
        for ((label, before), (again, after)) in without.iter().zip(with) {
            assert_eq!(label, again, "a scenario takes the same snapshots in both modes");
            let differences = normalize::differences(before, after);
            problems.extend(differences.into_iter().map(|line| format!("{label}: {line}")));
        }
        if self.with.writes.len() > 2 * self.without.writes.len() + MAX_ADDITIONAL_WRITES {
            problems.push(format!("{} writes instead of {}", self.with.writes.len(), self.without.writes.len()));
        }
        problems.truncate(MAX_DIFFERENCES);
        if problems.is_empty() { Ok(()) } else { Err(problems.join("\n")) }
    }

    fn unexpected_denials(&self) -> Vec<String> {
        let denials = || self.with.writes.iter().filter_map(|write| Some((write, write.denied.as_ref()?)));
        let is_expected = |message: &str| self.scenario.denial.is_some_and(|part| message.contains(part));
        let unexpected = denials().filter(|(_, message)| !is_expected(message));
        let mut problems: Vec<_> =
            unexpected.map(|(write, message)| format!("{} {}: {message}", write.user, write.action)).collect();
        problems.dedup();
        if let Some(part) = self.scenario.denial.filter(|part| !denials().any(|(_, message)| message.contains(part))) {
            problems.push(format!("no controller was denied anything with {part:?}"));
        }
        problems
    }

    /// Returns how many writes by controllers were denied in the run with portcullis.
    pub fn denied(&self) -> usize {
        self.with.writes.iter().filter(|write| write.denied.is_some()).count()
    }

    /// Returns how much longer all deletions by controllers took in the run with portcullis than in the run without, in
    /// milliseconds.
    pub fn added_deletion_time(&self) -> f64 {
        deletions(&self.with) - deletions(&self.without)
    }

    /// Returns how much longer a write by a controller took on average in the run with portcullis than in the run
    /// without, in milliseconds.
    pub fn added_latency(&self) -> f64 {
        mean(&self.with) - mean(&self.without)
    }
}

/// Returns the total duration of all deletions by controllers, in milliseconds.
fn deletions(run: &Run) -> f64 {
    let deletions = run.writes.iter().filter(|write| write.action.starts_with("delete "));
    let sum: i128 = deletions.map(|write| write.micros).sum();
    #[allow(clippy::cast_precision_loss, reason = "it is printed with one digit")]
    let sum = sum as f64 / 1000.0;
    sum
}

/// Returns the mean duration of a write by a controller, in milliseconds.
fn mean(run: &Run) -> f64 {
    let sum: i128 = run.writes.iter().map(|write| write.micros).sum();
    #[allow(clippy::cast_precision_loss, reason = "it is printed with one digit")]
    let mean = sum as f64 / run.writes.len().max(1) as f64 / 1000.0;
    mean
}
