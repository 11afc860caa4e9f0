//! Auditing every so often: what is stored, judged by the rules of admission, in policy reports and metrics.

use std::panic::AssertUnwindSafe;
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

use futures::FutureExt as _;
use futures::future::BoxFuture;
use tokio::time::{sleep, timeout};

use super::{Controller, Failure, Next, Permission, Tools};
use crate::audit::{self, Audit, Audited, Listed, Outcome, ReportError, Reports};
use crate::catalog::{Kind, Reference};

/// Its name, for whoever asks for it.
pub const NAME: &str = "audit";
/// A cluster of a hundred thousand objects is judged in minutes; what takes longer waits for something.
const LONGEST: Duration = Duration::from_secs(3600);
/// The least time between the end of an audit and the next one: the API server has other things to do.
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

/// What is audited, and how often.
#[derive(Clone)]
pub struct AuditSettings {
    /// The audit.
    pub audit: Arc<Audit>,
    /// From the beginning of one to the beginning of the next.
    pub every: Duration,
    /// Where it is counted.
    pub metrics: audit::Metrics,
}

/// Audits for as long as it leads.
pub(super) struct Audits {
    /// `None` where only its rights are asked for.
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
        "what is stored, judged every so often; policy reports"
    }

    fn watches(&self) -> &'static [&'static Kind] {
        &[]
    }

    /// Without composites, whose kinds nobody knows ahead.
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

    /// There is no object that it is called for.
    fn reconcile<'a>(&'a self, _: &'a Reference, _: &'a Tools) -> BoxFuture<'a, Result<Next, Failure>> {
        Box::pin(async { Ok(Next::Done) })
    }
}

/// Why an audit came to nothing.
#[derive(Debug, thiserror::Error)]
enum AuditFailure {
    #[error("the cluster cannot be asked: {0}")]
    Cluster(#[from] kube::Error),
    #[error(transparent)]
    Reports(#[from] ReportError),
    #[error("it was not done after {LONGEST:?}")]
    TooLong,
    #[error("it panicked")]
    Panicked,
}

impl AuditSettings {
    async fn repeat(&self, tools: &Tools) {
        loop {
            let begun = Instant::now();
            let auditing = AssertUnwindSafe(timeout(LONGEST, self.once(tools))).catch_unwind().await;
            let outcome = match auditing {
                Ok(Ok(outcome)) => outcome,
                Ok(Err(_)) => Err(AuditFailure::TooLong),
                Err(_) => Err(AuditFailure::Panicked),
            };
            if let Err(failure) = outcome {
                self.metrics.failed();
                tracing::error!(%failure, "the audit did not come to its end");
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
        tell(&audited, before.as_deref());
        let registry = self.audit.gate.registry();
        match reports.write(&audited, registry, &self.audit.namespaces).await {
            Ok(written) => tracing::info!(%written, "policy reports"),
            // The metrics and the log have it all the same.
            Err(error @ ReportError::NotInstalled) => tracing::warn!(%error, "no policy reports"),
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }
}

fn tell(audited: &Audited, before: Option<&str>) {
    let count = |outcome| audited.count(outcome);
    let new = audited.entries.iter().filter(|entry| entry.is_new == Some(true)).count();
    let (fail, warn, error) = (count(Outcome::Fail), count(Outcome::Warn), count(Outcome::Error));
    tracing::info!(objects = audited.objects, fail, warn, error, skip = count(Outcome::Skip), new, before, "audited");
    for unread in &audited.unread {
        tracing::warn!(resource = unread.resource, why = unread.why, "not audited: its results of before stay");
    }
}
