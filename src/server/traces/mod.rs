//! Records webhook calls as spans in the API server's traces, and exports the spans over OTLP.
//!
//! The API server sends the id of its own span in the header `traceparent` (C13 in `docs/admission-contract.md`). This
//! span becomes the parent of the span for the call. The following drawing shows the path of a span, from the header to
//! the OpenTelemetry collector:
//!
//! ```text
//! traceparent ─ parent ─ Span: the attributes and the outcome of a call
//!                          └ export: a queue, a thread, HTTP ─ collector
//! ```
//!
//! The API server decides which calls are traced. A call has a span if its `traceparent` header says that it is
//! sampled. Creating a span never blocks. If the collector is unavailable, spans are lost, and a log record reports the
//! loss. Decisions are not affected.
//!
//! Traces require the cargo feature `otlp`. Without the feature, the types [`Traces`] and `Span` are enums without
//! variants. So no span can be created, and the compiler removes the code that uses these types.
//!
//! Sources: W3C Trace Context; the conventions of OpenTelemetry for spans of HTTP servers.

#[cfg(not(feature = "otlp"))]
mod absent;
#[cfg(feature = "otlp")]
mod export;
#[cfg(feature = "otlp")]
mod parent;
#[cfg(feature = "otlp")]
mod span;

#[cfg(not(feature = "otlp"))]
pub use absent::Traces;
#[cfg(feature = "otlp")]
pub use export::Traces;

#[cfg(not(feature = "otlp"))]
pub(super) use absent::Span;
#[cfg(feature = "otlp")]
pub(super) use span::Span;

/// The reason why the exporter of spans cannot be created.
#[derive(Debug, thiserror::Error)]
pub enum TracesError {
    /// The build lacks the cargo feature `otlp`.
    #[error(
        "this build of portcullis has no traces; use the image, a released binary, or a build with \
         `cargo build --release --features otlp`"
    )]
    NotBuilt,
    /// The collector's address is invalid.
    #[error(
        "{0:?} is not a valid collector address; use one such as http://collector.observability:4318 (OTLP over HTTP)"
    )]
    Endpoint(String),
    /// TLS for connections to the collector cannot be configured.
    #[error("TLS to the collector cannot be configured: {0}")]
    Tls(#[from] rustls::Error),
    /// The configuration of the exporter is invalid. Environment variables are a part of this configuration.
    #[error("the exporter of traces cannot be configured: {0}")]
    Exporter(#[source] Box<dyn std::error::Error + Send + Sync>),
}
