//! The command `portcullis reconcile`. It runs the controllers of Portcullis, such as the controller that checks stored
//! objects regularly. They work outside of admission requests, which `portcullis serve` answers.

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
use crate::admission::Level;
use crate::artifacts::{self, Artifacts};
use crate::audit::{self, Audit, Chosen};
use crate::catalog::{Freshness, cluster};
use crate::cryptography;
use crate::gate::{Gate, Policy, Registry};
use crate::go::duration;
use crate::kustomize::delivery::{DeletionLimits, Judge};
use crate::landscaper::dry_run::run::{Deployer, TYPES};
use crate::process::{self, Admin, Readiness, signalled};
use crate::reconciler::composites;
use crate::reconciler::registration::LEASE;
use crate::reconciler::{
    AUDIT, AuditSettings, Controller, ControllerManager, Elector, Events, Lead, Metrics, PlanSettings, Settings,
    Timing, Tools, TreeSettings, controllers,
};
use crate::rule::RuleInfo;

/// Run the controllers that act after admission.
///
/// If several replicas run, only the leader acts. See docs/companion.md.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The kubeconfig of the cluster; default: the pod's cluster, or kubectl's current context
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// The address on which /livez, /readyz and /metrics are served over HTTP
    #[arg(long, env = "PORTCULLIS_ADMIN_LISTEN", default_value = "[::]:8080")]
    admin_listen: SocketAddr,
    /// Act only in this namespace; may be repeated
    #[arg(long, value_name = "NAMESPACE")]
    namespace: Vec<String>,
    /// Process the DeployItems that are in dry run; read docs/dry-run-deployer.md first
    #[arg(long)]
    dry_run_deployer: bool,
    /// A type of DeployItems to process; may be repeated. Default: manifest and helm
    #[arg(long, value_name = "TYPE", requires = "dry_run_deployer", default_values = TYPES)]
    dry_run_type: Vec<String>,
    /// Also write status.deployItemPhase, which Landscaper before v0.52 reads
    #[arg(long, requires = "dry_run_deployer")]
    deploy_item_phase: bool,
    /// Compute the effect of overwrites on component trees from OCI registries; read docs/overwrite-trees.md first
    #[arg(long)]
    overwrite_trees: bool,
    /// Write the condition ComponentReferenceOverwrite, which Landscaper also writes
    #[arg(long, requires = "overwrite_trees")]
    overwrite_condition: bool,
    /// Keep the webhook rules for composites up to date with the selected CompositeResourceDefinitions
    #[arg(long)]
    composites: bool,
    /// The name of a CompositeResourceDefinition whose composites are checked, or `*` for all; may be repeated. Not
    /// needed for definitions with the label portcullis.dev/composites: "true". Set it for each name in the key
    /// `composites` of the configuration file, because this command does not read the key
    #[arg(long, value_name = "NAME", requires = "composites")]
    composites_of: Vec<String>,
    /// Audit stored objects at this interval, such as 6h, and write policy reports; read docs/audit.md first
    #[arg(
        long,
        value_name = "INTERVAL",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "24h",
        value_parser = interval
    )]
    audit: Option<Duration>,
    /// Has no effect: the kustomize trees of objects such as Flux Kustomizations are always fetched for the audit
    #[arg(long, requires = "audit", hide = true)]
    #[allow(dead_code, reason = "accepted for compatibility")]
    audit_fetch_trees: bool,
    /// The configuration file, with levels of rules, exemptions and hosts of Flux artifacts. Only the audit reloads the
    /// file when it changes; the other controllers need a restart
    #[arg(long, env = "PORTCULLIS_CONFIG", value_name = "FILE")]
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

/// The arguments for leader election.
#[derive(Debug, clap::Args)]
struct Election {
    /// The namespace of the Lease; default: the namespace of the pod, or of kubectl's current context
    #[arg(long, env = "POD_NAMESPACE", value_name = "NAMESPACE")]
    lease_namespace: Option<String>,
    /// The name of the Lease for leader election
    #[arg(long, value_name = "NAME", default_value = LEASE)]
    lease_name: String,
    /// The identity of this replica in the Lease; default: its host name
    #[arg(long, env = "POD_NAME", value_name = "NAME")]
    identity: Option<String>,
    /// Lease duration in whole seconds: without renewal, another replica takes over after this time
    #[arg(long, value_name = "SECONDS", value_parser = seconds, default_value = "15")]
    lease_duration: Duration,
    /// Renew deadline in seconds: without renewal, this replica stops leading after this time
    #[arg(long, value_name = "SECONDS", value_parser = seconds, default_value = "10")]
    renew_deadline: Duration,
    /// Seconds between two attempts to acquire or renew the Lease
    #[arg(long, value_name = "SECONDS", value_parser = seconds, default_value = "2")]
    retry_period: Duration,
}

fn seconds(text: &str) -> Result<Duration, String> {
    let seconds: f64 = text.parse().map_err(|_| format!("{text:?} is not a number of seconds"))?;
    Duration::try_from_secs_f64(seconds).map_err(|error| error.to_string())
}

/// Parses a positive duration in Go's format.
fn interval(text: &str) -> Result<Duration, String> {
    let interval = duration::parse_unsigned(text).filter(|interval| !interval.is_zero());
    interval.ok_or_else(|| format!("{text:?} is not a positive duration such as 30m or 6h"))
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
    let manager = ControllerManager::new(args.controllers(&identity, audit, trees)?, metrics.clone())
        .in_namespaces(&args.namespace);
    let mut catalog = manager.catalog();
    catalog.set_live_reader(Arc::new(cluster::Reader::new(client.clone())));
    let catalog = Arc::new(catalog);
    let condition = readiness.condition("catalog", "nothing is listed yet");
    tokio::spawn(inputs::until_listed(Arc::clone(&catalog), condition));
    let listener = process::listen(args.admin_listen)
        .await
        .map_err(|error| Unusable::because(format!("--admin-listen {}", args.admin_listen), error))?;
    tokio::spawn(Admin { report: Arc::new(readiness), registry }.serve(listener));
    inputs::follow_cluster(args.kubeconfig.as_deref(), Arc::clone(&catalog), &Freshness::default()).await?;
    let lead = Lead::Elected(Box::new(args.election.elector(client.clone(), &identity)?));
    let events = Events::new(client.clone(), &identity, metrics.events_dropped());
    tracing::info!(identity, admin = %args.admin_listen, "waiting for leadership");
    let stop = async {
        if let Err(error) = signalled().await {
            tracing::error!(%error, "signals cannot be received: stop the process with SIGKILL");
            std::future::pending::<()>().await;
        }
    };
    manager.run(Arc::new(Tools { client, catalog, events }), lead, stop).await;
    Ok(())
}

/// Returns limits for artifacts of Flux sources, such as the maximum size of an archive. They are lower than the
/// defaults, so that the controller manager stays within the memory limit of the Helm chart. The process has up to two
/// caches with these limits, one of them for the audit.
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

/// Returns the settings for findings about objects that a new revision deletes, moves or shares with other
/// Kustomizations. The settings contain the limits of deletions. They also contain the ids of all rules whose level is
/// below `warn`, because findings of these rules are not reported.
fn plans(policy: &Policy) -> PlanSettings {
    let registry = Registry::standard();
    let is_silent = |info: &&RuleInfo| policy.level_of(info.id, info.family(), info.level, "") < Level::Warn;
    let silent = registry.infos().into_iter().filter(is_silent).map(|info| info.id).collect();
    PlanSettings { limits: DeletionLimits::of(&policy.settings), silent }
}

impl Args {
    /// Returns the controllers that the arguments enable. Omits controllers whose rule family is not enabled. Fails if
    /// a flag enables such a controller, if no controller is left, or if a file of the arguments is invalid.
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
        let policy = inputs::policy(self.config.as_deref(), &Registry::standard())?;
        let (artifact_hosts, plans) = (policy.artifact_hosts.clone(), plans(&policy));
        let composites = self.composites_of.clone();
        let settings =
            Settings { dry_run, trees, composites, audit, flux_trees: Some(flux_trees), artifact_hosts, plans };
        let mut controllers = controllers(&settings);
        controllers.retain(|controller| !controller.is_optional() || wanted.contains(&controller.name()));
        self.of_families(controllers)
    }

    /// Removes the controllers whose rule family is not enabled. Fails if a flag enables such a controller, or if no
    /// controller is left.
    fn of_families(&self, controllers: Vec<Box<dyn Controller>>) -> Result<Vec<Box<dyn Controller>>, Unusable> {
        let on = self.families.on();
        let (controllers, off): (Vec<_>, Vec<_>) = controllers
            .into_iter()
            .partition(|controller| controller.family().is_none_or(|family| on.contains(&family)));
        if let Some(asked) = off.iter().find(|controller| controller.is_optional()) {
            let (name, family, on) = (asked.name(), asked.family().unwrap_or_default(), on.join(","));
            let text = format!(
                "--{name} belongs to the family {family}, which is not in --families {on}; add {family}, or remove --{name}"
            );
            return Err(Unusable::new(text));
        }
        if controllers.is_empty() {
            let text = format!("--families {} enables no controller; this command is not needed", on.join(","));
            return Err(Unusable::new(text));
        }
        Ok(controllers)
    }

    /// Returns the settings of the audit, or `None` without `--audit`. Also starts a task that reloads the
    /// configuration file of the audit when the file changes.
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
            let condition = readiness.condition("configuration", "not checked yet");
            let metrics = configuration::Metrics::register(metrics);
            tokio::spawn(Configuration::new(path, Arc::clone(&gate), condition, metrics).run());
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

    /// Returns an identity that is different after each start of the process. With the same identity, a process could
    /// mistake the Lease of its previous run for its own.
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
