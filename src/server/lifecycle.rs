//! Shuts the server down without losing a request.
//!
//! The API server still sends requests to a terminating pod over open connections. If such a connection is closed, the
//! API server does not retry the request. (See C5 and C3 in `docs/admission-contract.md`.) Therefore the shutdown has
//! stages. In the first stage, the lame-duck period, the server reports that it is not ready, but still accepts
//! connections. It adds `Connection: close` to every response, so that clients leave. In the second stage, the server
//! accepts no more connections, closes idle ones, and sends the remaining responses.

use std::sync::Arc;

use tokio::sync::watch;

/// The stage of the shutdown. The server never returns to an earlier stage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// The server is ready and serves requests.
    Serving,
    /// The server still serves requests, but is not ready. It closes each connection after its next response.
    LameDuck,
    /// The server accepts no more connections, and waits until the last responses are sent.
    Draining,
}

/// A handle that begins the shutdown and reports its stage.
#[derive(Debug, Clone)]
pub struct Shutdown(Arc<watch::Sender<Stage>>);

impl Shutdown {
    pub(super) fn new() -> Self {
        Self(Arc::new(watch::Sender::new(Stage::Serving)))
    }

    /// Begins the shutdown. Further calls have no effect.
    pub fn begin(&self) {
        self.advance(Stage::LameDuck);
    }

    /// Returns the current stage.
    pub fn stage(&self) -> Stage {
        *self.0.borrow()
    }

    pub(super) fn advance(&self, stage: Stage) {
        self.0.send_if_modified(|now| {
            let forward = stage > *now;
            *now = stage.max(*now);
            forward
        });
    }

    /// Waits until the server has reached `stage`.
    pub async fn reached(&self, stage: Stage) {
        // Cannot fail: the sender lives as long as `self`.
        let _ = self.0.subscribe().wait_for(|now| *now >= stage).await;
    }
}
