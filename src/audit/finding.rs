//! What an audit finds.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::admission::{Finding, Level};

/// The rule of an object that no rule could look at.
pub const UNREADABLE: &str = "unreadable";
/// Findings that are kept: with their texts some hundred bytes each. Whoever has more begins with some of the rules.
const MAX_KEPT: usize = 50_000;
/// A message in a report or a table is not longer; it may repeat what a user wrote.
const MAX_MESSAGE_CHARS: usize = 1024;

/// Names a stored object.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Subject {
    /// Its namespace; empty for one that is in none.
    pub namespace: String,
    /// Its kind.
    pub kind: String,
    /// Its name.
    pub name: String,
    /// Its API version.
    pub api_version: String,
    /// Its uid, where it has one.
    pub uid: String,
}

impl Subject {
    /// Of an object.
    pub(super) fn of(object: &Value) -> Self {
        let text = |pointer| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
        Self {
            namespace: text("/metadata/namespace"),
            kind: text("/kind"),
            name: text("/metadata/name"),
            api_version: text("/apiVersion"),
            uid: text("/metadata/uid"),
        }
    }
}

/// What follows from something that was found, in the words of policy reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Outcome {
    /// It is exempt.
    Skip,
    /// It is warned of, or recorded.
    Warn,
    /// The next update of the object is refused.
    Fail,
    /// The object cannot be read, so that its next update is refused.
    Error,
}

impl Outcome {
    /// The word of policy reports.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Skip => "skip",
            Self::Warn => "warn",
            Self::Fail => "fail",
            Self::Error => "error",
        }
    }
}

/// One thing that is wrong with a stored object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The object.
    pub subject: Subject,
    /// The rule's id, or [`UNREADABLE`].
    pub rule: &'static str,
    /// What the object's next update, as it is, would bring.
    pub level: Level,
    /// Whether it is exempt.
    pub is_exempt: bool,
    /// The field; empty for the object as a whole.
    pub field: String,
    /// What is wrong.
    pub message: String,
    /// How to mend it.
    pub help: Option<String>,
    /// Whether the report before did not have it; `None` where there is no such report.
    pub is_new: Option<bool>,
}

impl Entry {
    pub(super) fn new(subject: &Subject, finding: Finding) -> Self {
        let Finding { rule, level, field, message, place, help, is_exempt, .. } = finding;
        let message = place.map(|place| format!("{message} ({place})")).unwrap_or(message);
        let (subject, field, message) = (subject.clone(), field.to_string(), cut(message));
        Self { subject, rule, level, is_exempt, field, message, help: help.map(cut), is_new: None }
    }

    /// About an object that cannot be read.
    pub(super) fn unreadable(subject: &Subject, why: String) -> Self {
        let (subject, message) = (subject.clone(), cut(why));
        let (field, help) = (String::new(), None);
        Self { subject, rule: UNREADABLE, level: Level::Deny, is_exempt: false, field, message, help, is_new: None }
    }

    /// What follows from it.
    pub fn outcome(&self) -> Outcome {
        match self {
            Self { rule: UNREADABLE, .. } => Outcome::Error,
            Self { is_exempt: true, .. } => Outcome::Skip,
            Self { level: Level::Deny, .. } => Outcome::Fail,
            _ => Outcome::Warn,
        }
    }

    fn order(&self) -> impl Ord + use<> {
        let Self { subject, rule, field, message, .. } = self;
        let gravest_first = (std::cmp::Reverse(self.outcome()), std::cmp::Reverse(self.level));
        (gravest_first, *rule, subject.clone(), field.clone(), message.clone())
    }
}

fn cut(text: String) -> String {
    if text.chars().count() <= MAX_MESSAGE_CHARS {
        return text;
    }
    text.chars().take(MAX_MESSAGE_CHARS - 1).chain(['…']).collect()
}

/// A kind whose objects could not be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unread {
    /// The kind: `installations.landscaper.gardener.cloud`.
    pub resource: String,
    /// API group and kind of its objects.
    pub group_kind: (String, String),
    /// Why.
    pub why: String,
}

/// What an audit came to.
#[derive(Debug, Clone, Default)]
pub struct Audited {
    /// What was found, the gravest first.
    pub entries: Vec<Entry>,
    /// What was found beyond what is kept.
    pub cut: usize,
    /// The objects that were judged.
    pub objects: usize,
    /// How often a rule had nothing to say about an object, by namespace.
    pub passes: BTreeMap<String, usize>,
    /// The kinds that could not be read.
    pub unread: Vec<Unread>,
}

impl Audited {
    /// How many findings come to this.
    pub fn count(&self, wanted: Outcome) -> usize {
        self.entries.iter().filter(|entry| entry.outcome() == wanted).count()
    }

    pub(super) fn add(&mut self, other: Self) {
        let room = MAX_KEPT.saturating_sub(self.entries.len());
        self.cut += other.cut + other.entries.len().saturating_sub(room);
        self.entries.extend(other.entries.into_iter().take(room));
        self.objects += other.objects;
        for (namespace, passes) in other.passes {
            *self.passes.entry(namespace).or_default() += passes;
        }
        self.unread.extend(other.unread);
    }

    pub(super) fn sorted(mut self) -> Self {
        self.entries.sort_by_cached_key(Entry::order);
        self
    }
}
