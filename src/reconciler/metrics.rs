//! Prometheus metrics of the controller manager. The label `controller` of a metric contains the name of a controller.
//! All controllers are registered when the process starts, so the number of time series is limited.

use std::time::Duration;

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

use super::{Failure, Next};

/// Histogram buckets of the duration of a reconciliation, in seconds. The smallest bucket is for a reconciliation that
/// only looks objects up in the catalog.
const BUCKETS: [f64; 9] = [1e-3, 5e-3, 10e-3, 50e-3, 0.1, 0.5, 1.0, 5.0, 30.0];

type Label = [(&'static str, &'static str); 1];
type Labels = [(&'static str, &'static str); 2];

/// The metrics of the controller manager.
#[derive(Clone)]
pub struct Metrics {
    leading: Gauge,
    terms: Counter,
    events_dropped: Counter,
    depth: Family<Label, Gauge>,
    reconciled: Family<Labels, Counter>,
    duration: Family<Label, Histogram, fn() -> Histogram>,
}

impl Metrics {
    /// Registers the metrics of the controller manager.
    pub fn register(registry: &mut Registry) -> Self {
        let registry = registry.sub_registry_with_prefix("companion");
        let metrics = Self {
            leading: Gauge::default(),
            terms: Counter::default(),
            events_dropped: Counter::default(),
            depth: Family::default(),
            reconciled: Family::default(),
            duration: Family::new_with_constructor(|| Histogram::new(BUCKETS)),
        };
        registry.register("leading", "Whether this replica leads", metrics.leading.clone());
        registry.register("terms", "Number of times this replica became the leader", metrics.terms.clone());
        registry.register(
            "events_dropped",
            "Events over the rate limit, which were not published",
            metrics.events_dropped.clone(),
        );
        registry.register("queue_depth", "Objects in the queue", metrics.depth.clone());
        registry.register("reconciled", "Reconciliations, by outcome", metrics.reconciled.clone());
        registry.register("reconcile_duration_seconds", "Duration of a reconciliation", metrics.duration.clone());
        metrics
    }

    /// Creates the metrics of a controller with value 0, so that they exist before its first reconciliation.
    pub fn initialize(&self, controller: &'static str) {
        drop(self.depth.get_or_create(&[("controller", controller)]));
        drop(self.duration.get_or_create(&[("controller", controller)]));
        for outcome in ["done", "again", "conflict", "panic", "failure"] {
            drop(self.reconciled.get_or_create(&[("controller", controller), ("outcome", outcome)]));
        }
    }

    /// Returns the counter of Events that were not published because of the rate limit.
    pub fn events_dropped(&self) -> Counter {
        self.events_dropped.clone()
    }

    pub(super) fn leading(&self, leads: bool) {
        self.leading.set(i64::from(leads));
        self.terms.inc_by(u64::from(leads));
    }

    pub(super) fn depth(&self, controller: &'static str, depth: usize) {
        let depth = i64::try_from(depth).unwrap_or(i64::MAX);
        self.depth.get_or_create(&[("controller", controller)]).set(depth);
    }

    pub(super) fn reconciled(&self, controller: &'static str, outcome: &Result<Next, Failure>, took: Duration) {
        let outcome = match outcome {
            Ok(Next::Done) => "done",
            Ok(Next::Again(_)) => "again",
            Err(Failure::Conflict) => "conflict",
            Err(Failure::Panicked) => "panic",
            Err(_) => "failure",
        };
        self.reconciled.get_or_create(&[("controller", controller), ("outcome", outcome)]).inc();
        self.duration.get_or_create(&[("controller", controller)]).observe(took.as_secs_f64());
    }
}
