//! Copies the objects of one Kubernetes kind from a cluster into the catalog, which is a local cache, and keeps the
//! copies up to date. It lists the objects once, and then watches them. If the API server no longer has the changes
//! since the last event (410 Gone), it lists the objects again.

use std::sync::Arc;
use std::time::{Duration, Instant};

use kube::api::{Api, DynamicObject};
use kube::runtime::watcher::DefaultBackoff;
use kube::{Client, Error};
use tokio::sync::watch;
use tokio::time::sleep;

use super::events::{Event, Events};
use super::resource;
use crate::catalog::cluster::pages::{Item, Pages};
use crate::catalog::{Catalog, Coverage, Kind};

/// Interval for checking whether the cluster now serves a kind that it did not serve before. A notification of a new
/// CustomResourceDefinition causes an earlier check.
const LOOK_AGAIN: Duration = Duration::from_secs(60);
/// Delay between the notification of a new CustomResourceDefinition and the next attempt to list a kind that the
/// cluster did not serve before. The delay is needed because the API server does not serve the new kind at once.
const AFTER_CHANGE: Duration = Duration::from_millis(300);
/// Minimum interval between log records about a failing watch.
const SAY_AGAIN: Duration = Duration::from_secs(60);
/// Minimum interval between the starts of two watches. It limits the load if the API server ends each watch at once.
const BETWEEN_WATCHES: Duration = Duration::from_secs(1);

/// Lists the objects of a kind from the cluster, and stores them in the catalog. Returns the resourceVersion of the
/// list.
///
/// # Errors
///
/// If a request fails, or if a response is not a list. The catalog then contains its earlier objects, and also the
/// objects that were listed before the error.
pub(super) async fn list(client: &Client, catalog: &Catalog, kind: &'static Kind) -> Result<String, Error> {
    let api: Api<DynamicObject> = Api::all_with(client.clone(), &resource(kind));
    let mut pages = Pages::of(api);
    let mut listing = catalog.list(kind);
    while let Some(item) = pages.next().await? {
        match item {
            Item::Beginning => listing = catalog.list(kind),
            Item::Object(text) => listing.add(text),
        }
        listing.expect(pages.left());
    }
    let (objects, version) = (listing.count(), pages.resource_version().to_owned());
    listing.finish(Coverage::Complete);
    let bytes = catalog.size(kind).bytes;
    tracing::info!(kind = kind.full_name(), objects, bytes, "listed");
    Ok(version)
}

/// The action after the end of a watch. Either another watch is opened, or all objects are listed again.
enum Next {
    /// Watch from this resourceVersion.
    Watch(String),
    /// List all objects again. The reason is that the API server no longer has the changes since the resourceVersion,
    /// or no longer serves the kind.
    List,
}

/// A control loop that synchronizes one kind of the catalog with the cluster.
pub(super) struct Follow {
    pub(super) client: Client,
    pub(super) catalog: Arc<Catalog>,
    pub(super) kind: &'static Kind,
    pub(super) said: Option<Instant>,
}

impl Follow {
    pub(super) fn of(client: &Client, catalog: &Arc<Catalog>, kind: &'static Kind) -> Self {
        Self { client: client.clone(), catalog: Arc::clone(catalog), kind, said: None }
    }

    pub(super) async fn run(mut self, mut definitions: watch::Receiver<()>) {
        loop {
            definitions.mark_unchanged();
            self.while_served().await;
            self.catalog.list(self.kind).finish(Coverage::Absent);
            tracing::debug!(kind = self.kind.full_name(), "the cluster does not serve this kind yet");
            // The loop continues in the same way after a notification and after a timeout.
            let _ = tokio::time::timeout(LOOK_AGAIN, definitions.changed()).await;
            sleep(AFTER_CHANGE).await;
        }
    }

    /// Copies the objects of this kind to the catalog and watches them for changes. Returns when the cluster no longer
    /// serves the kind, which means that a list request fails with 404. After any other error, waits and tries again.
    async fn while_served(&mut self) {
        let mut wait = DefaultBackoff::default();
        loop {
            match list(&self.client, &self.catalog, self.kind).await {
                Ok(version) => self.watch_from(version, &mut wait).await,
                Err(error) if code(&error) == Some(404) => return,
                Err(error) => {
                    self.say(&error);
                    pause(&mut wait).await;
                }
            }
        }
    }

    /// Watches the kind, starting at the resourceVersion `version`, until the kind must be listed again. `wait`
    /// determines the delay after a failed watch.
    async fn watch_from(&mut self, mut version: String, wait: &mut DefaultBackoff) {
        loop {
            let begun = Instant::now();
            match self.watch(&mut version).await {
                Ok(Next::List) => return sleep(BETWEEN_WATCHES.saturating_sub(begun.elapsed())).await,
                Ok(Next::Watch(seen)) => {
                    version = seen;
                    sleep(BETWEEN_WATCHES.saturating_sub(begun.elapsed())).await;
                }
                Err(error) => {
                    self.say(&error);
                    pause(wait).await;
                }
            }
        }
    }

    /// Opens a watch at the resourceVersion `version`, and applies its events to the catalog until the watch ends.
    /// Returns the next action. If the watch fails, `version` contains the last received resourceVersion.
    async fn watch(&self, version: &mut String) -> Result<Next, Error> {
        let url = Api::<DynamicObject>::all_with(self.client.clone(), &resource(self.kind)).resource_url().to_owned();
        let watched = async {
            let mut events = Events::open(&self.client, &url, version).await?;
            while let Some(event) = events.next().await? {
                self.take(&event, version);
            }
            Ok(())
        };
        match watched.await {
            Ok(()) => Ok(Next::Watch(std::mem::take(version))),
            // 404: the kind is no longer served; the list will return 404 too.
            Err(error) if matches!(code(&error), Some(404 | 410)) => Ok(Next::List),
            Err(error) => Err(error),
        }
    }

    fn take(&self, event: &Event<'_>, version: &mut String) {
        let text = match event {
            Event::Bookmark(seen) => return version.clone_from(seen),
            Event::Applied(text) | Event::Deleted(text) => text,
        };
        match self.catalog.decode(self.kind, text) {
            Err(undecodable) => self.catalog.reject(self.kind, &undecodable),
            Ok(object) => {
                object.resource_version.as_ref().clone_into(version);
                match event {
                    Event::Deleted(_) => self.catalog.remove(self.kind, &object.namespace, &object.name),
                    _ => self.catalog.put(self.kind, object),
                }
            }
        }
    }

    fn say(&mut self, error: &Error) {
        if self.said.is_some_and(|said| said.elapsed() < SAY_AGAIN) {
            return;
        }
        self.said = Some(Instant::now());
        let kind = self.kind.full_name();
        tracing::warn!(%error, kind, "cannot watch; trying again; logged at most once a minute");
    }
}

async fn pause(wait: &mut DefaultBackoff) {
    sleep(wait.next().unwrap_or(SAY_AGAIN)).await;
}

/// Returns the HTTP status code of an error response of the API server. `None` for other errors, such as a lost
/// connection.
fn code(error: &Error) -> Option<u16> {
    match error {
        Error::Api(status) => Some(status.code),
        _ => None,
    }
}
