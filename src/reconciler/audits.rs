//! A controller that periodically runs the rules on the objects of the cluster, and writes policy reports and metrics.

use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

use futures::FutureExt as _;
use futures::future::BoxFuture;
use tokio::time::{sleep, timeout};

use super::changed_trees::ChangedTrees;
use super::{Controller, Failure, Next, Permission, Tools};
use crate::audit::{self, Audit, Audited, Listed, Outcome, ReportError, Reports};
use crate::catalog::{Kind, Reference};

/// Name of the controller in flags, metrics and logs.
pub const NAME: &str = "audit";
/// Timeout of an audit. Even an audit of a hundred thousand objects takes only minutes.
const TIMEOUT: Duration = Duration::from_secs(3600);
/// Minimum pause between two audits, to limit the load on the API server.
const PAUSE: Duration = Duration::from_secs(1);
/// Time between the start of a failed audit and the next audit, unless [`AuditSettings::every`] is shorter. It is long
/// because an audit lists a whole cluster.
const RETRY: Duration = Duration::from_secs(600);
/// Pause after a failed audit of changed kustomize trees, before it is tried again.
const TREES_RETRY: Duration = Duration::from_secs(30);

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
    /// The audit to run.
    pub audit: Arc<Audit>,
    /// The interval between the starts of two audits.
    pub every: Duration,
    /// The metrics that each audit updates.
    pub metrics: audit::Metrics,
}

/// A controller that periodically audits the objects of the cluster, while this replica is the leader.
pub(super) struct Audits {
    /// The settings of periodic audits. `None` if the controller is created only to list the permissions that it needs.
    pub(super) settings: Option<AuditSettings>,
    /// Flux Kustomizations whose kustomize trees have become broken, or have been repaired, since the last audit.
    pub(super) trees: Arc<ChangedTrees>,
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

    /// Returns the resources that an audit lists. Composites are not included, because their kinds are known only at
    /// run time.
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
    async fn repeat(&self, tools: &Tools, trees: &ChangedTrees) {
        loop {
            let begun = Instant::now();
            // The audit that begins now covers all earlier changes.
            drop(trees.take());
            let (audited, after) = match self.attempt(self.once(tools)).await {
                Some(audited) => (Some(audited), self.every),
                None => (None, self.every.min(RETRY)),
            };
            let pause = sleep(after.saturating_sub(begun.elapsed()).max(PAUSE));
            match audited {
                Some(audited) => self.update(audited, tools, trees, pause).await,
                None => pause.await,
            }
        }
    }

    /// Audits Flux Kustomizations again when their kustomize trees have changed, and updates their policy reports. Runs
    /// until `end` completes.
    async fn update(&self, mut audited: Audited, tools: &Tools, trees: &ChangedTrees, end: impl Future<Output = ()>) {
        let mut end = pin!(end);
        loop {
            tokio::select! {
                () = &mut end => return,
                () = trees.wait() => {}
            }
            let changed: Vec<_> =
                trees.take().into_iter().filter(|object| self.audit.covers(&object.namespace)).collect();
            if changed.is_empty() {
                continue;
            }
            let pause = match self.attempt(self.again(&audited, &changed, tools)).await {
                Some(updated) => {
                    audited = updated;
                    PAUSE
                }
                None => {
                    trees.add(changed);
                    TREES_RETRY
                }
            };
            sleep(pause).await;
        }
    }

    /// Runs the given audit. If it fails, panics or exceeds [`TIMEOUT`], logs and counts the failure, and returns
    /// `None`.
    async fn attempt(&self, audit: impl Future<Output = Result<Audited, AuditFailure>>) -> Option<Audited> {
        let failure = match AssertUnwindSafe(timeout(TIMEOUT, audit)).catch_unwind().await {
            Ok(Ok(Ok(audited))) => return Some(audited),
            Ok(Ok(Err(failure))) => failure,
            Ok(Err(_)) => AuditFailure::TooLong,
            Err(_) => AuditFailure::Panicked,
        };
        self.metrics.failed();
        tracing::error!(%failure, "the audit failed");
        None
    }

    async fn once(&self, tools: &Tools) -> Result<Audited, AuditFailure> {
        let begun = Instant::now();
        let mut audited = self.audit.cluster(&tools.client, |_| ()).await?;
        let reports = Reports::read(tools.client.clone()).await?;
        reports.compare(&mut audited);
        let before = reports.version();
        self.metrics.done(&audited, begun.elapsed());
        log_findings(&audited, before.as_deref());
        self.write(reports, &audited, &self.audit.namespaces).await?;
        Ok(audited)
    }

    /// Audits `objects` again, and updates the policy reports of their namespaces. `audited` is the result of the
    /// previous audit. Returns `audited` with the new findings about `objects`.
    async fn again(&self, audited: &Audited, objects: &[Reference], tools: &Tools) -> Result<Audited, AuditFailure> {
        let later = self.audit.objects(&tools.client, objects).await?;
        let audited = audited.clone().updated(objects, later);
        self.metrics.found(&audited);
        let mut namespaces: Vec<_> = objects.iter().map(|object| object.namespace.clone()).collect();
        namespaces.sort_unstable();
        namespaces.dedup();
        tracing::info!(objects = objects.len(), "audited again: their trees became broken, or were repaired");
        self.write(Reports::read(tools.client.clone()).await?, &audited, &namespaces).await?;
        Ok(audited)
    }

    async fn write(&self, reports: Reports, audited: &Audited, namespaces: &[String]) -> Result<(), AuditFailure> {
        match reports.write(audited, self.audit.gate.registry(), namespaces).await {
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
