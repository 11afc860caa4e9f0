//! Placeholders for the tracing types in builds without the cargo feature `otlp`. No values of these types can exist,
//! so the compiler removes the code that uses them.

use axum::http::{HeaderMap, StatusCode};

use super::TracesError;
use crate::admission::{Phase, Request, Verdict};

/// The exporter of spans. Without the cargo feature `otlp`, no value of this type exists.
#[derive(Debug, Clone)]
pub enum Traces {}

/// The span of a webhook call. Without the cargo feature `otlp`, no value of this type exists.
#[derive(Debug, Clone)]
pub(in crate::server) enum Span {}

impl Traces {
    /// Returns an error that names the builds of portcullis that support traces.
    ///
    /// # Errors
    /// Always.
    pub fn to(_: &str) -> Result<Self, TracesError> {
        Err(TracesError::NotBuilt)
    }

    /// Does nothing, because this build does not export spans. In a build with the cargo feature `otlp`, this function
    /// sends the remaining spans and shuts the exporter down.
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
