//! `portcullis reconcile`: the companion.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::coordination::v1::Lease;
use kube::{Api, Client};

use super::configuration::{self, Configuration};
use super::families::Families;
use super::logging::Logging;
use super::registries::Registries;
use super::{OK, Unusable, inputs};
use crate::artifacts::{self, Artifacts};
use crate::audit::{self, Audit, Chosen};
use crate::catalog::cluster;
use crate::cryptography;
use crate::gate::{Gate, Registry};
use crate::kustomize::delivery::Judge;
use crate::landscaper::dry_run::run::{Deployer, TYPES};
use crate::landscaper::duration;
use crate::process::{self, Admin, Readiness, signalled};
use crate::reconciler::composites;
use crate::reconciler::registration::LEASE;
use crate::reconciler::{
    AUDIT, AuditSettings, Controller, ControllerManager, Elector, Events, Lead, Metrics, Settings, Timing, Tools,
    TreeSettings, controllers,
};

/// Act after admission: bring what is stored to what it should be.
///
/// Of several replicas one acts. Read docs/companion.md.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The cluster; without, the one around the pod, or the one that kubectl would ask
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// Where /livez, /readyz and /metrics are served, in plain HTTP
    #[arg(long, env = "PORTCULLIS_ADMIN_LISTEN", default_value = "[::]:8080")]
    admin_listen: SocketAddr,
    /// Act in this namespace only; may be said several times
    #[arg(long, value_name = "NAMESPACE")]
    namespace: Vec<String>,
    /// Do the DeployItems that are in dry run; read docs/dry-run-deployer.md first
    #[arg(long)]
    dry_run_deployer: bool,
    /// A type of DeployItems that it does; may be said several times. Left out: manifest and helm
    #[arg(long, value_name = "TYPE", requires = "dry_run_deployer", default_values = TYPES)]
    dry_run_type: Vec<String>,
    /// Write status.deployItemPhase too, which a Landscaper before v0.52 reads
    #[arg(long, requires = "dry_run_deployer")]
    deploy_item_phase: bool,
    /// Work out what overwrites make of the trees of components, asking OCI registries; read docs/overwrite-trees.md first
    #[arg(long)]
    overwrite_trees: bool,
    /// Write the condition ComponentReferenceOverwrite, which Landscaper writes too
    #[arg(long, requires = "overwrite_trees")]
    overwrite_condition: bool,
    /// Have the webhooks for composites name the kinds that chosen CompositeResourceDefinitions declare
    #[arg(long)]
    composites: bool,
    /// A definition that is chosen besides those with the label, as in the configuration file; `*` for all
    #[arg(long, value_name = "NAME", requires = "composites")]
    composites_of: Vec<String>,
    /// Audit what is stored, and write policy reports; every so often, such as 6h; read docs/audit.md first
    #[arg(
        long,
        value_name = "INTERVAL",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "24h",
        value_parser = interval
    )]
    audit: Option<Duration>,
    /// Has no effect: the trees behind objects, such as Flux Kustomizations, are always fetched for the audit
    #[arg(long, requires = "audit", hide = true)]
    #[allow(dead_code, reason = "accepted for those who still write it")]
    audit_fetch_trees: bool,
    /// The configuration file with the levels and exemptions of audits, reloaded when it changes
    #[arg(long, env = "PORTCULLIS_CONFIG", value_name = "FILE", requires = "audit")]
    config: Option<PathBuf>,
    #[command(flatten)]
    families: Families,
    #[command(flatten)]
    registries: Registries,
    #[command(flatten)]
    election: Election,
    #[command(flatten)]
    logging: Logging,
}

/// Which of several replicas acts.
#[derive(Debug, clap::Args)]
struct Election {
    /// The namespace of the Lease; without, the one of the pod, or kubectl's
    #[arg(long, env = "POD_NAMESPACE", value_name = "NAMESPACE")]
    lease_namespace: Option<String>,
    /// The name of the Lease that replicas compete for
    #[arg(long, value_name = "NAME", default_value = LEASE)]
    lease_name: String,
    /// What this replica is called in the Lease; without, its host
    #[arg(long, env = "POD_NAME", value_name = "NAME")]
    identity: Option<String>,
    /// Whole seconds without renewal after which another replica takes over
    #[arg(long, value_name = "SECONDS", value_parser = seconds, default_value = "15")]
    lease_duration: Duration,
    /// Seconds without renewal after which this replica no longer acts
    #[arg(long, value_name = "SECONDS", value_parser = seconds, default_value = "10")]
    renew_deadline: Duration,
    /// Seconds between two renewals
    #[arg(long, value_name = "SECONDS", value_parser = seconds, default_value = "2")]
    retry_period: Duration,
}

fn seconds(text: &str) -> Result<Duration, String> {
    let seconds: f64 = text.parse().map_err(|_| format!("{text:?} is no number of seconds"))?;
    Duration::try_from_secs_f64(seconds).map_err(|error| error.to_string())
}

/// Go's way to write a duration.
fn interval(text: &str) -> Result<Duration, String> {
    let nanoseconds = duration::nanoseconds(text).and_then(|nanoseconds| u64::try_from(nanoseconds).ok());
    match nanoseconds.filter(|nanoseconds| *nanoseconds > 0) {
        Some(nanoseconds) => Ok(Duration::from_nanos(nanoseconds)),
        None => Err(format!("{text:?} is no interval; write 30m, 6h or the like")),
    }
}

pub(super) fn run(args: &Args) -> Result<u8, Unusable> {
    let _telemetry = args.logging.init()?;
    args.election.timing()?;
    cryptography::install();
    inputs::runtime()?.block_on(reconcile(args))?;
    Ok(OK)
}

async fn reconcile(args: &Args) -> Result<(), Unusable> {
    let client = inputs::client(args.kubeconfig.as_deref()).await?;
    let mut registry = process::registry();
    let metrics = Metrics::register(&mut registry);
    let identity = args.election.identity();
    let readiness = Readiness::default();
    let fetches = artifacts::Metrics::register(&mut registry);
    let audit = args.audit(&mut registry, &fetches, &readiness)?;
    let trees: Arc<dyn Judge> = Arc::new(Artifacts::new(modest(), fetches));
    let companion = ControllerManager::new(args.controllers(&identity, audit, trees)?, metrics.clone())
        .in_namespaces(&args.namespace);
    let mut catalog = companion.catalog();
    catalog.set_confirm(Arc::new(cluster::Reader::new(client.clone())));
    let catalog = Arc::new(catalog);
    let condition = readiness.condition("catalog", "nothing is listed yet");
    tokio::spawn(inputs::until_listed(Arc::clone(&catalog), condition));
    let listener = process::listen(args.admin_listen)
        .await
        .map_err(|error| Unusable::because(format!("--admin-listen {}", args.admin_listen), error))?;
    tokio::spawn(Admin { report: Arc::new(readiness), registry }.serve(listener));
    tokio::spawn(cluster::follow(client.clone(), Arc::clone(&catalog)));
    let lead = Lead::Elected(Box::new(args.election.elector(client.clone(), &identity)?));
    let events = Events::new(client.clone(), &identity, metrics.events_dropped());
    tracing::info!(identity, admin = %args.admin_listen, "waiting to lead");
    let stop = async {
        if let Err(error) = signalled().await {
            tracing::error!(%error, "signals cannot be received: only a kill ends this");
            std::future::pending::<()>().await;
        }
    };
    companion.run(Arc::new(Tools { client, catalog, events }), lead, stop).await;
    Ok(())
}

/// Bounds that leave the companion within the memory that the chart gives it; two stores of trees are held at most.
fn modest() -> artifacts::Limits {
    const MIB: u64 = 1 << 20;
    artifacts::Limits {
        packed: 20 * MIB,
        unpacked: 64 * MIB,
        arriving: 20 * MIB,
        kept_trees: 32 * MIB,
        kept_verdicts: 4 * MIB,
        read: 3 * MIB,
        ..artifacts::Limits::default()
    }
}

impl Args {
    /// The controllers that run.
    fn controllers(
        &self,
        identity: &str,
        audit: Option<AuditSettings>,
        flux_trees: Arc<dyn Judge>,
    ) -> Result<Vec<Box<dyn Controller>>, Unusable> {
        let types = self.dry_run_type.clone();
        let dry_run = Deployer { types, identity: identity.to_owned(), has_old_phase: self.deploy_item_phase };
        let component_cache =
            if self.overwrite_trees { Some(Arc::new(self.registries.component_cache()?)) } else { None };
        let trees = TreeSettings { component_cache, writes_condition: self.overwrite_condition };
        let optional = [
            ("dry-run-deployer", self.dry_run_deployer),
            ("overwrite-trees", self.overwrite_trees),
            (composites::NAME, self.composites),
            (AUDIT, audit.is_some()),
        ];
        let wanted: Vec<_> = optional.into_iter().filter(|(_, is_wanted)| *is_wanted).map(|(name, _)| name).collect();
        let artifact_hosts = inputs::policy(self.config.as_deref(), &Registry::standard())?.artifact_hosts;
        let composites = self.composites_of.clone();
        let settings = Settings { dry_run, trees, composites, audit, flux_trees: Some(flux_trees), artifact_hosts };
        let mut controllers = controllers(&settings);
        controllers.retain(|controller| !controller.is_optional() || wanted.contains(&controller.name()));
        self.of_families(controllers)
    }

    /// Those whose family is on. One that was asked for by its flag is not left out in silence.
    fn of_families(&self, controllers: Vec<Box<dyn Controller>>) -> Result<Vec<Box<dyn Controller>>, Unusable> {
        let on = self.families.on();
        let (controllers, off): (Vec<_>, Vec<_>) = controllers
            .into_iter()
            .partition(|controller| controller.family().is_none_or(|family| on.contains(&family)));
        if let Some(asked) = off.iter().find(|controller| controller.is_optional()) {
            let (name, family, on) = (asked.name(), asked.family().unwrap_or_default(), on.join(","));
            let text = format!(
                "--{name} belongs to the family {family}, which --families {on} leaves out; add it, or leave out --{name}"
            );
            return Err(Unusable::new(text));
        }
        if controllers.is_empty() {
            let text = format!(
                "--families {} leaves nothing to do after admission; there is no need to run this",
                on.join(",")
            );
            return Err(Unusable::new(text));
        }
        Ok(controllers)
    }

    /// The audit, if one is asked for; its configuration is followed from now on.
    fn audit(
        &self,
        metrics: &mut prometheus_client::registry::Registry,
        fetches: &artifacts::Metrics,
        readiness: &Readiness,
    ) -> Result<Option<AuditSettings>, Unusable> {
        let Some(every) = self.audit else { return Ok(None) };
        let policy = inputs::policy(self.config.as_deref(), &Registry::standard())?;
        let registry = self.families.registry();
        let catalog = Arc::new(registry.catalog());
        let trees = Artifacts::new(modest(), fetches.clone());
        let gate = Arc::new(Gate::new(registry, policy, catalog).with_trees(Arc::new(trees)));
        if let Some(path) = self.config.clone() {
            let condition = readiness.condition("configuration", "not looked at yet");
            let metrics = configuration::Metrics::register(metrics);
            tokio::spawn(Configuration::new(path, Arc::clone(&gate), condition, metrics).follow());
        }
        let audit = Audit { gate, namespaces: self.namespace.clone(), chosen: Chosen::default() };
        Ok(Some(AuditSettings { audit: Arc::new(audit), every, metrics: audit::Metrics::register(metrics) }))
    }
}

impl Election {
    fn timing(&self) -> Result<Timing, Unusable> {
        let timing = Timing { duration: self.lease_duration, deadline: self.renew_deadline, retry: self.retry_period };
        timing.check().map_err(Unusable::new)?;
        Ok(timing)
    }

    /// Another one after each start: a Lease that this host left behind is not mistaken for this process'.
    fn identity(&self) -> String {
        let host = || std::fs::read_to_string("/proc/sys/kernel/hostname").ok().map(|name| name.trim().to_owned());
        let name = self.identity.clone().or_else(host).unwrap_or_else(|| "portcullis".to_owned());
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        format!("{name}_{:x}-{:x}", std::process::id(), since.as_nanos())
    }

    fn elector(&self, client: Client, identity: &str) -> Result<Elector, Unusable> {
        let namespace = self.lease_namespace.clone().unwrap_or_else(|| client.default_namespace().to_owned());
        let api: Api<Lease> = Api::namespaced(client, &namespace);
        Ok(Elector::new(api, &self.lease_name, identity, self.timing()?))
    }
}
