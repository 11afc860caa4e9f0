//! The context of every test.

use std::fs;

use crate::artifacts::ArtifactServer;
use crate::cluster::{Cluster, ClusterError};
use crate::collector::Collector;
use crate::control_plane::TRACING;
use crate::gate::{Gate, GateError, GateOptions};

/// The administrator's tracing configuration. Without a rate, only requests of administrators with a trace are traced.
const TRACING_CONFIGURATION: &str = "apiVersion: apiserver.config.k8s.io/v1\nkind: TracingConfiguration\n";

/// The running parts that all tests share.
pub struct Context {
    // Dropped in this order.
    /// Portcullis, when a test of this run needs it.
    pub gate: Option<Gate>,
    /// The API server.
    pub cluster: Cluster,
    /// Where artifacts come from.
    pub artifacts: ArtifactServer,
    /// Where traces go, the API server's and portcullis'.
    pub collector: Collector,
}

/// Why the tests cannot begin.
#[derive(Debug, thiserror::Error)]
pub enum ContextError {
    /// There is not an API server.
    #[error(transparent)]
    Cluster(#[from] ClusterError),
    /// There is not a portcullis.
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
        // Started before Landscaper's kinds exist: the server must become ready without them, and notice them later.
        let started = gate.map(|options| Gate::start(&cluster, options)).transpose()?;
        cluster.apply_crds();
        if let Some((gate, options)) = started.as_ref().zip(gate) {
            gate.register(&cluster, options)?;
        }
        Ok(Self { gate: started, cluster, artifacts, collector })
    }
}
