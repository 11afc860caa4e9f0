//! Runs etcd and kube-apiserver.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use crate::assets::Assets;
use crate::daemon::{Daemon, DaemonError, on_free_ports};
use crate::http;

/// The requests of the release's users to the API server, one JSON object per line.
pub const AUDIT_LOG: &str = "audit.log";
const ETCD_LIMIT: Duration = Duration::from_secs(30);
const API_SERVER_LIMIT: Duration = Duration::from_mins(1);

/// Where the API server's spans go, where this file is in the cluster's folder.
pub const TRACING: &str = "tracing.yaml";
/// How admission is configured, where this file is in the cluster's folder.
pub const ADMISSION: &str = "admission.yaml";

/// Starts etcd with its data in `folder`. Gives the port for its clients as well.
pub fn start_etcd(assets: &Assets, folder: &Path) -> Result<(Daemon, u16), DaemonError> {
    let start = |ports: [u16; 2]| {
        let mut command = etcd_command(assets, folder, ports);
        let etcd = Daemon::start("etcd", &mut command, &folder.join("etcd.log"))?;
        etcd.wait_until(ETCD_LIMIT, || http::is_ok(&http::get(ports[0], "/health")))?;
        Ok((etcd, ports[0]))
    };
    on_free_ports(start, DaemonError::port_was_taken)
}

/// Starts the API server with `tls.crt`, `tls.key`, `tokens.csv` and `audit-policy.yaml` of `folder`, and waits until
/// `is_ready` holds for its port. Returns the port as well.
pub fn start_api_server(
    assets: &Assets,
    folder: &Path,
    etcd_port: u16,
    is_ready: impl Fn(u16) -> bool,
) -> Result<(Daemon, u16), DaemonError> {
    let start = |[port]: [u16; 1]| {
        let server = start_api_server_on(assets, folder, etcd_port, port, || is_ready(port))?;
        Ok((server, port))
    };
    on_free_ports(start, DaemonError::port_was_taken)
}

/// Returns the same on a port of the caller's, until `is_ready`.
pub fn start_api_server_on(
    assets: &Assets,
    folder: &Path,
    etcd_port: u16,
    port: u16,
    is_ready: impl Fn() -> bool,
) -> Result<Daemon, DaemonError> {
    let mut command = api_server_command(assets, folder, etcd_port, port);
    let server = Daemon::start("kube-apiserver", &mut command, &folder.join("kube-apiserver.log"))?;
    server.wait_until(API_SERVER_LIMIT, is_ready)?;
    Ok(server)
}

fn etcd_command(assets: &Assets, folder: &Path, [port, peer_port]: [u16; 2]) -> Command {
    let url = format!("http://127.0.0.1:{port}");
    let peer_url = format!("http://127.0.0.1:{peer_port}");
    let mut command = Command::new(assets.program("etcd"));
    command.args([
        format!("--data-dir={}", folder.join(format!("etcd-{port}")).display()),
        format!("--listen-client-urls={url}"),
        format!("--advertise-client-urls={url}"),
        format!("--listen-peer-urls={peer_url}"),
        format!("--initial-advertise-peer-urls={peer_url}"),
        format!("--initial-cluster=default={peer_url}"),
    ]);
    command.args(["--unsafe-no-fsync", "--log-level=warn"]);
    command
}

fn api_server_command(assets: &Assets, folder: &Path, etcd_port: u16, port: u16) -> Command {
    let file = |name| folder.join(name).display().to_string();
    let mut command = Command::new(assets.program("kube-apiserver"));
    command.args([
        format!("--etcd-servers=http://127.0.0.1:{etcd_port}"),
        format!("--secure-port={port}"),
        format!("--tls-cert-file={}", file("tls.crt")),
        format!("--tls-private-key-file={}", file("tls.key")),
        format!("--token-auth-file={}", file("tokens.csv")),
        format!("--audit-policy-file={}", file("audit-policy.yaml")),
        format!("--audit-log-path={}", file(AUDIT_LOG)),
        // The certificate, as a public key is not read out of a private key in PKCS #8.
        format!("--service-account-key-file={}", file("tls.crt")),
        format!("--service-account-signing-key-file={}", file("tls.key")),
    ]);
    command.args([
        "--bind-address=127.0.0.1",
        "--advertise-address=127.0.0.1",
        "--authorization-mode=RBAC",
        "--service-account-issuer=https://kubernetes.default.svc",
        "--service-cluster-ip-range=10.0.0.0/24",
        // ServiceAccounts that it checks do not exist here, and endpoints lead nowhere.
        "--disable-admission-plugins=ServiceAccount",
        "--endpoint-reconciler-type=none",
    ]);
    if folder.join(ADMISSION).exists() {
        command.arg(format!("--admission-control-config-file={}", file(ADMISSION)));
    }
    if folder.join(TRACING).exists() {
        // Milliseconds, so that a test waits no longer for spans than for anything else.
        command.arg(format!("--tracing-config-file={}", file(TRACING))).env("OTEL_BSP_SCHEDULE_DELAY", "500");
    }
    command
}
