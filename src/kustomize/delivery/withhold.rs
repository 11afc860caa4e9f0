//! Withholds a denied revision from a Flux source, and reports the reason in the source's conditions.
//!
//! source-controller writes the status of a source in two requests. The first request writes the conditions, which
//! report the new revision as ready. The second request writes the artifact. If only the second request were denied,
//! the source would have `Ready: True` with the old artifact. To prevent this, Portcullis does not report `Ready: True`
//! for a revision until the artifact of this revision is in the status. It replaces a denied artifact with the previous
//! artifact, and writes the finding into the condition `Ready`.
//!
//! Source: `Helper.Patch` in fluxcd/pkg's `runtime/patch`, and `reconcileArtifact` of source-controller's controllers.

use serde_json::Value;

use super::source::Artifact;
use crate::admission::json::Lookup as _;
use crate::admission::patch::Draft;
use crate::admission::{Finding, Request};

/// The reason in the condition `Ready` while a revision is pending or denied.
pub const REASON: &str = "RevisionWithheld";
/// The type of the condition that reports the stored artifact. source-controller writes the same message to this
/// condition and to the condition `Ready`.
const STORED: &str = "ArtifactInStorage";
/// Maximum length of the findings in the message of a condition, in characters. The API server accepts at most 32,768
/// characters for the whole message.
const MAX_FINDINGS_LENGTH: usize = 8_000;

/// Replaces a denied artifact in the status of a source with the previous artifact, and updates the condition `Ready`.
/// If `denials` is empty, the artifact is not denied, and only `Ready` is updated. The changes are made to `draft`.
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

/// Denies the new artifact of a source. `new` and `old` are the source after and before the request. Restores the
/// previous artifact in the status, and writes the denials to the condition `Ready`.
///
/// Changes nothing if the source has no condition `Ready`. The validating webhook then denies the request.
fn refuse(new: &Value, old: &Value, denials: &[Finding], draft: &mut Draft<'_>) {
    if condition(new, "Ready").is_none() {
        return;
    }
    let revision = Artifact::of(new).map(|artifact| artifact.revision).unwrap_or_default();
    let message = paragraphs(denials);
    if let Some(status) = draft.to_mut().get_mut("status").and_then(Value::as_object_mut) {
        match old.at(&["status", "artifact"]) {
            Some(artifact) => drop(status.insert("artifact".to_owned(), artifact.clone())),
            None => drop(status.remove("artifact")),
        }
    }
    set(draft, "False", REASON, &format!("revision {revision} is withheld by Portcullis:\n{message}"));
}

/// Formats the findings for the message of a condition. If not all findings fit, adds the number of omitted findings.
/// Cuts only between findings, because the last line of a finding may be a command. As an exception, truncates the
/// first finding if this finding alone does not fit.
fn paragraphs(denials: &[Finding]) -> String {
    let (mut lines, mut length) = (Vec::new(), 0);
    for (at, denial) in denials.iter().enumerate() {
        let paragraph = denial.paragraph();
        length += paragraph.chars().count();
        if length > MAX_FINDINGS_LENGTH && at > 0 {
            lines.push(format!("and {} more findings", denials.len() - at));
            break;
        }
        lines.push(paragraph.chars().take(MAX_FINDINGS_LENGTH).collect());
    }
    lines.join("\n")
}

/// Prevents a Flux source from reporting `Ready: True` before its new artifact is in the status. Sets the condition
/// `Ready` to `Unknown`. Its message contains the message of `stored`, the condition `ArtifactInStorage`.
///
/// `old` is the source before the request. If its condition `Ready` already has the reason `RevisionWithheld`, keeps
/// the status and the message of that condition. So the message about a denied revision is not lost.
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

/// Returns whether `stored`, the condition `ArtifactInStorage`, describes the artifact in the status of the Flux source
/// `source`. If the message of the condition starts with `stored artifact`, checks whether the message contains the
/// revision of this artifact. Returns `true` for other messages, because their format is unknown.
fn is_about(stored: &Value, source: &Value) -> bool {
    let message = says(stored, "message");
    let revision = source.at(&["status", "artifact", "revision"]).and_then(Value::as_str);
    !message.starts_with("stored artifact") || revision.is_some_and(|revision| names(message, revision))
}

/// Returns whether `message` contains `revision` as a separate word. A longer word that contains `revision` does not
/// count.
fn names(message: &str, revision: &str) -> bool {
    let is_part = |letter: Option<char>| letter.is_some_and(char::is_alphanumeric);
    message.match_indices(revision).any(|(at, found)| {
        let (before, after) =
            (message.get(..at).unwrap_or_default(), message.get(at + found.len()..).unwrap_or_default());
        !is_part(before.chars().next_back()) && !is_part(after.chars().next())
    })
}

fn condition<'v>(source: &'v Value, kind: &str) -> Option<&'v Value> {
    let conditions = source.at(&["status", "conditions"])?.as_array()?;
    conditions.iter().find(|condition| says(condition, "type") == kind)
}

fn says<'v>(condition: &'v Value, field: &str) -> &'v str {
    condition.get(field).and_then(Value::as_str).unwrap_or_default()
}

/// Sets status, reason and message of the condition `Ready`, if the object has this condition.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::admission::{FieldPath, Level};

    #[test]
    fn a_revision_is_not_the_beginning_of_another_one() {
        assert!(names("stored artifact for revision 'v1@sha1:ab'", "v1@sha1:ab"));
        assert!(names("stored artifact for digest v1", "v1") && names("v12 after v1", "v1"));
        assert!(!names("stored artifact for revision 'v1@sha1:abc'", "v1@sha1:ab") && !names("rev1", "v1"));
    }

    #[test]
    fn cuts_the_message_between_findings() {
        let finding =
            |length: usize| Finding::new("GD002", Level::Deny, FieldPath::root(), "x".repeat(length)).help("command");
        let text = paragraphs(&[finding(10), finding(MAX_FINDINGS_LENGTH), finding(10)]);
        assert!(text.ends_with("command\nand 2 more findings"), "{text}");
        assert_eq!(
            paragraphs(&[finding(2 * MAX_FINDINGS_LENGTH)]).len(),
            MAX_FINDINGS_LENGTH,
            "a finding of any length"
        );
        assert!(paragraphs(&[finding(1), finding(2)]).ends_with("xx\n  help: command"));
    }
}
