//! Reports the server's readiness and metrics on the plain HTTP port.

use std::sync::Arc;

use futures::future::BoxFuture;

use super::certificates::Certificates;
use super::lifecycle::{Shutdown, Stage};
use super::metrics::Metrics;
use super::probe::Probe;
use super::webhook::Webhook;
use crate::process::Report;
use crate::process::readiness::{Readiness, State as Condition};

/// The server's implementation of [`Report`]. It determines the readiness conditions and updates the metrics that the
/// plain HTTP port serves.
pub(super) struct ServerReport {
    pub(super) readiness: Readiness,
    pub(super) shutdown: Shutdown,
    pub(super) probe: Probe,
    pub(super) webhook: Arc<Webhook>,
    pub(super) metrics: Arc<Metrics>,
    pub(super) certificates: Arc<Certificates>,
}

impl Report for ServerReport {
    /// Returns the readiness conditions. The conditions of the server come first. During shutdown, returns only the
    /// condition `serving`, which is then not met.
    fn conditions(&self) -> BoxFuture<'_, Vec<Condition>> {
        Box::pin(async move {
            if self.shutdown.stage() > Stage::Serving {
                return vec![Condition::new("serving", Some("shutting down".to_owned()))];
            }
            let port = Condition::new("webhook port", self.probe.call().await.err());
            let mut conditions = vec![Condition::new("serving", None), port];
            conditions.extend(self.readiness.report());
            conditions
        })
    }

    fn measure(&self) {
        self.webhook.measure();
        self.metrics.certificate_expires(self.certificates.expires());
    }
}
