//! Runs etcd and kube-apiserver.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use crate::assets::Assets;
use crate::daemon::{Daemon, DaemonError, on_free_ports};
use crate::http;

/// The name of the audit log in the folder of the cluster. The log contains the requests that the users in
/// `User::OF_RELEASE` make to the API server, one JSON object per line.
pub const AUDIT_LOG: &str = "audit.log";
const ETCD_TIMEOUT: Duration = Duration::from_secs(30);
const API_SERVER_TIMEOUT: Duration = Duration::from_mins(1);

/// The file name of the API server's tracing configuration. The API server exports traces if the folder of the cluster
/// contains this file.
pub const TRACING: &str = "tracing.yaml";
/// The file name of the API server's admission configuration. The API server uses this file if the folder of the
/// cluster contains it.
pub const ADMISSION: &str = "admission.yaml";

/// Starts etcd with its data in `folder`, and waits until it is healthy. Returns the process and the port for clients.
pub fn start_etcd(assets: &Assets, folder: &Path) -> Result<(Daemon, u16), DaemonError> {
    let start = |ports: [u16; 2]| {
        let mut command = etcd_command(assets, folder, ports);
        let etcd = Daemon::start("etcd", &mut command, &folder.join("etcd.log"))?;
        etcd.wait_until(ETCD_TIMEOUT, || http::is_ok(&http::get(ports[0], "/health")))?;
        Ok((etcd, ports[0]))
    };
    on_free_ports(start, DaemonError::port_was_taken)
}

/// Starts the API server on a free port with the files `tls.crt`, `tls.key`, `tokens.csv` and `audit-policy.yaml` in
/// `folder`. Waits until `is_ready` returns true for this port. Returns the process and the port.
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

/// Starts the API server on the given port, with the same files as [`start_api_server`]. Waits until `is_ready` returns
/// true.
pub fn start_api_server_on(
    assets: &Assets,
    folder: &Path,
    etcd_port: u16,
    port: u16,
    is_ready: impl Fn() -> bool,
) -> Result<Daemon, DaemonError> {
    let mut command = api_server_command(assets, folder, etcd_port, port);
    let server = Daemon::start("kube-apiserver", &mut command, &folder.join("kube-apiserver.log"))?;
    server.wait_until(API_SERVER_TIMEOUT, is_ready)?;
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
        // This is the certificate, because the API server cannot read the public key from a private key in PKCS #8
        // format.
        format!("--service-account-key-file={}", file("tls.crt")),
        format!("--service-account-signing-key-file={}", file("tls.key")),
    ]);
    command.args([
        "--bind-address=127.0.0.1",
        "--advertise-address=127.0.0.1",
        "--authorization-mode=RBAC",
        "--service-account-issuer=https://kubernetes.default.svc",
        "--service-cluster-ip-range=10.0.0.0/24",
        // The plugin requires ServiceAccounts, which no controller creates here. Endpoints of the Service `kubernetes`
        // would be of no use, because there is no cluster network.
        "--disable-admission-plugins=ServiceAccount",
        "--endpoint-reconciler-type=none",
    ]);
    if folder.join(ADMISSION).exists() {
        command.arg(format!("--admission-control-config-file={}", file(ADMISSION)));
    }
    if folder.join(TRACING).exists() {
        // The delay is in milliseconds. It is shorter than the default of five seconds, so that tests do not wait for
        // spans.
        command.arg(format!("--tracing-config-file={}", file(TRACING))).env("OTEL_BSP_SCHEDULE_DELAY", "500");
    }
    command
}
