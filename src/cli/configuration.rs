//! Reloads the configuration file while a command runs.
//!
//! An invalid file changes nothing: the last valid configuration stays in use, and `/readyz`, metrics and log report
//! the problem until it is fixed. A replica that starts with an invalid file fails to start.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use crate::config;
use crate::gate::{Exemption, Gate, Registry as Rules};
use crate::process::{Changes, Condition};
use crate::recording::Recorder;

/// Interval for checking the configuration file and expired exemptions, in addition to file system events.
const POLL: Duration = Duration::from_secs(5);
/// Maximum number of expired exemptions that `/readyz` lists, so that its text stays short. The log lists all of them.
const NAMED: usize = 3;

/// Metrics about the configuration file: its reloads, and its exemptions.
pub(super) struct Metrics {
    reloads: [Counter; 2],
    last_success: Gauge,
    exemptions: [Gauge; 2],
}

impl Metrics {
    /// Registers the metrics about the configuration file.
    pub(super) fn register(registry: &mut Registry) -> Self {
        let reloads: Family<[(&'static str, &'static str); 1], Counter> = Family::default();
        let exemptions: Family<[(&'static str, &'static str); 1], Gauge> = Family::default();
        let last_success = Gauge::default();
        registry.register("configuration_reloads", "Detected changes of the configuration file", reloads.clone());
        registry.register(
            "configuration_last_success_timestamp_seconds",
            "When the configuration file was last read without an error, in seconds since 1970",
            last_success.clone(),
        );
        registry.register("exemptions", "Exemptions, by state", exemptions.clone());
        Self {
            reloads: ["loaded", "failed"].map(|result| reloads.get_or_create_owned(&[("result", result)])),
            last_success,
            exemptions: ["active", "expired"].map(|state| exemptions.get_or_create_owned(&[("state", state)])),
        }
    }
}

/// A watcher that reloads the configuration file whenever it changes. It then updates the policy of the gate, which
/// decides about admission requests.
pub(super) struct Configuration {
    path: PathBuf,
    gate: Arc<Gate>,
    condition: Condition,
    metrics: Metrics,
    recorder: Option<Arc<Recorder>>,
    /// The content of the configuration file at the last check. `None` if there was no check yet. `Some(None)` if the
    /// file could not be read.
    seen: Option<Option<Vec<u8>>>,
    /// The error that prevents the use of the current configuration file. `None` if the file is in use.
    problem: Option<String>,
    /// The expired exemptions that were already logged.
    reported: HashSet<String>,
}

impl Configuration {
    /// Creates the watcher of the configuration file `path`, from which the current policy of `gate` was loaded. The
    /// gate decides about admission requests.
    pub(super) fn new(path: PathBuf, gate: Arc<Gate>, condition: Condition, metrics: Metrics) -> Self {
        let (recorder, seen, problem, reported) = (None, None, None, HashSet::new());
        Self { path, gate, condition, metrics, recorder, seen, problem, reported }
    }

    /// Sets the recorder, to which each change of the configuration file is written.
    pub(super) fn recorded(self, recorder: Option<Arc<Recorder>>) -> Self {
        Self { recorder, ..self }
    }

    /// Reloads the configuration file whenever it changes, and checks for expired exemptions. Never returns.
    pub(super) async fn run(mut self) {
        let folder = self.path.parent().filter(|parent| !parent.as_os_str().is_empty());
        let changes = Changes::of(folder.unwrap_or(Path::new(".")), POLL);
        loop {
            self.check();
            changes.next().await;
        }
    }

    fn check(&mut self) {
        let now = std::fs::read(&self.path).ok();
        if self.seen.as_ref() != Some(&now) {
            self.load(now.as_deref().unwrap_or_default());
            self.seen = Some(now);
        }
        let expired = self.expired();
        self.condition.noted(note(self.problem.as_deref(), &expired));
    }

    fn load(&mut self, text: &[u8]) {
        let path = self.path.display();
        match config::load(&self.path, &Rules::standard()) {
            Ok(policy) => {
                self.problem = None;
                self.metrics.last_success.set(OffsetDateTime::now_utc().unix_timestamp());
                // The gate already has the policy from the start, unless the file has changed since then.
                if self.seen.is_some() || *self.gate.policy() != policy {
                    if let Some(recorder) = &self.recorder {
                        recorder.configured(String::from_utf8_lossy(text).into_owned());
                    }
                    self.gate.set_policy(policy);
                    self.metrics.reloads[0].inc();
                    tracing::info!(%path, "configuration reloaded");
                }
            }
            Err(error) => {
                self.metrics.reloads[1].inc();
                tracing::error!(%error, "configuration not reloaded: the previous one stays in use");
                self.problem = Some(error.to_string());
            }
        }
    }

    /// Returns the expired exemptions, logs each once, and updates the metrics of exemptions.
    fn expired(&mut self) -> Vec<String> {
        let (policy, now) = (self.gate.policy(), OffsetDateTime::now_utc());
        let gone = policy.exemptions.iter().filter(|exemption| exemption.is_expired(now));
        let expired: Vec<String> = gone.map(described).collect();
        for (gauge, count) in
            self.metrics.exemptions.iter().zip([policy.exemptions.len() - expired.len(), expired.len()])
        {
            gauge.set(i64::try_from(count).unwrap_or(i64::MAX));
        }
        for exemption in &expired {
            if self.reported.insert(exemption.clone()) {
                tracing::warn!(%exemption, "an exemption has expired: its rules apply again");
            }
        }
        self.reported.retain(|reported| expired.contains(reported));
        expired
    }
}

fn described(exemption: &Exemption) -> String {
    let until = exemption.until.and_then(|until| until.format(&Rfc3339).ok()).unwrap_or_default();
    format!("{} in {} until {until}", exemption.rule, exemption.namespaces.join(", "))
}

/// Returns a text for `/readyz` about an invalid configuration file and about expired exemptions. `None` if there is
/// neither.
fn note(problem: Option<&str>, expired: &[String]) -> Option<String> {
    let problem = problem.map(|problem| {
        let line = problem.split_whitespace().collect::<Vec<_>>().join(" ");
        format!("the current file is invalid, and the previous configuration stays in use: {line}")
    });
    let named = expired.iter().take(NAMED).map(String::as_str).collect::<Vec<_>>().join("; ");
    let more = expired.len().saturating_sub(NAMED);
    let more = if more == 0 { String::new() } else { format!("; and {more} more") };
    let expired = (!expired.is_empty()).then(|| format!("exemptions have expired: {named}{more}"));
    let parts: Vec<_> = problem.into_iter().chain(expired).collect();
    (!parts.is_empty()).then(|| parts.join(". And "))
}
