//! Runs the server as in a pod. The server reads the address of the API server from environment variables. It reads the
//! token of its service account from the folder where the kubelet mounts the token.
//!
//! The benchmark does not give the server a kubeconfig. To read one, the server would run its YAML parser, so more of
//! the executable would be in memory than in a pod.

use std::ffi::OsStr;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use kube::config::Kubeconfig;
use tempfile::TempDir;

/// The folder where client libraries expect the credentials of a service account.
const MOUNT: &str = "/var/run/secrets/kubernetes.io/serviceaccount";
/// Shell script that copies the files of the folder `$1` to the folder `$MOUNT`, and then runs the other arguments as a
/// command. The script runs in its own mount namespace, so the folder `$MOUNT` of the machine does not change.
const SCRIPT: &str = r#"set -e
mount -t tmpfs tmpfs "$(readlink -f /var/run)"
mkdir -p "$MOUNT"
cp "$1"/* "$MOUNT"
shift
exec "$@""#;

/// The environment of a pod: the folder with its credentials, and the address of the API server.
pub struct Pod {
    credentials: TempDir,
    host: String,
    port: String,
}

impl Pod {
    /// Creates the environment of a pod. Programs in it connect to the first cluster in the file `kubeconfig`, and
    /// authenticate with the service account token `token`. Returns `None` if this process is not permitted to create a
    /// mount namespace.
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

    /// Returns the command that runs a program in the environment of the pod.
    pub fn command(&self, program: &OsStr) -> Command {
        let mut command = unshare();
        command.args(["sh", "-c", SCRIPT, "sh"]).arg(self.credentials.path()).arg(program);
        command.env("MOUNT", MOUNT).env("KUBERNETES_SERVICE_HOST", &self.host);
        command.env("KUBERNETES_SERVICE_PORT", &self.port);
        command
    }
}

/// Returns the command `unshare` with options that create a mount namespace. The caller appends a program and its
/// arguments. `unshare` replaces itself with this program through `exec`, so the program has the process id of the
/// command. [`SCRIPT`] replaces itself in the same way.
fn unshare() -> Command {
    let mut command = Command::new("unshare");
    command.args(["--user", "--map-root-user", "--mount"]);
    command
}
