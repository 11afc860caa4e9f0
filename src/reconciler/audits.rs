//! A controller that audits periodically and writes policy reports and metrics.

use std::panic::AssertUnwindSafe;
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

use futures::FutureExt as _;
use futures::future::BoxFuture;
use tokio::time::{sleep, timeout};

use super::{Controller, Failure, Next, Permission, Tools};
use crate::audit::{self, Audit, Audited, Listed, Outcome, ReportError, Reports};
use crate::catalog::{Kind, Reference};

/// The controller's name.
pub const NAME: &str = "audit";
/// Timeout of an audit. A cluster of a hundred thousand objects is audited in minutes.
const TIMEOUT: Duration = Duration::from_secs(3600);
/// Minimum pause between two audits, to limit the load on the API server.
const PAUSE: Duration = Duration::from_secs(1);

static PERMISSIONS: [Permission; 2] = [
    Permission { group: "openreports.io", resources: &["clusterreports", "reports"], names: &[], verbs: WRITES },
    Permission {
        group: "wgpolicyk8s.io",
        resources: &["clusterpolicyreports", "policyreports"],
        names: &[],
        verbs: WRITES,
    },
];
const WRITES: &[&str] = &["create", "delete", "list", "update"];

/// The settings of periodic audits.
#[derive(Clone)]
pub struct AuditSettings {
    /// The audit.
    pub audit: Arc<Audit>,
    /// The interval between the starts of two audits.
    pub every: Duration,
    /// The metrics.
    pub metrics: audit::Metrics,
}

/// Audits while this replica leads.
pub(super) struct Audits {
    /// `None` if only the permissions are needed.
    pub(super) settings: Option<AuditSettings>,
}

impl Controller for Audits {
    fn name(&self) -> &'static str {
        NAME
    }

    fn family(&self) -> Option<&'static str> {
        None
    }

    fn summary(&self) -> &'static str {
        "audits stored objects periodically and writes policy reports"
    }

    fn watches(&self) -> &'static [&'static Kind] {
        &[]
    }

    /// Returns the listed resources. Excludes composites, whose kinds are known only at run time.
    fn lists(&self) -> &'static [Listed] {
        static LISTED: LazyLock<Vec<Listed>> = LazyLock::new(audit::listed);
        &LISTED
    }

    fn permissions(&self) -> &'static [Permission] {
        &PERMISSIONS
    }

    fn is_optional(&self) -> bool {
        true
    }

    fn lead<'a>(&'a self, tools: &'a Tools) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            if let Some(settings) = &self.settings {
                settings.repeat(tools).await;
            }
        })
    }

    /// Does nothing: this controller watches no objects.
    fn reconcile<'a>(&'a self, _: &'a Reference, _: &'a Tools) -> BoxFuture<'a, Result<Next, Failure>> {
        Box::pin(async { Ok(Next::Done) })
    }
}

/// The reason why an audit failed.
#[derive(Debug, thiserror::Error)]
enum AuditFailure {
    #[error("the cluster cannot be read: {0}")]
    Cluster(#[from] kube::Error),
    #[error(transparent)]
    Reports(#[from] ReportError),
    #[error("timeout after {TIMEOUT:?}")]
    TooLong,
    #[error("it panicked")]
    Panicked,
}

impl AuditSettings {
    async fn repeat(&self, tools: &Tools) {
        loop {
            let begun = Instant::now();
            let auditing = AssertUnwindSafe(timeout(TIMEOUT, self.once(tools))).catch_unwind().await;
            let outcome = match auditing {
                Ok(Ok(outcome)) => outcome,
                Ok(Err(_)) => Err(AuditFailure::TooLong),
                Err(_) => Err(AuditFailure::Panicked),
            };
            if let Err(failure) = outcome {
                self.metrics.failed();
                tracing::error!(%failure, "the audit failed");
            }
            sleep(self.every.saturating_sub(begun.elapsed()).max(PAUSE)).await;
        }
    }

    async fn once(&self, tools: &Tools) -> Result<(), AuditFailure> {
        let begun = Instant::now();
        let mut audited = self.audit.cluster(&tools.client, |_| ()).await?;
        let reports = Reports::read(tools.client.clone()).await?;
        reports.compare(&mut audited);
        let before = reports.version();
        self.metrics.done(&audited, begun.elapsed());
        log_findings(&audited, before.as_deref());
        let registry = self.audit.gate.registry();
        match reports.write(&audited, registry, &self.audit.namespaces).await {
            Ok(written) => tracing::info!(%written, "policy reports"),
            // Metrics and log still have the findings.
            Err(error @ ReportError::NotInstalled) => tracing::warn!(%error, "no policy reports"),
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }
}

fn log_findings(audited: &Audited, before: Option<&str>) {
    let count = |outcome| audited.count(outcome);
    let new = audited.entries.iter().filter(|entry| entry.is_new == Some(true)).count();
    let (fail, warn, error) = (count(Outcome::Fail), count(Outcome::Warn), count(Outcome::Error));
    tracing::info!(objects = audited.objects, fail, warn, error, skip = count(Outcome::Skip), new, before, "audited");
    for unread in &audited.unread {
        tracing::warn!(resource = unread.resource, why = unread.why, "not audited: its earlier results are kept");
    }
}
