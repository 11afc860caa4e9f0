//! Prometheus metrics of `portcullis serve --record`, which records admission decisions and their inputs in a file.

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::Registry;

/// Counters of the bytes that were written to the recording, and of the changes and decisions that are missing in the
/// recording.
#[derive(Debug, Clone)]
pub struct Metrics {
    pub(super) bytes: Counter,
    pub(super) dropped: [Counter; 2],
}

impl Metrics {
    /// Creates the metrics and adds them to `registry`.
    pub fn register(registry: &mut Registry) -> Self {
        let bytes = Counter::default();
        registry.register("recorded_bytes", "Bytes written to the recording", bytes.clone());
        let dropped: Family<[(&'static str, &'static str); 1], Counter> = Family::default();
        let help = "Changes and decisions that are missing in the recording, because the queue was full";
        registry.register("recording_dropped", help, dropped.clone());
        let dropped = ["change", "decision"].map(|entry| dropped.get_or_create_owned(&[("entry", entry)]));
        Self { bytes, dropped }
    }
}
