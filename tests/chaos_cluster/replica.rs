//! A replica: the real binary with its ServiceAccount's rights.

use std::net::SocketAddr;
use std::process::Command;
use std::time::Duration;

use crate::cluster::Cluster;
use crate::daemon::{Daemon, DaemonError, on_free_ports};
use crate::http;
use crate::user::User;

const BINARY: &str = env!("CARGO_BIN_EXE_portcullis");
const READY_LIMIT: Duration = Duration::from_secs(30);
/// Shorter than in production, but long enough for the relay to learn of it on a machine that is busy.
const LAME_DUCK: &str = "3";

/// A replica that runs until it is dropped, which kills it.
pub struct Replica {
    daemon: Daemon,
    /// Where it serves webhooks.
    pub address: SocketAddr,
    /// Where it is probed.
    pub admin: SocketAddr,
}

impl Replica {
    /// Starts one with these arguments, and waits until it is ready.
    pub fn start(cluster: &Cluster, arguments: &[String]) -> Self {
        let taken = |error: &DaemonError| error.port_was_taken();
        on_free_ports(|ports| Self::start_on(cluster, arguments, ports), taken).expect("a replica runs")
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

    /// Asks it to end as the kubelet does, and waits until it has.
    pub fn terminate(&self) {
        let status = self.daemon.terminate().expect("it can be sent a signal");
        assert!(status.success(), "{status}\n{}", self.log_end());
    }

    /// Returns the last lines of its log.
    pub fn log_end(&self) -> String {
        self.daemon.log_end()
    }

    /// Counts the lines of its log that contain a text.
    pub fn logged(&self, text: &str) -> usize {
        self.daemon.logged(text)
    }

    /// Returns the value of a line of its metrics that begins with `line`.
    pub fn metric(&self, line: &str) -> Option<f64> {
        let answer = http::get(self.admin.port(), "/metrics").ok()?;
        answer.lines().find_map(|found| found.strip_prefix(line)).and_then(|value| value.trim().parse().ok())
    }
}
