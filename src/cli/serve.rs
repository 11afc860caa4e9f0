//! `portcullis serve`: serves the admission webhooks.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use super::certificates::Serving;
use super::configuration::{self, Configuration};
use super::families::Families;
use super::logging::Logging;
use super::{OK, Unusable, inputs};
use crate::admission::Decide;
use crate::artifacts::{self, Artifacts};
use crate::catalog::{self, Catalog, Freshness, cluster, manifests};
use crate::cryptography;
use crate::gate::{Gate, Registry};
use crate::kustomize::delivery::Judge;
use crate::process::{self, Telemetry};
use crate::recording::{self, RecordedDecisions, RecordedReads, RecordedTrees, Recorder};
use crate::server::{Bound, Floor, Limits, Metrics, Options, Parts, Readiness, Traces, limits, metrics};

/// Default maximum size of a recording, in bytes. This is enough for about fifty thousand decisions about typical
/// objects.
const RECORD_LIMIT: u64 = 256 * 1024 * 1024;

/// Serve the admission webhooks over HTTPS.
///
/// Rules look up objects in the cluster, or with --manifests in a folder.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The address of the webhooks
    #[arg(long, env = "PORTCULLIS_LISTEN", default_value = "[::]:9443")]
    listen: SocketAddr,
    /// The address of /livez, /readyz and /metrics, in plain HTTP
    #[arg(long, env = "PORTCULLIS_ADMIN_LISTEN", default_value = "[::]:8080")]
    admin_listen: SocketAddr,
    #[command(flatten)]
    certificates: Serving,
    /// A folder of manifests used instead of a cluster; the server reloads the manifests when they change
    #[arg(long, value_name = "DIR", conflicts_with = "kubeconfig")]
    manifests: Option<PathBuf>,
    /// The kubeconfig of the cluster; default: the pod's cluster, or kubectl's current context
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// The configuration file; the server reloads it when it changes
    #[arg(long, env = "PORTCULLIS_CONFIG", value_name = "FILE")]
    config: Option<PathBuf>,
    #[command(flatten)]
    families: Families,
    /// The minimum TLS version
    #[arg(long, value_enum, default_value = "1.2")]
    tls_min: TlsMin,
    /// Shadow mode: record decisions, but admit every request unchanged and without warnings; read docs/rollout.md
    #[arg(long, env = "PORTCULLIS_SHADOW")]
    shadow: bool,
    /// The OTLP/HTTP collector for spans of calls that the API server traces, such as http://collector:4318; read
    /// docs/traces.md
    #[arg(long, env = "PORTCULLIS_OTLP_ENDPOINT", value_name = "URL")]
    otlp_endpoint: Option<String>,
    /// Record decisions into a file in this folder, for `portcullis replay`. Values of Secrets are redacted, but values
    /// of most other objects are not; read docs/recording.md first
    #[arg(long, env = "PORTCULLIS_RECORD", value_name = "DIR")]
    record: Option<PathBuf>,
    /// Maximum size of a recording, in bytes. Recording stops at this size
    #[arg(long, default_value_t = RECORD_LIMIT, requires = "record")]
    record_limit: u64,
    #[command(flatten)]
    logging: Logging,
    /// Maximum size of a request body, in bytes; an update contains two objects of up to 3 MiB
    #[arg(long, default_value_t = limits::BODY)]
    max_body: usize,
    /// Maximum number of connections; further ones wait in the kernel
    #[arg(long, default_value_t = limits::CONNECTIONS)]
    max_connections: usize,
    /// Maximum number of concurrent requests; further ones are rejected with 429
    #[arg(long, default_value_t = limits::IN_FLIGHT)]
    max_in_flight: usize,
    /// Seconds after SIGTERM in which new connections are still accepted
    #[arg(long, default_value_t = 5)]
    lame_duck: u64,
    /// Maximum number of seconds to wait for requests in progress, after the --lame-duck period
    #[arg(long, default_value_t = 20)]
    drain: u64,
}

#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum TlsMin {
    /// TLS 1.2
    #[value(name = "1.2")]
    Tls12,
    /// TLS 1.3
    #[value(name = "1.3")]
    Tls13,
}

pub(super) fn run(args: Args) -> Result<u8, Unusable> {
    let telemetry = args.logging.init()?;
    cryptography::install();
    inputs::runtime()?.block_on(serve(args, &telemetry))?;
    Ok(OK)
}

async fn serve(args: Args, telemetry: &Telemetry) -> Result<(), Unusable> {
    let traces = args.otlp_endpoint.as_deref().map(Traces::to).transpose();
    let traces = traces.map_err(|error| Unusable::because("--otlp-endpoint", error))?;
    let readiness = Readiness::default();
    let mut registry = metrics::registry();
    process::register_log(&mut registry, telemetry);
    let certificates = args.certificates.open(args.kubeconfig.as_deref(), &readiness, &mut registry).await?;
    let recorder = args.recorder(&mut registry)?;
    let trees = Artifacts::new(artifacts::Limits::default(), artifacts::Metrics::register(&mut registry));
    let trees: Arc<dyn Judge> = match &recorder {
        Some(_) => Arc::new(RecordedTrees(Arc::new(trees))),
        None => Arc::new(trees),
    };
    let gate = Arc::new(args.gate(&readiness, &mut registry, recorder.as_ref()).await?.with_trees(trees));
    if let Some(path) = args.config.clone() {
        let condition = readiness.condition("configuration", "not checked yet");
        let metrics = configuration::Metrics::register(&mut registry);
        let configuration = Configuration::new(path, gate.clone(), condition, metrics).recorded(recorder.clone());
        tokio::spawn(configuration.run());
    }
    if args.shadow {
        let condition = readiness.condition("enforcement", "not known yet");
        condition.noted(Some("off: --shadow is set, and every request is admitted unchanged".to_owned()));
        tracing::warn!("--shadow: every request is admitted unchanged; decisions are only recorded");
    }
    let rules = gate.registry().ids();
    let metrics = Arc::new(Metrics::register(&mut registry, rules));
    let bound = args.bind(traces.clone()).await?;
    tracing::info!(webhooks = %format!("https://{}", bound.address()), admin = %bound.admin_address(), "serving");
    let decide: Arc<dyn Decide> = match recorder.clone() {
        Some(recorder) => Arc::new(RecordedDecisions { decide: gate, recorder }),
        None => gate,
    };
    let parts = Parts { decide, certificates, metrics, registry, readiness };
    let running = bound.start(parts).map_err(|error| Unusable::because("TLS", error))?;
    running.until_signalled().await.map_err(|error| Unusable::because("the server", error))?;
    if let Some(traces) = traces {
        traces.finish().await;
    }
    if let Some(recorder) = recorder {
        recorder.finish();
    }
    Ok(())
}

impl Args {
    async fn bind(&self, traces: Option<Traces>) -> Result<Bound, Unusable> {
        let mut options = Options::new(self.listen, self.admin_listen);
        options.floor = match self.tls_min {
            TlsMin::Tls12 => Floor::Tls12,
            TlsMin::Tls13 => Floor::Tls13,
        };
        options.shadow = self.shadow;
        options.traces = traces;
        options.clients = self.certificates.clients()?;
        options.lame_duck = Duration::from_secs(self.lame_duck);
        options.drain = Duration::from_secs(self.drain);
        options.limits = Limits {
            body: self.max_body,
            connections: self.max_connections,
            in_flight: self.max_in_flight,
            ..Limits::default()
        };
        options.bind().await.map_err(|error| Unusable::new(error.to_string()))
    }

    /// Creates the recorder of decisions if `--record` is given. Adds the metrics of the recorder to `shown`, the
    /// metrics registry of the server.
    fn recorder(&self, shown: &mut prometheus_client::registry::Registry) -> Result<Option<Arc<Recorder>>, Unusable> {
        let Some(folder) = self.record.clone() else { return Ok(None) };
        let (limit, families) = (self.record_limit, self.families.on());
        let metrics = recording::Metrics::register(shown);
        let recorder = Recorder::start(&recording::Options { folder: folder.clone(), limit, families }, metrics);
        let recorder = recorder.map_err(|error| Unusable::because(folder.display(), error))?;
        if let Some(path) = &self.config {
            let text = std::fs::read_to_string(path).map_err(|error| Unusable::because(path.display(), error))?;
            recorder.configured(text);
        }
        tracing::warn!(file = %recorder.path().display(), limit, "--record: objects under admission are written to a file");
        Ok(Some(Arc::new(recorder)))
    }

    /// Creates the gate, which decides about admission requests. Also starts the tasks that keep the gate's catalog of
    /// objects up to date. Adds a condition for the catalog to `readiness`, and the metrics of the catalog to `shown`,
    /// the metrics registry of the server.
    async fn gate(
        &self,
        readiness: &Readiness,
        shown: &mut prometheus_client::registry::Registry,
        recorder: Option<&Arc<Recorder>>,
    ) -> Result<Gate, Unusable> {
        // The file is checked with all rule families, so configuration of a family that is off is not an error.
        let policy = inputs::policy(self.config.as_deref(), &Registry::standard())?;
        let registry = self.families.registry();
        let mut catalog = registry.catalog();
        if let Some(recorder) = recorder {
            catalog.set_observer(recorder.clone());
        }
        let (catalog, freshness) = match &self.manifests {
            Some(folder) => {
                let catalog = Arc::new(catalog);
                fill(&catalog, folder)?;
                let (followed, folder) = (catalog.clone(), folder.clone());
                tokio::spawn(async move { manifests::follow(&followed, &folder).await });
                (catalog, None)
            }
            None => {
                let freshness = Freshness::default();
                let client = inputs::client(self.kubeconfig.as_deref()).await?;
                let reads = catalog::metrics::Counted::new(cluster::Reader::new(client), shown);
                catalog.set_live_reader(match recorder {
                    Some(_) => Arc::new(RecordedReads(reads)),
                    None => Arc::new(reads),
                });
                let catalog = Arc::new(catalog);
                inputs::follow_cluster(self.kubeconfig.as_deref(), catalog.clone(), &freshness).await?;
                (catalog, Some(freshness))
            }
        };
        catalog::metrics::show(shown, catalog.clone(), freshness);
        let condition = readiness.condition("catalog", "nothing is listed yet");
        tokio::spawn(inputs::until_listed(catalog.clone(), condition));
        Ok(Gate::new(registry, policy, catalog))
    }
}

fn fill(catalog: &Catalog, folder: &Path) -> Result<(), Unusable> {
    let filled = manifests::fill(catalog, &[folder], manifests::DEFAULT_NAMESPACE);
    filled.map(drop).map_err(|errors| {
        let errors: Vec<_> = errors.iter().map(ToString::to_string).collect();
        Unusable::new(errors.join("\n"))
    })
}
