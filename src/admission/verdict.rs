//! The verdict on a request, and the response that is created from it.

use std::collections::BTreeMap;

use json_patch::Patch;
use serde::{Deserialize, Serialize};

use super::answer::{Answer, Cause, Details, Status};
use super::{Finding, Level, Request, Unreadable, Version};

/// The phase of admission. It says whether the API server calls the mutating or the validating webhook.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Phase {
    /// The mutating webhook. Its response may contain a patch.
    Mutate,
    /// The validating webhook. Its response never contains a patch.
    Validate,
}

impl Phase {
    /// Returns the name of the phase for logs, metrics and URL paths.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Mutate => "mutate",
            Self::Validate => "validate",
        }
    }
}

/// The reason why a request is denied without a decision of the rules.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    /// The AdmissionReview, or an object in it, could not be parsed. The text says why.
    Unreadable(String),
    /// The rules did not decide before the API server's deadline. In shadow mode, in which decisions are not enforced,
    /// this variant is also used if a rule panicked. The text says whether the deadline passed or a rule panicked.
    Undecided(String),
}

/// The decision about a request, with findings, notices and a patch.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Verdict {
    /// The findings of the rules. A finding of level `deny` denies the request.
    pub findings: Vec<Finding>,
    /// Messages of the mutators for the user.
    pub notices: Vec<String>,
    /// A warning that confirms to `portcullis verify` that the webhook answers. It is also sent in shadow mode, in
    /// which other warnings are omitted. It does not count as the outcome `warn`.
    pub verification: Option<String>,
    /// The patch with the changes of all mutators; `None` if they changed nothing.
    pub patch: Option<Patch>,
    /// The reason why the request is denied without a decision of the rules. `None` if the rules decided.
    pub refusal: Option<Refusal>,
    /// Whether warnings are omitted from the response. They are omitted if the user is a controller, because a
    /// controller would only log them.
    pub is_quiet: bool,
}

/// The kind of a decision about a request. The variants are in order of severity, the most severe first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// The request is denied.
    Deny,
    /// The request is admitted with a patch.
    Patch,
    /// The request is admitted with a warning.
    Warn,
    /// The request is admitted.
    Allow,
}

impl Outcome {
    /// All outcomes, the most severe first.
    pub const ALL: [Self; 4] = [Self::Deny, Self::Patch, Self::Warn, Self::Allow];

    /// Returns the name for logs, metrics and audit annotations.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Deny => "deny",
            Self::Patch => "patch",
            Self::Warn => "warn",
            Self::Allow => "allow",
        }
    }
}

/// A word in error messages that can mislead kustomize-controller. If the word follows `is` or precedes `field`, the
/// controller concludes that an immutable field was changed, regardless of the status code.
const IMMUTABLE: &str = "immutable";
/// The text that replaces the word `immutable` in messages. Without the replacement, kustomize-controller would
/// conclude that an immutable field was changed. It could then delete the object and create it again.
const NOT_MUTABLE: &str = "not mutable";

/// Replaces `immutable` with `not mutable` in messages that would mislead kustomize-controller. Also replaces the word
/// in quoted user input.
///
/// If `spec.force` of a Flux Kustomization is true, kustomize-controller looks for `is immutable` or `immutable field`
/// in the message of a denial. If the message contains one of them, the controller assumes that an immutable field was
/// changed. It then deletes the live object and creates it again. Source: `IsImmutableError` in fluxcd/pkg's
/// `ssa/errors/immutable.go`.
fn without_immutable(text: String) -> String {
    let lower = text.to_ascii_lowercase();
    if !lower.contains(IMMUTABLE) {
        return text;
    }
    let (mut kept, mut copied) = (String::with_capacity(text.len()), 0);
    for (at, _) in lower.match_indices(IMMUTABLE) {
        let end = at + IMMUTABLE.len();
        let (before, after) = (lower.get(..at).unwrap_or_default(), lower.get(end..).unwrap_or_default());
        if ends_with_is(before) || starts_with_field(after) {
            kept.push_str(text.get(copied..at).unwrap_or_default());
            kept.push_str(NOT_MUTABLE);
            copied = end;
        }
    }
    kept + text.get(copied..).unwrap_or_default()
}

fn ends_with_is(before: &str) -> bool {
    before.strip_suffix(char::is_whitespace).is_some_and(|before| before.ends_with("is"))
}

fn starts_with_field(after: &str) -> bool {
    after.strip_prefix(char::is_whitespace).is_some_and(|after| after.starts_with("field"))
}

/// The key of the audit annotation for shadow mode, in which every request is admitted. The value is the outcome that
/// the request would have without shadow mode.
pub const SHADOW: &str = "shadow";
/// Maximum number of warnings. The API server cuts each warning to 256 characters, and keeps 4096 characters in total.
/// So sixteen warnings fit.
pub const MAX_WARNINGS: usize = 16;
/// The length to which the API server truncates warnings, in characters.
pub const MAX_WARNING_CHARS: usize = 256;
/// The length that the API documentation recommends for a warning, in characters. If a help text does not fit into this
/// length, it is usually omitted.
pub const RECOMMENDED_WARNING_CHARS: usize = 120;
/// The beginning of help texts that suggest a similar name.
const SUGGESTION: &str = "did you mean ";
/// Maximum number of findings in a message. More findings would be too much to read, so the others are only counted.
pub const MAX_MESSAGE_FINDINGS: usize = 100;
/// Maximum length of an audit annotation, in characters, so that the events of the audit log stay small. Longer texts
/// are cut.
const MAX_AUDIT_CHARS: usize = 1024;

impl Verdict {
    /// Returns a verdict without findings that denies the request for the reason `refusal`.
    pub fn refused(refusal: Refusal) -> Self {
        Self { refusal: Some(refusal), ..Self::default() }
    }

    /// Returns whether the request is admitted.
    pub fn is_allowed(&self) -> bool {
        self.refusal.is_none() && self.denials().next().is_none()
    }

    /// Returns the outcome: the first of deny, patch, warn and allow that applies.
    pub fn outcome(&self) -> Outcome {
        match self {
            _ if !self.is_allowed() => Outcome::Deny,
            Self { patch: Some(patch), .. } if !patch.is_empty() => Outcome::Patch,
            _ if self.at_level(Level::Warn).next().is_some() || !self.notices.is_empty() => Outcome::Warn,
            _ => Outcome::Allow,
        }
    }

    /// Returns the findings that deny the request.
    pub fn denials(&self) -> impl Iterator<Item = &Finding> {
        self.at_level(Level::Deny)
    }

    /// Returns the findings that have the level `level`.
    pub fn at_level(&self, level: Level) -> impl Iterator<Item = &Finding> {
        self.findings.iter().filter(move |finding| finding.level == level)
    }

    /// Returns the message of a denial, one paragraph per finding; empty if the request is admitted.
    pub fn message(&self) -> String {
        without_immutable(self.denials_text())
    }

    fn denials_text(&self) -> String {
        match &self.refusal {
            Some(Refusal::Unreadable(text) | Refusal::Undecided(text)) => text.clone(),
            None => {
                let denials: Vec<_> = self.denials().collect();
                let mut text = String::new();
                for finding in denials.iter().take(MAX_MESSAGE_FINDINGS) {
                    // The API server puts its own prefix before the message; each finding starts on its own line.
                    text.push('\n');
                    text.push_str(&finding.paragraph());
                }
                if denials.len() > MAX_MESSAGE_FINDINGS {
                    text.push_str(&format!("\n… and {} more", denials.len() - MAX_MESSAGE_FINDINGS));
                }
                text
            }
        }
    }

    /// Returns the warnings for the user, within the API server's limits.
    pub fn warnings(&self) -> Vec<String> {
        if self.is_quiet {
            return Vec::new();
        }
        let notices = self.notices.iter().map(|notice| one_line(notice));
        let verification = self.verification.iter().cloned();
        let all: Vec<String> = verification.chain(self.at_level(Level::Warn).map(warning)).chain(notices).collect();
        if all.len() <= MAX_WARNINGS {
            return all;
        }
        let left_out = all.len() - (MAX_WARNINGS - 1);
        let mut kept: Vec<String> = all.into_iter().take(MAX_WARNINGS - 1).collect();
        kept.push(format!("portcullis: {left_out} more warnings are not shown"));
        kept
    }

    /// Returns the response to `request`, for the version `version` of the AdmissionReview API. The response contains a
    /// patch only in the phase `Phase::Mutate`.
    pub fn answer(&self, version: Version, phase: Phase, request: &Request<'_>) -> Answer {
        let allowed = self.is_allowed();
        let patch = self.patch.as_ref().filter(|_| allowed && phase == Phase::Mutate);
        // A patch consists of JSON values, so it serializes.
        let patch = patch.and_then(|patch| serde_json::to_vec(patch).ok());
        Answer {
            version,
            uid: request.uid.to_string(),
            allowed,
            status: (!allowed).then(|| self.status(Some(request))),
            warnings: self.warnings(),
            audit_annotations: self.audit_annotations(),
            patch,
        }
    }

    /// Returns the response in shadow mode, which admits the request unchanged. The audit annotations contain the
    /// findings. The annotation [`SHADOW`] contains the outcome that the request would have had. Warnings are omitted,
    /// except the one for `portcullis verify`.
    pub fn shadow_answer(&self, version: Version, uid: &str) -> Answer {
        let mut audit_annotations = self.audit_annotations();
        let would = match &self.refusal {
            Some(_) => format!("{}: {}", self.outcome().as_str(), self.message()),
            None => self.outcome().as_str().to_owned(),
        };
        audit_annotations.insert(SHADOW.to_owned(), cut(would, MAX_AUDIT_CHARS));
        let (uid, warnings) = (uid.to_owned(), self.verification.iter().cloned().collect());
        Answer { version, uid, allowed: true, status: None, warnings, audit_annotations, patch: None }
    }

    fn status(&self, request: Option<&Request<'_>>) -> Status {
        let (code, reason) = match &self.refusal {
            Some(Refusal::Unreadable(_)) => (400, "BadRequest"),
            Some(Refusal::Undecided(_)) => (504, "Timeout"),
            None => (403, "Forbidden"),
        };
        let details = request.filter(|_| self.refusal.is_none()).map(|request| Details {
            name: without_immutable(request.display_name()),
            group: request.resource.group.to_string(),
            kind: request.resource.kind.to_string(),
            causes: self.denials().take(MAX_MESSAGE_FINDINGS).map(cause).collect(),
        });
        Status { status: "Failure", code, reason, message: self.message(), details }
    }

    /// Returns one audit annotation for each rule that has findings. The key is the id of the rule, such as `OW004`.
    /// The value contains the level, field and message of each finding, such as `warn overwrites[0].source: …`.
    fn audit_annotations(&self) -> BTreeMap<String, String> {
        let mut annotations: BTreeMap<String, String> = BTreeMap::new();
        for finding in &self.findings {
            let place = finding.location.as_ref().map(|place| format!(" ({place})")).unwrap_or_default();
            let line = format!("{} {}: {}{place}", finding.level, finding.field, finding.message);
            let text = annotations.entry(finding.rule.to_owned()).or_default();
            if !text.is_empty() {
                text.push_str("; ");
            }
            text.push_str(&line);
        }
        annotations.into_iter().map(|(key, text)| (key, cut(text, MAX_AUDIT_CHARS))).collect()
    }
}

impl Unreadable {
    /// Returns the response to an AdmissionReview that could not be parsed. The response denies the request. `None` if
    /// the uid of the review is unknown.
    pub fn answer(&self) -> Option<Answer> {
        let (verdict, version, uid) = self.verdict()?;
        Some(Answer {
            version,
            uid: uid.to_owned(),
            allowed: false,
            status: Some(verdict.status(None)),
            warnings: Vec::new(),
            audit_annotations: BTreeMap::new(),
            patch: None,
        })
    }

    /// Returns the shadow-mode response to an AdmissionReview that could not be parsed. In shadow mode, every request
    /// is admitted. `None` if the uid of the review is unknown.
    pub fn shadow_answer(&self) -> Option<Answer> {
        let (verdict, version, uid) = self.verdict()?;
        Some(verdict.shadow_answer(version, uid))
    }

    fn verdict(&self) -> Option<(Verdict, Version, &str)> {
        let Self::WithUid { uid, version, .. } = self else { return None };
        Some((Verdict::refused(Refusal::Unreadable(self.to_string())), *version, uid))
    }
}

fn cause(finding: &Finding) -> Cause {
    let place = finding.location.as_ref().map(|place| format!(" ({place})")).unwrap_or_default();
    Cause {
        reason: "FieldValueInvalid",
        message: without_immutable(format!("{}: {}{place}", finding.rule, finding.message)),
        field: without_immutable(finding.field.to_string()),
    }
}

/// Returns the warning for a finding. The warning consists of the headline and, in some cases, of the help text. The
/// help text is included in these cases:
///
/// - The headline and the help text together fit into the recommended length.
/// - The help text suggests a similar name.
/// - The headline takes at most half of the recommended length.
fn warning(finding: &Finding) -> String {
    let headline = match &finding.location {
        // The place comes before the message, because the end may be cut.
        Some(place) => format!("{} {place}: {}", finding.rule, finding.message),
        None => finding.headline(),
    };
    let with_help = finding.help.as_ref().map(|help| format!("{headline}; {help}"));
    let is_suggestion = finding.help.as_ref().is_some_and(|help| help.starts_with(SUGGESTION));
    match with_help {
        Some(text) if is_suggestion && text.chars().count() <= MAX_WARNING_CHARS => one_line(&text),
        Some(text) if text.chars().count() <= RECOMMENDED_WARNING_CHARS => one_line(&text),
        Some(text) if headline.chars().count() <= RECOMMENDED_WARNING_CHARS / 2 => one_line(&text),
        _ => one_line(&headline),
    }
}

/// Replaces control characters with spaces, because control characters are invalid in HTTP headers. Cuts the text to
/// [`MAX_WARNING_CHARS`].
fn one_line(text: &str) -> String {
    // A text without ASCII control characters is returned unchanged; the test over all bytes is vectorized.
    let is_plain = text.bytes().fold(true, |plain, byte| plain & matches!(byte, b' '..=b'~'));
    if is_plain || !text.contains(char::is_control) {
        return cut(text.to_owned(), MAX_WARNING_CHARS);
    }
    cut(text.replace(char::is_control, " "), MAX_WARNING_CHARS)
}

fn cut(text: String, longest: usize) -> String {
    // A text has at least as many bytes as characters.
    if text.len() <= longest || text.chars().count() <= longest {
        return text;
    }
    let mut short: String = text.chars().take(longest - 1).collect();
    short.push('…');
    short
}
