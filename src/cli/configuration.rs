//! Following the configuration file while a command runs.
//!
//! One that cannot be used changes nothing: the last good one holds, and `/readyz`, the metrics and the log say what is wrong
//! until it is mended. A replica that starts with it, though, does not start.

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

/// How often the file is looked at, and whether an exemption has expired, besides when its folder tells of a change.
const POLL: Duration = Duration::from_secs(5);
/// Expired exemptions that `/readyz` names; the log names all.
const NAMED: usize = 3;

/// What is counted of the configuration.
pub(super) struct Metrics {
    reloads: [Counter; 2],
    last_success: Gauge,
    exemptions: [Gauge; 2],
}

impl Metrics {
    /// Registers them.
    pub(super) fn register(registry: &mut Registry) -> Self {
        let reloads: Family<[(&'static str, &'static str); 1], Counter> = Family::default();
        let exemptions: Family<[(&'static str, &'static str); 1], Gauge> = Family::default();
        let last_success = Gauge::default();
        registry.register("configuration_reloads", "Changes of the configuration file seen", reloads.clone());
        registry.register(
            "configuration_last_success_timestamp_seconds",
            "When the configuration file was last read without an error, in seconds since 1970",
            last_success.clone(),
        );
        registry.register("exemptions", "Exemptions, by whether they still hold", exemptions.clone());
        Self {
            reloads: ["loaded", "failed"].map(|result| reloads.get_or_create_owned(&[("result", result)])),
            last_success,
            exemptions: ["active", "expired"].map(|state| exemptions.get_or_create_owned(&[("state", state)])),
        }
    }
}

/// Keeps a gate's policy as its file is.
pub(super) struct Configuration {
    path: PathBuf,
    gate: Arc<Gate>,
    condition: Condition,
    metrics: Metrics,
    recorder: Option<Arc<Recorder>>,
    /// What stood in the file when it was last looked at; nothing where it could not be read.
    seen: Option<Option<Vec<u8>>>,
    /// Why the file as it stands is not used.
    problem: Option<String>,
    /// The expired exemptions that were told of.
    told: HashSet<String>,
}

impl Configuration {
    /// Of a file that `gate` decides by already.
    pub(super) fn new(path: PathBuf, gate: Arc<Gate>, condition: Condition, metrics: Metrics) -> Self {
        let (recorder, seen, problem, told) = (None, None, None, HashSet::new());
        Self { path, gate, condition, metrics, recorder, seen, problem, told }
    }

    /// The same, and changes of the file are recorded.
    pub(super) fn recorded(self, recorder: Option<Arc<Recorder>>) -> Self {
        Self { recorder, ..self }
    }

    /// Follows it for ever.
    pub(super) async fn follow(mut self) {
        let folder = self.path.parent().filter(|parent| !parent.as_os_str().is_empty());
        let changes = Changes::of(folder.unwrap_or(Path::new(".")), POLL);
        loop {
            self.look();
            changes.next().await;
        }
    }

    fn look(&mut self) {
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
                // What was read at the start is not read again, but where it changed since.
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
                tracing::error!(%error, "configuration not reloaded: the one from before holds");
                self.problem = Some(error.to_string());
            }
        }
    }

    /// The exemptions that no longer hold; each is told of once.
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
            if self.told.insert(exemption.clone()) {
                tracing::warn!(%exemption, "an exemption has expired: what it let through is refused again");
            }
        }
        self.told.retain(|told| expired.contains(told));
        expired
    }
}

fn described(exemption: &Exemption) -> String {
    let until = exemption.until.and_then(|until| until.format(&Rfc3339).ok()).unwrap_or_default();
    format!("{} in {} until {until}", exemption.rule, exemption.namespaces.join(", "))
}

/// What whoever asks `/readyz` should know.
fn note(problem: Option<&str>, expired: &[String]) -> Option<String> {
    let problem = problem.map(|problem| {
        let line = problem.split_whitespace().collect::<Vec<_>>().join(" ");
        format!("the file as it stands cannot be used, and the one from before holds: {line}")
    });
    let named = expired.iter().take(NAMED).map(String::as_str).collect::<Vec<_>>().join("; ");
    let more = expired.len().saturating_sub(NAMED);
    let more = if more == 0 { String::new() } else { format!("; and {more} more") };
    let expired = (!expired.is_empty()).then(|| format!("exemptions have expired: {named}{more}"));
    let parts: Vec<_> = problem.into_iter().chain(expired).collect();
    (!parts.is_empty()).then(|| parts.join(". And "))
}
