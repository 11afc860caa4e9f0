//! Runs the fetches of artifacts. Concurrent requests for an artifact share one fetch.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use tokio::sync::{Mutex as AsyncMutex, Semaphore};

use super::fetch::{self, FetchError, Target};
use super::{State, Unpacked, once};
use crate::cache::{RecentFailures, SharedResult, SingleFlight};
use crate::kustomize::delivery::Artifact;

/// The unpacked tree of an artifact, or the reason why the artifact was not fetched. The reason is a clause that
/// callers append to their own message.
type Fetched = Result<Arc<Unpacked>, String>;
/// The key of a fetch: the digest and the URL of an artifact. Two sources can name the same digest with different URLs.
/// If the content at one URL is wrong, the fetch from the other URL must still succeed.
type Key = (String, String);

/// The fetches of artifacts that are in flight, and the fetches that failed recently.
pub(super) struct Fetches {
    me: Weak<Self>,
    state: Arc<State>,
    in_flight: SingleFlight<Key, Fetched>,
    failures: RecentFailures<Key>,
    /// A semaphore for each host, which limits the concurrent fetches from the host. The map is bounded, because it
    /// contains only allowed hosts.
    hosts: Mutex<HashMap<String, Arc<Semaphore>>>,
    /// Limits the total bytes of archives that are being downloaded or unpacked.
    arriving: Semaphore,
    /// Limits unpacking to one archive at a time.
    unpacking: AsyncMutex<()>,
}

impl Fetches {
    pub(super) fn new(state: Arc<State>) -> Arc<Self> {
        let limits = state.limits.clone();
        let arriving = usize::try_from(limits.arriving).unwrap_or(usize::MAX).min(Semaphore::MAX_PERMITS);
        Arc::new_cyclic(|me| Self {
            me: me.clone(),
            in_flight: SingleFlight::new(limits.max_fetches),
            failures: RecentFailures::new(limits.failed, limits.max_failures),
            hosts: Mutex::default(),
            arriving: Semaphore::new(arriving),
            unpacking: AsyncMutex::new(()),
            state,
        })
    }

    /// Returns the unpacked files of an artifact, if they are cached. Otherwise, returns the running download of the
    /// artifact. Starts the download if there is none. `hosts` are the allowed hosts in addition to those of Flux.
    ///
    /// # Errors
    /// If the artifact must not or cannot be downloaded. The error is a clause such as `too many artifacts are being
    /// fetched already`, which callers append to their own message.
    pub(super) fn of(&self, artifact: &Artifact, hosts: &[String]) -> Result<Fetch, String> {
        if let Some(unpacked) = self.state.trees.get(&artifact.digest) {
            return Ok(Fetch::Cached(unpacked));
        }
        let target = Target::of(artifact, hosts).map_err(|error| error.to_string())?;
        let key = (artifact.digest.clone(), artifact.url.clone());
        if let Some(why) = self.failures.get(&key) {
            return Err(why);
        }
        let me = self.me.upgrade().ok_or("portcullis is stopping")?;
        let result = self.in_flight.share(key.clone(), || me.fetch(key, target));
        result.map(Fetch::InFlight).map_err(|_| "too many artifacts are being fetched already".to_owned())
    }

    async fn fetch(self: Arc<Self>, key: Key, target: Target) -> Fetched {
        let fetched = self.unpacked(&key.0, &target).await;
        self.state.metrics.fetched(fetched.is_ok());
        fetched.map_err(|error| {
            let why = error.to_string();
            tracing::warn!(url = key.1, why, "artifact not fetched");
            self.failures.insert(key, why.clone());
            why
        })
    }

    async fn unpacked(&self, digest: &str, target: &Target) -> Result<Arc<Unpacked>, FetchError> {
        let limits = &self.state.limits;
        let host = self.host(target);
        let _permit = host.acquire().await;
        let (packed, _arriving) = fetch::fetch(target, limits, &self.arriving).await?;
        let _guard = self.unpacking.lock().await;
        let tree = once::unpacked(packed, limits).await?;
        let unpacked = Arc::new(Unpacked::new(tree));
        let weight = usize::try_from(unpacked.weight()).unwrap_or(usize::MAX);
        self.state.trees.insert(digest.to_owned(), unpacked.clone(), weight);
        self.state.metrics.trees_weigh(self.state.trees.weight());
        Ok(unpacked)
    }

    fn host(&self, target: &Target) -> Arc<Semaphore> {
        let permits = self.state.limits.fetches;
        let mut hosts = self.hosts.lock().unwrap_or_else(PoisonError::into_inner);
        hosts.entry(target.authority()).or_insert_with(|| Arc::new(Semaphore::new(permits))).clone()
    }
}

/// The cached tree of an artifact, or the fetch in flight.
pub(super) enum Fetch {
    Cached(Arc<Unpacked>),
    InFlight(SharedResult<Fetched>),
}

impl Fetch {
    /// Returns the unpacked files of the artifact. If the fetch is still in flight, waits until it ends.
    ///
    /// # Errors
    /// If the artifact could not be fetched or unpacked. The error is a clause such as `it could not be unpacked`.
    /// Callers append it to their own message.
    pub(super) async fn tree(self) -> Fetched {
        match self {
            Self::Cached(unpacked) => Ok(unpacked),
            Self::InFlight(result) => result.await.unwrap_or_else(|| Err("it could not be unpacked".to_owned())),
        }
    }
}
