//! The controller manager. It runs controllers that act after admission, such as the periodic audit of stored objects.
//!
//! ```text
//! watches ─► catalog ─► Change ─► affected objects ─► queue ─► workers ─► Controller::reconcile ─► writes
//!                                                       ▲
//!                               leader election: workers run in one replica, all others keep their catalog up to date
//! ```
//!
//! A [`Controller`] names the kinds that it watches. Each controller has several workers, so it reconciles several
//! objects at the same time. But only one worker at a time reconciles an object. A reconciliation reads the object from
//! the API server, computes each write with a pure function, and makes the writes one after the other. No progress is
//! stored in memory, so a restarted process continues where the previous one stopped.
//!
//! A replica may not notice at once that it is no longer the leader. The API server rejects its updates of objects that
//! the new leader has changed, because each update contains the resourceVersion that the replica has read.

mod audits;
mod changed_trees;
pub mod composites;
pub mod controller;
mod dry_run_annotations;
mod dry_run_deployer;
pub mod events;
mod flux_plans;
mod flux_trees;
mod held_sources;
mod kinds;
pub mod leadership;
mod live_read;
mod manager;
pub mod metrics;
mod overwrite_trees;
mod permission;
pub mod queue;
pub mod registration;

pub use audits::{AuditSettings, NAME as AUDIT};
pub use controller::{Controller, Failure, Next, Tools};
pub use events::{Events, Severity};
pub use flux_plans::PlanSettings;
pub use leadership::{Elector, Timing};
pub use manager::{ControllerManager, Lead};
pub use metrics::Metrics;
pub use overwrite_trees::TreeSettings;
pub use permission::Permission;

use std::sync::{Arc, Mutex};

use changed_trees::ChangedTrees;

use crate::kustomize::delivery::Judge;
use crate::landscaper::dry_run::run::{self, Deployer};

/// The settings of all controllers.
#[derive(Clone)]
pub struct Settings {
    /// The settings of the controller `dry-run-deployer`.
    pub dry_run: Deployer,
    /// The settings of the controller `overwrite-trees`.
    pub trees: TreeSettings,
    /// Names of CompositeResourceDefinitions whose composites the webhooks check, in addition to the definitions with
    /// the label `portcullis.dev/composites`.
    pub composites: Vec<String>,
    /// The settings of the controller `audit`; `None` if it is not enabled.
    pub audit: Option<AuditSettings>,
    /// The service that checks the kustomize trees of Flux Kustomizations. `None` if the controller `flux-trees` is not
    /// enabled.
    pub flux_trees: Option<Arc<dyn Judge>>,
    /// Hosts from which artifacts may be fetched, in addition to the hosts of Flux.
    pub artifact_hosts: Vec<String>,
    /// The settings that select which findings about new revisions of Flux Kustomizations are reported.
    pub plans: PlanSettings,
}

impl Default for Settings {
    fn default() -> Self {
        let types = run::TYPES.map(str::to_owned).to_vec();
        Self {
            dry_run: Deployer { types, identity: run::NAME.to_owned(), has_old_phase: false },
            trees: TreeSettings::default(),
            composites: Vec::new(),
            audit: None,
            flux_trees: None,
            artifact_hosts: Vec::new(),
            plans: PlanSettings::default(),
        }
    }
}

/// Returns all controllers, also those that are not enabled. `portcullis reconcile` runs only the enabled ones.
/// `portcullis manifests` also needs the others, because it generates the RBAC permissions for all of them.
pub fn controllers(settings: &Settings) -> Vec<Box<dyn Controller>> {
    let changed_trees = Arc::<ChangedTrees>::default();
    vec![
        Box::new(dry_run_annotations::AnnotationController),
        Box::new(dry_run_deployer::DryRunDeployer { deployer: settings.dry_run.clone() }),
        Box::new(overwrite_trees::OverwriteTrees::new(settings.trees.clone())),
        Box::new(composites::Composites { chosen: settings.composites.clone() }),
        Box::new(audits::Audits { settings: settings.audit.clone(), trees: Arc::clone(&changed_trees) }),
        Box::new(flux_trees::FluxTrees {
            trees: settings.flux_trees.clone(),
            hosts: settings.artifact_hosts.clone(),
            plans: settings.plans.clone(),
            reported: Mutex::default(),
            changed: changed_trees,
        }),
        Box::new(held_sources::HeldSources),
    ]
}
