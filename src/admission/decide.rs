//! The interface through which the server asks for decisions about requests. The gate module, which selects and runs
//! the rules, implements it.

use futures::future::BoxFuture;

use super::{Phase, Request, Verdict};

/// An interface for decisions about requests. The server depends only on this trait, and not on
/// [`Gate`](crate::gate::Gate), the type that implements the trait with the rules.
pub trait Decide: Send + Sync + 'static {
    /// Decides about a request. Returns `None` if no rule or mutator matches the request. The server then admits and
    /// counts the request, and does not parse its object.
    ///
    /// The server drops the future at `request.deadline`. If the future panics, only this request fails.
    fn decision<'a>(&'a self, phase: Phase, request: &'a Request<'a>) -> Option<BoxFuture<'a, Verdict>>;
}
