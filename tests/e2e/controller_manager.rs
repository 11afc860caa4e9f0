//! Runs `portcullis reconcile` as a process beside a test.

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};

use crate::cluster::Cluster;
use crate::daemon::{Daemon, DaemonError, on_free_ports};
use crate::deadline::deadline;
use crate::http;
use crate::user::User;

/// Where portcullis is installed.
pub const NAMESPACE: &str = "portcullis-system";
const BINARY: &str = env!("CARGO_BIN_EXE_portcullis");

/// Held by a test that uses the Lease of the release itself.
pub static ACCOUNT_LEASE: Mutex<()> = Mutex::new(());

static NUMBER: AtomicUsize = AtomicUsize::new(0);

/// A controller manager that runs until it is dropped, which kills it.
pub struct ControllerManager {
    daemon: Daemon,
    admin_port: u16,
    log: PathBuf,
}

/// How to run one.
pub struct Options<'a> {
    /// Where it acts; everywhere, if it is empty.
    pub namespace: &'a str,
    /// How it reaches the API server.
    pub kubeconfig: PathBuf,
    /// The namespace of its Lease.
    pub lease: &'a str,
    /// Further arguments.
    pub arguments: &'a [&'a str],
    /// Arguments about its Lease.
    pub timing: &'a [&'a str],
}

/// Times for a test: a kill is noticed after a second.
pub const QUICK: [&str; 6] = ["--lease-duration", "1", "--renew-deadline", "0.8", "--retry-period", "0.2"];

impl<'a> Options<'a> {
    /// Uses its ServiceAccount, a Lease in the test's own namespace, and the dry-run deployer.
    pub fn new(cluster: &Cluster, namespace: &'a str) -> Self {
        let kubeconfig = cluster.kubeconfig(User::ControllerManager);
        Self { namespace, kubeconfig, lease: namespace, arguments: &["--dry-run-deployer"], timing: &QUICK }
    }

    /// Starts it, and waits until it is ready.
    pub fn start(&self, cluster: &Cluster) -> ControllerManager {
        grant_lease(cluster, self.lease);
        let taken = |error: &DaemonError| error.port_was_taken();
        on_free_ports(|[port]| self.start_on(cluster, port), taken).expect("a controller manager runs")
    }

    fn start_on(&self, cluster: &Cluster, port: u16) -> Result<ControllerManager, DaemonError> {
        let mut command = Command::new(BINARY);
        command.arg("reconcile").arg("--kubeconfig").arg(&self.kubeconfig);
        if !self.namespace.is_empty() {
            command.args(["--namespace", self.namespace]);
        }
        command.args(["--admin-listen", &format!("127.0.0.1:{port}")]).args(self.timing).args(self.arguments);
        command.args(["--lease-namespace", self.lease]);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let log = cluster.folder().join(format!("companion-{number}.log"));
        let daemon = Daemon::start("portcullis reconcile", &mut command, &log)?;
        let manager = ControllerManager { daemon, admin_port: port, log };
        manager.daemon.wait_until(deadline(), || http::is_ok(&http::get(port, "/readyz")))?;
        Ok(manager)
    }
}

/// Trials would fight for the one Lease of the release. So the Role that the chart rendered for it is granted in another
/// namespace too, as if the release were there.
fn grant_lease(cluster: &Cluster, namespace: &str) {
    if namespace == NAMESPACE {
        return;
    }
    for kind in ["role", "rolebinding"] {
        let get = ["get", kind, "portcullis-companion", "--namespace", NAMESPACE, "-o", "json"];
        let rendered = cluster.kubectl().args(get).run().expect_success().stdout;
        let mut object: Value = serde_json::from_str(&rendered).expect("kubectl writes JSON");
        object["metadata"] = json!({"name": "portcullis-companion", "namespace": namespace});
        cluster.kubectl().args(["apply", "--server-side", "-f", "-"]).stdin(object.to_string()).run().expect_success();
    }
}

impl ControllerManager {
    /// Returns whether it acts.
    pub fn leads(&self) -> bool {
        self.metric("portcullis_companion_leading ") == Some(1.0)
    }

    /// Returns the value of a line of its metrics that begins with `line`.
    pub fn metric(&self, line: &str) -> Option<f64> {
        let answer = http::get(self.admin_port, "/metrics").ok()?;
        answer.lines().find_map(|found| found.strip_prefix(line)).and_then(|value| value.trim().parse().ok())
    }

    /// Asks it to end, and waits until it has.
    pub fn terminate(self) {
        let status = self.daemon.terminate().expect("it can be sent a signal");
        assert!(status.success(), "{status}\n{}", self.log());
    }

    /// Returns the most memory that it ever had resident, in bytes.
    #[allow(dead_code, reason = "asked by a benchmark")]
    pub fn peak_memory(&self) -> Option<u64> {
        self.daemon.peak_memory()
    }

    /// Its log.
    pub fn log(&self) -> String {
        fs::read_to_string(&self.log).unwrap_or_default()
    }
}
