//! The lines of a recording.

#![allow(missing_docs, reason = "most fields of the format explain themselves")]

use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use super::Answer;
use crate::admission::{Level, Phase};
use crate::catalog::Kind;

/// The version of the format. It changes if older versions could misread a line.
pub const FORMAT: u32 = 1;

/// A line: a JSON object with one member, whose name is the type of the line.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Line {
    /// The first line.
    Recording(Header),
    /// The configuration file was read.
    Configuration(Configuration),
    /// The coverage of a kind changed.
    Coverage(Coverage),
    /// An object was added to the catalog, or changed.
    Stored(Stored),
    /// An object was removed from the catalog.
    Deleted(Deleted),
    Decision(Box<Decision>),
    /// Entries were dropped because the queue was full.
    Lost(Lost),
}

/// Returns the name of a kind in recordings: `contexts.v1alpha1.landscaper.gardener.cloud`. The version belongs to it:
/// two versions of a kind can be two kinds, as EnvironmentConfigs of Crossplane 1 and 2.
pub(super) fn kind_name(kind: &Kind) -> String {
    match kind.group {
        "" => format!("{}.{}", kind.plural, kind.version),
        group => format!("{}.{}.{group}", kind.plural, kind.version),
    }
}

/// Finds the kind with a name among `kinds`: in the recorded version, or otherwise in any version, because another
/// release may read another version.
pub(super) fn find_kind(kinds: impl Iterator<Item = &'static Kind> + Clone, name: &str) -> Option<&'static Kind> {
    let mut parts: Vec<&str> = name.splitn(3, '.').collect();
    if parts.len() > 1 {
        parts.remove(1);
    }
    let unversioned = parts.join(".");
    let has_other_version = |kind: &&'static Kind| [&*unversioned, name].contains(&&*kind.full_name());
    kinds.clone().find(|kind| kind_name(kind) == name).or_else(|| kinds.clone().find(has_other_version))
}

impl Line {
    /// Returns the change after which the line applies, and whether it follows all other lines of that change.
    pub(super) fn position(&self) -> (u64, bool) {
        match self {
            Self::Recording(_) => (0, false),
            Self::Configuration(line) => (line.change, false),
            Self::Coverage(line) => (line.change, false),
            Self::Stored(line) => (line.change, false),
            Self::Deleted(line) => (line.change, false),
            Self::Lost(line) => (line.change, false),
            Self::Decision(line) => (line.changes, true),
        }
    }
}

/// The header of a recording.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Header {
    /// The version of the format; see [`FORMAT`].
    pub format: u32,
    /// The version of portcullis that decided.
    pub portcullis: String,
    /// The families of rules that were on.
    pub families: Vec<String>,
    /// The start of the recording, in RFC 3339.
    pub started: String,
}

/// The configuration file.
#[derive(Debug, Serialize, Deserialize)]
pub struct Configuration {
    /// The number of this change.
    pub change: u64,
    pub text: String,
}

/// The coverage of a kind: whether its objects are listed.
#[derive(Debug, Serialize, Deserialize)]
pub struct Coverage {
    /// The number of this change.
    pub change: u64,
    /// The kind, such as `contexts.v1alpha1.landscaper.gardener.cloud`.
    pub kind: String,
    /// The new coverage.
    pub coverage: crate::catalog::Coverage,
}

/// An object as stored in the catalog.
#[derive(Debug, Serialize, Deserialize)]
pub struct Stored {
    /// The number of this change.
    pub change: u64,
    pub kind: String,
    pub object: Value,
}

/// An object that was removed from the catalog.
#[derive(Debug, Serialize, Deserialize)]
pub struct Deleted {
    /// The number of this change.
    pub change: u64,
    pub kind: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    pub name: String,
}

/// The numbers of dropped entries.
#[derive(Debug, Serialize, Deserialize)]
pub struct Lost {
    /// The number of the next change.
    pub change: u64,
    /// The number of dropped changes.
    pub changes: u64,
    /// The number of dropped decisions.
    pub decisions: u64,
}

/// A decision, with its inputs other than the catalog and the configuration.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Decision {
    /// The number of the last change of the catalog before it began.
    pub changes: u64,
    /// The number of the last change before it ended; `None` if there were no changes meanwhile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changes_at_end: Option<u64>,
    /// The start of the decision, in RFC 3339. Exemptions expire by this time.
    pub at: String,
    /// The phase, which determines the called webhook.
    pub phase: Phase,
    /// The AdmissionReview, without `managedFields`.
    pub review: Box<RawValue>,
    /// The fields whose values are not recorded.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub redacted: Vec<String>,
    /// The results of its live reads.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub live_reads: Vec<LiveRead>,
    /// The findings in the trees that it judged.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub trees: Vec<Tree>,
    /// The answer; `None` after a timeout or panic.
    pub answer: Option<Answer>,
}

/// The result of a live read.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct LiveRead {
    pub kind: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    pub name: String,
    /// The object; `None` if it does not exist.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub object: Option<Value>,
    /// The reason why it could not be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// The verdict about a tree.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Tree {
    /// The tree, and the root in it.
    pub root: String,
    pub outcome: TreeOutcome,
}

/// The outcome of judging a tree.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum TreeOutcome {
    /// The tree was judged.
    Judged {
        findings: Vec<TreeFinding>,
        /// The number of findings that were omitted.
        #[serde(rename = "leftOut")]
        left_out: usize,
        /// The objects that Flux applies, as in its inventory.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        rendered: Option<Vec<String>>,
    },
    /// The tree was not judged, with the reason.
    Unknown(String),
    /// The tree had to be fetched, but nothing fetches trees.
    Unasked,
}

/// A finding in a tree.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TreeFinding {
    /// The rule's id.
    pub rule: String,
    pub level: Level,
    pub file: String,
    /// The line in it.
    pub line: u32,
    /// The column in it.
    pub column: u32,
    /// The field: names and indexes from the root of the file.
    pub field: Vec<Value>,
    pub message: String,
    /// The found value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub found: Option<String>,
    /// The allowed values.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allowed: Option<String>,
    /// The fix.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub help: Option<String>,
}
