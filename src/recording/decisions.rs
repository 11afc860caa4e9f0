//! Records the decisions of the gate. The gate runs the rules and mutators. The server calls the recording code, which
//! calls the gate.

use std::sync::Arc;

use futures::future::BoxFuture;

use super::Recorder;
use crate::admission::{Decide, Phase, Request, Verdict};

/// A wrapper that records the decisions about admission requests. The wrapped implementation makes the decisions.
pub struct RecordedDecisions {
    /// The implementation of [`Decide`] that makes the decisions. They are then recorded.
    pub decide: Arc<dyn Decide>,
    /// The recorder that gets the decisions.
    pub recorder: Arc<Recorder>,
}

impl Decide for RecordedDecisions {
    fn decision<'a>(&'a self, phase: Phase, request: &'a Request<'a>) -> Option<BoxFuture<'a, Verdict>> {
        let decided = self.decide.decision(phase, request)?;
        Some(Box::pin(self.recorder.decision(phase, request, decided)))
    }
}
