//! The outcomes of requests.

use std::time::Duration;

/// One request.
#[derive(Debug, Clone, Copy)]
pub struct Sample {
    /// When it stood in the timetable, from its beginning.
    pub at: Duration,
    /// From then to the end of its answer.
    pub took: Duration,
    /// The status of the answer; 0 for none.
    pub status: u16,
}

/// Requests of one timetable.
#[derive(Debug, Default)]
pub struct Samples {
    pub all: Vec<Sample>,
    /// How long the timetable was.
    pub time: Duration,
}

impl Samples {
    pub fn with(&self, status: u16) -> impl Iterator<Item = &Sample> {
        self.all.iter().filter(move |sample| sample.status == status)
    }

    pub fn count(&self, status: u16) -> usize {
        self.with(status).count()
    }

    /// Requests that got neither a decision nor a 429.
    pub fn failed(&self) -> usize {
        self.all.len() - self.count(200) - self.count(429)
    }

    pub fn per_second(&self, count: usize) -> f64 {
        count as f64 / self.time.as_secs_f64()
    }

    /// Returns a quantile of the latency of requests with this status.
    pub fn quantile(&self, status: u16, part: f64) -> Duration {
        let mut took: Vec<_> = self.with(status).map(|sample| sample.took).collect();
        took.sort_unstable();
        let last = took.len().saturating_sub(1);
        took.get((last as f64 * part).ceil() as usize).copied().unwrap_or_default()
    }

    pub fn merge(&mut self, more: Self) {
        self.all.extend(more.all);
        self.time += more.time;
    }
}

/// Formats a duration in milliseconds.
pub fn millis(time: Duration) -> String {
    format!("{:.2} ms", time.as_secs_f64() * 1e3)
}
