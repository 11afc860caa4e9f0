//! What there is of traces without the feature `otlp`: two types without values.

use axum::http::{HeaderMap, StatusCode};

use super::TracesError;
use crate::admission::{Phase, Request, Verdict};

/// Sends spans to a collector, where there is the feature.
#[derive(Debug, Clone)]
pub enum Traces {}

/// The span of a call, where there is the feature.
#[derive(Debug, Clone)]
pub(in crate::server) enum Span {}

impl Traces {
    /// Says which build has traces.
    ///
    /// # Errors
    /// Always.
    pub fn to(_: &str) -> Result<Self, TracesError> {
        Err(TracesError::NotBuilt)
    }

    /// Sends what is left.
    pub async fn finish(&self) {
        match *self {}
    }

    pub(in crate::server) fn span(&self, _: Phase, _: &HeaderMap) -> Option<Span> {
        match *self {}
    }
}

impl Span {
    pub(in crate::server) fn unread(&self, _: bool) {
        match *self {}
    }

    pub(in crate::server) fn unhandled(&self, _: &Request<'_>) {
        match *self {}
    }

    pub(in crate::server) fn decided(&self, _: &Request<'_>, _: &Verdict, _: bool) {
        match *self {}
    }

    pub(in crate::server) fn answered(&self, _: StatusCode) {
        match *self {}
    }
}
