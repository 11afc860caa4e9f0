//! The interface between the server and the gate. The gate selects and runs the rules.

use futures::future::BoxFuture;

use super::{Phase, Request, Verdict};

/// An interface for decisions about requests. The gate implements this trait. The server depends only on this trait.
pub trait Decide: Send + Sync + 'static {
    /// Decides about a request. Returns `None` if no rule or mutator matches the request. The server then admits and
    /// counts the request, and does not parse its object.
    ///
    /// The server drops the future at `request.deadline`. If the future panics, only this request fails.
    fn decision<'a>(&'a self, phase: Phase, request: &'a Request<'a>) -> Option<BoxFuture<'a, Verdict>>;
}
