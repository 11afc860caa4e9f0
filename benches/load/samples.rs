//! The outcomes of requests.

use std::time::Duration;

/// The outcome of one request.
#[derive(Debug, Clone, Copy)]
pub struct Sample {
    /// The scheduled time of the request, measured from the start of the schedule.
    pub at: Duration,
    /// The latency: the time from the scheduled time of the request to the end of the response.
    pub took: Duration,
    /// The status of the answer; 0 if there was no answer.
    pub status: u16,
}

/// The outcomes of the requests of one schedule.
#[derive(Debug, Default)]
pub struct Samples {
    pub all: Vec<Sample>,
    /// The time during which the client sent requests.
    pub time: Duration,
}

impl Samples {
    pub fn with(&self, status: u16) -> impl Iterator<Item = &Sample> {
        self.all.iter().filter(move |sample| sample.status == status)
    }

    pub fn count(&self, status: u16) -> usize {
        self.with(status).count()
    }

    /// Returns the number of failed requests. All requests failed that were not answered with status 200 (a decision)
    /// or 429 (a rejection).
    pub fn failed(&self) -> usize {
        self.all.len() - self.count(200) - self.count(429)
    }

    pub fn per_second(&self, count: usize) -> f64 {
        count as f64 / self.time.as_secs_f64()
    }

    /// Returns the quantile `part` (0 to 1) of the latency of the requests with this status.
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
