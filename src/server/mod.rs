//! The HTTPS server of the admission webhooks, and the plain HTTP port for health probes and metrics. Does not depend
//! on any rule.
//!
//! The diagram shows the modules and types through which a request passes, from left to right. Their helpers are below
//! them.
//!
//! ```text
//! listener ─ connection ─ webhook ─ body ─ concurrency ─ review::read ─ Decide ─ Answer
//!               │            ├ rejection: HTTP answers other than a decision
//!               │            └ traces: spans whose parent is the API server's span
//!               ├ tls ─ certificates, clients ─ rotation
//!               └ lifecycle: serving → lame duck → draining
//! process::admin ─ report: readiness, probe, metrics
//! ```
//!
//! A server starts in three steps, and each step is a type: [`Options`], [`Bound`], [`Running`]. So a test can bind
//! port 0, and then read the address.
//!
//! ```no_run
//! # use std::{error::Error, sync::Arc};
//! # use portcullis::server::{Certificates, Decide, Format, Metrics, Options, Parts, Readiness, Telemetry, metrics};
//! # async fn serve(decide: Arc<dyn Decide>) -> Result<(), Box<dyn Error>> {
//! let _telemetry = Telemetry::init(Format::Json, "info")?;
//! let mut registry = metrics::registry();
//! let metrics = Arc::new(Metrics::register(&mut registry, ["OW001", "OW002"]));
//! let readiness = Readiness::default();
//! let catalog = readiness.condition("catalog", "contexts not listed yet");
//! let certificates = Arc::new(Certificates::from_folder("/tls")?);
//!
//! let bound = Options::new("[::]:9443".parse()?, "[::]:8080".parse()?).bind().await?;
//! let running = bound.start(Parts { decide, certificates, metrics, registry, readiness })?;
//! catalog.met();
//! running.until_signalled().await?;
//! # Ok(())
//! # }
//! ```
//!
//! Comments in these modules refer to C1 to C16. These are numbered facts in docs/admission-contract.md, which say what
//! the API server expects of a webhook. The main facts are:
//!
//! * Calls use HTTP/1.1 over TLS.
//! * The client closes idle connections.
//! * A call on a closed connection fails.
//! * `failurePolicy` decides whether a failed call admits or denies the object.

mod activity;
mod body;
pub mod certificates;
pub mod clients;
mod concurrency;
mod connection;
mod deadline;
pub mod lifecycle;
pub mod limits;
pub mod listener;
mod log;
pub mod metrics;
mod probe;
mod rejection;
mod report;
mod rotation;
pub mod tls;
pub mod traces;
mod webhook;

pub use certificates::{CertificateError, Certificates, Pair};
pub use clients::Clients;
pub use lifecycle::Shutdown;
pub use limits::Limits;
pub use listener::{BindError, Bound, Options, Parts, Running};
pub use metrics::Metrics;
pub use tls::Floor;
pub use traces::Traces;

pub use crate::admission::Decide;
pub use crate::process::{Condition, Format, Readiness, Telemetry};
