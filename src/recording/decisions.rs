//! A wrapper between the gate and the server that records the decisions of the gate.

use std::sync::Arc;

use futures::future::BoxFuture;

use super::Recorder;
use crate::admission::{Decide, Phase, Request, Verdict};

/// A wrapper of the gate that records its decisions.
pub struct RecordedDecisions {
    /// The wrapped gate.
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
