//! Metrics of periodic audits.

use std::time::Duration;

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use time::OffsetDateTime;

use super::Audited;

type Label = [(&'static str, &'static str); 1];
type Labels = [(&'static str, &'static str); 2];

/// The metrics of periodic audits: runs, duration, objects and findings.
#[derive(Clone, Default)]
pub struct Metrics {
    runs: Family<Label, Counter>,
    last_run: Gauge,
    seconds: Gauge,
    objects: Gauge,
    unread: Gauge,
    findings: Family<Labels, Gauge>,
}

impl Metrics {
    /// Creates the metrics and adds them to `registry`, with the prefix `audit_`.
    pub fn register(registry: &mut Registry) -> Self {
        let registry = registry.sub_registry_with_prefix("audit");
        let metrics = Self::default();
        registry.register("runs", "Audits, by outcome", metrics.runs.clone());
        registry.register(
            "last_run_timestamp_seconds",
            "When the last successful audit ended, in seconds since 1970",
            metrics.last_run.clone(),
        );
        registry.register("last_run_seconds", "Duration of the last audit", metrics.seconds.clone());
        registry.register("objects", "Objects checked by the last audit", metrics.objects.clone());
        registry.register("unread_kinds", "Kinds that the last audit could not read", metrics.unread.clone());
        registry.register("findings", "Findings of the last audit, by rule and outcome", metrics.findings.clone());
        metrics
    }

    /// Records a completed audit.
    pub fn done(&self, audited: &Audited, took: Duration) {
        self.runs.get_or_create(&[("result", "done")]).inc();
        self.last_run.set(OffsetDateTime::now_utc().unix_timestamp());
        self.seconds.set(i64::try_from(took.as_secs()).unwrap_or(i64::MAX));
        self.objects.set(number(audited.objects));
        self.unread.set(number(audited.unread.len()));
        self.found(audited);
    }

    /// Sets the metric `portcullis_audit_findings` to the number of findings in `audited`, by rule and outcome. Leaves
    /// the other audit metrics unchanged. After a partial audit of a few changed objects, call this function instead of
    /// `done`. `audited` must then still contain the findings of all other objects.
    pub fn found(&self, audited: &Audited) {
        self.findings.clear();
        for entry in &audited.entries {
            self.findings.get_or_create(&[("rule", entry.rule), ("outcome", entry.outcome().as_str())]).inc();
        }
    }

    /// Counts a failed run. A run fails if the audit fails, or if its reports cannot be written.
    pub fn failed(&self) {
        self.runs.get_or_create(&[("result", "failed")]).inc();
    }
}

fn number(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}
