//! Runs the server as a pod does: it finds the API server and its token where kubelet puts them.
//!
//! A kubeconfig would be parsed as YAML, with code that no pod runs.

use std::ffi::OsStr;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use kube::config::Kubeconfig;
use tempfile::TempDir;

/// Where client libraries look for credentials.
const MOUNT: &str = "/var/run/secrets/kubernetes.io/serviceaccount";
/// Mounts the folder `$1` there, for the command in the other arguments alone.
const SCRIPT: &str = r#"set -e
mount -t tmpfs tmpfs "$(readlink -f /var/run)"
mkdir -p "$MOUNT"
cp "$1"/* "$MOUNT"
shift
exec "$@""#;

/// The environment of a pod.
pub struct Pod {
    credentials: TempDir,
    host: String,
    port: String,
}

impl Pod {
    /// Creates the environment of a pod with a token for the cluster of a kubeconfig. Returns `None` where programs may not create a mount
    /// namespace.
    pub fn new(kubeconfig: &Path, token: &str) -> Option<Self> {
        let is_allowed = unshare().arg("true").stderr(Stdio::null()).status().is_ok_and(|status| status.success());
        if !is_allowed {
            return None;
        }
        let file = Kubeconfig::read_from(kubeconfig).unwrap();
        let cluster = file.clusters[0].cluster.clone().unwrap();
        let server = cluster.server.unwrap();
        let (host, port) = server.strip_prefix("https://").unwrap().rsplit_once(':').unwrap();
        let credentials = tempfile::tempdir().unwrap();
        let write = |name: &str, content: &[u8]| fs::write(credentials.path().join(name), content).unwrap();
        write("token", token.as_bytes());
        write("ca.crt", &fs::read(cluster.certificate_authority.unwrap()).unwrap());
        write("namespace", b"default");
        Some(Self { host: host.to_owned(), port: port.to_owned(), credentials })
    }

    /// Returns the command that runs a program in the environment.
    pub fn command(&self, program: &OsStr) -> Command {
        let mut command = unshare();
        command.args(["sh", "-c", SCRIPT, "sh"]).arg(self.credentials.path()).arg(program);
        command.env("MOUNT", MOUNT).env("KUBERNETES_SERVICE_HOST", &self.host);
        command.env("KUBERNETES_SERVICE_PORT", &self.port);
        command
    }
}

/// Returns a command that runs its further arguments in a mount namespace. All programs replace each other, so there is one process.
fn unshare() -> Command {
    let mut command = Command::new("unshare");
    command.args(["--user", "--map-root-user", "--mount"]);
    command
}
