//! The HTTPS server of the admission webhooks, and the plain HTTP port for probes and metrics. Does not depend on any
//! rule.
//!
//! ```text
//! listener ─ connection ─ webhook ─ [body] ─ concurrency ─ review::read ─ Decide ─ Answer
//!               │            ├ rejection: HTTP answers other than a decision
//!               │            └ traces: spans whose parent is the API server's span
//!               ├ tls ─ certificates, clients ─ rotation
//!               └ lifecycle: serving → lame duck → draining
//! process::admin ─ report: readiness, probe, metrics
//! ```
//!
//! A server starts in three steps, each a type, so that a test can bind port 0 and ask for the address:
//! [`Options`], [`Bound`], [`Running`].
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
//! C1 to C16 in these modules are the numbered facts of docs/admission-contract.md: what the API server expects of a
//! webhook. In short: HTTP/1.1 over TLS; the client closes idle connections; a call on a closed connection fails; and
//! `failurePolicy` decides what a failed call means, which may be that the object is admitted.

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
