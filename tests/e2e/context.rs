//! The context that every test gets as its argument.

use std::fs;

use crate::artifacts::ArtifactServer;
use crate::cluster::{Cluster, ClusterError};
use crate::collector::Collector;
use crate::control_plane::TRACING;
use crate::gate::{Gate, GateError, GateOptions};

/// The API server's tracing configuration, without the endpoint. The configuration sets no sampling rate. So the API
/// server traces a request only if the request already belongs to a trace, and comes from an administrator.
const TRACING_CONFIGURATION: &str = "apiVersion: apiserver.config.k8s.io/v1\nkind: TracingConfiguration\n";

/// The servers that all tests share.
pub struct Context {
    // Rust drops the fields in this order.
    /// The portcullis process, if a test of this run needs it.
    pub gate: Option<Gate>,
    pub cluster: Cluster,
    /// The server from which portcullis fetches the artifacts of Flux sources.
    pub artifacts: ArtifactServer,
    /// The collector to which portcullis and the API server export their traces.
    pub collector: Collector,
}

/// An error that occurred while starting the context.
#[derive(Debug, thiserror::Error)]
pub enum ContextError {
    #[error(transparent)]
    Cluster(#[from] ClusterError),
    #[error(transparent)]
    Gate(#[from] GateError),
}

impl Context {
    /// Starts a cluster and applies all CRDs. If `gate` contains options, also starts portcullis and registers its
    /// webhooks.
    pub fn start(
        gate: Option<&GateOptions<'_>>,
        artifacts: ArtifactServer,
        collector: Collector,
    ) -> Result<Self, ContextError> {
        let tracing = format!("{TRACING_CONFIGURATION}endpoint: {}\n", collector.grpc);
        let cluster = Cluster::start(|folder| {
            fs::write(folder.join(TRACING), tracing).expect("the file can be written");
        })?;
        // Portcullis starts before the CRDs exist. It must become ready without them, and detect them later.
        let started = gate.map(|options| Gate::start(&cluster, options)).transpose()?;
        cluster.apply_crds();
        if let Some((gate, options)) = started.as_ref().zip(gate) {
            gate.register(&cluster, options)?;
        }
        Ok(Self { gate: started, cluster, artifacts, collector })
    }
}
