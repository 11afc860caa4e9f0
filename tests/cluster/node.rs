//! The node: the processes of a Kubernetes control plane, containerd, kubelet and kube-proxy.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::daemon::{Daemon, DaemonError};
use crate::files::{self, PORT};
use crate::kubectl::Kubectl;
use crate::network::{IPV4, Network};
use crate::programs::Programs;
use crate::{http, images, reboot, sandbox};

const ETCD_PORT: u16 = 2379;
/// Timeout for the node, and for each of its processes, to become ready. On a busy machine with two processors, the API
/// server needs half a minute to start.
const READY_TIMEOUT: Duration = Duration::from_mins(2);

/// A running node. Its processes end when the PID namespace of this test ends.
pub struct Node {
    daemons: Vec<Daemon>,
    programs: Programs,
    folder: PathBuf,
    network: &'static Network,
}

/// An error while starting the node.
#[derive(Debug, thiserror::Error)]
pub enum NodeError {
    /// A program did not start, or did not become ready.
    #[error(transparent)]
    Daemon(#[from] DaemonError),
    /// A system call or a command failed.
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl Node {
    /// Starts the node, waits until it is ready, and imports the images. `archive` contains the image of Portcullis.
    pub fn start(programs: Programs, folder: &Path, archive: &Path) -> Result<Self, NodeError> {
        reboot::mount_empty_folders()?;
        files::write(folder, &IPV4)?;
        create_cgroups(&sandbox::cgroup(folder))?;
        programs.link_into(&folder.join("bin"))?;
        let mut node = Self { daemons: Vec::new(), programs, folder: folder.to_owned(), network: &IPV4 };
        node.start_all()?;
        images::import(&node, archive)?;
        Ok(node)
    }

    /// Kills all processes of the node at once, as a power failure does, and starts the node again.
    pub fn reboot(&mut self) -> Result<(), NodeError> {
        self.daemons.clear();
        reboot::clear_node_state(&self.folder)?;
        self.start_all()
    }

    /// Deletes the cluster, and starts a new one with another network. Only the images are kept.
    pub fn change_network(&mut self, network: &'static Network) -> Result<(), NodeError> {
        self.daemons.clear();
        reboot::clear_node_state(&self.folder)?;
        for state in ["etcd", "kubelet", "kubelet-pki", "ipam", "cni"].map(|name| self.folder.join(name)) {
            if state.exists() {
                fs::remove_dir_all(state)?;
            }
        }
        self.network = network;
        files::write(&self.folder, network)?;
        self.start_all()
    }

    /// Kills the API server, starts it again, and waits until it is ready.
    pub fn restart_api_server(&mut self) -> Result<(), NodeError> {
        let at = self.daemons.iter().position(|daemon| daemon.name() == "kube-apiserver");
        // Dropping the daemon kills the process. After SIGTERM, the API server would wait up to a minute for its
        // watches to end.
        drop(at.map(|at| self.daemons.remove(at)));
        self.start_api_server()
    }

    /// Returns the path of the folder with cert-manager's CRDs.
    pub fn cert_manager_crds(&self) -> PathBuf {
        self.programs.cert_manager_crds()
    }

    /// Starts cert-manager's controllers as a process on the node.
    pub fn start_cert_manager(&mut self) -> Result<(), NodeError> {
        let mut command = Command::new(self.programs.cert_manager());
        let daemon = self.start_daemon("cert-manager", command.arg(self.kubeconfig()))?;
        self.daemons.push(daemon);
        Ok(())
    }

    /// Kills the process of cert-manager's controllers.
    pub fn stop_cert_manager(&mut self) {
        self.daemons.retain(|daemon| daemon.name() != "cert-manager");
    }

    /// Returns the path of the folder with the files and logs of the node.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Returns the path of a program that is built for the node.
    pub fn program(&self, name: &str) -> PathBuf {
        self.programs.node_program(name)
    }

    /// Returns a kubectl command with the kubeconfig of the administrator.
    pub fn kubectl(&self) -> Kubectl {
        let program = self.programs.control_plane_program("kubectl");
        Kubectl::new(program, self.kubeconfig(), self.folder.join("home"))
    }

    /// Returns the path of the administrator's kubeconfig.
    pub fn kubeconfig(&self) -> PathBuf {
        self.folder.join("admin.kubeconfig")
    }

    /// Returns a command of `ctr`, the client of containerd, for the containerd of the node.
    pub fn ctr(&self) -> Command {
        let mut command = Command::new("ctr");
        command.arg("--address").arg(self.folder.join("containerd.sock")).args(["--namespace", "k8s.io"]);
        command
    }

    /// Returns the last lines of the log of every process.
    pub fn log_ends(&self) -> String {
        self.daemons.iter().map(|daemon| format!("== {}\n{}\n", daemon.name(), daemon.log_end())).collect()
    }

    fn start_all(&mut self) -> Result<(), NodeError> {
        self.network.create()?;
        self.start_etcd()?;
        self.start_api_server()?;
        self.start_containerd()?;
        let file = |name: &str| self.folder.join(name).display().to_string();
        let controllers = [
            format!("--kubeconfig={}", file("controller-manager.kubeconfig")),
            format!("--service-account-private-key-file={}", file("server.key")),
            format!("--root-ca-file={}", file("ca.crt")),
            "--use-service-account-credentials".to_owned(),
            "--leader-elect=false".to_owned(),
        ];
        let scheduler = [format!("--kubeconfig={}", file("scheduler.kubeconfig")), "--leader-elect=false".to_owned()];
        let kubelet = [
            format!("--config={}", file("kubelet.yaml")),
            format!("--kubeconfig={}", file("node.kubeconfig")),
            format!("--root-dir={}", file("kubelet")),
            format!("--cert-dir={}", file("kubelet-pki")),
            format!("--node-ip={}", self.network.node),
            "--hostname-override=node".to_owned(),
        ];
        let proxy = [format!("--config={}", file("proxy.yaml"))];
        self.start_program("kube-controller-manager", &controllers)?;
        self.start_program("kube-scheduler", &scheduler)?;
        self.start_program("kubelet", &kubelet)?;
        self.start_program("kube-proxy", &proxy)?;
        self.wait_until_ready()
    }

    /// Waits until the node has the condition `Ready`, and the default ServiceAccount exists. After a reboot, the
    /// condition keeps its old value `True` until the lease of the node expires. So scenarios also wait until their
    /// pods are ready.
    fn wait_until_ready(&self) -> Result<(), NodeError> {
        let is_ready = || {
            let wait = ["wait", "--for=condition=Ready", "node/node", "--timeout=1s"];
            let account = ["get", "serviceaccount", "default", "-n", "default"];
            self.kubectl().args(wait).run().status.success() && self.kubectl().args(account).run().status.success()
        };
        Ok(self.daemon("kubelet").wait_until(READY_TIMEOUT, is_ready)?)
    }

    fn start_etcd(&mut self) -> Result<(), NodeError> {
        let mut command = Command::new(self.programs.control_plane_program("etcd"));
        command.arg(format!("--data-dir={}", self.folder.join("etcd").display()));
        command.args(["--unsafe-no-fsync", "--log-level=warn"]);
        let etcd = self.start_daemon("etcd", &mut command)?;
        etcd.wait_until(READY_TIMEOUT, || http::is_ok(&http::get(ETCD_PORT, "/health")))?;
        self.daemons.push(etcd);
        Ok(())
    }

    fn start_api_server(&mut self) -> Result<(), NodeError> {
        let file = |name: &str| self.folder.join(name).display().to_string();
        let mut command = Command::new(self.programs.control_plane_program("kube-apiserver"));
        command.args([
            format!("--etcd-servers=http://127.0.0.1:{ETCD_PORT}"),
            format!("--secure-port={PORT}"),
            format!("--tls-cert-file={}", file("server.crt")),
            format!("--tls-private-key-file={}", file("server.key")),
            format!("--client-ca-file={}", file("ca.crt")),
            // The certificate contains the public key. The API server cannot read the public key from a private key in
            // PKCS #8 format.
            format!("--service-account-key-file={}", file("server.crt")),
            format!("--service-account-signing-key-file={}", file("server.key")),
            format!("--kubelet-client-certificate={}", file("admin.crt")),
            format!("--kubelet-client-key={}", file("admin.key")),
            "--kubelet-preferred-address-types=InternalIP".to_owned(),
            format!("--bind-address={}", self.network.listen),
            format!("--advertise-address={}", self.network.node),
            format!("--service-cluster-ip-range={}", self.network.services),
        ]);
        command.args([
            "--service-account-issuer=https://kubernetes.default.svc",
            "--authorization-mode=Node,RBAC",
            "--enable-admission-plugins=NodeRestriction",
            "--allow-privileged",
            "--endpoint-reconciler-type=lease",
        ]);
        let server = self.start_daemon("kube-apiserver", &mut command)?;
        let is_ready = || self.kubectl().args(["get", "--raw", "/readyz"]).run().status.success();
        server.wait_until(READY_TIMEOUT, is_ready)?;
        self.daemons.push(server);
        Ok(())
    }

    fn start_containerd(&mut self) -> Result<(), NodeError> {
        let mut command = Command::new("containerd");
        command.arg("--config").arg(self.folder.join("containerd.toml"));
        let containerd = self.start_daemon("containerd", &mut command)?;
        containerd.wait_until(READY_TIMEOUT, || {
            self.ctr().arg("version").output().is_ok_and(|output| output.status.success())
        })?;
        self.daemons.push(containerd);
        Ok(())
    }

    fn start_program(&mut self, name: &'static str, arguments: &[String]) -> Result<(), NodeError> {
        let daemon = self.start_daemon(name, Command::new(self.program(name)).args(arguments))?;
        self.daemons.push(daemon);
        Ok(())
    }

    fn start_daemon(&self, name: &'static str, command: &mut Command) -> Result<Daemon, DaemonError> {
        Daemon::start(name, command, &self.folder.join(format!("{name}.log")))
    }

    fn daemon(&self, name: &str) -> &Daemon {
        self.daemons.iter().find(|daemon| daemon.name() == name).expect("the program is started")
    }
}

/// Creates the cgroup of the node, which the kubelet requires. In cgroup v1, a cpuset must not be empty, so this
/// function copies the values of the parent cgroup.
fn create_cgroups(name: &str) -> io::Result<()> {
    for controller in sandbox::controllers() {
        let folder = controller.join(name);
        fs::create_dir_all(&folder)?;
        for file in ["cpuset.cpus", "cpuset.mems"] {
            let Ok(all) = fs::read_to_string(controller.join(file)) else { continue };
            fs::write(folder.join(file), all.trim())?;
        }
    }
    Ok(())
}
