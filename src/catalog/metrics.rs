//! Prometheus metrics of the catalog, with the kind of the objects as label.

use std::fmt;
use std::sync::Arc;
use std::time::Instant;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeGaugeValue, EncodeMetric as _};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

use super::freshness::Freshness;
use super::{Catalog, Kind, LiveReader, LiveReading, Reference};

/// Histogram buckets for the duration of reads from the API server, in seconds. The smallest bucket is the latency of
/// the API server's cache. The largest bucket is the longest deadline.
const BUCKETS: [f64; 11] = [1e-3, 2.5e-3, 5e-3, 10e-3, 25e-3, 50e-3, 0.1, 0.25, 1.0, 5.0, 30.0];

/// The result of a live read, which reads one object from the API server.
#[derive(Debug, Clone, Copy)]
enum Outcome {
    Found,
    Gone,
    Failed,
    /// The caller stopped waiting before the API server responded, for example at its deadline.
    Late,
}

impl Outcome {
    const ALL: [(Self, &'static str); 4] =
        [(Self::Found, "found"), (Self::Gone, "gone"), (Self::Failed, "failed"), (Self::Late, "late")];
}

/// Registers the metrics of the catalog, which have the Kubernetes kind as a label. For each kind, they show the number
/// of stored objects, their size in bytes, and how often an object could not be stored. If `freshness` is given, they
/// also show the time since the API server last sent data about the kind.
pub fn show(registry: &mut Registry, catalog: Arc<Catalog>, freshness: Option<Freshness>) {
    registry.register_collector(Box::new(Kinds { catalog, freshness }));
}

/// A collector of metrics per kind. It runs at every scrape, because kinds of composites are added and removed at run
/// time.
struct Kinds {
    catalog: Arc<Catalog>,
    freshness: Option<Freshness>,
}

impl fmt::Debug for Kinds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Kinds").finish_non_exhaustive()
    }
}

impl Kinds {
    fn encode_gauge<V: EncodeGaugeValue>(
        &self,
        encoder: &mut DescriptorEncoder<'_>,
        (name, help): (&str, &str),
        value: impl Fn(&'static Kind) -> Option<V>,
    ) -> fmt::Result {
        let mut family = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
        for kind in self.catalog.kinds().chain(self.catalog.declared()) {
            if let Some(value) = value(kind) {
                let labels = [("kind", kind.full_name())];
                ConstGauge::new(value).encode(family.encode_family(&labels)?)?;
            }
        }
        Ok(())
    }
}

impl Collector for Kinds {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let objects = |kind| i64::try_from(self.catalog.len(kind)).ok();
        self.encode_gauge(&mut encoder, ("catalog_objects", "Objects in the catalog."), objects)?;
        let bytes = |kind| i64::try_from(self.catalog.size(kind).bytes).ok();
        self.encode_gauge(&mut encoder, ("catalog_bytes", "Bytes that objects and their indexes take."), bytes)?;
        let rejected = |kind| i64::try_from(self.catalog.rejected(kind)).ok().filter(|count| *count > 0);
        let help = "Times that an object was not stored because it could not be decoded.";
        self.encode_gauge(&mut encoder, ("catalog_undecodable", help), rejected)?;
        let Some(freshness) = &self.freshness else { return Ok(()) };
        let age = |kind: &'static Kind| freshness.age(kind).map(|age| age.as_secs_f64());
        let help = "Seconds since the last event of a kind, bookmarks included.";
        self.encode_gauge(&mut encoder, ("catalog_silence_seconds", help), age)
    }
}

/// A reader of objects from the API server. It forwards each read to another reader, counts the reads, and measures
/// their duration.
pub struct Counted<C> {
    reads: C,
    results: [Counter; 4],
    duration: Histogram,
}

impl<C: LiveReader> Counted<C> {
    /// Wraps the reader `reads`, and registers its metrics.
    pub fn new(reads: C, registry: &mut Registry) -> Self {
        let family: Family<[(&'static str, &'static str); 1], Counter> = Family::default();
        let help = "Live reads of objects, because a stale answer would be unsafe";
        registry.register("confirmed_reads", help, family.clone());
        let duration = Histogram::new(BUCKETS);
        registry.register("confirmed_read_duration_seconds", "Duration of a live read", duration.clone());
        let results = Outcome::ALL.map(|(_, word)| family.get_or_create_owned(&[("result", word)]));
        Self { reads, results, duration }
    }
}

impl<C: LiveReader> LiveReader for Counted<C> {
    fn read<'a>(&'a self, reference: &'a Reference) -> LiveReading<'a> {
        Box::pin(async move {
            let mut pending = Pending { results: &self.results, outcome: Outcome::Late };
            let began = Instant::now();
            let answer = self.reads.read(reference).await;
            self.duration.observe(began.elapsed().as_secs_f64());
            pending.outcome = match &answer {
                Ok(Some(_)) => Outcome::Found,
                Ok(None) => Outcome::Gone,
                Err(_) => Outcome::Failed,
            };
            answer
        })
    }
}

/// A drop guard that counts a read from the API server when the guard is dropped. So a read is counted even if its
/// caller stopped waiting.
struct Pending<'c> {
    results: &'c [Counter; 4],
    outcome: Outcome,
}

impl Drop for Pending<'_> {
    fn drop(&mut self) {
        self.results[self.outcome as usize].inc();
    }
}
