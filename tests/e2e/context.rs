//! What every trial is given.

use std::fs;

use crate::artifacts::ArtifactServer;
use crate::cluster::{Cluster, ClusterError};
use crate::collector::Collector;
use crate::control_plane::TRACING;
use crate::gate::{Gate, GateError, GateOptions};

/// What an administrator writes so that the API server has traces. Without a rate, those requests are traced that say
/// so themselves and come from an administrator.
const TRACING_CONFIGURATION: &str = "apiVersion: apiserver.config.k8s.io/v1\nkind: TracingConfiguration\n";

/// The running parts that all trials share.
pub struct Context {
    // Dropped in this order.
    /// Portcullis, when a trial of this run needs it.
    pub gate: Option<Gate>,
    /// The API server.
    pub cluster: Cluster,
    /// Where artifacts come from.
    pub artifacts: ArtifactServer,
    /// Where traces go, the API server's and portcullis'.
    pub collector: Collector,
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
    pub fn start(
        gate: Option<&GateOptions<'_>>,
        artifacts: ArtifactServer,
        collector: Collector,
    ) -> Result<Self, ContextError> {
        let tracing = format!("{TRACING_CONFIGURATION}endpoint: {}\n", collector.grpc);
        let cluster = Cluster::start(|folder| {
            fs::write(folder.join(TRACING), tracing).expect("there is room");
        })?;
        // Before there is any of Landscaper's kinds: it has to be ready without them, and to notice when they come.
        let started = gate.map(|options| Gate::start(&cluster, options)).transpose()?;
        cluster.apply_crds();
        if let Some((gate, options)) = started.as_ref().zip(gate) {
            gate.register(&cluster, options)?;
        }
        Ok(Self { gate: started, cluster, artifacts, collector })
    }
}
