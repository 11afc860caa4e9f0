//! A replica: a process of `portcullis serve` with the permissions of its ServiceAccount.

use std::net::SocketAddr;
use std::process::Command;
use std::time::Duration;

use crate::cluster::Cluster;
use crate::daemon::{Daemon, DaemonError, on_free_ports};
use crate::http;
use crate::user::User;

const BINARY: &str = env!("CARGO_BIN_EXE_portcullis");
const READY_LIMIT: Duration = Duration::from_secs(30);
/// The lame-duck period in seconds. In this time, the relay that acts as the Service must notice that the replica is
/// not ready. The period is shorter than in production, but sufficient even on a busy machine.
const LAME_DUCK: &str = "3";

/// A running replica. If it is dropped, the process is killed.
pub struct Replica {
    daemon: Daemon,
    /// The address of the webhooks.
    pub address: SocketAddr,
    /// The address of the probes and metrics.
    pub admin: SocketAddr,
}

impl Replica {
    /// Starts a replica with the additional arguments `arguments`, and waits until it is ready.
    pub fn start(cluster: &Cluster, arguments: &[String]) -> Self {
        let is_port_taken = |error: &DaemonError| error.port_was_taken();
        on_free_ports(|ports| Self::start_on(cluster, arguments, ports), is_port_taken).expect("a replica runs")
    }

    fn start_on(cluster: &Cluster, arguments: &[String], ports: [u16; 2]) -> Result<Self, DaemonError> {
        let [address, admin] = ports.map(|port| SocketAddr::from(([127, 0, 0, 1], port)));
        let mut command = Command::new(BINARY);
        command.args(["serve", "--listen", &address.to_string(), "--admin-listen", &admin.to_string()]);
        command.args(["--lame-duck", LAME_DUCK]).args(arguments);
        command.arg("--kubeconfig").arg(cluster.kubeconfig(User::Portcullis));
        let log = cluster.folder().join(format!("replica-{}.log", address.port()));
        let daemon = Daemon::start("portcullis serve", &mut command, &log)?;
        daemon.wait_until(READY_LIMIT, || http::is_ok(&http::get(admin.port(), "/readyz")))?;
        Ok(Self { daemon, address, admin })
    }

    /// Sends SIGTERM to the replica, as the kubelet does, and waits until the process has ended. Panics if the exit
    /// status is not success.
    pub fn terminate(&self) {
        let status = self.daemon.terminate().expect("the process receives the signal");
        assert!(status.success(), "{status}\n{}", self.log_end());
    }

    /// Returns the last lines of the replica's log.
    pub fn log_end(&self) -> String {
        self.daemon.log_end()
    }

    /// Returns the number of lines in the replica's log that contain a text.
    pub fn count_log_lines(&self, text: &str) -> usize {
        self.daemon.count_log_lines(text)
    }

    /// Returns the value of a metric of the replica. `line` is the beginning of a line of `/metrics`: the name, the
    /// labels and the space before the value.
    pub fn metric(&self, line: &str) -> Option<f64> {
        let answer = http::get(self.admin.port(), "/metrics").ok()?;
        answer.lines().find_map(|found| found.strip_prefix(line)).and_then(|value| value.trim().parse().ok())
    }
}
