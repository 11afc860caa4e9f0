//! Shuts the server down without losing a call.
//!
//! The API server keeps sending to a terminating pod over open connections (C5). It does not retry a call on a closed
//! connection (C3). Therefore the shutdown has stages. In the lame-duck stage, the server is not ready, and adds
//! `Connection: close` to every answer. It still accepts connections. After this stage, the server stops accepting
//! connections, closes idle connections, and waits for the remaining answers.

use std::sync::Arc;

use tokio::sync::watch;

/// The stage of the shutdown. Stages only advance.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// The server is ready and serves requests.
    Serving,
    /// Serving, but not ready, and closing each connection with its next answer.
    LameDuck,
    /// Accepting no more connections, and waiting for the last answers.
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
