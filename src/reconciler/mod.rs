//! The companion: what acts after admission, and the one face that writes to the cluster.
//!
//! ```text
//! watches ─► catalog ─► Change ─► affected objects ─► queue ─► workers ─► Controller::reconcile ─► writes
//!                                                       ▲
//!                               leadership: workers run in one replica, all others keep their catalog warm
//! ```
//!
//! A [`Controller`] says which kinds it watches and what it does for one object. It reads what counts from the API
//! server, decides by a pure function of its system, and makes one write after the other, each guarded by the
//! resourceVersion of what it read. So a companion that is killed anywhere is followed by one that sees how far it came,
//! and a replica that takes itself for the leader for too long is refused by the API server.

mod audits;
mod companion;
pub mod composites;
mod confirm;
pub mod controller;
mod dry_run_deployer;
pub mod events;
mod flux_trees;
pub mod leadership;
mod marks;
pub mod metrics;
mod overwrite_trees;
pub mod queue;
pub mod registration;

pub use audits::{AuditSettings, NAME as AUDIT};
pub use companion::{Companion, Lead};
pub use controller::{Controller, Failure, Next, Permission, Tools};
pub use events::{Events, Severity};
pub use leadership::{Elector, Timing};
pub use metrics::Metrics;
pub use overwrite_trees::TreeSettings;

use std::sync::{Arc, Mutex};

use crate::kustomize::delivery::Judge;
use crate::landscaper::dry_run::run::{self, Deployer};

/// What controllers are told at the start.
#[derive(Clone)]
pub struct Settings {
    /// The deployer of dry runs.
    pub dry_run: Deployer,
    /// The trees of overwritten components.
    pub trees: TreeSettings,
    /// Definitions of composites that are chosen besides those with the label.
    pub composites: Vec<String>,
    /// What is audited, where it is.
    pub audit: Option<AuditSettings>,
    /// What judges the trees of Flux Kustomizations, where they are judged.
    pub flux_trees: Option<Arc<dyn Judge>>,
    /// Hosts from which artifacts may be fetched, besides Flux's own.
    pub artifact_hosts: Vec<String>,
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
        }
    }
}

/// Every controller, as `portcullis manifests` grants their rights; which of them run is said on the command line.
pub fn controllers(settings: &Settings) -> Vec<Box<dyn Controller>> {
    vec![
        Box::new(marks::Marks),
        Box::new(dry_run_deployer::DryRunDeployer { deployer: settings.dry_run.clone() }),
        Box::new(overwrite_trees::OverwriteTrees::new(settings.trees.clone())),
        Box::new(composites::Composites { chosen: settings.composites.clone() }),
        Box::new(audits::Audits { settings: settings.audit.clone() }),
        Box::new(flux_trees::FluxTrees {
            trees: settings.flux_trees.clone(),
            hosts: settings.artifact_hosts.clone(),
            reported: Mutex::default(),
        }),
    ]
}
