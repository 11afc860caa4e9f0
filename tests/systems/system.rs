//! The definition of a test system: its programs, how to start them, and its scenarios.

use std::path::PathBuf;

use kube::core::{ApiResource, GroupVersionKind};
use serde_json::Value;

use crate::cluster::Cluster;
use crate::context::Context;
use crate::daemon::Daemon;
use crate::programs;
use crate::testbed::Fixtures;

/// A system whose real controllers are tested with portcullis, such as Flux.
pub struct System {
    /// The name of the system. It is a part of the names of tests and namespaces.
    pub name: &'static str,
    /// Returns the title of the system in the table of results, with the versions of the controllers.
    pub title: fn() -> String,
    /// Names of the entries in `assets/pins.json` whose programs must be built.
    pub pins: &'static [&'static str],
    /// Prepares the system before the cluster starts. For example, selects the ports to write into the configuration of
    /// portcullis.
    pub prepare: fn(&Fixtures),
    /// Starts the controllers.
    pub start: fn(&Cluster, &Fixtures) -> Vec<Daemon>,
    /// Returns the configuration of portcullis. Most systems set the strictest documented levels.
    pub configuration: fn(&Fixtures) -> String,
    /// Returns whether the API server calls the webhooks of portcullis.
    pub is_active: fn(&Cluster) -> bool,
    /// The arguments of `portcullis reconcile`.
    pub reconcile: &'static [&'static str],
    /// Returns the kinds whose objects are compared between the two runs of a scenario. The argument is the namespace
    /// of the scenario.
    pub kinds: fn(&str) -> Vec<Kind>,
    /// Returns whether the status of an object shows that the controllers have finished processing it. Waiting until
    /// objects are unchanged is not sufficient, because controllers retry with increasing delays.
    pub is_converged: fn(&Value) -> bool,
    pub scenarios: &'static [Scenario],
}

/// A test that runs in its own namespace, once without portcullis and once with portcullis.
pub struct Scenario {
    /// The name of the scenario. Its namespace is `<system>-<name>`.
    pub name: &'static str,
    /// The description in the table of results.
    pub description: &'static str,
    /// The function that runs the scenario.
    pub steps: fn(&Context<'_>),
    /// If set, portcullis must deny at least one request of a controller, and the error message of each denied request
    /// must contain this text. `None` if portcullis must not deny requests of controllers.
    pub denial: Option<&'static str>,
    /// Name of an additional entry in `assets/pins.json` whose programs the scenario needs. If these programs are not
    /// built, the scenario is skipped.
    pub needs: Option<&'static str>,
}

impl Scenario {
    /// Creates a scenario in which portcullis must not deny requests of controllers.
    pub const fn new(name: &'static str, description: &'static str, steps: fn(&Context<'_>)) -> Self {
        Self { name, description, steps, denial: None, needs: None }
    }
}

/// A kind whose objects are compared between a run of a scenario with portcullis and a run without it.
#[derive(Debug, Clone)]
pub struct Kind {
    pub resource: ApiResource,
    pub namespaced: bool,
}

impl Kind {
    /// Creates a namespaced kind. Example of the arguments: `kustomize.toolkit.fluxcd.io/v1`, `Kustomization`,
    /// `kustomizations`.
    pub fn namespaced(api_version: &str, kind: &str, plural: &str) -> Self {
        let (group, version) = api_version.rsplit_once('/').unwrap_or(("", api_version));
        let resource = ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk(group, version, kind), plural);
        Self { resource, namespaced: true }
    }

    /// Creates a cluster-scoped kind. The arguments are the same as for a namespaced kind.
    pub fn of_cluster(api_version: &str, kind: &str, plural: &str) -> Self {
        Self { namespaced: false, ..Self::namespaced(api_version, kind, plural) }
    }
}

/// Returns the path of the program `name`. `pin` is the name of the entry in `assets/pins.json` from which this program
/// is built.
///
/// # Panics
///
/// If the program is not built.
pub fn program(pin: &str, name: &str) -> PathBuf {
    programs::pin(pin).program(name).unwrap_or_else(|error| panic!("{error}"))
}
