//! Defines the trait that every controller implements.

use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use kube::Client;

use super::Events;
use super::permission::Permission;
use crate::audit::Listed;
use crate::catalog::{Catalog, Change, Kind, Reference};

/// A controller of the controller manager, which reconciles objects of some kinds.
pub trait Controller: Send + Sync + 'static {
    /// Returns the name of the controller in metrics, the log and the ClusterRole, such as `dry-run-marks`.
    fn name(&self) -> &'static str;

    /// Returns the family of rules, such as `DR`, for which the controller runs; `None` if the controller serves all
    /// families.
    fn family(&self) -> Option<&'static str>;

    /// Returns one line that says what the controller does, for the comment in the manifest of its ClusterRole.
    fn summary(&self) -> &'static str;

    /// Returns the kinds that the controller watches. A change of an object of these kinds can start a reconciliation.
    fn watches(&self) -> &'static [&'static Kind];

    /// Returns the kinds that the controller looks up in the catalog but does not watch.
    fn looks_up(&self) -> &'static [&'static Kind] {
        &[]
    }

    /// Returns the kinds whose objects the controller may read directly from the API server. By default, these are all
    /// kinds that it watches or looks up.
    fn reads(&self) -> Vec<&'static Kind> {
        [self.watches(), self.looks_up()].concat()
    }

    /// Returns the permissions of the controller in addition to those for reading and watching its kinds.
    fn permissions(&self) -> &'static [Permission];

    /// Returns the resources that the controller lists itself. These resources are neither watched nor in the catalog.
    fn lists(&self) -> &'static [Listed] {
        &[]
    }

    /// Runs a task of the controller as long as this replica is the leader. The task may be dropped at any `await`.
    fn lead<'a>(&'a self, _tools: &'a Tools) -> BoxFuture<'a, ()> {
        Box::pin(std::future::ready(()))
    }

    /// Returns whether the controller runs only if a flag enables it. The Helm chart grants the permissions of such a
    /// controller only if it is enabled.
    fn is_optional(&self) -> bool {
        false
    }

    /// Returns the objects to reconcile after a change. By default, this is the changed object. The watch calls this
    /// method for every change, so the method must be cheap.
    fn affected(&self, change: &Change, _catalog: &Catalog) -> Vec<Reference> {
        vec![change.reference()]
    }

    /// Reconciles one object, which may have been deleted. The future may be dropped at any `await`. In this case, the
    /// reconciliation runs again later. The method never runs concurrently for the same object.
    fn reconcile<'a>(&'a self, object: &'a Reference, tools: &'a Tools) -> BoxFuture<'a, Result<Next, Failure>>;
}

/// The clients and caches that controllers use.
pub struct Tools {
    /// The client of the API server.
    pub client: Client,
    /// The catalog, a cache of cluster objects. Its objects may be stale. So use them only to find out that there is
    /// nothing to do. Before a change, read the object from the API server.
    pub catalog: Arc<Catalog>,
    /// The publisher of Events about objects.
    pub events: Events,
}

/// The result of a successful reconciliation. It says when the object is reconciled again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// The object is reconciled again only after a change.
    Done,
    /// The object is reconciled again after this time, or earlier if it changes.
    Again(Duration),
}

/// The reason why an object was not reconciled. The controller manager retries the object with increasing delay.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The API server returned an error or could not be reached.
    #[error("{doing}: {source}")]
    Api {
        /// The attempted action, such as `reading it`.
        doing: &'static str,
        /// The error of the Kubernetes client.
        source: Box<kube::Error>,
    },
    /// The object changed since it was read.
    #[error("it has changed in the meantime")]
    Conflict,
    /// Data that the reconciliation requires could not be read. Contains the reason.
    #[error("{0}")]
    Unknown(String),
    /// The timeout of one reconciliation expired.
    #[error("timeout after {0:?}")]
    TooLong(Duration),
    /// The controller panicked, which is a bug.
    #[error("it panicked")]
    Panicked,
}

impl Failure {
    /// Returns a function for `map_err` that converts an error of the Kubernetes API to a `Failure`. `doing` describes
    /// the attempted action, such as `reading it`. A write conflict becomes [`Failure::Conflict`].
    pub fn api(doing: &'static str) -> impl Fn(kube::Error) -> Self {
        move |error| match &error {
            kube::Error::Api(status) if status.code == 409 && status.reason == "Conflict" => Self::Conflict,
            _ => Self::Api { doing, source: Box::new(error) },
        }
    }
}
