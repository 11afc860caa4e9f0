//! Runs controllers. Watched changes fill the queues of the controllers, and workers in the leading replica reconcile
//! the queued objects.

use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};

use super::queue::Queue;
use super::{Controller, Elector, Failure, Metrics, Next, Tools};
use crate::catalog::{Catalog, Change, Kind, Observe, Reference};

/// Number of workers per controller. A few workers suffice, because a worker mostly waits for the API server.
const WORKERS: usize = 4;
/// Timeout for the reconciliation of one object. It is one minute, which is also the API server's default timeout for a
/// single request. A reconciliation that exceeds it is retried later.
const RECONCILE_TIMEOUT: Duration = Duration::from_secs(60);
/// Maximum time to wait for reconciliations in progress when leadership ends. It is shorter than a pod's termination
/// grace period.
const GRACE: Duration = Duration::from_secs(5);
/// Interval for checking whether the initial list requests of a controller's watches are complete. The controller
/// starts its work only after all of them are complete.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// A controller manager. It runs controllers, and each controller has a queue.
pub struct ControllerManager {
    runs: Vec<Arc<Run>>,
    metrics: Metrics,
}

/// One controller with its queue.
struct Run {
    controller: Box<dyn Controller>,
    queue: Queue,
    metrics: Metrics,
    /// The namespaces of the objects that the controller reconciles. Empty for all namespaces.
    namespaces: Vec<String>,
}

/// The method that decides which replica leads.
pub enum Lead {
    /// This process always leads. For tests, and for a single replica without competitors.
    Always,
    /// Leader election with a Lease. The replica that holds the Lease is the leader.
    Elected(Box<Elector>),
}

/// The reason why a term of leadership ended.
enum End {
    Lost,
    Stopped,
}

impl ControllerManager {
    /// Creates a controller manager with these controllers.
    pub fn new(controllers: Vec<Box<dyn Controller>>, metrics: Metrics) -> Self {
        controllers.iter().for_each(|controller| metrics.initialize(controller.name()));
        let run = |controller| {
            let (queue, metrics) = (Queue::default(), metrics.clone());
            Arc::new(Run { controller, queue, metrics, namespaces: Vec::new() })
        };
        Self { runs: controllers.into_iter().map(run).collect(), metrics }
    }

    /// Restricts the controllers to objects in `namespaces` and to cluster-scoped objects. If `namespaces` is empty,
    /// there is no restriction.
    #[must_use]
    pub fn in_namespaces(mut self, namespaces: &[String]) -> Self {
        // No clone of the `Arc` exists yet.
        for run in self.runs.iter_mut().filter_map(Arc::get_mut) {
            run.namespaces = namespaces.to_vec();
        }
        self
    }

    /// Returns the kinds that the controllers watch or look up. The catalog must contain these kinds.
    pub fn kinds(&self) -> Vec<&'static Kind> {
        let mut kinds: Vec<&'static Kind> = Vec::new();
        for run in &self.runs {
            for kind in [run.controller.watches(), run.controller.looks_up()].concat() {
                if !kinds.iter().any(|held| std::ptr::eq(*held, kind)) {
                    kinds.push(kind);
                }
            }
        }
        kinds
    }

    /// Creates a catalog, which caches the cluster objects that the controllers watch or look up. Whenever a watched
    /// object changes, the catalog adds the affected objects to the queues of the controllers.
    pub fn catalog(&self) -> Catalog {
        let mut catalog = Catalog::new(self.kinds());
        catalog.set_observer(Arc::new(Observer { runs: self.runs.clone() }));
        catalog
    }

    /// Runs the controllers whenever this replica leads, until `stop` completes.
    pub async fn run(&self, tools: Arc<Tools>, mut lead: Lead, stop: impl Future<Output = ()>) {
        let stop = stop.shared();
        loop {
            if let Lead::Elected(elector) = &mut lead {
                // If acquiring the Lease and `stop` coincide, the Lease is released below.
                tokio::select! {
                    () = elector.acquire() => {}
                    () = stop.clone() => return elector.release().await,
                }
            }
            let end = self.term(&tools, &mut lead, stop.clone()).await;
            if matches!(end, End::Stopped) {
                if let Lead::Elected(elector) = &mut lead {
                    elector.release().await;
                }
                return;
            }
        }
    }

    /// Runs the controllers for one term of leadership, and returns why the term ended.
    async fn term(&self, tools: &Arc<Tools>, lead: &mut Lead, stop: impl Future<Output = ()>) -> End {
        tracing::info!("leading");
        self.metrics.leading(true);
        let (mut workers, mut leads) = (JoinSet::new(), JoinSet::new());
        for run in &self.runs {
            run.queue.open();
            workers.spawn(Arc::clone(run).feed(Arc::clone(tools)));
            leads.spawn(Arc::clone(run).lead(Arc::clone(tools)));
            for _ in 0..WORKERS {
                workers.spawn(Arc::clone(run).work(Arc::clone(tools)));
            }
        }
        let ended = async {
            stop.await;
            self.runs.iter().for_each(|run| run.queue.close());
            // Reconciliations in progress are finished while the Lease is still held.
            let finished = async { while workers.join_next().await.is_some() {} };
            let _ = timeout(GRACE, finished).await;
        };
        let end = match lead {
            Lead::Always => {
                ended.await;
                End::Stopped
            }
            // The first event ends the term; tasks that are still running are dropped below.
            Lead::Elected(elector) => tokio::select! {
                () = elector.hold() => End::Lost,
                () = ended => End::Stopped,
            },
        };
        leads.shutdown().await;
        workers.abort_all();
        self.runs.iter().for_each(|run| run.queue.close());
        while workers.join_next().await.is_some() {}
        self.metrics.leading(false);
        tracing::info!("no longer leading");
        end
    }
}

impl Run {
    fn push(&self, object: Reference) {
        // Cluster-scoped objects belong to all namespaces.
        let is_everywhere = self.namespaces.is_empty() || object.namespace.is_empty();
        if is_everywhere || self.namespaces.contains(&object.namespace) {
            self.queue.push(object);
        }
    }

    /// Waits until the catalog contains all objects that the controller watches or looks up. Then adds all objects of
    /// the watched kinds to the queue. A full queue drops new objects. If the queue has dropped any, adds all objects
    /// again as soon as the queue has room.
    async fn feed(self: Arc<Self>, tools: Arc<Tools>) {
        let kinds = [self.controller.watches(), self.controller.looks_up()].concat();
        while tools.catalog.pending().iter().any(|pending| kinds.iter().any(|kind| std::ptr::eq(*kind, *pending))) {
            sleep(POLL_INTERVAL).await;
        }
        loop {
            for kind in self.controller.watches() {
                for stored in tools.catalog.all(kind) {
                    self.push(Reference::new(kind, stored.namespace(), stored.name()));
                }
            }
            self.queue.caught_up().await;
        }
    }

    async fn lead(self: Arc<Self>, tools: Arc<Tools>) {
        self.controller.lead(&tools).await;
    }

    async fn work(self: Arc<Self>, tools: Arc<Tools>) {
        let name = self.controller.name();
        while let Some(object) = self.queue.next().await {
            self.metrics.depth(name, self.queue.len());
            let begin = Instant::now();
            let reconciling = AssertUnwindSafe(self.controller.reconcile(&object, &tools)).catch_unwind();
            let outcome = match timeout(RECONCILE_TIMEOUT, reconciling).await {
                Ok(Ok(outcome)) => outcome,
                Ok(Err(_)) => Err(Failure::Panicked),
                Err(_) => Err(Failure::TooLong(RECONCILE_TIMEOUT)),
            };
            log_outcome(name, &object, &outcome);
            self.metrics.reconciled(name, &outcome, begin.elapsed());
            self.queue.done(&object, outcome.ok());
            self.metrics.depth(name, self.queue.len());
        }
    }
}

fn log_outcome(controller: &'static str, object: &Reference, outcome: &Result<Next, Failure>) {
    let Err(failure) = outcome else { return };
    let (kind, namespace, name) = (object.kind.kind, object.namespace.as_str(), object.name.as_str());
    match failure {
        Failure::Conflict => tracing::debug!(controller, kind, namespace, name, %failure, "trying again"),
        _ => tracing::warn!(controller, kind, namespace, name, %failure, "trying again"),
    }
}

/// An observer of the catalog. For each change, it adds the affected objects to the queues of the controllers.
struct Observer {
    runs: Vec<Arc<Run>>,
}

impl Observe for Observer {
    fn changed(&self, change: &Change, catalog: &Catalog) {
        for run in &self.runs {
            let watches = || run.controller.watches().iter().any(|kind| std::ptr::eq(*kind, change.kind));
            if run.queue.is_open() && watches() {
                run.controller.affected(change, catalog).into_iter().for_each(|object| run.push(object));
            }
        }
    }
}
