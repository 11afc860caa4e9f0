//! What every trial is given.

use crate::artifacts::ArtifactServer;
use crate::cluster::{Cluster, ClusterError};
use crate::gate::{Gate, GateError, GateOptions};

/// The running parts that all trials share.
pub struct Context {
    // Dropped in this order.
    /// Portcullis, when a trial of this run needs it.
    pub gate: Option<Gate>,
    /// The API server.
    pub cluster: Cluster,
    /// Where artifacts come from.
    pub artifacts: ArtifactServer,
}

/// Why the trials cannot begin.
#[derive(Debug, thiserror::Error)]
pub enum ContextError {
    /// There is no API server.
    #[error(transparent)]
    Cluster(#[from] ClusterError),
    /// There is no portcullis.
    #[error(transparent)]
    Gate(#[from] GateError),
}

impl Context {
    /// Starts a cluster that serves Landscaper's kinds, and portcullis when there are options for it.
    pub fn start(gate: Option<&GateOptions<'_>>, artifacts: ArtifactServer) -> Result<Self, ContextError> {
        let cluster = Cluster::start()?;
        // Before there is any of Landscaper's kinds: it has to be ready without them, and to notice when they come.
        let started = gate.map(|options| Gate::start(&cluster, options)).transpose()?;
        cluster.apply_crds();
        if let Some((gate, options)) = started.as_ref().zip(gate) {
            gate.register(&cluster, options)?;
        }
        Ok(Self { gate: started, cluster, artifacts })
    }
}
