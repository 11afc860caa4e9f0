//! The conformance kit, which tests deployers of Landscaper.
//!
//! It simulates Landscaper on a cluster, and watches every write of the deployer. Then it reports which requirements of
//! Landscaper's deployer contract the deployer meets, and which it violates.
//!
//! ```text
//! scenarios ─► DeployItems, jobs, deletions ─► the deployer
//!                                                 │ all its writes
//!              report ◄─ judge ◄─ record ◄────────┘
//! ```
//!
//! The kit tests the requirements about writes that the webhook enforces
//! ([`requirements`](crate::landscaper::deployer::requirements)). Unlike a webhook, it also tests that the deployer
//! reacts in time, and that it does not write the DeployItems of other deployers.

mod judge;
mod landscaper;
mod record;
mod report;
mod requirements;
mod scenarios;

use std::time::Duration;

use kube::Client;
use serde_json::Value;

pub use report::{Evidence, Judged, Report, Scenario, Verdict};

/// The options of a test run of the conformance kit.
#[derive(Debug, Clone)]
pub struct Options {
    /// The type of DeployItems that the deployer serves.
    pub type_name: String,
    /// The namespace for the test. It must exist.
    pub namespace: String,
    /// `spec.config` of DeployItems that the deployer can deploy; `None` to omit the field.
    pub config: Option<Value>,
    /// `spec.config` of DeployItems for which the deployer must fail. `None` skips the test of failures.
    pub failing_config: Option<Value>,
    /// Additional annotations of the DeployItems.
    pub annotations: Vec<(String, String)>,
    /// The name of a Target that the deployer serves; `None` for DeployItems without a Target.
    pub target: Option<String>,
    /// The name of a Target that the deployer does not serve. `None` skips the test with such a Target.
    pub foreign_target: Option<String>,
    /// The maximum time from requesting a job until the deployer finishes it.
    pub timeout: Duration,
    /// The time for which the test watches a DeployItem that the deployer must not write, for example because it
    /// belongs to another deployer.
    pub quiet: Duration,
}

/// The reason why a deployer could not be tested.
#[derive(Debug, thiserror::Error)]
pub enum ConformanceError {
    /// The API server rejected a request of the conformance kit.
    #[error("{doing}: {source}")]
    Refused {
        /// The operation, such as `deleting DeployItem a`.
        doing: String,
        /// The error response of the API server.
        source: Box<kube::Error>,
    },
    /// The watch of DeployItems failed, so writes may have been missed.
    #[error("watching DeployItems: {0}; writes may have been missed, so there is no report")]
    Missed(String),
}

/// Tests a deployer on a cluster, and returns the report.
///
/// # Errors
/// Fails if the API server rejects a request of this test. Also fails if the watch of DeployItems ends with an error,
/// because the test may then have missed writes of the deployer. A deployer that violates requirements is not an error:
/// the report lists the violations.
pub async fn run(client: Client, options: Options) -> Result<Report, ConformanceError> {
    let recorder = record::Recorder::start(&client, &options.namespace).await?;
    let kit = landscaper::Landscaper::new(client, options, recorder);
    let outcome = scenarios::all(&kit).await;
    // Later writes are not part of the test.
    let record = kit.recorder.finish();
    kit.clean_up().await;
    Ok(judge::report(&kit.options.type_name, outcome?, &record?))
}
