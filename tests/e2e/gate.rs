//! Portcullis as it is deployed: its own certificates and manifests, its ServiceAccount's rights, registered webhooks.

use std::fs;
use std::io;
use std::path::Path;
use std::process::{Command, ExitStatus};
use std::thread;
use std::time::{Duration, Instant};

use crate::cluster::Cluster;
use crate::daemon::{Daemon, DaemonError, PAUSE, on_free_ports};
use crate::http;
use crate::kubectl::Output;
use crate::manifests::Manifests;
use crate::user::User;

const BINARY: &str = env!("CARGO_BIN_EXE_portcullis");
const READY_LIMIT: Duration = Duration::from_secs(30);
const IN_FORCE_LIMIT: Duration = Duration::from_secs(30);

/// A portcullis that serves a cluster. Dropping it kills it; its webhooks stay registered.
pub struct Gate {
    daemon: Daemon,
    admin_port: u16,
    manifests: Manifests,
}

/// How to run portcullis.
pub struct GateOptions<'a> {
    /// The text of its configuration file; none for the defaults.
    pub config: Option<&'a str>,
    /// Whether its webhooks are in force; asked again until they are.
    pub in_force: &'a dyn Fn(&Cluster) -> bool,
}

/// Why portcullis does not guard the cluster.
#[derive(Debug, thiserror::Error)]
pub enum GateError {
    /// It does not serve.
    #[error(transparent)]
    Daemon(#[from] DaemonError),
    /// The system refused something.
    #[error("{doing} for portcullis: {source}")]
    Io {
        /// What was tried.
        doing: &'static str,
        /// What the system said.
        source: io::Error,
    },
    /// A subcommand failed.
    #[error("`portcullis {subcommand}`: {status}\n{stderr}")]
    Subcommand {
        /// Its name.
        subcommand: &'static str,
        /// How it ended.
        status: ExitStatus,
        /// What it wrote to standard error.
        stderr: String,
    },
    /// The API server refused a manifest.
    #[error("applying portcullis' {what}:\n{output}")]
    Apply {
        /// Which manifests.
        what: &'static str,
        /// All that kubectl said.
        output: Output,
    },
    /// The API server does not call the webhooks.
    #[error("portcullis' webhooks were not in force after {IN_FORCE_LIMIT:?}; its log ends with\n{log}")]
    NotInForce {
        /// The last lines of its log.
        log: String,
    },
}

impl Gate {
    /// Runs portcullis under its ServiceAccount until it is ready; nobody calls it yet.
    pub fn start(cluster: &Cluster, options: &GateOptions<'_>) -> Result<Self, GateError> {
        let taken = |error: &GateError| matches!(error, GateError::Daemon(error) if error.port_was_taken());
        on_free_ports(|ports| Self::serve(cluster, options, ports), taken)
    }

    /// Registers its webhooks and waits until they are in force.
    pub fn register(&self, cluster: &Cluster, options: &GateOptions<'_>) -> Result<(), GateError> {
        apply(cluster, "webhook configurations", &self.manifests.webhooks)?;
        self.wait_until_in_force(cluster, options)
    }

    /// The last lines of its log.
    pub fn log_end(&self) -> String {
        self.daemon.log_end()
    }

    /// The most memory that it ever had resident, in bytes; where the system tells.
    pub fn peak_memory(&self) -> Option<u64> {
        self.daemon.peak_memory()
    }

    /// The whole answer, head and body, of its health and metrics port to `GET path`.
    pub fn admin(&self, path: &str) -> io::Result<String> {
        http::get(self.admin_port, path)
    }

    fn serve(cluster: &Cluster, options: &GateOptions<'_>, ports: [u16; 2]) -> Result<Self, GateError> {
        let [port, admin_port] = ports;
        let folder = cluster.folder().join(format!("portcullis-{port}"));
        let manifests = prepare(&folder, port)?;
        apply(cluster, "namespace and CRDs", &manifests.foundations)?;
        if manifests.foundations.contains("kind: CustomResourceDefinition") {
            cluster.wait_for_crds();
        }
        apply(cluster, "manifests", &manifests.others)?;
        let mut command =
            serve_command(cluster, options, &folder, ports).map_err(doing("writing its configuration"))?;
        let daemon = Daemon::start("portcullis", &mut command, &folder.join("log"))?;
        let gate = Self { daemon, admin_port, manifests };
        gate.daemon.wait_until(READY_LIMIT, || http::is_ok(&gate.admin("/readyz")))?;
        Ok(gate)
    }

    fn wait_until_in_force(&self, cluster: &Cluster, options: &GateOptions<'_>) -> Result<(), GateError> {
        let start = Instant::now();
        while !(options.in_force)(cluster) {
            if start.elapsed() > IN_FORCE_LIMIT {
                return Err(GateError::NotInForce { log: self.log_end() });
            }
            thread::sleep(PAUSE);
        }
        Ok(())
    }
}

/// Whether a webhook of `domain` refuses a trial creation of `yaml`: for [`GateOptions::in_force`].
pub fn refuses(cluster: &Cluster, domain: &str, yaml: &str) -> bool {
    let create = ["create", "--dry-run=server", "-f", "-"];
    let answer = cluster.kubectl().args(create).stdin(yaml).run().stderr;
    answer.contains(&format!("{domain}\" denied the request"))
}

/// Whether a trial creation of `yaml` is answered with a warning that holds `words`: for [`GateOptions::in_force`].
pub fn warns(cluster: &Cluster, words: &str, yaml: &str) -> bool {
    let create = ["create", "--dry-run=server", "-f", "-"];
    let answer = cluster.kubectl().args(create).stdin(yaml).run().stderr;
    answer.contains("Warning:") && answer.contains(words)
}

/// Writes certificates and manifests for a server on `port`.
fn prepare(folder: &Path, port: u16) -> Result<Manifests, GateError> {
    let (certs, manifests) = (folder.join("certs"), folder.join("manifests"));
    fs::create_dir_all(&certs).map_err(doing("making a folder"))?;
    fs::create_dir_all(&manifests).map_err(doing("making a folder"))?;
    let hosts = ["--host", "127.0.0.1", "--host", "localhost"];
    run("certs", |command| command.arg("--out").arg(&certs).args(hosts))?;
    run("manifests", |command| {
        command.arg("--out").arg(&manifests).arg("--url").arg(format!("https://127.0.0.1:{port}"));
        command.arg("--ca-bundle").arg(certs.join("ca.crt"))
    })?;
    Manifests::read(&manifests).map_err(doing("reading manifests"))
}

fn serve_command(
    cluster: &Cluster,
    options: &GateOptions<'_>,
    folder: &Path,
    [port, admin_port]: [u16; 2],
) -> io::Result<Command> {
    let mut command = Command::new(BINARY);
    command.arg("serve").arg("--certs").arg(folder.join("certs"));
    command.arg("--listen").arg(format!("127.0.0.1:{port}"));
    command.arg("--admin-listen").arg(format!("127.0.0.1:{admin_port}"));
    command.arg("--kubeconfig").arg(cluster.kubeconfig(User::Portcullis));
    if let Some(config) = options.config {
        let file = folder.join("config.yaml");
        fs::write(&file, config)?;
        command.arg("--config").arg(file);
    }
    Ok(command)
}

/// Runs a subcommand to its end.
fn run(subcommand: &'static str, with_arguments: impl FnOnce(&mut Command) -> &mut Command) -> Result<(), GateError> {
    let mut command = Command::new(BINARY);
    let output = with_arguments(command.arg(subcommand)).output().map_err(doing("running it"))?;
    if output.status.success() {
        return Ok(());
    }
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    Err(GateError::Subcommand { subcommand, status: output.status, stderr })
}

fn apply(cluster: &Cluster, what: &'static str, manifests: &str) -> Result<(), GateError> {
    let output = cluster.kubectl().args(["apply", "--server-side", "-f", "-"]).stdin(manifests).run();
    if output.status.success() { Ok(()) } else { Err(GateError::Apply { what, output }) }
}

fn doing(doing: &'static str) -> impl FnOnce(io::Error) -> GateError {
    move |source| GateError::Io { doing, source }
}
