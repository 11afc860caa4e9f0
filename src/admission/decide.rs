//! The interface between the server and the gate.

use futures::future::BoxFuture;

use super::{Phase, Request, Verdict};

/// An interface for decisions about requests. The gate implements it; the server depends on this trait only.
pub trait Decide: Send + Sync + 'static {
    /// Decides about a request. Returns `None` if no rule or mutator matches the request: the server then admits the
    /// request and counts it, without parsing its object.
    ///
    /// The server drops the future at `request.deadline`; if the future panics, only this request fails.
    fn decision<'a>(&'a self, phase: Phase, request: &'a Request<'a>) -> Option<BoxFuture<'a, Verdict>>;
}
