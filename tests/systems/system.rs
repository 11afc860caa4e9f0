//! What a system brings: its programs, how they are run, and its scenarios.

use std::path::PathBuf;

use kube::core::{ApiResource, GroupVersionKind};
use serde_json::Value;

use crate::cluster::Cluster;
use crate::context::Context;
use crate::daemon::Daemon;
use crate::programs;
use crate::testbed::Fixtures;

/// A system whose real controllers are run.
pub struct System {
    /// How scenarios and the table call it.
    pub name: &'static str,
    /// What the table calls it, with the versions.
    pub title: fn() -> String,
    /// The names of its pins: what must be built.
    pub pins: &'static [&'static str],
    /// What its controllers know only at run time, such as ports, so that portcullis' configuration can name them.
    pub prepare: fn(&Fixtures),
    /// Starts the controllers.
    pub start: fn(&Cluster, &Fixtures) -> Vec<Daemon>,
    /// Portcullis' configuration: the strictest documented levels.
    pub configuration: fn(&Fixtures) -> String,
    /// Whether portcullis' webhooks are in force.
    pub in_force: fn(&Cluster) -> bool,
    /// Arguments of `portcullis reconcile`.
    pub reconcile: &'static [&'static str],
    /// The kinds that are compared, and that must come to rest, by the scenario's namespace.
    pub kinds: fn(&str) -> Vec<Kind>,
    /// Whether the controllers have nothing left to do for an object, by what its status says. Controllers retry with a
    /// backoff, and are then quiet for longer than a scenario watches.
    pub is_converged: fn(&Value) -> bool,
    /// The scenarios.
    pub scenarios: &'static [Scenario],
}

/// Something that happens in a namespace of its own, without and with portcullis.
pub struct Scenario {
    /// Its name, which is its namespace's.
    pub name: &'static str,
    /// What happens, for the table.
    pub description: &'static str,
    /// What happens.
    pub steps: fn(&Context<'_>),
    /// A part of the message of denials that a controller must get: the scenario is about them.
    pub denial: Option<&'static str>,
    /// A pin that this scenario needs besides those of its system.
    pub needs: Option<&'static str>,
}

impl Scenario {
    /// Creates a scenario in which no controller is denied anything.
    pub const fn new(name: &'static str, description: &'static str, steps: fn(&Context<'_>)) -> Self {
        Self { name, description, steps, denial: None, needs: None }
    }
}

/// A kind of objects.
#[derive(Debug, Clone)]
pub struct Kind {
    /// How the API server serves it.
    pub resource: ApiResource,
    /// Whether its objects are in namespaces.
    pub namespaced: bool,
}

impl Kind {
    /// A kind of namespaced objects: `kustomize.toolkit.fluxcd.io/v1`, `Kustomization`, `kustomizations`.
    pub fn namespaced(api_version: &str, kind: &str, plural: &str) -> Self {
        let (group, version) = api_version.rsplit_once('/').unwrap_or(("", api_version));
        let resource = ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk(group, version, kind), plural);
        Self { resource, namespaced: true }
    }

    /// A kind of objects of the whole cluster.
    pub fn of_cluster(api_version: &str, kind: &str, plural: &str) -> Self {
        Self { namespaced: false, ..Self::namespaced(api_version, kind, plural) }
    }
}

/// Returns the path of a pinned program that is built.
///
/// # Panics
///
/// When it is not.
pub fn program(pin: &str, name: &str) -> PathBuf {
    programs::pin(pin).program(name).unwrap_or_else(|error| panic!("{error}"))
}
