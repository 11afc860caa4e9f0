//! Events: where people look for what happened to an object. Aggregated by the client, and bounded here.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use k8s_openapi::api::core::v1::ObjectReference;
use kube::Client;
use kube::runtime::events::{Event, EventType, Recorder, Reporter};
use prometheus_client::metrics::counter::Counter;
use serde_json::Value;
use tokio::time::{Instant, timeout};

use super::Permission;

/// Who says so, in every event.
const REPORTER: &str = "portcullis.dev/companion";
/// Events at once; a large dry run that fails everywhere is told by its first ones.
const BURST: u32 = 100;
/// Events in a minute, for ever.
const PER_MINUTE: u32 = 60;
/// The API server takes 1 KiB.
const LONGEST_NOTE: usize = 1000;
/// An event is not worth waiting for.
const LIMIT: Duration = Duration::from_secs(5);

/// What a controller may do that publishes events.
pub(super) const RIGHT: Permission =
    Permission { group: "events.k8s.io", resources: &["events"], names: &[], verbs: &["create", "patch"] };

/// Publishes events.
pub struct Events {
    recorder: Recorder,
    budget: Mutex<Budget>,
    dropped: Counter,
}

/// How much an event matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Severity {
    /// For those who want to know.
    Normal,
    /// Somebody should look.
    Warning,
}

impl Events {
    /// Publishes as `instance`, and counts in `dropped` what there were too many of.
    pub fn new(client: Client, instance: &str, dropped: Counter) -> Self {
        let reporter = Reporter { controller: REPORTER.to_owned(), instance: Some(instance.to_owned()) };
        Self { recorder: Recorder::new(client, reporter), budget: Mutex::new(Budget::new(Instant::now())), dropped }
    }

    /// Says of an object that `action` was done, or not, for a `reason` in one word; `note` is the sentence for people.
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
        let note = Some(shortened(note));
        let event = Event { type_, reason: reason.to_owned(), note, action: action.to_owned(), secondary: None };
        match timeout(LIMIT, self.recorder.publish(&event, &reference(object))).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::debug!(%error, reason, "an event was not published"),
            Err(_) => tracing::debug!(reason, "an event was not published in time"),
        }
    }
}

fn reference(object: &Value) -> ObjectReference {
    let text = |pointer| object.pointer(pointer).and_then(Value::as_str).map(str::to_owned);
    ObjectReference {
        api_version: text("/apiVersion"),
        kind: text("/kind"),
        name: text("/metadata/name"),
        namespace: text("/metadata/namespace"),
        uid: text("/metadata/uid"),
        // Left out, so that what is said of an object again is counted, and not said anew for each of its versions.
        resource_version: None,
        field_path: None,
    }
}

fn shortened(note: &str) -> String {
    if note.len() <= LONGEST_NOTE {
        return note.to_owned();
    }
    let end = (0..=LONGEST_NOTE).rev().find(|at| note.is_char_boundary(*at)).unwrap_or_default();
    format!("{}…", note.get(..end).unwrap_or_default())
}

/// What may still be published.
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
    fn a_burst_and_then_one_a_second() {
        let begin = Instant::now();
        let mut budget = Budget::new(begin);
        let mut taken = |seconds| (0..1000).filter(|_| budget.take(begin + Duration::from_secs(seconds))).count();
        assert_eq!((taken(0), taken(1), taken(1), taken(4), taken(10_000)), (100, 1, 0, 3, 100));
    }

    #[test]
    fn a_note_is_cut_where_a_character_ends() {
        let note = shortened(&"ä".repeat(600));
        assert!(note.len() <= 1024 && note.ends_with('…'), "{}", note.len());
    }
}
