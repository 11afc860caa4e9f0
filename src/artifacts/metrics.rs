//! Metrics of the artifact cache.

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

/// Prometheus metrics of the artifact cache. They count downloads of Flux artifacts, and checks of the kustomizations
/// in these artifacts. They also show the size of the cached artifacts, in bytes.
#[derive(Debug, Clone, Default)]
pub struct Metrics {
    fetches: Family<[(&'static str, &'static str); 1], Counter>,
    verdicts: Family<[(&'static str, &'static str); 1], Counter>,
    bytes: Gauge,
}

const FETCHES: [&str; 2] = ["failed", "fetched"];
const VERDICTS: [&str; 2] = ["kept", "judged"];

impl Metrics {
    /// Creates the metrics and adds them to `registry`.
    pub fn register(registry: &mut Registry) -> Self {
        let metrics = Self::default();
        registry.register("artifact_fetches", "Fetches of artifacts, by outcome", metrics.fetches.clone());
        registry.register("tree_verdicts", "Check results of trees, cached or computed", metrics.verdicts.clone());
        registry.register("artifact_bytes", "Bytes of the cached trees", metrics.bytes.clone());
        FETCHES.iter().for_each(|result| drop(metrics.fetches.get_or_create(&[("result", result)])));
        VERDICTS.iter().for_each(|from| drop(metrics.verdicts.get_or_create(&[("from", from)])));
        metrics
    }

    pub(super) fn fetched(&self, well: bool) {
        self.fetches.get_or_create(&[("result", FETCHES[usize::from(well)])]).inc();
    }

    pub(super) fn verdict_kept(&self) {
        self.verdicts.get_or_create(&[("from", VERDICTS[0])]).inc();
    }

    pub(super) fn judged(&self) {
        self.verdicts.get_or_create(&[("from", VERDICTS[1])]).inc();
    }

    pub(super) fn trees_weigh(&self, bytes: u64) {
        self.bytes.set(i64::try_from(bytes).unwrap_or(i64::MAX));
    }
}
