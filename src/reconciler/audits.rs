//! A controller that audits periodically and writes policy reports and metrics.

use std::panic::AssertUnwindSafe;
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

use futures::FutureExt as _;
use futures::future::BoxFuture;
use tokio::sync::Notify;
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
/// Minimum time from the start of an audit to one that starts early, because of a tree: an audit lists a whole cluster.
const EARLY: Duration = Duration::from_secs(600);

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
    /// Notified when another tree is broken, or no longer.
    pub(super) trees: Arc<Notify>,
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
                settings.repeat(tools, &self.trees).await;
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
    async fn repeat(&self, tools: &Tools, trees: &Notify) {
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
            wait(self.every, EARLY, begun, trees).await;
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

/// Waits until the next audit: at its interval after the start of the last one, or as soon as the trees have changed, but not
/// before `early` has passed.
async fn wait(every: Duration, early: Duration, begun: Instant, trees: &Notify) {
    let until = |after: Duration| after.saturating_sub(begun.elapsed()).max(PAUSE);
    let changed = async {
        sleep(until(early)).await;
        trees.notified().await;
    };
    tokio::select! {
        () = sleep(until(every)) => {}
        () = changed => tracing::info!("auditing early: a tree is broken, or no longer"),
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

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: Duration = Duration::from_secs(3600);

    /// Issue 18, Flux 6: the policy report follows the Event of a broken revision, and does not wait for the next day.
    #[tokio::test]
    async fn an_audit_starts_early_if_a_tree_changes() {
        let trees = Notify::new();
        let begun = Instant::now().checked_sub(Duration::from_secs(2)).unwrap_or_else(Instant::now);
        let next = |early: Duration| timeout(2 * PAUSE, wait(HOUR, early, begun, &trees));
        assert!(next(Duration::ZERO).await.is_err(), "nothing has changed");
        trees.notify_one();
        assert!(next(HOUR).await.is_err(), "the last audit has just begun");
        timeout(HOUR, wait(HOUR, Duration::ZERO, begun, &trees)).await.expect("the change is not forgotten");
    }
}
