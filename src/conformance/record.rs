//! Records every version of the DeployItems of a namespace from a watch.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::{StreamExt, TryStreamExt};
use kube::api::{Api, ApiResource, DynamicObject, ListParams, WatchEvent, WatchParams};
use kube::core::GroupVersionKind;
use kube::{Client, ResourceExt};
use serde_json::Value;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::ConformanceError;
use crate::landscaper::kinds::DEPLOY_ITEMS;

/// A version of a DeployItem, as a watch event reports it.
#[derive(Debug, Clone)]
pub(super) struct Version {
    /// The DeployItem in the watch event, as JSON. If the event reports a deletion, this is the last state of the
    /// DeployItem.
    pub(super) object: Value,
    /// The `metadata.resourceVersion` of this version.
    pub(super) resource_version: String,
    /// Whether the watch event has the type `DELETED`, which means that the DeployItem no longer exists.
    pub(super) is_gone: bool,
}

/// The recorded versions of all DeployItems in a namespace.
#[derive(Debug, Default, Clone)]
pub(super) struct Record {
    /// The versions of each DeployItem, from the oldest to the newest. The key is the name of the DeployItem.
    pub(super) versions: BTreeMap<String, Vec<Version>>,
    /// The resource versions of DeployItems that result from writes of the conformance kit itself, and not of the
    /// deployer.
    pub(super) own: BTreeSet<String>,
    broken: Option<String>,
}

/// A running watch that records DeployItems until [`Recorder::finish`].
pub(super) struct Recorder {
    record: Arc<Mutex<Record>>,
    changed: watch::Receiver<()>,
    task: JoinHandle<()>,
}

/// Returns the API client for DeployItems in a namespace.
pub(super) fn api(client: &Client, namespace: &str) -> Api<DynamicObject> {
    let gvk = GroupVersionKind::gvk(DEPLOY_ITEMS.group, DEPLOY_ITEMS.version, DEPLOY_ITEMS.kind);
    let resource = ApiResource::from_gvk_with_plural(&gvk, DEPLOY_ITEMS.plural);
    Api::namespaced_with(client.clone(), namespace, &resource)
}

impl Recorder {
    /// Starts a watch of the DeployItems in a namespace.
    ///
    /// # Errors
    /// Fails if DeployItems cannot be listed.
    pub(super) async fn start(client: &Client, namespace: &str) -> Result<Self, ConformanceError> {
        let api = api(client, namespace);
        let listed = api.list_metadata(&ListParams::default().limit(1)).await.map_err(|source| {
            ConformanceError::Refused { doing: format!("listing DeployItems in {namespace}"), source: Box::new(source) }
        })?;
        let from = listed.metadata.resource_version.unwrap_or_default();
        let record = Arc::new(Mutex::new(Record::default()));
        let (notify, changed) = watch::channel(());
        let task = tokio::spawn(follow(api, from, record.clone(), notify));
        Ok(Self { record, changed, task })
    }

    /// Records that the conformance kit itself wrote this version of a DeployItem, and not the deployer.
    pub(super) fn own(&self, object: &DynamicObject) {
        lock(&self.record).own.extend(object.resource_version());
    }

    /// Waits until the last recorded version of the DeployItem `name` meets the condition `wanted`, and returns true.
    /// Returns false if this does not happen within the time `limit`.
    pub(super) async fn wait(&self, name: &str, limit: Duration, wanted: impl Fn(&Version) -> bool) -> bool {
        let mut changed = self.changed.clone();
        let fulfilled =
            || lock(&self.record).versions.get(name).and_then(|versions| versions.last()).is_some_and(&wanted);
        let seen = async {
            while !fulfilled() {
                if changed.changed().await.is_err() {
                    return std::future::pending().await;
                }
            }
        };
        tokio::time::timeout(limit, seen).await.is_ok()
    }

    /// Stops the watch and returns all observed versions of the DeployItems.
    ///
    /// # Errors
    /// Fails if the watch has failed, because some writes may then not have been observed.
    pub(super) fn finish(&self) -> Result<Record, ConformanceError> {
        self.task.abort();
        let record = lock(&self.record).clone();
        match record.broken {
            Some(why) => Err(ConformanceError::Missed(why)),
            None => Ok(record),
        }
    }
}

// The data is consistent even after a panic of another thread, because no update is split.
fn lock(record: &Mutex<Record>) -> MutexGuard<'_, Record> {
    record.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Watches DeployItems, and adds each change to `record`. `from` is the `resourceVersion` at which the watch starts. If
/// the API server closes the watch, opens a new one at the last `resourceVersion`, so that no change is missed. If the
/// watch fails, stores the error in `record` and returns.
async fn follow(api: Api<DynamicObject>, mut from: String, record: Arc<Mutex<Record>>, notify: watch::Sender<()>) {
    loop {
        let ended = watch_once(&api, &mut from, &record, &notify).await;
        if let Err(error) = ended {
            lock(&record).broken = Some(error.to_string());
            return;
        }
    }
}

async fn watch_once(
    api: &Api<DynamicObject>,
    from: &mut String,
    record: &Mutex<Record>,
    notify: &watch::Sender<()>,
) -> Result<(), kube::Error> {
    let mut events = api.watch(&WatchParams::default(), from).await?.boxed();
    while let Some(event) = events.try_next().await? {
        let (object, is_gone) = match event {
            WatchEvent::Added(object) | WatchEvent::Modified(object) => (object, false),
            WatchEvent::Deleted(object) => (object, true),
            WatchEvent::Bookmark(bookmark) => {
                *from = bookmark.metadata.resource_version;
                continue;
            }
            WatchEvent::Error(status) => return Err(kube::Error::Api(status)),
        };
        let resource_version = object.resource_version().unwrap_or_default();
        from.clone_from(&resource_version);
        let name = object.name_any();
        let object = serde_json::to_value(object).unwrap_or_default();
        lock(record).versions.entry(name).or_default().push(Version { object, resource_version, is_gone });
        notify.send_replace(());
    }
    Ok(())
}
