//! What was decided, and the answer that says so.

use std::collections::BTreeMap;

use json_patch::Patch;
use serde::{Deserialize, Serialize};

use super::review::{Answer, Cause, Details, Status};
use super::{Finding, Level, Request, Unreadable, Version};

/// Which webhook is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Phase {
    /// The mutating webhook: the answer may carry a patch.
    Mutate,
    /// The validating webhook: the answer never carries one.
    Validate,
}

impl Phase {
    /// The word for logs, metrics and paths.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Mutate => "mutate",
            Self::Validate => "validate",
        }
    }
}

/// A refusal that no rule speaks, because it never came to rules.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    /// The review or an object in it could not be read.
    Unreadable(String),
    /// There was no decision before the API server's deadline.
    Undecided(String),
}

/// What was decided about a request.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Verdict {
    /// What the rules found; one of level `deny` refuses the request.
    pub findings: Vec<Finding>,
    /// What the mutators want the user to know.
    pub notices: Vec<String>,
    /// The answer to `portcullis verify`: a warning that is sent in shadow mode too, and does not count as one.
    pub verification: Option<String>,
    /// What the mutators change.
    pub patch: Option<Patch>,
    /// Set when the request is refused without the rules having spoken.
    pub refusal: Option<Refusal>,
    /// Whether warnings are kept back from the user: a controller only writes them to its log.
    pub is_quiet: bool,
}

/// What a decision comes to, the gravest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// The request is refused.
    Deny,
    /// It goes on, changed.
    Patch,
    /// It goes on, and the user is warned.
    Warn,
    /// It goes on.
    Allow,
}

impl Outcome {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Deny, Self::Patch, Self::Warn, Self::Allow];

    /// The word for logs, metrics and audit annotations.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Deny => "deny",
            Self::Patch => "patch",
            Self::Warn => "warn",
            Self::Allow => "allow",
        }
    }
}

/// The word by which kustomize-controller knows an immutable field, whatever the status of the answer is.
const IMMUTABLE: &str = "immutable";
/// What is written in its place.
const NOT_MUTABLE: &str = "not mutable";

/// Returns a text without the words for which a client would delete an object, also where it quotes a user.
///
/// With `force`, kustomize-controller takes `is immutable` and `immutable field` in the message of a denial for a field that
/// cannot be changed: it deletes the live object and creates it anew (`IsImmutableError` in fluxcd/pkg's
/// `ssa/errors/immutable.go`).
fn harmless(text: String) -> String {
    let lower = text.to_ascii_lowercase();
    if !lower.contains(IMMUTABLE) {
        return text;
    }
    let (mut kept, mut copied) = (String::with_capacity(text.len()), 0);
    for (at, _) in lower.match_indices(IMMUTABLE) {
        let end = at + IMMUTABLE.len();
        let (before, after) = (lower.get(..at).unwrap_or_default(), lower.get(end..).unwrap_or_default());
        if is_said_to_be(before) || is_of_field(after) {
            kept.push_str(text.get(copied..at).unwrap_or_default());
            kept.push_str(NOT_MUTABLE);
            copied = end;
        }
    }
    kept + text.get(copied..).unwrap_or_default()
}

fn is_said_to_be(before: &str) -> bool {
    before.strip_suffix(char::is_whitespace).is_some_and(|before| before.ends_with("is"))
}

fn is_of_field(after: &str) -> bool {
    after.strip_prefix(char::is_whitespace).is_some_and(|after| after.starts_with("field"))
}

/// The audit annotation in which a server that only looks on says what it would have done.
pub const SHADOW: &str = "shadow";
/// The API server keeps 4096 characters of warnings and cuts each to 256; sixteen full ones just fit.
pub const MAX_WARNINGS: usize = 16;
/// Where the API server cuts a warning.
pub const MAX_WARNING_CHARS: usize = 256;
/// What the API documentation asks a warning to keep to; help is left out beyond it.
pub const WANTED_WARNING_CHARS: usize = 120;
/// More findings than a person reads; the rest are counted.
pub const MAX_TOLD: usize = 100;
/// An audit annotation is for searching, not for reading whole.
const MAX_AUDIT_CHARS: usize = 1024;

impl Verdict {
    /// A verdict that refuses without rules.
    pub fn refused(refusal: Refusal) -> Self {
        Self { refusal: Some(refusal), ..Self::default() }
    }

    /// Whether the request goes on.
    pub fn is_allowed(&self) -> bool {
        self.refusal.is_none() && self.denials().next().is_none()
    }

    /// What it comes to.
    pub fn outcome(&self) -> Outcome {
        match self {
            _ if !self.is_allowed() => Outcome::Deny,
            Self { patch: Some(patch), .. } if !patch.is_empty() => Outcome::Patch,
            _ if self.at_level(Level::Warn).next().is_some() || !self.notices.is_empty() => Outcome::Warn,
            _ => Outcome::Allow,
        }
    }

    /// The findings that refuse the request.
    pub fn denials(&self) -> impl Iterator<Item = &Finding> {
        self.at_level(Level::Deny)
    }

    /// The findings of a level.
    pub fn at_level(&self, level: Level) -> impl Iterator<Item = &Finding> {
        self.findings.iter().filter(move |finding| finding.level == level)
    }

    /// The message of a refusal: every denying finding, each a paragraph. Empty when nothing is refused.
    pub fn message(&self) -> String {
        harmless(self.told())
    }

    fn told(&self) -> String {
        match &self.refusal {
            Some(Refusal::Unreadable(text) | Refusal::Undecided(text)) => text.clone(),
            None => {
                let denials: Vec<_> = self.denials().collect();
                let mut text = String::new();
                for finding in denials.iter().take(MAX_TOLD) {
                    // The API server puts its own prefix before the message: each finding gets a line of its own.
                    text.push('\n');
                    text.push_str(&finding.paragraph());
                }
                if denials.len() > MAX_TOLD {
                    text.push_str(&format!("\n… and {} more", denials.len() - MAX_TOLD));
                }
                text
            }
        }
    }

    /// The warnings that the user sees, capped as the API server wants them.
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

    /// The answer to `request`.
    pub fn answer(&self, version: Version, phase: Phase, request: &Request<'_>) -> Answer {
        let allowed = self.is_allowed();
        let patch = self.patch.as_ref().filter(|_| allowed && phase == Phase::Mutate);
        // A patch holds nothing that JSON could not say.
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

    /// Returns the answer in shadow mode: the request is admitted unchanged and without warnings, except for the answer to
    /// `portcullis verify`. The audit annotations have the findings, and under [`SHADOW`] the outcome that was not sent.
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
            name: harmless(request.display_name()),
            group: request.resource.group.to_string(),
            kind: request.resource.kind.to_string(),
            causes: self.denials().take(MAX_TOLD).map(cause).collect(),
        });
        Status { status: "Failure", code, reason, message: self.message(), details }
    }

    /// One annotation for each rule that found something: `OW004` → `warn overwrites[0].source: …`.
    fn audit_annotations(&self) -> BTreeMap<String, String> {
        let mut annotations: BTreeMap<String, String> = BTreeMap::new();
        for finding in &self.findings {
            let place = finding.place.as_ref().map(|place| format!(" ({place})")).unwrap_or_default();
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
    /// The denial for a review that could not be read but for its uid; `None` where not even that is known.
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

    /// The same from a server that only looks on; see [`Verdict::shadow_answer`].
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
    let place = finding.place.as_ref().map(|place| format!(" ({place})")).unwrap_or_default();
    Cause {
        reason: "FieldValueInvalid",
        message: harmless(format!("{}: {}{place}", finding.rule, finding.message)),
        field: harmless(finding.field.to_string()),
    }
}

/// The headline, and the help where both fit into what is asked for.
fn warning(finding: &Finding) -> String {
    let headline = match &finding.place {
        // the place before the message: what is cut must not be that
        Some(place) => format!("{} {place}: {}", finding.rule, finding.message),
        None => finding.headline(),
    };
    let with_help = finding.help.as_ref().map(|help| format!("{headline}; {help}"));
    match with_help {
        Some(text) if text.chars().count() <= WANTED_WARNING_CHARS => one_line(&text),
        Some(text) if headline.chars().count() <= WANTED_WARNING_CHARS / 2 => one_line(&text),
        _ => one_line(&headline),
    }
}

/// Warnings travel in an HTTP header: control characters would lose them.
fn one_line(text: &str) -> String {
    // Without a control character of ASCII's, text of ASCII has none.
    // Told of all bytes at once, which is done many at a time.
    let is_plain = text.bytes().fold(true, |plain, byte| plain & matches!(byte, b' '..=b'~'));
    if is_plain || !text.contains(char::is_control) {
        return cut(text.to_owned(), MAX_WARNING_CHARS);
    }
    cut(text.replace(char::is_control, " "), MAX_WARNING_CHARS)
}

fn cut(text: String, longest: usize) -> String {
    // There are at least as many bytes as characters.
    if text.len() <= longest || text.chars().count() <= longest {
        return text;
    }
    let mut short: String = text.chars().take(longest - 1).collect();
    short.push('…');
    short
}
