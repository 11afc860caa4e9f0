//! What is known of component versions: asked of registries once, kept within bounds, and refreshed.
//!
//! Entries are told apart by repository, component, version and by who asked, so that nobody sees what only others may
//! read; descriptors of one digest are kept once. What a registry does not answer while it is away stays as it was.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::{StreamExt, stream};
use tokio::time::{Instant, timeout_at};

use super::closure::{Closure, Found};
use super::descriptor::Descriptor;
use super::shelf::Shelf;
use super::{artifact, repository, versions};
use crate::landscaper::component_reference::ComponentReference;
use crate::landscaper::overwrites::substitution::Entry;
use crate::oci::{Client, Credentials, Error, Keyring, Manifest, Mirror, Repository};

/// The descriptors of one tree that are asked for at once.
const AT_ONCE: usize = 8;
/// Those who want the same descriptor at the same time wait for the first of them; these many can ask for others.
const STRIPES: usize = 64;
/// Registries whose outages are remembered.
const HOSTS: usize = 1_000;

/// For how long something known is good.
#[derive(Debug, Clone, Copy)]
pub struct Freshness {
    /// A descriptor: versions are not published twice, by custom.
    pub descriptor: Duration,
    /// That a version does not exist: it may be on its way.
    pub missing: Duration,
    /// That something cannot be read, or that a registry is away.
    pub trouble: Duration,
}

impl Default for Freshness {
    fn default() -> Self {
        Self {
            descriptor: Duration::from_secs(3600),
            missing: Duration::from_secs(60),
            trouble: Duration::from_secs(30),
        }
    }
}

/// What is known of component versions.
pub struct Library {
    client: Client,
    freshness: Freshness,
    mirrors: Vec<Mirror>,
    shelf: Mutex<Shelf<Key, Known>>,
    contents: Mutex<Shelf<String, Arc<Descriptor>>>,
    outages: Mutex<HashMap<String, (Instant, String)>>,
    stripes: Vec<tokio::sync::Mutex<()>>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Key {
    repository: Repository,
    component: String,
    version: String,
    who: String,
}

#[derive(Debug, Clone)]
struct Known {
    found: Found,
    digest: Option<String>,
    due: Instant,
}

/// What was asked and came of it.
struct Answer {
    found: Found,
    digest: Option<String>,
    is_outage: bool,
}

impl Library {
    /// A library that knows nothing yet.
    pub fn new(client: Client, freshness: Freshness) -> Self {
        let stripes = (0..STRIPES).map(|_| tokio::sync::Mutex::new(())).collect();
        Self {
            client,
            freshness,
            mirrors: Vec::new(),
            shelf: Mutex::default(),
            contents: Mutex::default(),
            outages: Mutex::default(),
            stripes,
        }
    }

    /// Reads from `mirrors` what is of the registries that they stand for.
    #[must_use]
    pub fn mirrored(self, mirrors: Vec<Mirror>) -> Self {
        Self { mirrors, ..self }
    }

    /// What is known of a component version; never waits.
    pub fn find(&self, reference: &ComponentReference, keyring: &Keyring) -> Found {
        match self.place(reference, keyring) {
            Ok((key, _)) => lock(&self.shelf).get(&key).map_or(Found::Pending, |known| known.found),
            Err(gap) => gap,
        }
    }

    /// The tree of a component, with everything that can be known until `until`. `inside` knows what need not be asked
    /// for; it goes first.
    pub async fn closure(
        &self,
        root: &ComponentReference,
        entries: &[Entry],
        keyring: &Keyring,
        inside: impl Fn(&ComponentReference) -> Option<Arc<Descriptor>>,
        until: Instant,
    ) -> Closure {
        let known = |reference: &ComponentReference| match inside(reference) {
            Some(descriptor) => Found::Descriptor(descriptor),
            None => self.find(reference, keyring),
        };
        let mut asked = HashSet::new();
        loop {
            let closure = Closure::of(root.clone(), entries, &known);
            let results = closure.steps.iter().map(|step| &step.substitution.result);
            let wanted: Vec<_> = results
                .filter(|reference| inside(reference).is_none())
                .filter_map(|reference| self.place(reference, keyring).ok())
                .filter(|(key, _)| self.is_due(key) && asked.insert(key.clone()))
                .collect();
            if wanted.is_empty() {
                return closure;
            }
            let asking = stream::iter(wanted).for_each_concurrent(AT_ONCE, |(key, who)| self.learn(key, who));
            if timeout_at(until, asking).await.is_err() {
                return Closure::of(root.clone(), entries, &known);
            }
        }
    }

    /// Where a component version is kept, and who asks; the other outcome says why it is nowhere.
    fn place(&self, reference: &ComponentReference, keyring: &Keyring) -> Result<(Key, Credentials), Found> {
        let Some(context) = &reference.repository_context else { return Err(Found::Missing { nearest: Vec::new() }) };
        let repository = repository::repository(context, &reference.component_name).map_err(Found::Unreadable)?;
        let repository = Mirror::apply(&self.mirrors, repository);
        let repository = repository.map_err(|error| Found::Unreadable(error.to_string()))?;
        let who = keyring.credentials(&repository);
        let key = Key {
            repository,
            component: reference.component_name.clone(),
            version: reference.version.clone(),
            who: who.fingerprint(),
        };
        Ok((key, who))
    }

    fn is_due(&self, key: &Key) -> bool {
        lock(&self.shelf).get(key).is_none_or(|known| known.due <= Instant::now())
    }

    /// Asks for a component version, unless somebody else just did.
    async fn learn(&self, key: Key, who: Credentials) {
        let _turn = match self.stripes.get(stripe(&key)) {
            Some(stripe) => Some(stripe.lock().await),
            None => None,
        };
        if !self.is_due(&key) {
            return;
        }
        let before = lock(&self.shelf).get(&key);
        let answer = self.ask(&key, &who, before.as_ref()).await;
        let now = Instant::now();
        let due = now + self.good_for(&answer.found);
        let known = match before {
            // A registry that is away takes nothing with it.
            Some(before) if answer.is_outage && matches!(before.found, Found::Descriptor(_)) => {
                Known { due: now + self.freshness.trouble, ..before }
            }
            _ => Known { found: answer.found, digest: answer.digest, due },
        };
        lock(&self.shelf).insert(key, known, SMALL);
    }

    fn good_for(&self, found: &Found) -> Duration {
        match found {
            Found::Descriptor(_) => self.freshness.descriptor,
            Found::Missing { .. } => self.freshness.missing,
            Found::Unreadable(_) | Found::Pending => self.freshness.trouble,
        }
    }

    async fn ask(&self, key: &Key, who: &Credentials, before: Option<&Known>) -> Answer {
        if let Some(why) = self.outage(&key.repository.host) {
            return Answer { found: Found::Unreadable(why), digest: None, is_outage: true };
        }
        match self.fetch(key, who, before).await {
            Ok(answer) => answer,
            Err(error) => {
                let is_outage = error.is_outage();
                if is_outage {
                    self.remember(&key.repository.host, error.to_string());
                }
                Answer { found: Found::Unreadable(error.to_string()), digest: None, is_outage }
            }
        }
    }

    async fn fetch(&self, key: &Key, who: &Credentials, before: Option<&Known>) -> Result<Answer, Error> {
        let tag = match repository::tag(&key.version) {
            Ok(tag) => tag,
            Err(why) => return Ok(unreadable(why)),
        };
        let manifest = match self.client.manifest(&key.repository, &tag, who).await {
            Err(Error::NotFound { .. }) => return Ok(self.missing(key, who).await),
            manifest => manifest?,
        };
        if let Some(before) = before.filter(|before| before.digest.as_ref() == Some(&manifest.digest)) {
            return Ok(Answer { found: before.found.clone(), digest: before.digest.clone(), is_outage: false });
        }
        let kept = lock(&self.contents).get(&manifest.digest);
        let descriptor = match kept {
            Some(descriptor) => descriptor,
            None => match self.content(key, &manifest, who).await? {
                Ok((descriptor, weight)) => {
                    let digest = Some(manifest.digest.clone());
                    let descriptor = Arc::new(Descriptor { digest, ..descriptor });
                    lock(&self.contents).insert(manifest.digest.clone(), descriptor.clone(), weight);
                    descriptor
                }
                Err(why) => return Ok(unreadable(format!("{}:{tag}: {why}", key.repository))),
            },
        };
        if descriptor.name != key.component || descriptor.version != key.version {
            let (name, version) = (&descriptor.name, &descriptor.version);
            return Ok(unreadable(format!("{}:{tag} holds the descriptor of {name} {version}", key.repository)));
        }
        Ok(Answer { found: Found::Descriptor(descriptor), digest: Some(manifest.digest), is_outage: false })
    }

    /// Reads a descriptor out of its artifact; the inner error is about the artifact, not the registry.
    async fn content(
        &self,
        key: &Key,
        manifest: &Manifest,
        who: &Credentials,
    ) -> Result<Result<(Descriptor, usize), String>, Error> {
        if let Err(why) = artifact::check(&manifest.config) {
            return Ok(Err(why));
        }
        let config = self.client.blob(&key.repository, &manifest.config, artifact::LARGEST_CONFIG, who).await?;
        let layer = match artifact::layer(&config) {
            Ok(layer) => layer,
            Err(why) => return Ok(Err(why)),
        };
        let content = self.client.blob(&key.repository, &layer, artifact::LARGEST_LAYER, who).await?;
        Ok(artifact::descriptor(&layer.media_type, &content).map(|descriptor| (descriptor, content.len())))
    }

    async fn missing(&self, key: &Key, who: &Credentials) -> Answer {
        // Without a list there is nothing near to name.
        let tags = self.client.tags(&key.repository, who).await.unwrap_or_default();
        let existing: Vec<_> = tags.iter().map(|tag| repository::version(tag)).collect();
        let nearest = versions::nearest(&key.version, &existing);
        Answer { found: Found::Missing { nearest }, digest: None, is_outage: false }
    }

    fn outage(&self, host: &str) -> Option<String> {
        let mut outages = lock(&self.outages);
        let (until, why) = outages.get(host)?.clone();
        if until <= Instant::now() {
            outages.remove(host);
            return None;
        }
        Some(why)
    }

    fn remember(&self, host: &str, why: String) {
        let mut outages = lock(&self.outages);
        if outages.len() >= HOSTS {
            outages.clear();
        }
        outages.insert(host.to_owned(), (Instant::now() + self.freshness.trouble, why));
    }
}

/// What an entry costs besides its descriptor, in bytes.
const SMALL: usize = 512;

fn unreadable(why: String) -> Answer {
    Answer { found: Found::Unreadable(why), digest: None, is_outage: false }
}

fn stripe(key: &Key) -> usize {
    use std::hash::{DefaultHasher, Hash as _, Hasher as _};
    let mut hasher = DefaultHasher::new();
    key.hash(&mut hasher);
    usize::try_from(hasher.finish() % STRIPES as u64).unwrap_or_default()
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // No holder panics.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
