//! Runs the controller manager, `portcullis reconcile`, as a background process of a test.

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

/// The namespace of the Helm release.
pub const NAMESPACE: &str = "portcullis-system";
const BINARY: &str = env!("CARGO_BIN_EXE_portcullis");

/// A lock for tests that must not run at the same time, such as those that use the Lease of the release.
pub static RELEASE_LEASE_LOCK: Mutex<()> = Mutex::new(());

static NEXT_NUMBER: AtomicUsize = AtomicUsize::new(0);

/// A controller manager. It is killed when this value is dropped.
pub struct ControllerManager {
    daemon: Daemon,
    admin_port: u16,
    log: PathBuf,
}

/// The options for starting a controller manager.
pub struct Options<'a> {
    /// The namespace in which the controller manager acts. If it is empty, the controller manager acts in all
    /// namespaces.
    pub namespace: &'a str,
    /// The path of the kubeconfig for the API server.
    pub kubeconfig: PathBuf,
    /// The namespace of the Lease for leader election.
    pub lease_namespace: &'a str,
    /// Additional command-line arguments.
    pub arguments: &'a [&'a str],
    /// Flags with the times of leader election, such as [`FAST_TAKEOVER`].
    pub timing: &'a [&'a str],
}

/// Flags for a fast leader election. If the leader is killed, another replica takes over after about a second.
pub const FAST_TAKEOVER: [&str; 6] = ["--lease-duration", "1", "--renew-deadline", "0.8", "--retry-period", "0.2"];

impl<'a> Options<'a> {
    /// Returns options that start the controller manager with its own ServiceAccount, and with the dry-run deployer.
    /// `namespace` is the namespace of the test, which also contains the Lease.
    pub fn new(cluster: &Cluster, namespace: &'a str) -> Self {
        let kubeconfig = cluster.kubeconfig(User::ControllerManager);
        Self {
            namespace,
            kubeconfig,
            lease_namespace: namespace,
            arguments: &["--dry-run-deployer"],
            timing: &FAST_TAKEOVER,
        }
    }

    /// Grants the permissions for the Lease, starts the controller manager, and waits until it is ready.
    pub fn start(&self, cluster: &Cluster) -> ControllerManager {
        grant_lease(cluster, self.lease_namespace);
        let is_port_taken = |error: &DaemonError| error.port_was_taken();
        on_free_ports(|[port]| self.start_on(cluster, port), is_port_taken).expect("a controller manager runs")
    }

    fn start_on(&self, cluster: &Cluster, port: u16) -> Result<ControllerManager, DaemonError> {
        let mut command = Command::new(BINARY);
        command.arg("reconcile").arg("--kubeconfig").arg(&self.kubeconfig);
        if !self.namespace.is_empty() {
            command.args(["--namespace", self.namespace]);
        }
        command.args(["--admin-listen", &format!("127.0.0.1:{port}")]).args(self.timing).args(self.arguments);
        command.args(["--lease-namespace", self.lease_namespace]);
        let number = NEXT_NUMBER.fetch_add(1, Ordering::Relaxed);
        let log = cluster.folder().join(format!("companion-{number}.log"));
        let daemon = Daemon::start("portcullis reconcile", &mut command, &log)?;
        let manager = ControllerManager { daemon, admin_port: port, log };
        manager.daemon.wait_until(deadline(), || http::is_ok(&http::get(port, "/readyz")))?;
        Ok(manager)
    }
}

/// Copies the Role and RoleBinding for the Lease of the release to another namespace. So each test can use a Lease in
/// its own namespace, and does not compete with other tests for the Lease of the release.
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
    /// Returns whether the controller manager is the leader.
    pub fn is_leader(&self) -> bool {
        self.metric("portcullis_companion_leading ") == Some(1.0)
    }

    /// Returns the value of the first metric whose line begins with `line`.
    pub fn metric(&self, line: &str) -> Option<f64> {
        let answer = http::get(self.admin_port, "/metrics").ok()?;
        answer.lines().find_map(|found| found.strip_prefix(line)).and_then(|value| value.trim().parse().ok())
    }

    /// Sends SIGTERM to the controller manager, waits until it ends, and checks that it succeeded.
    pub fn terminate(self) {
        let status = self.daemon.terminate().expect("the process receives the signal");
        assert!(status.success(), "{status}\n{}", self.log());
    }

    /// Returns the peak resident memory of the controller manager in bytes, if the system provides it.
    #[allow(dead_code, reason = "asked by a benchmark")]
    pub fn peak_memory(&self) -> Option<u64> {
        self.daemon.peak_memory()
    }

    /// Returns the content of the log.
    pub fn log(&self) -> String {
        fs::read_to_string(&self.log).unwrap_or_default()
    }
}
