//! The shape of a controller.

use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use kube::Client;

use super::Events;
use crate::audit::Listed;
use crate::catalog::{Catalog, Change, Kind, Reference};

/// Something that keeps objects of a kind as they should be.
pub trait Controller: Send + Sync + 'static {
    /// Its name, for metrics, the log and its ClusterRole: `dry-run-marks`.
    fn name(&self) -> &'static str;

    /// The family of rules that it belongs to, such as `DR`: on and off with it. `None` where it is for all families.
    fn family(&self) -> Option<&'static str>;

    /// What it does, in one line.
    fn summary(&self) -> &'static str;

    /// The kinds whose changes it looks at.
    fn watches(&self) -> &'static [&'static Kind];

    /// Further kinds that it looks up in the catalog.
    fn looks_up(&self) -> &'static [&'static Kind] {
        &[]
    }

    /// Of these kinds, those whose objects it reads one by one too. Left out: all.
    fn reads(&self) -> Vec<&'static Kind> {
        [self.watches(), self.looks_up()].concat()
    }

    /// What it may do in the cluster, besides reading and watching those kinds.
    fn permissions(&self) -> &'static [Permission];

    /// Resources that it lists by itself: they are neither watched nor in the catalog.
    fn lists(&self) -> &'static [Listed] {
        &[]
    }

    /// What it does for as long as this replica leads, besides looking at objects. It may be dropped at any `await`.
    fn lead<'a>(&'a self, _tools: &'a Tools) -> BoxFuture<'a, ()> {
        Box::pin(std::future::ready(()))
    }

    /// Whether it runs only where it is asked for; its rights are then granted apart.
    fn is_optional(&self) -> bool {
        false
    }

    /// The objects to look at after a change: the changed one. Must be cheap, for it runs in the watch.
    fn affected(&self, change: &Change, _catalog: &Catalog) -> Vec<Reference> {
        vec![change.reference()]
    }

    /// Brings one object to what it should be. It may be dropped at any `await`, run again, and run for an object that
    /// is gone; it never runs twice at once for the same object.
    fn reconcile<'a>(&'a self, object: &'a Reference, tools: &'a Tools) -> BoxFuture<'a, Result<Next, Failure>>;
}

/// What controllers work with.
pub struct Tools {
    /// The API server.
    pub client: Client,
    /// What the watches say: good for finding out that there is nothing to do.
    pub catalog: Arc<Catalog>,
    /// Where people look for what happened to an object.
    pub events: Events,
}

/// When to look at an object again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// When something changes.
    Done,
    /// After this time, or when something changes.
    Again(Duration),
}

/// Why an object was not brought to what it should be; it is tried again, later each time.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The API server refused something, or was not there.
    #[error("{doing}: {source}")]
    Api {
        /// What was tried.
        doing: &'static str,
        /// What came of it.
        source: Box<kube::Error>,
    },
    /// The object changed since it was read.
    #[error("it changed meanwhile")]
    Conflict,
    /// What must be known could not be read.
    #[error("{0}")]
    Unknown(String),
    /// It took too long.
    #[error("not done after {0:?}")]
    TooLong(Duration),
    /// It panicked: a fault of ours.
    #[error("it panicked")]
    Panicked,
}

impl Failure {
    /// What failed, for `map_err`.
    pub fn api(doing: &'static str) -> impl Fn(kube::Error) -> Self {
        move |error| match &error {
            kube::Error::Api(status) if status.code == 409 && status.reason == "Conflict" => Self::Conflict,
            _ => Self::Api { doing, source: Box::new(error) },
        }
    }
}

/// A right in the cluster.
#[derive(Debug)]
pub struct Permission {
    /// API group, empty for the core group.
    pub group: &'static str,
    /// Plural names, with their subresource: `deployitems/status`.
    pub resources: &'static [&'static str],
    /// The names of the objects; none for all of them. What is created, listed or watched has no name to go by.
    pub names: &'static [&'static str],
    /// Verbs.
    pub verbs: &'static [&'static str],
}
