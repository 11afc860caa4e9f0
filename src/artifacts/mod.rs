//! Artifacts: fetches, judges and caches trees outside the request handler.
//!
//! ```text
//! root ─► verdict cached? ─► tree cached? ─► fetch, one per digest ─► digest correct? ─► unpack ─► judge ─► cache
//! ```
//!
//! A handler waits at most until its deadline; the fetch continues and serves the next request. Artifacts are fetched
//! only from allowed hosts, without credentials and redirects, and are unpacked only if the digest is correct. All
//! caches are bounded; see [`limits`].

mod fetch;
mod flights;
mod kept;
pub mod limits;
mod metrics;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use futures::FutureExt as _;
use tokio::sync::Semaphore;
use tokio::time::timeout_at;

pub use fetch::{FetchError, OWN_HOSTS, is_allowed};
pub use limits::Limits;
pub use metrics::Metrics;

use crate::kustomize::Files;
use crate::kustomize::delivery::{Artifact, At, Content, Judge, Judged, Judging, Outcome, Root, judge};
use crate::kustomize::options::Options;
use crate::kustomize::tree::Tree;
use flights::Flights;
use kept::Kept;

/// Fetches and judges trees.
pub struct Artifacts {
    shelf: Arc<Shelf>,
    flights: Arc<Flights>,
}

/// The caches, and the state for judging.
struct Shelf {
    limits: Limits,
    metrics: Metrics,
    trees: Mutex<Kept<String, Arc<Unpacked>>>,
    verdicts: Mutex<Kept<Question, Arc<Judged>>>,
    /// One root is judged at a time, which takes a millisecond; the other processors serve requests.
    judging: Semaphore,
}

/// A fetched tree with the files parsed from it.
struct Unpacked {
    tree: Arc<Tree>,
    /// `None` if they are too large to keep.
    files: Option<Files>,
}

impl Unpacked {
    fn new(tree: Tree) -> Self {
        let files = (tree.kustomizations_cost() <= limits::SHARED).then(Files::default);
        Self { tree: Arc::new(tree), files }
    }

    /// Estimates the maximum size in bytes.
    fn weight(&self) -> u64 {
        let parsed = if self.files.is_some() { self.tree.kustomizations_cost() * limits::PARSED } else { 0 };
        self.tree.weight() + parsed
    }
}

/// The key of a verdict: the tree, the folder, and the build options.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Question {
    digest: String,
    at: At,
    options: Options,
}

impl Question {
    /// Estimates the size in bytes.
    fn weight(&self) -> usize {
        let (At::Folder(path) | At::FolderIfAny(path)) = &self.at else { return size_of::<Self>() };
        let spec = self.options.flux.weight();
        // The key is stored twice: in the map, and in the order of use.
        2 * (size_of::<Self>() + self.digest.len() + path.len() + spec)
    }
}

impl Artifacts {
    /// Creates the caches within `limits`. Must be called in the Tokio runtime that uses them.
    pub fn new(limits: Limits, metrics: Metrics) -> Self {
        let shelf = Arc::new(Shelf {
            trees: Mutex::new(Kept::new(limits.kept_trees, limits.most_trees)),
            verdicts: Mutex::new(Kept::new(limits.kept_verdicts, limits.most_verdicts)),
            judging: Semaphore::new(1),
            metrics,
            limits,
        });
        Self { flights: Flights::new(shelf.clone()), shelf }
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
        if let Some(judged) = lock(&self.shelf.verdicts).find(&question) {
            self.shelf.metrics.verdict_kept();
            return Ok(judged);
        }
        let flight = self.flights.of(artifact, hosts)?;
        let late = "it is still being fetched; apply again";
        let unpacked = timeout_at(last.into(), flight).await.map_err(|_| late)??;
        let (shelf, root) = (self.shelf.clone(), root.clone());
        let work = move || {
            let tree = unpacked.tree.within(shelf.limits.read);
            let own = Files::default();
            let judged = Arc::new(judge(&tree, &root, unpacked.files.as_ref().unwrap_or(&own)));
            let weight = judged.weight() + question.weight();
            lock(&shelf.verdicts).keep(question, judged.clone(), weight);
            Ok(judged)
        };
        self.shelf.clone().work(work, last).await
    }

    async fn of_carried(
        &self,
        unpack: Arc<dyn Fn() -> Result<Tree, String> + Send + Sync>,
        root: &Root,
        last: Instant,
    ) -> Result<Arc<Judged>, String> {
        let (root, read) = (root.clone(), self.shelf.limits.read);
        let work = move || {
            let tree = Arc::new(unpack()?).within(read);
            Ok(Arc::new(judge(&tree, &root, &Files::default())))
        };
        self.shelf.clone().work(work, last).await
    }
}

impl Shelf {
    /// Runs slow work on the blocking thread pool, one task at a time.
    async fn work(
        self: Arc<Self>,
        work: impl FnOnce() -> Result<Arc<Judged>, String> + Send + 'static,
        last: Instant,
    ) -> Result<Arc<Judged>, String> {
        let late = "judging it takes too long; apply again";
        let done = async {
            let judging = self.clone();
            let permit = judging.judging.acquire().await.map_err(|error| error.to_string())?;
            permit.forget();
            self.metrics.judged();
            let work = move || {
                // Also released if the work panics.
                let _permit = Permit(self);
                work()
            };
            tokio::task::spawn_blocking(work).await.unwrap_or_else(|_| Err("it could not be judged".to_owned()))
        };
        timeout_at(last.into(), done).await.map_err(|_| late)?
    }
}

/// A permit for judging, released on drop.
struct Permit(Arc<Shelf>);

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
        if let Err(why) = self.flights.of(artifact, hosts) {
            tracing::debug!(url = artifact.url, why, "not fetched ahead");
        }
    }
}

/// Every change is one call, so the data is consistent even after a panic.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
