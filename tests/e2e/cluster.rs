//! A cluster for tests: an API server and its etcd, which run until the [`Cluster`] is dropped.
//!
//! The cluster has no kube-controller-manager. So namespaces are not finalized, garbage is not collected, and no Pods
//! are created.

use std::fs;
use std::future::Future;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use hyper::{Request, Uri};
use kube::Client;
use kube::config::{AuthInfo, Config};
use rustls_pki_types::CertificateDer;
use tempfile::TempDir;
use tokio::runtime::{self, Runtime};

use crate::assets::{Assets, AssetsError};
use crate::cleanup;
use crate::control_plane::{AUDIT_LOG, start_api_server, start_api_server_on, start_etcd};
use crate::daemon::{Daemon, DaemonError, PAUSE};
use crate::delivery_crds::{self, CrdsError};
use crate::kubectl::Kubectl;
use crate::user::{self, User};

const GRACE_PERIOD: Duration = Duration::from_secs(5);
const PROBE_TIMEOUT: Duration = Duration::from_secs(2);
const COMPOSITIONS: &str = "compositions.apiextensions.crossplane.io";
/// A JSON patch for the CRD of Compositions. It allows the fields of Crossplane up to 1.17: `environment`, and patches
/// from and to the environment. The API server does not validate the content of these fields. So the rules must detect
/// errors that the CRD of Crossplane 1.17 would reject.
const ENVIRONMENT_FIELDS_PATCH: &str = r#"[
  {"op": "add", "path": "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/environment",
   "value": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
  {"op": "replace",
   "path": "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/resources/items/properties/patches/items",
   "value": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}
]"#;

/// A running cluster. When it is dropped, the API server stops, then etcd stops, and their files are deleted.
pub struct Cluster {
    // Rust drops the fields in this order.
    client: Client,
    authority: CertificateDer<'static>,
    port: u16,
    runtime: Runtime,
    api_server: Mutex<Option<Daemon>>,
    etcd: Daemon,
    ports: Ports,
    folder: TempDir,
    assets: Assets,
    delivery_crds: PathBuf,
    namespaces: AtomicUsize,
}

/// The ports on which the API server and etcd listen for clients.
#[derive(Clone, Copy)]
struct Ports {
    api_server: u16,
    etcd: u16,
}

/// An error that occurred while starting or restarting a cluster.
#[derive(Debug, thiserror::Error)]
pub enum ClusterError {
    /// The programs, or the CRDs of Landscaper or Crossplane, were not found or not built.
    #[error(transparent)]
    Assets(#[from] AssetsError),
    /// The CRDs of Flux, Argo CD or Fleet were not found or not downloaded.
    #[error(transparent)]
    Crds(#[from] CrdsError),
    /// etcd or the API server did not start.
    #[error(transparent)]
    Daemon(#[from] DaemonError),
    #[error("{action} for the cluster: {source}")]
    Io {
        /// The action that failed, such as `writing kubeconfigs`.
        action: &'static str,
        source: io::Error,
    },
    /// The certificate of the API server could not be created.
    #[error("making the API server's certificate: {0}")]
    Certificate(#[from] rcgen::Error),
    #[error("making a client for the API server: {0}")]
    Client(#[from] kube::Error),
}

impl Cluster {
    /// Calls `prepare` with the folder of the cluster, so that the caller can add configuration files of the API
    /// server. Then starts etcd and the API server, and waits until they are ready.
    pub fn start(prepare: impl FnOnce(&Path)) -> Result<Self, ClusterError> {
        let (assets, delivery_crds) = (Assets::find()?, delivery_crds::folder()?);
        let (folder, runtime) = (temporary_folder()?, new_runtime()?);
        let authority = write_files(folder.path())?;
        prepare(folder.path());
        let (etcd, etcd_port) = start_etcd(&assets, folder.path())?;
        let is_port_ready = |port| runtime.block_on(is_ready(port, &authority));
        let (api_server, port) = start_api_server(&assets, folder.path(), etcd_port, is_port_ready)?;
        write_kubeconfigs(folder.path(), port).map_err(io_error("writing kubeconfigs"))?;
        Ok(Self {
            client: runtime.block_on(async { client(port, &authority, User::Admin) })?,
            authority,
            port,
            runtime,
            api_server: Mutex::new(Some(api_server)),
            etcd,
            ports: Ports { api_server: port, etcd: etcd_port },
            folder,
            assets,
            delivery_crds,
            namespaces: AtomicUsize::new(1),
        })
    }

    /// Restarts the API server on the same port, as when a node restarts. Sends SIGTERM, and kills the process after
    /// [`GRACE_PERIOD`], because the API server would wait a minute for open watches.
    pub fn restart_api_server(&self) -> Result<(), ClusterError> {
        let mut api_server = self.api_server.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(running) = api_server.take() {
            running.signal("TERM").map_err(io_error("ending the API server"))?;
            thread::sleep(GRACE_PERIOD);
        }
        let is_ready = || {
            let request = Request::get("/readyz").body(Vec::new()).expect("a constant path is a request");
            let answer =
                self.block_on(async { tokio::time::timeout(PROBE_TIMEOUT, self.client.request_text(request)).await });
            matches!(answer, Ok(Ok(_)))
        };
        let Ports { api_server: port, etcd } = self.ports;
        *api_server = Some(start_api_server_on(&self.assets, self.folder(), etcd, port, is_ready)?);
        Ok(())
    }

    /// Pauses etcd with SIGSTOP, or resumes it with SIGCONT.
    pub fn set_etcd_paused(&self, paused: bool) {
        self.etcd.signal(if paused { "STOP" } else { "CONT" }).expect("the process receives the signal");
    }

    /// Returns a kubectl command that runs as the administrator. The caller adds the arguments.
    pub fn kubectl(&self) -> Kubectl {
        self.kubectl_as(User::Admin)
    }

    /// Returns a kubectl command that runs as `user`. The caller adds the arguments.
    pub fn kubectl_as(&self, user: User) -> Kubectl {
        let home = self.folder().join(format!("{user:?}"));
        Kubectl::new(self.assets.program("kubectl"), self.kubeconfig(user), home)
    }

    /// Returns the path of a user's kubeconfig.
    pub fn kubeconfig(&self, user: User) -> PathBuf {
        kubeconfig_path(user, self.folder())
    }

    /// Returns a client with the rights of the administrator. Run its requests with [`Cluster::block_on`].
    pub fn client(&self) -> Client {
        self.client.clone()
    }

    /// Returns a client with the rights of `user`. Run its requests with [`Cluster::block_on`].
    ///
    /// # Panics
    ///
    /// If the client cannot be created.
    pub fn client_as(&self, user: User) -> Client {
        self.runtime.block_on(async { client(self.port, &self.authority, user) }).expect("a client can be created")
    }

    /// Returns the port on which etcd serves clients.
    #[allow(dead_code, reason = "asked by a benchmark")]
    pub fn etcd_port(&self) -> u16 {
        self.ports.etcd
    }

    /// Runs a future to completion on the runtime of the cluster, and returns its output.
    pub fn block_on<F: Future>(&self, future: F) -> F::Output {
        self.runtime.block_on(future)
    }

    /// Creates a namespace for a test. Returns its name, which is `prefix` and a number.
    ///
    /// # Panics
    ///
    /// If the API server returns an error.
    pub fn namespace(&self, prefix: &str) -> String {
        let number = self.namespaces.fetch_add(1, Ordering::Relaxed);
        let name = format!("{prefix}-{number}");
        self.kubectl().args(["create", "namespace", &name]).run().expect_success();
        name
    }

    /// Applies the CRDs of Landscaper, Crossplane, Flux, Argo CD and Fleet, and waits until they are established.
    ///
    /// # Panics
    ///
    /// If the API server returns an error.
    pub fn apply_crds(&self) {
        for folder in self.assets.crds.iter().chain([&self.delivery_crds]) {
            self.kubectl().args(["apply", "--server-side", "-f", &folder.to_string_lossy()]).run().expect_success();
        }
        self.kubectl()
            .args(["patch", "crd", COMPOSITIONS, "--type=json", "-p", ENVIRONMENT_FIELDS_PATCH])
            .run()
            .expect_success();
        self.wait_for_crds();
    }

    /// Waits until all CRDs are established.
    ///
    /// # Panics
    ///
    /// If a CRD is not established within a minute.
    pub fn wait_for_crds(&self) {
        let wait =
            || self.kubectl().args(["wait", "--for=condition=Established", "crd", "--all", "--timeout=60s"]).run();
        // `kubectl wait` fails for a CRD that is so new that it has no conditions.
        let mut output = wait();
        for _ in 0..20 {
            if output.status.success() || !output.stderr.contains(".status.conditions accessor error") {
                break;
            }
            thread::sleep(PAUSE);
            output = wait();
        }
        output.expect_success();
    }

    /// Returns the paths of the programs and CRDs that the cluster uses.
    pub fn assets(&self) -> &Assets {
        &self.assets
    }

    /// Returns the path of the API server's audit log. The log contains the requests of the users in
    /// [`User::OF_RELEASE`], one JSON object per line.
    pub fn audit_log(&self) -> PathBuf {
        self.folder().join(AUDIT_LOG)
    }

    /// Returns the path of a folder that is deleted with the cluster.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }
}

fn temporary_folder() -> Result<TempDir, ClusterError> {
    let made = tempfile::Builder::new().prefix("portcullis-e2e-").tempdir();
    let folder = made.map_err(io_error("making a temporary folder"))?;
    cleanup::add_folder(folder.path());
    Ok(folder)
}

/// Starts the Tokio runtime for all clients, with one worker thread. The threads of the tests block until their futures
/// complete.
fn new_runtime() -> Result<Runtime, ClusterError> {
    let made = runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
    made.map_err(io_error("starting a runtime"))
}

/// Writes the certificate, key, tokens and audit policy of the API server into `folder`. Returns the certificate, which
/// is self-signed.
fn write_files(folder: &Path) -> Result<CertificateDer<'static>, ClusterError> {
    let names = ["127.0.0.1".to_owned(), "localhost".to_owned()];
    let made = rcgen::generate_simple_self_signed(names)?;
    let write = |name, text| fs::write(folder.join(name), text);
    write("tls.crt", made.cert.pem())
        .and_then(|()| write("tls.key", made.signing_key.serialize_pem()))
        .and_then(|()| write("tokens.csv", user::tokens()))
        .and_then(|()| write("audit-policy.yaml", user::audit_policy()))
        .map_err(io_error("writing certificate and tokens"))?;
    Ok(made.cert.into())
}

fn write_kubeconfigs(folder: &Path, port: u16) -> io::Result<()> {
    let authority = folder.join("tls.crt");
    User::ALL
        .into_iter()
        .try_for_each(|user| fs::write(kubeconfig_path(user, folder), user.kubeconfig(port, &authority)))
}

fn kubeconfig_path(user: User, folder: &Path) -> PathBuf {
    folder.join(format!("{user:?}.kubeconfig"))
}

async fn is_ready(port: u16, authority: &CertificateDer<'_>) -> bool {
    let Ok(client) = client(port, authority, User::Admin) else {
        return false;
    };
    let request = Request::get("/readyz").body(Vec::new()).expect("a constant path is a request");
    let answer = tokio::time::timeout(PROBE_TIMEOUT, client.request_text(request)).await;
    matches!(answer, Ok(Ok(_)))
}

fn client(port: u16, authority: &CertificateDer<'_>, user: User) -> Result<Client, kube::Error> {
    // Installing the provider fails if it is already installed. This error is ignored.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let url = Uri::try_from(format!("https://127.0.0.1:{port}")).expect("a port makes a URL");
    let mut config = Config::new(url);
    config.root_cert = Some(vec![authority.to_vec()]);
    config.auth_info = AuthInfo { token: Some(user.token().into()), ..AuthInfo::default() };
    Client::try_from(config)
}

fn io_error(action: &'static str) -> impl FnOnce(io::Error) -> ClusterError {
    move |source| ClusterError::Io { action, source }
}
