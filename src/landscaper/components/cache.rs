//! The component cache: fetches component descriptors from registries once, keeps them within a size limit, and
//! refreshes them.
//!
//! The key of an entry consists of repository, component, version and credentials. So a descriptor that was fetched
//! with certain credentials is not returned for other credentials. Descriptors with the same digest are stored once.
//! During an outage of a registry, known descriptors stay in the cache.

use std::cell::RefCell;
use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use futures::{StreamExt, stream};
use tokio::time::{Instant, timeout_at};

use super::closure::{Closure, Found};
use super::descriptor::Descriptor;
use super::{artifact, repository, versions};
use crate::cache::{Lru, RecentFailures, SingleFlight};
use crate::landscaper::component_reference::ComponentReference;
use crate::landscaper::substitution::Entry;
use crate::oci::{Client, Credentials, Error, Keyring, Manifest, Mirror, Repository};

/// Maximum number of component descriptors that are fetched at the same time for one component tree. The limit bounds
/// the load on a registry.
const AT_ONCE: usize = 8;
/// Maximum number of component descriptors that are fetched at the same time, for the component trees of all
/// Installations together. Descriptors beyond this limit are not fetched. They stay unknown until Portcullis computes
/// the component tree again.
const MAX_IN_FLIGHT: usize = 256;
/// Maximum number of registries whose outages are remembered, to bound the memory. Beyond this limit, the least
/// recently used ones are forgotten.
const HOSTS: usize = 1_000;
/// Maximum size of the cached descriptors, in bytes. The limit applies separately to the cache entries and to the index
/// of descriptors by digest. Both refer to the same descriptors in memory.
const MAX_BYTES: u64 = 128 << 20;
/// Estimated size of a cache entry without its descriptor, in bytes.
const ENTRY_BYTES: usize = 512;

/// The time to live of entries in a cache of component descriptors. It depends on the result of fetching the
/// descriptor: success, a version that does not exist, or a failure.
#[derive(Debug, Clone, Copy)]
pub struct Freshness {
    /// Time to live of descriptors. It can be long, because a published version normally does not change.
    pub descriptor: Duration,
    /// Time to live of cache entries for versions that do not exist. Such a version may be published soon.
    pub missing: Duration,
    /// Time to live of cache entries for failures. A failure is a descriptor that cannot be read, or a registry that
    /// does not answer.
    pub failure: Duration,
}

impl Default for Freshness {
    fn default() -> Self {
        Self {
            descriptor: Duration::from_secs(3600),
            missing: Duration::from_secs(60),
            failure: Duration::from_secs(30),
        }
    }
}

/// A cache of component descriptors that were read from OCI registries.
pub struct ComponentCache {
    mirrors: Vec<Mirror>,
    in_flight: SingleFlight<Key, ()>,
    state: Arc<State>,
}

/// The state of the cache that concurrent fetches share: the cache entries, the OCI client, and the recent outages of
/// registries.
struct State {
    client: Client,
    freshness: Freshness,
    entries: Lru<Key, Known>,
    by_digest: Lru<String, Arc<Descriptor>>,
    outages: RecentFailures<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Key {
    repository: Repository,
    component: String,
    version: String,
    credentials: String,
}

#[derive(Debug, Clone)]
struct Known {
    found: Found,
    digest: Option<String>,
    due: Instant,
}

impl Known {
    /// Returns whether the component version must be fetched again.
    fn is_due(&self) -> bool {
        self.due <= Instant::now()
    }
}

/// The result of fetching a component version from a registry.
struct Answer {
    found: Found,
    digest: Option<String>,
    is_outage: bool,
}

impl ComponentCache {
    /// Creates an empty cache without mirrors.
    pub fn new(client: Client, freshness: Freshness) -> Self {
        let state = State {
            entries: Lru::new(MAX_BYTES, usize::MAX),
            by_digest: Lru::new(MAX_BYTES, usize::MAX),
            outages: RecentFailures::new(freshness.failure, HOSTS),
            client,
            freshness,
        };
        Self { mirrors: Vec::new(), in_flight: SingleFlight::new(MAX_IN_FLIGHT), state: Arc::new(state) }
    }

    /// Sets the registry mirrors. If a registry has a mirror, the cache fetches from the mirror instead.
    #[must_use]
    pub fn mirrored(self, mirrors: Vec<Mirror>) -> Self {
        Self { mirrors, ..self }
    }

    /// Looks up a component version in the cache, without fetching it. Returns [`Found::Pending`] if the cache does not
    /// contain the version. The result depends on `keyring`, because the cache separates descriptors by the credentials
    /// for their repositories.
    pub fn find(&self, reference: &ComponentReference, keyring: &Keyring) -> Found {
        match self.key(reference, keyring) {
            Ok((key, _)) => self.state.entries.get(&key).map_or(Found::Pending, |known| known.found),
            Err(gap) => gap,
        }
    }

    /// Computes the component tree of the reference `root`, and applies the overwrites `entries` to each reference in
    /// the tree. Fetches descriptors that the cache lacks or must refresh, with the credentials in `keyring`. Waits for
    /// these fetches until the time `until`. A descriptor that is not in the cache at this time is unknown in the tree
    /// ([`Found::Pending`]).
    ///
    /// `inside` returns descriptors that need no fetch, such as inline descriptors.
    pub async fn closure(
        &self,
        root: &ComponentReference,
        entries: &[Entry],
        keyring: &Keyring,
        inside: impl Fn(&ComponentReference) -> Option<Arc<Descriptor>>,
        until: Instant,
    ) -> Closure {
        let mut requested = HashSet::new();
        loop {
            let (closure, mut wanted) = self.cached(root, entries, keyring, &inside);
            wanted.retain(|(key, _)| requested.insert(key.clone()));
            if wanted.is_empty() {
                return closure;
            }
            let fetches =
                stream::iter(wanted).for_each_concurrent(AT_ONCE, |(key, credentials)| self.refresh(key, credentials));
            if timeout_at(until, fetches).await.is_err() {
                return self.cached(root, entries, keyring, &inside).0;
            }
        }
    }

    /// Computes the component tree of `root` from the descriptors in the cache. Also returns the keys of all
    /// descriptors that the cache lacks or must refresh, with the credentials for fetching them.
    fn cached(
        &self,
        root: &ComponentReference,
        entries: &[Entry],
        keyring: &Keyring,
        inside: &impl Fn(&ComponentReference) -> Option<Arc<Descriptor>>,
    ) -> (Closure, Vec<(Key, Credentials)>) {
        let wanted = RefCell::new(Vec::new());
        let lookup = |reference: &ComponentReference| {
            if let Some(descriptor) = inside(reference) {
                return Found::Descriptor(descriptor);
            }
            let (key, credentials) = match self.key(reference, keyring) {
                Ok(found) => found,
                Err(gap) => return gap,
            };
            let known = self.state.entries.get(&key);
            if known.as_ref().is_none_or(Known::is_due) {
                wanted.borrow_mut().push((key, credentials));
            }
            known.map_or(Found::Pending, |known| known.found)
        };
        let closure = Closure::of(root.clone(), entries, &lookup);
        (closure, wanted.into_inner())
    }

    /// Returns the cache key of a component version, and the credentials for its repository.
    ///
    /// # Errors
    ///
    /// Returns [`Found::Missing`] if the reference has no repository context. Returns `Found::Unreadable` if the
    /// repository context or the configured mirror does not result in a valid OCI repository.
    fn key(&self, reference: &ComponentReference, keyring: &Keyring) -> Result<(Key, Credentials), Found> {
        let Some(context) = &reference.repository_context else { return Err(Found::Missing { nearest: Vec::new() }) };
        let repository = repository::repository(context, &reference.component_name).map_err(Found::Unreadable)?;
        let repository = Mirror::apply(&self.mirrors, repository);
        let repository = repository.map_err(|error| Found::Unreadable(error.to_string()))?;
        let credentials = keyring.credentials(&repository);
        let key = Key {
            repository,
            component: reference.component_name.clone(),
            version: reference.version.clone(),
            credentials: credentials.fingerprint(),
        };
        Ok((key, credentials))
    }

    /// Fetches a component version, or waits for a fetch of it that is already in flight. Does nothing if too many
    /// fetches are in flight.
    async fn refresh(&self, key: Key, credentials: Credentials) {
        let state = self.state.clone();
        if let Ok(fetched) = self.in_flight.share(key.clone(), || state.refresh(key, credentials)) {
            fetched.await;
        }
    }
}

impl State {
    fn is_due(&self, key: &Key) -> bool {
        self.entries.get(key).as_ref().is_none_or(Known::is_due)
    }

    /// Fetches a component version and stores the result in the cache. Does nothing if the cached entry is fresh. This
    /// happens if another fetch of the same version has just completed.
    async fn refresh(self: Arc<Self>, key: Key, credentials: Credentials) {
        if !self.is_due(&key) {
            return;
        }
        let before = self.entries.get(&key);
        let answer = self.fetch_unless_outage(&key, &credentials, before.as_ref()).await;
        let now = Instant::now();
        let due = now + self.time_to_live(&answer.found);
        let known = match before {
            // A known descriptor stays in the cache during an outage of the registry.
            Some(before) if answer.is_outage && matches!(before.found, Found::Descriptor(_)) => {
                Known { due: now + self.freshness.failure, ..before }
            }
            _ => Known { found: answer.found, digest: answer.digest, due },
        };
        let weight = match &known.found {
            Found::Descriptor(descriptor) => ENTRY_BYTES + descriptor.weight(),
            _ => ENTRY_BYTES,
        };
        self.entries.insert(key, known, weight);
    }

    fn time_to_live(&self, found: &Found) -> Duration {
        match found {
            Found::Descriptor(_) => self.freshness.descriptor,
            Found::Missing { .. } => self.freshness.missing,
            Found::Unreadable(_) | Found::Pending => self.freshness.failure,
        }
    }

    async fn fetch_unless_outage(&self, key: &Key, credentials: &Credentials, before: Option<&Known>) -> Answer {
        if let Some(why) = self.outages.get(&key.repository.host) {
            return Answer { found: Found::Unreadable(why), digest: None, is_outage: true };
        }
        match self.fetch(key, credentials, before).await {
            Ok(answer) => answer,
            Err(error) => {
                let is_outage = error.is_outage();
                if is_outage {
                    self.outages.insert(key.repository.host.clone(), error.to_string());
                }
                Answer { found: Found::Unreadable(error.to_string()), digest: None, is_outage }
            }
        }
    }

    async fn fetch(&self, key: &Key, credentials: &Credentials, before: Option<&Known>) -> Result<Answer, Error> {
        let tag = match repository::tag(&key.version) {
            Ok(tag) => tag,
            Err(why) => return Ok(unreadable(why)),
        };
        let manifest = match self.client.manifest(&key.repository, &tag, credentials).await {
            Err(Error::NotFound { .. }) => return Ok(self.missing(key, credentials).await),
            manifest => manifest?,
        };
        if let Some(before) = before.filter(|before| before.digest.as_ref() == Some(&manifest.digest)) {
            return Ok(Answer { found: before.found.clone(), digest: before.digest.clone(), is_outage: false });
        }
        let kept = self.by_digest.get(&manifest.digest);
        let descriptor = match kept {
            Some(descriptor) => descriptor,
            None => match self.content(key, &manifest, credentials).await? {
                Ok(descriptor) => {
                    let digest = Some(manifest.digest.clone());
                    let descriptor = Arc::new(Descriptor { digest, ..descriptor });
                    let weight = ENTRY_BYTES + descriptor.weight();
                    self.by_digest.insert(manifest.digest.clone(), descriptor.clone(), weight);
                    descriptor
                }
                Err(why) => return Ok(unreadable(format!("{}:{tag}: {why}", key.repository))),
            },
        };
        if descriptor.name != key.component || descriptor.version != key.version {
            let (name, version) = (&descriptor.name, &descriptor.version);
            let wanted = format!("{} {}", key.component, key.version);
            let why = format!("{}:{tag} contains the descriptor of {name} {version}, not of {wanted}", key.repository);
            return Ok(unreadable(why));
        }
        Ok(Answer { found: Found::Descriptor(descriptor), digest: Some(manifest.digest), is_outage: false })
    }

    /// Fetches the artifact of a component version and reads the descriptor in it. The inner error means that the
    /// artifact is invalid. The outer error means that a request to the registry failed.
    async fn content(
        &self,
        key: &Key,
        manifest: &Manifest,
        credentials: &Credentials,
    ) -> Result<Result<Descriptor, String>, Error> {
        if let Err(why) = artifact::check(&manifest.config) {
            return Ok(Err(why));
        }
        let config =
            self.client.blob(&key.repository, &manifest.config, artifact::MAX_CONFIG_BYTES, credentials).await?;
        let layer = match artifact::layer(&config) {
            Ok(layer) => layer,
            Err(why) => return Ok(Err(why)),
        };
        let content = self.client.blob(&key.repository, &layer, artifact::MAX_LAYER_BYTES, credentials).await?;
        Ok(artifact::descriptor(&layer.media_type, &content))
    }

    async fn missing(&self, key: &Key, credentials: &Credentials) -> Answer {
        // If the tags cannot be listed, no closest versions are suggested.
        let tags = self.client.tags(&key.repository, credentials).await.unwrap_or_default();
        let existing: Vec<_> = tags.iter().map(|tag| repository::version(tag)).collect();
        let nearest = versions::nearest(&key.version, &existing);
        Answer { found: Found::Missing { nearest }, digest: None, is_outage: false }
    }
}

fn unreadable(why: String) -> Answer {
    Answer { found: Found::Unreadable(why), digest: None, is_outage: false }
}
