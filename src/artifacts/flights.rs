//! Fetches under way: one for each digest, whoever asks for it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, Weak};
use std::time::Instant;

use futures::FutureExt as _;
use futures::future::{BoxFuture, Shared};
use tokio::sync::{Mutex as AsyncMutex, Semaphore};

use super::fetch::{self, FetchError, Target};
use super::{Shelf, Unpacked, lock};
use crate::kustomize::delivery::Artifact;
use crate::kustomize::tree::{ArchiveLimits, Tree};

/// What came of a fetch; why not, as the end of a sentence.
type Landed = Result<Arc<Unpacked>, String>;
/// A fetch that several wait for.
type Flight = Shared<BoxFuture<'static, Landed>>;
/// Another URL for the same digest is another fetch: the first may be wrong.
type Key = (String, String);

/// Fetches under way, and those that failed a moment ago.
pub(super) struct Flights {
    me: Weak<Self>,
    shelf: Arc<Shelf>,
    under_way: Mutex<HashMap<Key, Flight>>,
    failed: Mutex<HashMap<Key, (Instant, String)>>,
    /// One for each host that was fetched from; there are no more than are allowed.
    hosts: Mutex<HashMap<String, Arc<Semaphore>>>,
    /// Bytes that may arrive.
    arriving: Semaphore,
    /// One archive is unpacked at a time.
    unpacking: AsyncMutex<()>,
}

impl Flights {
    pub(super) fn new(shelf: Arc<Shelf>) -> Arc<Self> {
        let arriving = usize::try_from(shelf.limits.arriving).unwrap_or(usize::MAX).min(Semaphore::MAX_PERMITS);
        Arc::new_cyclic(|me| Self {
            me: me.clone(),
            under_way: Mutex::default(),
            failed: Mutex::default(),
            hosts: Mutex::default(),
            arriving: Semaphore::new(arriving),
            unpacking: AsyncMutex::new(()),
            shelf,
        })
    }

    /// The tree of an artifact: kept, under way, or fetched from now on.
    ///
    /// # Errors
    /// Why it is not fetched.
    pub(super) fn of(&self, artifact: &Artifact, hosts: &[String]) -> Result<Flight, String> {
        if let Some(unpacked) = lock(&self.shelf.trees).find(&artifact.digest) {
            return Ok(std::future::ready(Ok(unpacked)).boxed().shared());
        }
        let target = Target::of(artifact, hosts).map_err(|error| error.to_string())?;
        let key = (artifact.digest.clone(), artifact.url.clone());
        if let Some(why) = self.failed_lately(&key) {
            return Err(why);
        }
        let mut under_way = lock(&self.under_way);
        if let Some(flight) = under_way.get(&key) {
            return Ok(flight.clone());
        }
        if under_way.len() >= self.shelf.limits.most_fetches {
            return Err("too many artifacts are being fetched already".to_owned());
        }
        let me = self.me.upgrade().ok_or("portcullis is stopping")?;
        let flying = tokio::spawn(me.fly(key.clone(), target));
        let flight = async move { flying.await.unwrap_or_else(|_| Err("it could not be unpacked".to_owned())) };
        let flight = flight.boxed().shared();
        under_way.insert(key, flight.clone());
        Ok(flight)
    }

    async fn fly(self: Arc<Self>, key: Key, target: Target) -> Landed {
        let landed = self.land(&key.0, &target).await;
        self.shelf.metrics.fetched(landed.is_ok());
        let landed = landed.map_err(|error| error.to_string());
        if let Err(why) = &landed {
            tracing::warn!(url = key.1, why, "artifact not fetched");
            lock(&self.failed).insert(key.clone(), (Instant::now(), why.clone()));
        }
        lock(&self.under_way).remove(&key);
        landed
    }

    async fn land(&self, digest: &str, target: &Target) -> Result<Arc<Unpacked>, FetchError> {
        let limits = &self.shelf.limits;
        let host = self.host(target);
        let _turn = host.acquire().await;
        let (packed, _room) = fetch::fetch(target, limits, &self.arriving).await?;
        let _alone = self.unpacking.lock().await;
        let bounds = ArchiveLimits { bytes: limits.unpacked, entries: limits.entries, strict: true };
        let unpack = move || Tree::archive_within(&*packed, "/", bounds);
        let tree = tokio::task::spawn_blocking(unpack).await.map_err(|_| FetchError::Unpacking)??;
        let unpacked = Arc::new(Unpacked::new(tree));
        let weight = usize::try_from(unpacked.weight()).unwrap_or(usize::MAX);
        let mut trees = lock(&self.shelf.trees);
        trees.keep(digest.to_owned(), unpacked.clone(), weight);
        self.shelf.metrics.trees_weigh(trees.weight());
        Ok(unpacked)
    }

    fn host(&self, target: &Target) -> Arc<Semaphore> {
        let fetches = self.shelf.limits.fetches;
        lock(&self.hosts).entry(target.authority()).or_insert_with(|| Arc::new(Semaphore::new(fetches))).clone()
    }

    fn failed_lately(&self, key: &Key) -> Option<String> {
        let mut failed = lock(&self.failed);
        let within = self.shelf.limits.failed;
        failed.retain(|_, (since, _)| since.elapsed() < within);
        failed.get(key).map(|(_, why)| why.clone())
    }
}
