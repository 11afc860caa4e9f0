//! From serving to gone without losing a call.
//!
//! The API server keeps sending to a terminating pod over the connections that it has (C5), and does not retry a call
//! that meets a closed one (C3). So the end has steps: as a lame duck the server fails its readiness and puts
//! `Connection: close` on every answer, while it accepts as before; then it stops accepting, closes what has been idle
//! all that time, and waits for the rest.

use std::sync::Arc;

use tokio::sync::watch;

/// How far the server is on its way out. Only ever goes forward.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// Serving.
    Serving,
    /// Serving, but not ready, and closing each connection with its next answer.
    LameDuck,
    /// No longer accepting; waiting for the last answers.
    Draining,
}

/// Begins the shutdown, and tells how far it is.
#[derive(Debug, Clone)]
pub struct Shutdown(Arc<watch::Sender<Stage>>);

impl Shutdown {
    pub(super) fn new() -> Self {
        Self(Arc::new(watch::Sender::new(Stage::Serving)))
    }

    /// Begins the shutdown; calling it again changes nothing.
    pub fn begin(&self) {
        self.advance(Stage::LameDuck);
    }

    /// How far the server is.
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

    /// Waits until the server is at `stage` or beyond.
    pub async fn reached(&self, stage: Stage) {
        // Cannot fail: the sender lives as long as `self`.
        let _ = self.0.subscribe().wait_for(|now| *now >= stage).await;
    }
}
