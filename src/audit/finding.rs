//! The findings of an audit.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::admission::{Finding, Level, Metadata};
use crate::catalog::Reference;

/// The rule id in findings about objects that could not be parsed or checked.
pub const UNREADABLE: &str = "unreadable";
/// Maximum number of findings in the result of an audit, because each finding takes a few hundred bytes. Users who have
/// more findings can audit a few rules at a time.
const MAX_ENTRIES: usize = 50_000;
/// Maximum length of a message in a report or table, in characters, because messages may quote long user input.
const MAX_MESSAGE_CHARS: usize = 1024;

/// A reference to a stored object.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Subject {
    /// Namespace of the object; empty for cluster-scoped objects.
    pub namespace: String,
    /// Kind of the object, such as `Installation`.
    pub kind: String,
    /// Name of the object.
    pub name: String,
    /// API version of the object: group and version, such as `landscaper.gardener.cloud/v1alpha1`.
    pub api_version: String,
    /// Uid of the object, which the API server assigned. Empty for objects without a uid, such as most objects in
    /// files.
    pub uid: String,
}

impl Subject {
    /// Returns the reference to an object.
    pub(super) fn of(object: &Value) -> Self {
        let text = |key| object.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
        let metadata = Metadata::of(object);
        Self {
            namespace: metadata.namespace().to_owned(),
            kind: text("kind"),
            name: metadata.name().to_owned(),
            api_version: text("apiVersion"),
            uid: metadata.uid().unwrap_or_default().to_owned(),
        }
    }

    fn is_of(&self, object: &Reference) -> bool {
        let group = self.api_version.rsplit_once('/').map_or("", |(group, _)| group);
        (group, &*self.kind) == (object.kind.group, object.kind.kind)
            && (&self.namespace, &self.name) == (&object.namespace, &object.name)
    }
}

/// The outcome of a finding, as in policy reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Outcome {
    /// An exemption in the configuration applies to the finding.
    Skip,
    /// The finding has the level `warn` or `audit`. The next update of the object will be admitted, with a warning or
    /// with an entry in the audit log.
    Warn,
    /// The finding has the level `deny`, so the next update of the object will be denied.
    Fail,
    /// The object cannot be read, so its next update will be denied.
    Error,
}

impl Outcome {
    /// Returns the name of the outcome in policy reports: `skip`, `warn`, `fail` or `error`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Skip => "skip",
            Self::Warn => "warn",
            Self::Fail => "fail",
            Self::Error => "error",
        }
    }
}

/// A finding on a stored object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The object with the finding.
    pub subject: Subject,
    /// The id of the rule. It is [`UNREADABLE`] if the object could not be parsed or checked.
    pub rule: &'static str,
    /// The level that the finding would have if the object were updated without changes.
    pub level: Level,
    /// Whether an exemption in the configuration applies to the finding.
    pub is_exempt: bool,
    /// The path of the field with the error; empty for the whole object.
    pub field: String,
    /// The message of the finding, truncated to a maximum length.
    pub message: String,
    /// A text that says how to fix the finding; `None` if the rule provides no such text.
    pub help: Option<String>,
    /// Whether the finding is new, which means that the previous report does not contain it. `None` without a previous
    /// report.
    pub is_new: Option<bool>,
}

impl Entry {
    pub(super) fn new(subject: &Subject, finding: Finding) -> Self {
        let Finding { rule, level, field, message, location: place, help, is_exempt, .. } = finding;
        let message = place.map(|place| format!("{message} ({place})")).unwrap_or(message);
        let (subject, field, message) = (subject.clone(), field.to_string(), cut(message));
        Self { subject, rule, level, is_exempt, field, message, help: help.map(cut), is_new: None }
    }

    /// Creates the finding about an object that cannot be parsed or checked. `why` is the reason.
    pub(super) fn unreadable(subject: &Subject, why: String) -> Self {
        let (subject, message) = (subject.clone(), cut(why));
        let (field, help) = (String::new(), None);
        Self { subject, rule: UNREADABLE, level: Level::Deny, is_exempt: false, field, message, help, is_new: None }
    }

    /// Returns the outcome of the finding, for policy reports and metrics.
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

/// A kind whose objects an audit could not list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unread {
    /// Full name of the resource: `installations.landscaper.gardener.cloud`.
    pub resource: String,
    /// API group and kind of the objects: `landscaper.gardener.cloud` and `Installation`.
    pub group_kind: (String, String),
    /// The error of the request that lists the objects.
    pub why: String,
}

/// The result of an audit.
#[derive(Debug, Clone, Default)]
pub struct Audited {
    /// The findings, the most severe first.
    pub entries: Vec<Entry>,
    /// Number of findings that were omitted because there are too many.
    pub cut: usize,
    /// Number of checked objects.
    pub objects: usize,
    /// Number of passes by namespace. A pass is one rule that reports no finding for one object.
    pub passes: BTreeMap<String, usize>,
    /// The kinds whose objects could not be listed.
    pub unread: Vec<Unread>,
}

impl Audited {
    /// Returns the number of findings with the outcome `wanted`.
    pub fn count(&self, wanted: Outcome) -> usize {
        self.entries.iter().filter(|entry| entry.outcome() == wanted).count()
    }

    pub(super) fn add(&mut self, other: Self) {
        let room = MAX_ENTRIES.saturating_sub(self.entries.len());
        self.cut += other.cut + other.entries.len().saturating_sub(room);
        self.entries.extend(other.entries.into_iter().take(room));
        self.objects += other.objects;
        for (namespace, passes) in other.passes {
            *self.passes.entry(namespace).or_default() += passes;
        }
        self.unread.extend(other.unread);
    }

    /// Replaces the findings about `objects` with the findings in `later`. `later` is an audit of only these objects.
    /// The number of checked objects and the counts in `passes` do not change.
    #[must_use]
    pub fn updated(mut self, objects: &[Reference], later: Self) -> Self {
        self.entries.retain(|entry| !objects.iter().any(|object| entry.subject.is_of(object)));
        self.add(Self { objects: 0, passes: BTreeMap::new(), ..later });
        self.sorted()
    }

    pub(super) fn sorted(mut self) -> Self {
        self.entries.sort_by_cached_key(Entry::order);
        self
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::admission::FieldPath;
    use crate::catalog::NAMESPACES;

    fn audited(findings: &[(&str, &'static str)]) -> Audited {
        let entry = |(name, rule): &(&str, &'static str)| {
            let object = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
            Entry::new(&Subject::of(&object), Finding::new(rule, Level::Warn, FieldPath::default(), "wrong"))
        };
        let passes = [(String::new(), 7)].into();
        Audited { entries: findings.iter().map(entry).collect(), objects: 3, passes, ..Audited::default() }.sorted()
    }

    #[test]
    fn a_later_audit_of_objects_replaces_only_their_findings() {
        let all = audited(&[("a", "KZ001"), ("b", "KZ001"), ("c", "KZ002")]);
        let objects = ["b", "c"].map(|name| Reference::new(&NAMESPACES, "", name));
        let updated = all.updated(&objects, audited(&[("c", "KZ001"), ("b", "KZ043")]));
        let expected = audited(&[("a", "KZ001"), ("c", "KZ001"), ("b", "KZ043")]);
        assert_eq!(updated.entries, expected.entries, "in the order of an audit of all objects");
        assert_eq!((updated.objects, updated.passes), (expected.objects, expected.passes));
    }
}
