//! The HTTPS admission webhook, and beside it the plain port for probes and metrics. Knows no rule.
//!
//! ```text
//! listener ─ connection ─ webhook ─ [body] ─ turns ─ review::read ─ Decide ─ Answer
//!               │            ├ rejection: every HTTP status that is no decision
//!               │            └ traces: spans that continue the API server's
//!               ├ tls ─ certificates, clients ─ rotation
//!               └ lifecycle: serving → lame duck → draining
//! process::admin ─ report: readiness, probe, metrics
//! ```
//!
//! A server is built in three steps, each a type, so that a test binds port 0 and asks for the address:
//! [`Options`] are bound to [`Bound`], which is started to [`Running`].
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
//! The rows C1 to C16 named in these modules are those of the API server's contract with a webhook. In short: HTTP/1.1
//! over TLS, the client closes idle connections, a call that meets a closed connection fails, and a failed call is what
//! `failurePolicy` says, perhaps "let it in".

use futures::future::BoxFuture;

use crate::admission::{Phase, Request, Verdict};

mod activity;
mod body;
pub mod certificates;
pub mod clients;
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
mod turns;
mod webhook;

pub use certificates::{CertificateError, Certificates, Pair};
pub use clients::Clients;
pub use lifecycle::Shutdown;
pub use limits::Limits;
pub use listener::{BindError, Bound, Options, Parts, Running};
pub use metrics::Metrics;
pub use tls::Floor;
pub use traces::Traces;

pub use crate::process::{Condition, Format, Readiness, Telemetry};

/// Decides about requests. The gate implements it.
pub trait Decide: Send + Sync + 'static {
    /// Whether any rule or mutator looks at such a request; where not, it is allowed and counted without being parsed.
    fn handles(&self, phase: Phase, request: &Request<'_>) -> bool;

    /// Decides. The future is dropped at `request.deadline`; a panic in it costs this one answer.
    fn decide<'a>(&'a self, phase: Phase, request: &'a Request<'a>) -> BoxFuture<'a, Verdict>;
}
