//! Flux's sources and their artifacts.
//!
//! Source: `Artifact` in fluxcd/pkg's `apis/meta/artifact.go`.

use std::sync::Arc;

use serde_json::Value;

use crate::admission::json::Lookup as _;
use crate::catalog::{Kind, Scope, Storage, Stored, View};

/// API group of Flux's sources.
pub const GROUP: &str = "source.toolkit.fluxcd.io";
/// The API version of Flux's sources.
pub const VERSION: &str = "v1";

const fn source(kind: &'static str, plural: &'static str) -> Kind {
    Kind {
        group: GROUP,
        version: VERSION,
        kind,
        plural,
        scope: Scope::Namespaced,
        indexes: &[],
        storage: Storage::Whole,
    }
}

/// The kind GitRepository of Flux.
pub static GIT_REPOSITORIES: Kind = source("GitRepository", "gitrepositories");
/// The kind OCIRepository of Flux.
pub static OCI_REPOSITORIES: Kind = source("OCIRepository", "ocirepositories");
/// The kind Bucket of Flux.
pub static BUCKETS: Kind = source("Bucket", "buckets");
/// The kind ExternalArtifact of Flux. Its objects refer to artifacts of other controllers, such as source-watcher.
pub static EXTERNAL_ARTIFACTS: Kind = source("ExternalArtifact", "externalartifacts");

/// The kinds of all Flux sources.
pub static SOURCES: [&Kind; 4] = [&GIT_REPOSITORIES, &OCI_REPOSITORIES, &BUCKETS, &EXTERNAL_ARTIFACTS];

/// Returns the kind of Flux source with this name, such as `GitRepository`. `None` if no kind has this name.
pub fn kind(name: &str) -> Option<&'static Kind> {
    SOURCES.into_iter().find(|kind| kind.kind == name)
}

/// A reference to the archive of a source's revision, from the field `status.artifact` of the source.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Artifact {
    /// The URL of the archive, over plain HTTP.
    pub url: String,
    /// The expected digest of the archive, such as `sha256:3f2c…`, from `status.artifact.digest`. A source may also use
    /// sha384 or sha512.
    pub digest: String,
    /// The revision of the source, such as `main@sha1:…`, for messages.
    pub revision: String,
}

/// Number of digits in a shortened hash. Messages shorten the hash of a revision or digest, such as
/// `main@sha1:3f2c9a1b04de`.
const SHOWN_DIGITS: usize = 12;
/// Length of a short digest: `sha256:` and the shown digits.
const SHORT_DIGEST: usize = 7 + SHOWN_DIGITS;
/// Maximum length of a revision. The limit exists because every message shows the revision. source-controller writes
/// shorter revisions, but other controllers may write longer ones.
const MAX_REVISION_LENGTH: usize = 100;

impl Artifact {
    /// Returns the artifact in the status of a source. `None` if the status contains no artifact with a URL.
    pub fn of(source: &Value) -> Option<Self> {
        let artifact = source.get("status")?.get("artifact")?;
        let text = |key: &str| artifact.get(key).and_then(Value::as_str).unwrap_or_default();
        let revision = text("revision");
        let shown = || revision.chars().filter(|letter| !letter.is_control()).take(MAX_REVISION_LENGTH).collect();
        let is_plain = revision.len() <= MAX_REVISION_LENGTH && revision.bytes().all(|byte| byte.is_ascii_graphic());
        let revision = if is_plain { revision.to_owned() } else { shown() };
        let artifact = Self { url: text("url").to_owned(), digest: text("digest").to_owned(), revision };
        (!artifact.url.is_empty()).then_some(artifact)
    }

    /// Returns the revision with a shortened hash, such as `main@sha1:3f2c9a1b04de`. If the artifact has no revision,
    /// returns its shortened digest instead.
    pub fn short_revision(&self) -> String {
        match self.revision.rsplit_once(':') {
            Some((name, hash)) => format!("{name}:{}", hash.chars().take(SHOWN_DIGITS).collect::<String>()),
            None if self.revision.is_empty() => self.digest.chars().take(SHORT_DIGEST).collect(),
            None => self.revision.clone(),
        }
    }
}

/// The state of the source to which a Kustomization refers.
pub(super) enum Known {
    /// The source has an artifact. Contains the artifact and the stored source object.
    Artifact(Artifact, Arc<Stored>),
    /// The source exists, and has no artifact yet.
    Empty,
    /// The source does not exist.
    Missing,
    /// It is unknown whether the source exists, or which artifact it has.
    Unknown,
}

/// Returns whether a source has a status without an artifact. `false` for a source from a file, which has no status.
pub(super) fn is_empty(source: &Value) -> bool {
    let url = source.at(&["status", "artifact", "url"]).and_then(Value::as_str);
    source.get("status").is_some() && url.is_none_or(str::is_empty)
}

/// Looks up a Flux source, such as a GitRepository, and returns the artifact in its status. If there is no artifact,
/// the result says whether the source is missing, has no artifact yet, or is unknown.
pub(super) fn find(view: &View<'_>, kind: &'static Kind, namespace: &str, name: &str) -> Known {
    match view.find(kind, namespace, name) {
        // A source from a file has no status, and its future status is unknown.
        Some(stored) if stored.value().get("status").is_none() => Known::Unknown,
        Some(stored) => match Artifact::of(stored.value()) {
            Some(artifact) => Known::Artifact(artifact, stored),
            None => Known::Empty,
        },
        None if view.is_missing(kind, namespace, name) => Known::Missing,
        None => Known::Unknown,
    }
}
