//! Withholds a denied revision from a Flux source, and reports the reason in its conditions.
//!
//! source-controller writes the status of a source in two requests: first the conditions, which report the new revision
//! as ready, then the artifact. A denial of the second would leave `Ready: True` with the old artifact. So `Ready` is
//! held back until its artifact is in the status, and a denied artifact is replaced by the previous one, with the
//! finding in `Ready`.
//!
//! Source: `Helper.Patch` in fluxcd/pkg's `runtime/patch`, and `reconcileArtifact` of source-controller's controllers.

use serde_json::Value;

use super::source::Artifact;
use crate::admission::patch::Draft;
use crate::admission::{Finding, Request};

/// The reason in the condition `Ready` while a revision is pending or denied.
pub const REASON: &str = "RevisionWithheld";
/// The type of the condition about the artifact, whose message `Ready` repeats.
const STORED: &str = "ArtifactInStorage";
/// Maximum length of the message of a condition, enough for a few findings.
const MAX_MESSAGE_LENGTH: usize = 2_000;

/// Sets the status of a source to the artifact that is served.
pub(super) fn withhold(request: &Request<'_>, denials: &[Finding], draft: &mut Draft<'_>) {
    let (new, old) = (request.object(), request.old_object());
    if !denials.is_empty() {
        return refuse(new, old, denials, draft);
    }
    let (Some(ready), Some(stored)) = (condition(new, "Ready"), condition(new, STORED)) else { return };
    let is_served = is_about(stored, new);
    let is_withheld = says(ready, "reason") == REASON;
    if says(ready, "status") == "True" && says(stored, "status") == "True" && !is_served {
        hold(stored, old, draft);
    } else if is_withheld && is_served {
        let (reason, message) = (says(stored, "reason").to_owned(), says(stored, "message").to_owned());
        set(draft, "True", &reason, &message);
    }
}

/// Restores the previous artifact. If the status has no condition `Ready`, it cannot contain the reason, so the
/// validating webhook denies the request.
fn refuse(new: &Value, old: &Value, denials: &[Finding], draft: &mut Draft<'_>) {
    if condition(new, "Ready").is_none() {
        return;
    }
    let revision = Artifact::of(new).map(|artifact| artifact.revision).unwrap_or_default();
    let findings: Vec<_> = denials.iter().map(Finding::paragraph).collect();
    let message: String = findings.join("\n").chars().take(MAX_MESSAGE_LENGTH).collect();
    if let Some(status) = draft.to_mut().get_mut("status").and_then(Value::as_object_mut) {
        match old.pointer("/status/artifact") {
            Some(artifact) => drop(status.insert("artifact".to_owned(), artifact.clone())),
            None => drop(status.remove("artifact")),
        }
    }
    set(draft, "False", REASON, &format!("revision {revision} is withheld by Portcullis:\n{message}"));
}

/// Sets the condition `Ready` to unknown until its artifact is stored; keeps the message about a denied revision.
fn hold(stored: &Value, old: &Value, draft: &mut Draft<'_>) {
    let before = condition(old, "Ready").filter(|ready| says(ready, "reason") == REASON);
    match before {
        Some(ready) => set(draft, says(ready, "status"), REASON, says(ready, "message")),
        None => {
            let message = format!("waiting for Portcullis: {}", says(stored, "message"));
            set(draft, "Unknown", REASON, &message);
        }
    }
}

/// Returns whether a condition is about the artifact in the status. Other conditions are not changed.
fn is_about(stored: &Value, source: &Value) -> bool {
    let message = says(stored, "message");
    let revision = source.pointer("/status/artifact/revision").and_then(Value::as_str);
    !message.starts_with("stored artifact") || revision.is_some_and(|revision| message.contains(revision))
}

fn condition<'v>(source: &'v Value, kind: &str) -> Option<&'v Value> {
    let conditions = source.pointer("/status/conditions")?.as_array()?;
    conditions.iter().find(|condition| says(condition, "type") == kind)
}

fn says<'v>(condition: &'v Value, field: &str) -> &'v str {
    condition.get(field).and_then(Value::as_str).unwrap_or_default()
}

/// Sets the condition `Ready`, if present.
fn set(draft: &mut Draft<'_>, status: &str, reason: &str, message: &str) {
    let is_said = |ready: &Value| {
        says(ready, "status") == status && says(ready, "reason") == reason && says(ready, "message") == message
    };
    if condition(&draft.value(), "Ready").is_none_or(is_said) {
        return;
    }
    let conditions = draft.to_mut().pointer_mut("/status/conditions").and_then(Value::as_array_mut);
    let ready = conditions.into_iter().flatten().find(|condition| says(condition, "type") == "Ready");
    if let Some(members) = ready.and_then(Value::as_object_mut) {
        let texts = [("status", status), ("reason", reason), ("message", message)];
        members.extend(texts.map(|(field, text)| (field.to_owned(), text.into())));
    }
}
