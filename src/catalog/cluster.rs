//! The catalog of a cluster: a watch on every kind that rules look up, and confirmed reads.
//!
//! A kind whose CustomResourceDefinition is not there is normal: a cluster with only Flux, or only Landscaper. It is
//! waited for quietly; a watch on the definitions rings when one comes.

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::{StreamExt, TryStreamExt};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, ApiResource, DynamicObject, PartialObjectMeta};
use kube::core::GroupVersionKind;
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Client, ResourceExt};
use serde_json::Value;
use tokio::sync::watch;
use tokio::task::{AbortHandle, JoinSet};

use super::pages::Pages;
use super::{Catalog, Confirm, Confirming, Coverage, Kind, Reference, store};

/// How long to wait for a definition when the watch on them does not ring, or may not be opened.
const LOOK_AGAIN: Duration = Duration::from_secs(60);
/// A definition is served a moment after it is stored.
const AFTER_RING: Duration = Duration::from_millis(300);
/// How often a watch that does not come to be is told again.
const SAY_AGAIN: Duration = Duration::from_secs(60);

/// Keeps a catalog as its cluster is, for ever.
pub async fn follow(client: Client, catalog: Arc<Catalog>) {
    let (bell, _) = watch::channel(());
    let bell = Arc::new(bell);
    let kinds: Vec<_> = catalog.kinds().filter(|kind| !kind.is_read_by_name()).collect();
    let watches = kinds.into_iter().map(|kind| {
        let follow = Follow { client: client.clone(), catalog: catalog.clone(), kind, said: None };
        follow.run(bell.subscribe())
    });
    let declared = follow_declared(client.clone(), catalog.clone(), bell.clone());
    futures::join!(futures::future::join_all(watches), declared, ring(client, bell.clone()));
}

/// Watches every declared kind for as long as it is declared.
async fn follow_declared(client: Client, catalog: Arc<Catalog>, bell: Arc<watch::Sender<()>>) {
    let (mut changes, mut watches) = (catalog.declared_changes(), JoinSet::new());
    let mut watched: Vec<(&'static Kind, AbortHandle)> = Vec::new();
    loop {
        let kinds = catalog.declared();
        let is_declared = |kind: &'static Kind| kinds.iter().any(|declared| std::ptr::eq(*declared, kind));
        for (_, watch) in watched.extract_if(.., |(kind, _)| !is_declared(kind)) {
            watch.abort();
        }
        for kind in &kinds {
            if !watched.iter().any(|(known, _)| std::ptr::eq(*known, *kind)) {
                let follow = Follow { client: client.clone(), catalog: catalog.clone(), kind, said: None };
                watched.push((kind, watches.spawn(follow.run(bell.subscribe()))));
            }
        }
        if changes.changed().await.is_err() {
            return;
        }
    }
}

/// Fills a catalog with what the cluster has now, once.
///
/// # Errors
/// When a kind cannot be listed; that the cluster does not have it is no error.
pub async fn load(client: Client, catalog: &Catalog) -> Result<(), kube::Error> {
    match load_what_can_be(&client, catalog).await.into_iter().next() {
        Some((_, error)) => Err(error),
        None => Ok(()),
    }
}

/// The same, and what cannot be listed, with the reason; nothing is known of it then.
pub async fn load_what_can_be(client: &Client, catalog: &Catalog) -> Vec<(&'static Kind, kube::Error)> {
    let mut failed = Vec::new();
    for kind in catalog.kinds().filter(|kind| !kind.is_read_by_name()).collect::<Vec<_>>() {
        failed.extend(load_kind(client, catalog, kind).await.err().map(|error| (kind, error)));
    }
    // What is declared is known when the others are there.
    for kind in catalog.declared() {
        failed.extend(load_kind(client, catalog, kind).await.err().map(|error| (kind, error)));
    }
    failed
}

async fn load_kind(client: &Client, catalog: &Catalog, kind: &'static Kind) -> Result<(), kube::Error> {
    match list(client, kind).await {
        Ok(objects) => catalog.replace(kind, Coverage::Complete, objects),
        Err(kube::Error::Api(status)) if status.code == 404 => catalog.set_coverage(kind, Coverage::Absent),
        Err(error) => return Err(error),
    }
    Ok(())
}

async fn list(client: &Client, kind: &'static Kind) -> Result<Vec<Value>, kube::Error> {
    let mut pages = Pages::of(Api::all_with(client.clone(), &resource(kind)));
    let mut objects = Vec::new();
    while let Some(page) = pages.next().await? {
        if page.is_first {
            objects.clear();
        }
        // What no rule reads is dropped page by page: it may be more than half of a cluster.
        objects.extend(page.objects.into_iter().filter_map(|object| {
            let mut value = to_value(kind, object)?;
            store::trim(&mut value);
            Some(value)
        }));
    }
    Ok(objects)
}

/// Rings whenever a definition comes or changes.
async fn ring(client: Client, bell: Arc<watch::Sender<()>>) {
    let definitions: Api<PartialObjectMeta<CustomResourceDefinition>> = Api::all(client);
    let mut events = watcher(definitions, watcher::Config::default()).default_backoff().boxed();
    loop {
        // An error is the watcher's to mend; without the right to watch, LOOK_AGAIN still finds new kinds.
        if let Ok(Some(watcher::Event::Apply(_) | watcher::Event::InitDone)) = events.try_next().await {
            bell.send_replace(());
        }
    }
}

struct Follow {
    client: Client,
    catalog: Arc<Catalog>,
    kind: &'static Kind,
    said: Option<Instant>,
}

impl Follow {
    async fn run(mut self, mut bell: watch::Receiver<()>) {
        loop {
            bell.mark_unchanged();
            self.watch().await;
            self.catalog.replace(self.kind, Coverage::Absent, Vec::new());
            tracing::debug!(kind = self.kind.full_name(), "the cluster does not have this kind yet");
            // Rung or not, the next step is the same.
            let _ = tokio::time::timeout(LOOK_AGAIN, bell.changed()).await;
            tokio::time::sleep(AFTER_RING).await;
        }
    }

    /// Watches for as long as the cluster has the kind.
    async fn watch(&mut self) {
        let api: Api<DynamicObject> = Api::all_with(self.client.clone(), &resource(self.kind));
        let mut events = watcher(api, watcher::Config::default()).default_backoff().boxed();
        let mut listed = Vec::new();
        loop {
            match events.try_next().await {
                Ok(Some(event)) => self.take(event, &mut listed),
                Ok(None) => return,
                Err(error) if is_absent(&error) => return,
                Err(error) => self.say(&error),
            }
        }
    }

    fn take(&self, event: watcher::Event<DynamicObject>, listed: &mut Vec<Value>) {
        match event {
            watcher::Event::Init => listed.clear(),
            watcher::Event::InitApply(object) => listed.extend(self.value(object)),
            watcher::Event::InitDone => {
                let objects = std::mem::take(listed);
                tracing::info!(kind = self.kind.full_name(), objects = objects.len(), "listed");
                self.catalog.replace(self.kind, Coverage::Complete, objects);
            }
            watcher::Event::Apply(object) => {
                if let Some(object) = self.value(object) {
                    self.catalog.insert(self.kind, object);
                }
            }
            watcher::Event::Delete(object) => {
                let namespace = object.namespace().unwrap_or_default();
                self.catalog.remove(self.kind, &namespace, &object.name_any());
            }
        }
    }

    fn value(&self, object: DynamicObject) -> Option<Value> {
        to_value(self.kind, object)
    }

    fn say(&mut self, error: &watcher::Error) {
        if self.said.is_some_and(|said| said.elapsed() < SAY_AGAIN) {
            return;
        }
        self.said = Some(Instant::now());
        let kind = self.kind.full_name();
        tracing::warn!(%error, kind, "cannot watch; trying again, and saying so once a minute");
    }
}

fn is_absent(error: &watcher::Error) -> bool {
    match error {
        watcher::Error::InitialListFailed(kube::Error::Api(status)) => status.code == 404,
        _ => false,
    }
}

fn resource(kind: &Kind) -> ApiResource {
    let gvk = GroupVersionKind::gvk(kind.group, kind.version, kind.kind);
    ApiResource::from_gvk_with_plural(&gvk, kind.plural)
}

/// An object as rules read it. Objects of a list do not always say what they are.
pub fn to_value(kind: &Kind, object: DynamicObject) -> Option<Value> {
    let mut value = serde_json::to_value(object).ok()?;
    value["apiVersion"] = kind.api_version().into();
    value["kind"] = kind.kind.into();
    Some(value)
}

/// Confirmed reads from the API server.
pub struct Reader {
    client: Client,
}

impl Reader {
    /// Reads with `client`.
    pub fn new(client: Client) -> Self {
        Self { client }
    }
}

/// The API of the kind that a reference names, in its namespace.
pub fn api(client: &Client, reference: &Reference) -> Api<DynamicObject> {
    let resource = resource(reference.kind);
    match reference.namespace.as_str() {
        "" => Api::all_with(client.clone(), &resource),
        namespace => Api::namespaced_with(client.clone(), namespace, &resource),
    }
}

/// An object as the API server has it now.
///
/// # Errors
/// When the API server cannot be asked; that it has no such object is none.
pub async fn read(client: &Client, reference: &Reference) -> Result<Option<Value>, kube::Error> {
    let found = api(client, reference).get_opt(&reference.name).await?;
    Ok(found.and_then(|object| to_value(reference.kind, object)))
}

impl Confirm for Reader {
    fn confirm<'a>(&'a self, reference: &'a Reference) -> Confirming<'a> {
        Box::pin(async move { read(&self.client, reference).await.map_err(|error| error.to_string()) })
    }
}
