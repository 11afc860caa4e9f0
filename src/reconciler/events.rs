//! Publishes Events on objects. The crate `kube` aggregates repeated Events, and this module limits the rate of Events.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use k8s_openapi::api::core::v1::ObjectReference;
use kube::Client;
use kube::runtime::events::{Event, EventType, Recorder, Reporter};
use prometheus_client::metrics::counter::Counter;
use serde_json::Value;
use tokio::time::{Instant, timeout};

use super::permission::Permission;
use crate::admission::Metadata;

/// The name of the reporting controller in every Event, as in its field `reportingController`.
const REPORTER: &str = "portcullis.dev/companion";
/// Maximum number of Events that are published in quick succession, before the rate limit applies. If a large dry run
/// fails for all objects, only its first failures are reported.
const BURST: u32 = 100;
/// Maximum sustained rate of Events per minute, so that Events do not burden the API server.
const PER_MINUTE: u32 = 60;
/// Maximum number of different Event messages for which repetitions are counted, to bound the memory of the counters.
/// If it is reached, the counting of all messages starts again.
const MAX_NOTES: usize = 1000;
/// Maximum length of the text of an Event (its field `note`), in bytes. The API server accepts 1 KiB.
const MAX_NOTE_BYTES: usize = 1000;
/// Timeout for publishing an Event.
const PUBLISH_TIMEOUT: Duration = Duration::from_secs(5);

/// The permission to publish Events.
pub(super) const RIGHT: Permission =
    Permission { group: "events.k8s.io", resources: &["events"], names: &[], verbs: &["create", "patch"] };

/// A publisher of Events about objects, with a rate limit.
pub struct Events {
    client: Client,
    reporter: Reporter,
    recorders: Mutex<HashMap<String, Recorder>>,
    budget: Mutex<Budget>,
    dropped: Counter,
}

/// The type of an Event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Severity {
    /// The Event is informational.
    Normal,
    /// The Event requires attention.
    Warning,
}

impl Events {
    /// Creates a publisher of Events. `instance` identifies this replica in the Events. `dropped` counts the Events
    /// that are not published because of the rate limit.
    pub fn new(client: Client, instance: &str, dropped: Counter) -> Self {
        let reporter = Reporter { controller: REPORTER.to_owned(), instance: Some(instance.to_owned()) };
        let budget = Mutex::new(Budget::new(Instant::now()));
        Self { client, reporter, recorders: Mutex::default(), budget, dropped }
    }

    /// Publishes an Event on an object, unless the rate limit is exceeded. `reason` is one word, such as
    /// `DryRunSucceeded`. `action` is what the controller did, such as `DryRun`. `note` is the message for people.
    pub async fn publish(&self, object: &Value, severity: Severity, reason: &str, action: &str, note: &str) {
        let has_room = self.budget.lock().unwrap_or_else(PoisonError::into_inner).take(Instant::now());
        if !has_room {
            self.dropped.inc();
            return;
        }
        let type_ = match severity {
            Severity::Normal => EventType::Normal,
            Severity::Warning => EventType::Warning,
        };
        let recorder = self.recorder(note);
        let note = Some(shortened(note));
        let event = Event { type_, reason: reason.to_owned(), note, action: action.to_owned(), secondary: None };
        match timeout(PUBLISH_TIMEOUT, recorder.publish(&event, &reference(object))).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::debug!(%error, reason, "an event was not published"),
            Err(_) => tracing::debug!(reason, "an event was not published in time"),
        }
    }

    /// Returns the recorder for Events with the message `note`. Each message has its own recorder. Otherwise, a
    /// recorder would count Events with the same object and reason as repetitions, even if their messages differ.
    fn recorder(&self, note: &str) -> Recorder {
        let mut recorders = self.recorders.lock().unwrap_or_else(PoisonError::into_inner);
        if recorders.len() >= MAX_NOTES && !recorders.contains_key(note) {
            recorders.clear();
        }
        let new = || Recorder::new(self.client.clone(), self.reporter.clone());
        recorders.entry(note.to_owned()).or_insert_with(new).clone()
    }
}

fn reference(object: &Value) -> ObjectReference {
    let text = |key| object.get(key).and_then(Value::as_str).map(str::to_owned);
    let metadata = Metadata::of(object);
    let named = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
    ObjectReference {
        api_version: text("apiVersion"),
        kind: text("kind"),
        name: named(metadata.name()),
        namespace: named(metadata.namespace()),
        uid: metadata.uid().map(str::to_owned),
        // Without the resourceVersion, so that repeated Events on an object are aggregated across its versions.
        resource_version: None,
        field_path: None,
    }
}

fn shortened(note: &str) -> String {
    if note.len() <= MAX_NOTE_BYTES {
        return note.to_owned();
    }
    let end = (0..=MAX_NOTE_BYTES).rev().find(|at| note.is_char_boundary(*at)).unwrap_or_default();
    format!("{}…", note.get(..end).unwrap_or_default())
}

/// A token bucket that limits the rate of Events.
struct Budget {
    left: u32,
    since: Instant,
}

impl Budget {
    fn new(now: Instant) -> Self {
        Self { left: BURST, since: now }
    }

    fn take(&mut self, now: Instant) -> bool {
        let every = Duration::from_secs(60) / PER_MINUTE;
        let earned = now.saturating_duration_since(self.since).as_millis() / every.as_millis();
        let earned = u32::try_from(earned).unwrap_or(BURST).min(BURST);
        self.since = if earned == BURST { now } else { self.since + every * earned };
        self.left = self.left.saturating_add(earned).min(BURST);
        let has_room = self.left > 0;
        self.left = self.left.saturating_sub(1);
        has_room
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn allows_a_burst_and_then_one_per_second() {
        let begin = Instant::now();
        let mut budget = Budget::new(begin);
        let mut taken = |seconds| (0..1000).filter(|_| budget.take(begin + Duration::from_secs(seconds))).count();
        assert_eq!((taken(0), taken(1), taken(1), taken(4), taken(10_000)), (100, 1, 0, 3, 100));
    }

    #[test]
    fn cuts_notes_at_character_boundaries() {
        let note = shortened(&"ä".repeat(600));
        assert!(note.len() <= 1024 && note.ends_with('…'), "{}", note.len());
    }
}
