//! Whether a scenario ended alike without and with portcullis.

use crate::normal;
use crate::play::Played;
use crate::system::Scenario;

/// How many more writes of controllers there may be with portcullis: retries after conflicts, and a dry run, which is not
/// played without it.
const MORE_WRITES: usize = 60;
const SHOWN: usize = 60;

/// A scenario, played twice.
pub struct Pair<'a> {
    /// The scenario.
    pub scenario: &'a Scenario,
    /// Without portcullis.
    pub without: Played,
    /// With it.
    pub with: Played,
}

impl Pair<'_> {
    /// Returns why it did not end as it should.
    pub fn judge(&self) -> Result<(), String> {
        let (without, with) = (self.without.outcome.as_ref()?, self.with.outcome.as_ref()?);
        let mut wrong: Vec<String> = self.unexpected_denials();
        for ((label, before), (again, after)) in without.iter().zip(with) {
            assert_eq!(label, again, "a scenario takes the same snapshots in both modes");
            let differences = normal::differences(before, after);
            wrong.extend(differences.into_iter().map(|line| format!("{label}: {line}")));
        }
        if self.with.writes.len() > 2 * self.without.writes.len() + MORE_WRITES {
            wrong.push(format!("{} writes instead of {}", self.with.writes.len(), self.without.writes.len()));
        }
        wrong.truncate(SHOWN);
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

    /// Returns how many of the controllers' writes were denied.
    pub fn denied(&self) -> usize {
        self.with.writes.iter().filter(|write| write.denied.is_some()).count()
    }

    /// Returns by how many milliseconds a controller's write took longer on average.
    pub fn added_latency(&self) -> f64 {
        mean(&self.with) - mean(&self.without)
    }
}

fn mean(played: &Played) -> f64 {
    let sum: i128 = played.writes.iter().map(|write| write.micros).sum();
    #[allow(clippy::cast_precision_loss, reason = "it is shown with one digit")]
    let mean = sum as f64 / played.writes.len().max(1) as f64 / 1000.0;
    mean
}
