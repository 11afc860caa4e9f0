//! Spans of calls, which continue the API server's own traces and go to a collector over OTLP (C13).
//!
//! ```text
//! traceparent ─ parent ─ Span: what a call was about, and what came of it
//!                          └ export: a queue, a thread, HTTP ─ collector
//! ```
//!
//! The API server decides what is traced: a call has a span where its `traceparent` says that it is sampled, and any other
//! costs a look at that header. A span never waits for anything. A collector that is not there, or does not answer, costs
//! spans and a line in the log, and no decision.
//!
//! All of this is behind the cargo feature `otlp`. Without it neither [`Traces`] nor `Span` has a value: what would be
//! done with one is compiled away.
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

/// Why no spans can be sent.
#[derive(Debug, thiserror::Error)]
pub enum TracesError {
    /// The feature is not there.
    #[error(
        "this portcullis was built without traces; the image and the released binaries have them, and so has what \
         `cargo build --release --features otlp` builds"
    )]
    NotBuilt,
    /// The collector's address is none.
    #[error(
        "{0:?} is no address of a collector; write one such as http://collector.observability:4318 (OTLP over HTTP)"
    )]
    Endpoint(String),
    /// There is no TLS to it.
    #[error("TLS to the collector cannot be set up: {0}")]
    Tls(#[from] rustls::Error),
    /// Something that the environment says of it cannot be used.
    #[error("the exporter of traces cannot be set up: {0}")]
    Exporter(#[source] Box<dyn std::error::Error + Send + Sync>),
}
