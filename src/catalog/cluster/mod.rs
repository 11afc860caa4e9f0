//! Fills a catalog from a cluster, and provides live reads, which read objects from the API server. Starts a watch for
//! each kind that rules look up.
//!
//! A missing CustomResourceDefinition is normal, because a cluster may have only Flux or only Landscaper. This module
//! watches CustomResourceDefinitions, so that it can watch a kind as soon as its CustomResourceDefinition is created.

mod events;
mod follow;
pub mod pages;

use std::sync::Arc;

use futures::{StreamExt, TryStreamExt};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Client;
use kube::api::{Api, ApiResource, DynamicObject, GetParams, PartialObjectMeta};
use kube::core::{GroupVersionKind, Request};
use kube::runtime::{WatchStreamExt, watcher};
use serde_json::Value;
use tokio::sync::watch;
use tokio::task::{AbortHandle, JoinSet};

use self::follow::Follow;
use super::{Catalog, Coverage, Kind, LiveReader, LiveReading, Reference};

/// Keeps a catalog synchronized with its cluster: lists and watches the objects of each kind, except kinds that are
/// only read by name. Never returns.
pub async fn follow(client: Client, catalog: Arc<Catalog>) {
    let (definitions, _) = watch::channel(());
    let definitions = Arc::new(definitions);
    let kinds: Vec<_> = catalog.kinds().filter(|kind| !kind.is_read_by_name()).collect();
    let watches = kinds.into_iter().map(|kind| Follow::of(&client, &catalog, kind).run(definitions.subscribe()));
    let declared = follow_declared(client.clone(), catalog.clone(), definitions.clone());
    futures::join!(futures::future::join_all(watches), declared, watch_definitions(client, definitions.clone()));
}

/// Watches all kinds that objects in the cluster declare, such as the kinds that CompositeResourceDefinitions define.
/// Starts a watch for each new kind, and stops the watch of each kind that no object declares any more. The channel
/// `definitions` notifies the watches when a CustomResourceDefinition was created or changed.
async fn follow_declared(client: Client, catalog: Arc<Catalog>, definitions: Arc<watch::Sender<()>>) {
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
                let follow = Follow::of(&client, &catalog, kind);
                watched.push((kind, watches.spawn(follow.run(definitions.subscribe()))));
            }
        }
        if changes.changed().await.is_err() {
            return;
        }
    }
}

/// Fills a catalog from a cluster. Lists the objects of each kind once, except kinds that are only read by name.
///
/// # Errors
/// If a kind cannot be listed. A kind that the cluster does not serve is not an error.
pub async fn load(client: Client, catalog: &Catalog) -> Result<(), kube::Error> {
    match load_what_can_be(&client, catalog).await.into_iter().next() {
        Some((_, error)) => Err(error),
        None => Ok(()),
    }
}

/// Fills a catalog from a cluster, like [`load`], but returns all errors and not only the first. Each error is returned
/// with the kind that could not be loaded. The [`Coverage`] of this kind does not change. Usually, it remains
/// [`Coverage::Pending`].
pub async fn load_what_can_be(client: &Client, catalog: &Catalog) -> Vec<(&'static Kind, kube::Error)> {
    let mut failed = Vec::new();
    for kind in catalog.kinds().filter(|kind| !kind.is_read_by_name()).collect::<Vec<_>>() {
        failed.extend(load_kind(client, catalog, kind).await.err().map(|error| (kind, error)));
    }
    // Kinds of composites are known only after the CompositeResourceDefinitions that declare them are listed.
    for kind in catalog.declared() {
        failed.extend(load_kind(client, catalog, kind).await.err().map(|error| (kind, error)));
    }
    failed
}

/// Lists the objects of `kinds` from a cluster into a catalog. Ignores duplicate kinds, and kinds that are not watched
/// but read from the API server when needed.
///
/// # Errors
/// If a kind cannot be listed. A kind that the cluster does not serve is not an error.
pub async fn load_kinds(client: &Client, catalog: &Catalog, kinds: &[&'static Kind]) -> Result<(), kube::Error> {
    for (at, kind) in kinds.iter().enumerate() {
        if !kind.is_read_by_name() && !kinds[..at].iter().any(|before| std::ptr::eq(*before, *kind)) {
            load_kind(client, catalog, kind).await?;
        }
    }
    Ok(())
}

async fn load_kind(client: &Client, catalog: &Catalog, kind: &'static Kind) -> Result<(), kube::Error> {
    match follow::list(client, catalog, kind).await {
        Ok(_) => Ok(()),
        Err(kube::Error::Api(status)) if status.code == 404 => {
            catalog.list(kind).finish(Coverage::Absent);
            Ok(())
        }
        Err(error) => Err(error),
    }
}

/// Watches CustomResourceDefinitions, and notifies the receivers of `definitions` when one is created or
/// changed. Never returns.
async fn watch_definitions(client: Client, definitions: Arc<watch::Sender<()>>) {
    let api: Api<PartialObjectMeta<CustomResourceDefinition>> = Api::all(client);
    let mut events = watcher(api, watcher::Config::default()).default_backoff().boxed();
    loop {
        // The watcher retries after errors. Without the permission to watch, the interval LOOK_AGAIN still finds new
        // kinds.
        if let Ok(Some(watcher::Event::Apply(_) | watcher::Event::InitDone)) = events.try_next().await {
            definitions.send_replace(());
        }
    }
}

fn resource(kind: &Kind) -> ApiResource {
    let gvk = GroupVersionKind::gvk(kind.group, kind.version, kind.kind);
    ApiResource::from_gvk_with_plural(&gvk, kind.plural)
}

/// Converts an object to JSON. Adds its API version and kind, because items of lists may omit them. `None` if the
/// object cannot be converted.
pub fn to_value(kind: &Kind, object: DynamicObject) -> Option<Value> {
    let mut value = serde_json::to_value(object).ok()?;
    value["apiVersion"] = kind.api_version().into();
    value["kind"] = kind.kind.into();
    Some(value)
}

/// A reader that gets each object directly from the API server, and not from the cache.
pub struct Reader {
    client: Client,
}

impl Reader {
    /// Creates a reader with a client of the API server.
    pub fn new(client: Client) -> Self {
        Self { client }
    }
}

/// Returns a client for objects of the kind and in the namespace of `reference`.
pub fn api(client: &Client, reference: &Reference) -> Api<DynamicObject> {
    let resource = resource(reference.kind);
    match reference.namespace.as_str() {
        "" => Api::all_with(client.clone(), &resource),
        namespace => Api::namespaced_with(client.clone(), namespace, &resource),
    }
}

/// Reads a whole object from the API server; `None` if it does not exist.
///
/// # Errors
/// If the request fails. A response with the HTTP status 404 is not an error.
pub async fn read(client: &Client, reference: &Reference) -> Result<Option<Value>, kube::Error> {
    let found = api(client, reference).get_opt(&reference.name).await?;
    Ok(found.and_then(|object| to_value(reference.kind, object)))
}

/// Reads the JSON text of an object from the API server; `None` if the object does not exist.
async fn read_text(client: &Client, reference: &Reference) -> Result<Option<String>, kube::Error> {
    let url = api(client, reference).resource_url().to_owned();
    let request = Request::new(url).get(&reference.name, &GetParams::default()).map_err(kube::Error::BuildRequest)?;
    match client.request_text(request).await {
        Ok(text) => Ok(Some(text)),
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(None),
        Err(error) => Err(error),
    }
}

impl LiveReader for Reader {
    fn read<'a>(&'a self, reference: &'a Reference) -> LiveReading<'a> {
        Box::pin(async move { read_text(&self.client, reference).await.map_err(|error| error.to_string()) })
    }
}
