//! The types of the lines in a recording, which is a file of JSON lines. `portcullis serve --record` writes admission
//! decisions and their inputs to this file.

#![allow(missing_docs, reason = "most fields of the format explain themselves")]

use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use super::Answer;
use crate::admission::{Level, Phase};
use crate::catalog::Kind;

/// The version of the format of recordings. A change of the format increments it if older versions of portcullis could
/// misread a new recording.
pub const FORMAT: u32 = 1;

/// A line of a recording. It is a JSON object with one member, and the name of the member is the type of the line.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Line {
    /// The header of the recording. It is the first line.
    Recording(Header),
    /// The content of the configuration file, at the start of the recording and after each change of the file.
    Configuration(Configuration),
    /// A change in how completely the objects of a kind are cached. An example is the change from `pending` (the
    /// objects are not listed yet) to `complete` (all objects are in the cache).
    Coverage(Coverage),
    /// An object was added to the catalog, or changed.
    Stored(Stored),
    /// An object was removed from the catalog.
    Deleted(Deleted),
    Decision(Box<Decision>),
    /// Changes or decisions were dropped because the queue of the writer was full.
    Lost(Lost),
}

/// Returns the name of a resource type in recordings: plural, version and API group, such as
/// `contexts.v1alpha1.landscaper.gardener.cloud`. The version is needed because rules may look up a resource in two
/// versions. An example is EnvironmentConfig, which has one version for Crossplane 1 and another for Crossplane 2.
pub(super) fn kind_name(kind: &Kind) -> String {
    match kind.group {
        "" => format!("{}.{}", kind.plural, kind.version),
        group => format!("{}.{}.{group}", kind.plural, kind.version),
    }
}

/// Returns the kind in `kinds` with the recorded `name`, such as `contexts.v1alpha1.landscaper.gardener.cloud`. If
/// `kinds` contains this kind only in another API version, returns it in that version. The API versions can differ if
/// another release of Portcullis made the recording.
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
    /// Returns the sort key of this line in a replay: the sequence number of a change, and whether the line is a
    /// decision. For a decision, the number is that of the last change before the decision began. The decision is
    /// replayed after this change, because `false` sorts before `true`.
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
    /// The version of the format, which is [`FORMAT`] in new recordings.
    pub format: u32,
    /// The version of portcullis that made the recorded decisions.
    pub portcullis: String,
    /// The rule families that were enabled. A family is the letters of a rule id, such as `OW`.
    pub families: Vec<String>,
    /// The start of the recording, in RFC 3339.
    pub started: String,
}

/// The content of the configuration file.
#[derive(Debug, Serialize, Deserialize)]
pub struct Configuration {
    /// The sequence number of this change in the recording. Changes of the configuration and changes of cached cluster
    /// objects are numbered in one sequence.
    pub change: u64,
    pub text: String,
}

/// The coverage of a kind. It says how completely the catalog contains the objects of the kind.
#[derive(Debug, Serialize, Deserialize)]
pub struct Coverage {
    /// The sequence number of this change. All changes in a recording are numbered together, whether they concern the
    /// catalog or the configuration.
    pub change: u64,
    /// The name of the resource type, which consists of plural, version and API group. An example is
    /// `contexts.v1alpha1.landscaper.gardener.cloud`.
    pub kind: String,
    /// The new cache status of the kind: `pending` (its objects are not listed yet), `complete` (all its objects are in
    /// the cache) or `absent` (the cluster does not serve the kind).
    pub coverage: crate::catalog::Coverage,
}

/// An object as stored in the catalog.
#[derive(Debug, Serialize, Deserialize)]
pub struct Stored {
    /// The sequence number of this change in the recording. Changes of cached cluster objects and of the configuration
    /// are numbered in one sequence.
    pub change: u64,
    pub kind: String,
    pub object: Value,
}

/// An object that was removed from the catalog.
#[derive(Debug, Serialize, Deserialize)]
pub struct Deleted {
    /// The sequence number of this change in the recording. Changes of cached cluster objects and of the configuration
    /// are numbered in one sequence.
    pub change: u64,
    pub kind: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    pub name: String,
}

/// The numbers of changes and decisions that were dropped because the queue of the writer was full.
#[derive(Debug, Serialize, Deserialize)]
pub struct Lost {
    /// The sequence number of the change in the next line of the file. If the next line is a decision, this is the
    /// number of the last change before the decision. At the end of the recording, it is `u64::MAX`. The dropped
    /// changes and decisions are missing before the next line, so a replay processes this `Lost` line first.
    pub change: u64,
    /// The number of changes of the catalog or the configuration that are missing in the recording, because the queue
    /// of the writer was full.
    pub changes: u64,
    /// The number of dropped decisions.
    pub decisions: u64,
}

/// A recorded admission decision, with its request, time and answer. It also contains the objects that were read from
/// the API server for this request. The configuration and the cached cluster objects are in other lines of the
/// recording.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Decision {
    /// The sequence number of the last change of the catalog or the configuration before the decision began.
    pub changes: u64,
    /// The sequence number of the last change of the catalog or the configuration that happened during the decision.
    /// `None` if nothing changed during the decision.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changes_at_end: Option<u64>,
    /// The start of the decision, in RFC 3339. It determines whether exemptions have expired.
    pub at: String,
    /// The type of the webhook that the API server called: `mutate` or `validate`.
    pub phase: Phase,
    /// The AdmissionReview, without `managedFields`.
    pub review: Box<RawValue>,
    /// JSON pointers, such as `/object/data`, to the fields of the request that are redacted, because they may contain
    /// credentials.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub redacted: Vec<String>,
    /// The results of reads from the API server during the decision.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub live_reads: Vec<LiveRead>,
    /// The results of checking kustomize trees during the decision. A kustomize tree is a folder with a kustomization
    /// file, and all files to which it refers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub trees: Vec<Tree>,
    /// The result of the decision; `None` after a timeout or panic.
    pub answer: Option<Answer>,
}

/// The result of a live read, which reads an object from the API server.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct LiveRead {
    pub kind: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    pub name: String,
    /// The object that was read; `None` if it does not exist or could not be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub object: Option<Value>,
    /// The reason why the object could not be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// The recorded result of checking a kustomize tree.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Tree {
    /// A string that identifies the kustomize tree among the trees that were checked for the same admission request. It
    /// consists of the object's field that refers to the tree, the digest of the artifact, and the folders that are
    /// built. It may also contain the Flux Kustomization that builds the tree.
    pub root: String,
    pub outcome: TreeOutcome,
}

/// The recorded outcome of checking a kustomize tree.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum TreeOutcome {
    /// Rules have checked the kustomize tree, with these results.
    Judged {
        findings: Vec<TreeFinding>,
        /// The number of omitted findings. Findings are omitted if the tree has too many.
        #[serde(rename = "leftOut")]
        left_out: usize,
        /// The ids of the objects that Flux applies, in the format of Flux's inventory.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        rendered: Option<Vec<String>>,
    },
    /// The kustomize tree was not checked. The string is the reason.
    Unknown(String),
    /// The kustomize tree was not checked. Its files are in an artifact that must be fetched, and the recording process
    /// fetches no artifacts.
    Unasked,
}

/// A recorded finding in a kustomize tree.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TreeFinding {
    /// The id of the rule.
    pub rule: String,
    pub level: Level,
    pub file: String,
    /// The line in the file, counted from one.
    pub line: u32,
    /// The column in the file, counted from one.
    pub column: u32,
    /// The path of the field. It consists of keys and indexes, starting at the root of the file.
    pub field: Vec<Value>,
    pub message: String,
    /// The actual value of the field, if the rule reports it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub found: Option<String>,
    /// The values that the rule allows, if it reports them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allowed: Option<String>,
    /// How to fix the finding; `None` if the rule gives no advice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub help: Option<String>,
}
