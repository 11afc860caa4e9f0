//! The artifact cache. It fetches kustomize trees, verifies and unpacks them, checks them, and caches the results.
//!
//! ```text
//! root ─► result cached? ─► tree cached? ─► fetch (single flight) ─► verify digest ─► unpack ─► check ─► cache
//! ```
//!
//! A root is the folder of a tree that a tool such as Flux builds. Fetches run in the background: a request handler
//! waits for a fetch only until the deadline of the request. The fetch then continues, and the next request finds its
//! result.
//!
//! Artifacts are fetched only from allowed hosts. Fetches send no credentials and follow no redirects. An archive is
//! unpacked only if its digest is correct. The module [`limits`] contains the limits on sizes, numbers and times.

mod fetch;
mod fetches;
pub mod limits;
mod metrics;
mod once;
mod service;

use std::sync::Arc;
use std::time::Instant;

use futures::FutureExt as _;
use tokio::sync::Semaphore;
use tokio::time::timeout_at;

pub use fetch::{FetchError, OWN_HOSTS, is_allowed};
pub use limits::Limits;
pub use metrics::Metrics;
pub use once::{fetch_once, receive};
pub use service::Service;

use crate::cache::Lru;
use crate::kustomize::Files;
use crate::kustomize::delivery::{Artifact, At, Content, Judge, Judged, Judging, Outcome, Root, judge};
use crate::kustomize::engine::Shared;
use crate::kustomize::options::{Options, Profile};
use crate::kustomize::tree::Tree;
use fetches::Fetches;

/// The artifact cache, which fetches kustomize files and checks them. The files come from an archive on a server, or
/// from a Kubernetes object such as a ConfigMap. The files of archives and the results of their checks are cached.
pub struct Artifacts {
    state: Arc<State>,
    fetches: Arc<Fetches>,
}

/// The caches and limits that fetching and checking share.
struct State {
    limits: Limits,
    metrics: Metrics,
    trees: Lru<String, Arc<Unpacked>>,
    verdicts: Lru<Question, Arc<Judged>>,
    /// Built bases that several kustomization roots of a tree share. The key consists of the digest of the tree and the
    /// profile with which the roots are built.
    bases: Lru<(String, Profile), Arc<Shared>>,
    /// A semaphore that allows only one kustomization root to be checked at a time. Checking a root takes about a
    /// millisecond of processor time, and other requests need the processor too.
    judging: Semaphore,
}

/// A fetched and unpacked tree, with its parsed kustomization files.
struct Unpacked {
    tree: Arc<Tree>,
    /// The parsed kustomization files of the tree; `None` if they are too large to be cached.
    files: Option<Files>,
}

impl Unpacked {
    fn new(tree: Tree) -> Self {
        let files = (tree.kustomizations_cost() <= limits::SHARED).then(|| Files::within(limits::SHARED));
        Self { tree: Arc::new(tree), files }
    }

    /// Estimates the maximum size of the tree with its parsed files, in bytes.
    fn weight(&self) -> u64 {
        let parsed = if self.files.is_some() { self.tree.kustomizations_cost() * limits::PARSED } else { 0 };
        self.tree.weight() + parsed
    }
}

/// The key of the cached result of checking a kustomize tree. It consists of the digest of the tree, the folder in the
/// tree, and the options of the build.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Question {
    digest: String,
    at: At,
    options: Options,
}

impl Question {
    /// Estimates the size of this cache key, in bytes.
    fn weight(&self) -> usize {
        let (At::Folder(path) | At::FolderIfAny(path)) = &self.at else { return size_of::<Self>() };
        let spec = self.options.flux.weight();
        size_of::<Self>() + self.digest.len() + path.len() + spec
    }
}

impl Artifacts {
    /// Creates an empty cache. If several callers wait for the same fetch, it runs on the Tokio runtime of the first
    /// caller.
    pub fn new(limits: Limits, metrics: Metrics) -> Self {
        let state = Arc::new(State {
            trees: Lru::new(limits.kept_trees, limits.max_trees),
            verdicts: Lru::new(limits.kept_verdicts, limits.max_verdicts),
            bases: Lru::new(limits::KEPT_BASES, limits.max_trees),
            judging: Semaphore::new(1),
            metrics,
            limits,
        });
        Self { fetches: Fetches::new(state.clone()), state }
    }

    async fn outcome(&self, root: &Root, hosts: &[String], last: Instant) -> Outcome {
        let answer = async {
            match &root.content {
                Content::Artifact(artifact) => self.of_artifact(artifact, root, hosts, last).await,
                Content::Carried(unpack) => self.of_carried(unpack.clone(), root, last).await,
            }
        };
        answer.await.map_or_else(Outcome::Unknown, Outcome::Judged)
    }

    async fn of_artifact(
        &self,
        artifact: &Artifact,
        root: &Root,
        hosts: &[String],
        last: Instant,
    ) -> Result<Arc<Judged>, String> {
        let question = Question { digest: artifact.digest.clone(), at: root.at.clone(), options: root.options.clone() };
        if let Some(judged) = self.state.verdicts.get(&question) {
            self.state.metrics.verdict_kept();
            return Ok(judged);
        }
        let fetch = self.fetches.of(artifact, hosts)?;
        let late = "it is still being fetched; apply again in a moment";
        let unpacked = timeout_at(last.into(), fetch.tree()).await.map_err(|_| late)??;
        let (state, root) = (self.state.clone(), root.clone());
        let work = move || {
            let tree = unpacked.tree.within(state.limits.read);
            let own = Files::default();
            let files = unpacked.files.as_ref().unwrap_or(&own);
            let shared = state.bases_of(&question.digest, root.options.profile);
            let judged = Arc::new(judge(&tree, &root, (files, &shared)));
            let weight = judged.weight() + question.weight();
            state.verdicts.insert(question, judged.clone(), weight);
            Ok(judged)
        };
        self.state.clone().work(work, last).await
    }

    async fn of_carried(
        &self,
        unpack: Arc<dyn Fn() -> Result<Tree, String> + Send + Sync>,
        root: &Root,
        last: Instant,
    ) -> Result<Arc<Judged>, String> {
        let (root, read) = (root.clone(), self.state.limits.read);
        let work = move || {
            let tree = Arc::new(unpack()?).within(read);
            Ok(Arc::new(judge(&tree, &root, (&Files::default(), &Shared::default()))))
        };
        self.state.clone().work(work, last).await
    }
}

impl State {
    /// Returns the cache for the build results of bases in one kustomize tree. A base is a kustomization that another
    /// one refers to. `digest` identifies the tree, and `profile` is the system that builds it, such as Flux. If the
    /// cache does not exist, creates it.
    fn bases_of(&self, digest: &str, profile: Profile) -> Arc<Shared> {
        let key = (digest.to_owned(), profile);
        self.bases.get(&key).unwrap_or_else(|| {
            let shared = Arc::new(Shared::within(limits::BASES));
            self.bases.insert(key, shared.clone(), limits::BASES as usize);
            shared
        })
    }

    /// Runs `work`, a closure that checks one kustomization root, on a blocking thread. Only one root is checked at a
    /// time. Returns an error if `work` has not ended by the deadline `last`.
    async fn work(
        self: Arc<Self>,
        work: impl FnOnce() -> Result<Arc<Judged>, String> + Send + 'static,
        last: Instant,
    ) -> Result<Arc<Judged>, String> {
        let late = "checking it takes too long; apply again";
        let done = async {
            let judging = self.clone();
            let permit = judging.judging.acquire().await.map_err(|error| error.to_string())?;
            permit.forget();
            self.metrics.judged();
            let work = move || {
                // The permit is also released if the work panics.
                let _permit = Permit(self);
                work()
            };
            tokio::task::spawn_blocking(work).await.unwrap_or_else(|_| Err("it could not be checked".to_owned()))
        };
        timeout_at(last.into(), done).await.map_err(|_| late)?
    }
}

/// A permit to check one kustomization root. The permit is released when this value is dropped.
struct Permit(Arc<State>);

impl Drop for Permit {
    fn drop(&mut self) {
        self.0.judging.add_permits(1);
    }
}

impl Judge for Artifacts {
    fn judge<'a>(&'a self, root: &'a Root, hosts: &'a [String], last: Instant) -> Judging<'a> {
        self.outcome(root, hosts, last).boxed()
    }

    fn fetch_ahead(&self, artifact: &Artifact, hosts: &[String]) {
        if let Err(why) = self.fetches.of(artifact, hosts) {
            tracing::debug!(url = artifact.url, why, "artifact not prefetched");
        }
    }
}
