//! Runs portcullis as the chart deploys it, with the arguments, rights, Service and webhooks that Helm renders.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::thread;
use std::time::Instant;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use portcullis::yaml;
use serde_json::{Value, json};

use crate::cluster::Cluster;
use crate::daemon::{Daemon, DaemonError, PAUSE, on_free_ports};
use crate::deadline::deadline;
use crate::helm::{Helm, HelmError, NAMESPACE, RELEASE, Rendered};
use crate::http;
use crate::kubectl::Output;
use crate::manifests::Manifests;
use crate::user::User;

const BINARY: &str = env!("CARGO_BIN_EXE_portcullis");

/// A portcullis server for a cluster. When this value is dropped, the process is killed, but its webhooks stay
/// registered.
pub struct Gate {
    daemon: Daemon,
    admin_port: u16,
    manifests: Manifests,
}

/// The options of [`Gate::start`].
pub struct GateOptions<'a> {
    /// The content of the configuration file, or `None` for the default configuration.
    pub config: Option<&'a str>,
    /// The URL of the collector to which portcullis exports traces.
    pub traces: Option<&'a str>,
    /// Additional command-line arguments.
    pub arguments: &'a [&'a str],
    /// A function that returns whether the API server calls the webhooks. It is called until it returns true.
    pub is_active: &'a dyn Fn(&Cluster) -> bool,
}

/// An error that occurred while starting portcullis or registering its webhooks.
#[derive(Debug, thiserror::Error)]
pub enum GateError {
    /// The process did not start or did not become ready.
    #[error(transparent)]
    Daemon(#[from] DaemonError),
    #[error("{action} for portcullis: {source}")]
    Io {
        /// The action that failed, such as `making a folder`.
        action: &'static str,
        source: io::Error,
    },
    /// A subcommand of portcullis failed.
    #[error("`portcullis {subcommand}`: {status}\n{stderr}")]
    Subcommand {
        /// The name of the subcommand, such as `certs`.
        subcommand: &'static str,
        status: ExitStatus,
        stderr: String,
    },
    /// Helm was not found, or could not render the chart.
    #[error(transparent)]
    Helm(#[from] HelmError),
    /// `kubectl apply` failed.
    #[error("applying portcullis' {what}:\n{output}")]
    Apply {
        /// A description of the manifests, such as `webhook configurations`.
        what: &'static str,
        output: Output,
    },
    /// The API server did not call the webhooks before the deadline.
    #[error("the API server did not call portcullis' webhooks in time; portcullis' log ends with\n{log}")]
    NotActive {
        /// The last lines of the log of portcullis.
        log: String,
    },
}

impl Gate {
    /// Starts portcullis with the rights of its ServiceAccount, and waits until it is ready. Does not register the
    /// webhooks.
    pub fn start(cluster: &Cluster, options: &GateOptions<'_>) -> Result<Self, GateError> {
        let is_port_taken = |error: &GateError| matches!(error, GateError::Daemon(error) if error.port_was_taken());
        on_free_ports(|ports| Self::serve(cluster, options, ports), is_port_taken)
    }

    /// Registers the webhooks, and waits until the API server calls them.
    pub fn register(&self, cluster: &Cluster, options: &GateOptions<'_>) -> Result<(), GateError> {
        apply(cluster, "webhook configurations", &self.manifests.webhooks)?;
        self.wait_until_active(cluster, options)
    }

    /// Returns the last lines of the log.
    pub fn log_end(&self) -> String {
        self.daemon.log_end()
    }

    /// Sends SIGTERM to portcullis, and waits until it has written all files and ended.
    #[allow(dead_code, reason = "asked by the tests with real controllers")]
    pub fn terminate(&self) -> io::Result<ExitStatus> {
        self.daemon.terminate()
    }

    /// Returns the path of the log file.
    #[allow(dead_code, reason = "asked by the tests with real controllers")]
    pub fn log(&self) -> PathBuf {
        self.daemon.log()
    }

    /// Returns the peak resident memory of portcullis in bytes, if the system provides it.
    pub fn peak_memory(&self) -> Option<u64> {
        self.daemon.peak_memory()
    }

    /// Sends `GET path` to the port for health and metrics. Returns the response with its status line, headers and
    /// body.
    pub fn admin(&self, path: &str) -> io::Result<String> {
        http::get(self.admin_port, path)
    }

    fn serve(cluster: &Cluster, options: &GateOptions<'_>, [port, admin_port]: [u16; 2]) -> Result<Self, GateError> {
        let folder = cluster.folder().join(format!("portcullis-{port}"));
        let rendered = prepare(&folder, options)?;
        let manifests = Manifests::of(&rendered, port);
        apply(cluster, "namespace and CRDs", &manifests.prerequisites)?;
        cluster.wait_for_crds();
        apply(cluster, "manifests", &manifests.others)?;
        let mut command = Command::new(BINARY);
        command
            .args(arguments(&rendered, &folder))
            .args(options.arguments)
            .arg("--kubeconfig")
            .arg(cluster.kubeconfig(User::Portcullis));
        command.arg("--listen").arg(format!("127.0.0.1:{port}"));
        command.arg("--admin-listen").arg(format!("127.0.0.1:{admin_port}"));
        let daemon = Daemon::start("portcullis", &mut command, &folder.join("log"))?;
        let gate = Self { daemon, admin_port, manifests };
        gate.daemon.wait_until(deadline(), || http::is_ok(&gate.admin("/readyz")))?;
        Ok(gate)
    }

    fn wait_until_active(&self, cluster: &Cluster, options: &GateOptions<'_>) -> Result<(), GateError> {
        let start = Instant::now();
        while !(options.is_active)(cluster) {
            if start.elapsed() > deadline() {
                return Err(GateError::NotActive { log: self.log_end() });
            }
            thread::sleep(PAUSE);
        }
        Ok(())
    }
}

/// Creates the object `yaml` in a dry run. Returns whether a webhook whose name ends with `domain` denies the object.
/// Used for [`GateOptions::is_active`].
pub fn is_denied(cluster: &Cluster, domain: &str, yaml: &str) -> bool {
    let create = ["create", "--dry-run=server", "-f", "-"];
    let answer = cluster.kubectl().args(create).stdin(yaml).run().stderr;
    answer.contains(&format!("{domain}\" denied the request"))
}

/// Creates the object `yaml` in a dry run. Returns whether the output of kubectl contains a warning and also the text
/// `words`. Used for [`GateOptions::is_active`].
pub fn is_warned_about(cluster: &Cluster, words: &str, yaml: &str) -> bool {
    let create = ["create", "--dry-run=server", "-f", "-"];
    let answer = cluster.kubectl().args(create).stdin(yaml).run().stderr;
    answer.contains("Warning:") && answer.contains(words)
}

/// Writes the certificates and the configuration file of portcullis into `folder`. Returns the objects of the chart,
/// rendered with the CA of these certificates and with the configuration.
fn prepare(folder: &Path, options: &GateOptions<'_>) -> Result<Rendered, GateError> {
    let (certs, config) = (folder.join("certs"), folder.join("config"));
    fs::create_dir_all(&certs).map_err(io_error("making a folder"))?;
    fs::create_dir_all(&config).map_err(io_error("making a folder"))?;
    let service = format!("{RELEASE}.{NAMESPACE}.svc");
    run("certs", |command| command.arg("--out").arg(&certs).args(["--host", &service]))?;
    let authority = fs::read(certs.join("ca.crt")).map_err(io_error("reading the CA"))?;
    let rendered = Helm::find()?.render(&values(&authority, options))?;
    for (file, text) in rendered.find("ConfigMap", RELEASE)["data"].as_object().into_iter().flatten() {
        fs::write(config.join(file), text.as_str().unwrap_or_default())
            .map_err(io_error("writing its configuration"))?;
    }
    Ok(rendered)
}

/// Returns chart values that enable the optional controllers, rule families and audits. `authority` is the CA
/// certificate. The configuration and the URL of the trace collector come from `options`.
fn values(authority: &[u8], options: &GateOptions<'_>) -> Value {
    let config = options
        .config
        .map(|text| yaml::read(text, &yaml::Limits::default()).expect("the text is YAML").remove(0).value);
    json!({
        "certificate": {"way": "secret", "caBundle": STANDARD.encode(authority)},
        "config": config.unwrap_or_else(|| json!({})),
        "companion": {"controllers": ["composites", "dry-run-deployer", "overwrite-trees"]},
        "families": {"GD": true},
        "audit": {"enabled": true},
        "storedKustomizations": true,
        "log": {"format": "text"},
        "traces": {"endpoint": options.traces.unwrap_or_default()},
    })
}

/// Returns the arguments of the server in the rendered chart. Replaces `/etc/portcullis`, the folder where the chart
/// mounts the volumes, with `folder`.
pub fn arguments(rendered: &Rendered, folder: &Path) -> Vec<String> {
    let here = folder.display().to_string();
    rendered.arguments(RELEASE).into_iter().map(|argument| argument.replace("/etc/portcullis", &here)).collect()
}

/// Runs a subcommand of portcullis, and waits until it ends.
fn run(subcommand: &'static str, with_arguments: impl FnOnce(&mut Command) -> &mut Command) -> Result<(), GateError> {
    let mut command = Command::new(BINARY);
    let output = with_arguments(command.arg(subcommand)).output().map_err(io_error("running it"))?;
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

fn io_error(action: &'static str) -> impl FnOnce(io::Error) -> GateError {
    move |source| GateError::Io { action, source }
}
