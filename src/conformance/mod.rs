//! A kit that tries a deployer out: it plays Landscaper's part on a cluster, watches every write of the deployer, and
//! says which promises of the contract it keeps and which it breaks.
//!
//! ```text
//! scenarios ─► DeployItems, jobs, deletions ─► the deployer
//!                                                 │ its writes, every one of them
//!              report ◄─ judge ◄─ record ◄────────┘
//! ```
//!
//! The promises about writes are those that the webhook enforces ([`promises`](crate::landscaper::deployer::promises));
//! beyond these the kit sees what a webhook cannot: that something happens in time, or does not happen at all.

mod judge;
mod landscaper;
mod promises;
mod record;
mod report;
mod scenarios;

use std::time::Duration;

use kube::Client;
use serde_json::Value;

pub use report::{Evidence, Judged, Report, Scenario, Verdict};

/// What the kit needs to know of a deployer.
#[derive(Debug, Clone)]
pub struct Options {
    /// The type of DeployItems that it serves.
    pub type_name: String,
    /// The namespace to try it in; it must be there.
    pub namespace: String,
    /// `spec.config` of DeployItems that it can deploy.
    pub config: Option<Value>,
    /// `spec.config` of DeployItems that it fails.
    pub failing_config: Option<Value>,
    /// Further annotations of the DeployItems.
    pub annotations: Vec<(String, String)>,
    /// The name of a Target that it serves.
    pub target: Option<String>,
    /// The name of a Target that it does not serve.
    pub foreign_target: Option<String>,
    /// How long a job may take.
    pub timeout: Duration,
    /// How long nothing must happen where nothing may.
    pub quiet: Duration,
}

/// Why a deployer could not be tried.
#[derive(Debug, thiserror::Error)]
pub enum ConformanceError {
    /// The API server refused what the kit does in Landscaper's place.
    #[error("{doing}: {source}")]
    Refused {
        /// What was tried.
        doing: String,
        /// What the API server said.
        source: Box<kube::Error>,
    },
    /// The watch broke off, so that writes may have been missed.
    #[error("watching DeployItems: {0}; writes may have been missed, so that nothing can be said")]
    Missed(String),
}

/// Tries a deployer out.
///
/// # Errors
/// When the cluster does not let the kit do its part, or writes may have been missed. A deployer that breaks promises, or
/// does nothing at all, is no error: the report says so.
pub async fn run(client: Client, options: Options) -> Result<Report, ConformanceError> {
    let recorder = record::Recorder::start(&client, &options.namespace).await?;
    let kit = landscaper::Landscaper::new(client, options, recorder);
    let told = scenarios::all(&kit).await;
    // What is written from now on is no part of the trial.
    let record = kit.recorder.finish();
    kit.clear_away().await;
    Ok(judge::report(&kit.options.type_name, told?, &record?))
}
