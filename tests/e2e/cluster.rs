//! A Kubernetes API server with its etcd, for the length of a run.
//!
//! It has no kube-controller-manager: nothing finalises namespaces, collects garbage or creates pods.

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

const GRACE: Duration = Duration::from_secs(5);
const PROBE_LIMIT: Duration = Duration::from_secs(2);
const COMPOSITIONS: &str = "compositions.apiextensions.crossplane.io";
/// Compositions as in clusters up to Crossplane 1.17: with an environment, and patches from and to it. Its content is
/// preserved, so that the rules must detect what the schema of those clusters would reject.
const KEEPS_ENVIRONMENT: &str = r#"[
  {"op": "add", "path": "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/environment",
   "value": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
  {"op": "replace",
   "path": "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/resources/items/properties/patches/items",
   "value": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}
]"#;

/// A running cluster. Dropping it stops the API server, then etcd, and deletes all they wrote.
pub struct Cluster {
    // Dropped in this order.
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

/// Where its parts listen.
#[derive(Clone, Copy)]
struct Ports {
    api_server: u16,
    etcd: u16,
}

/// Why no cluster could be started.
#[derive(Debug, thiserror::Error)]
pub enum ClusterError {
    /// A program to run is missing.
    #[error(transparent)]
    Assets(#[from] AssetsError),
    /// Definitions of kinds are missing.
    #[error(transparent)]
    Crds(#[from] CrdsError),
    /// A program does not run.
    #[error(transparent)]
    Daemon(#[from] DaemonError),
    /// A system call failed.
    #[error("{doing} for the cluster: {source}")]
    Io {
        /// The attempted action.
        doing: &'static str,
        /// The error of the operating system.
        source: io::Error,
    },
    /// Its certificate could not be made.
    #[error("making the API server's certificate: {0}")]
    Certificate(#[from] rcgen::Error),
    /// There is not a client for it.
    #[error("making a client for the API server: {0}")]
    Client(#[from] kube::Error),
}

impl Cluster {
    /// Starts etcd and the API server, and waits until they are ready. Before that `prepare` may write further files for
    /// the API server into the cluster's folder.
    pub fn start(prepare: impl FnOnce(&Path)) -> Result<Self, ClusterError> {
        let (assets, delivery_crds) = (Assets::find()?, delivery_crds::folder()?);
        let (folder, runtime) = (temporary_folder()?, new_runtime()?);
        let authority = write_files(folder.path())?;
        prepare(folder.path());
        let (etcd, etcd_port) = start_etcd(&assets, folder.path())?;
        let answers = |port| runtime.block_on(is_ready(port, &authority));
        let (api_server, port) = start_api_server(&assets, folder.path(), etcd_port, answers)?;
        write_kubeconfigs(folder.path(), port).map_err(doing("writing kubeconfigs"))?;
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

    /// Restarts the API server at the same address, as when a node restarts. It is killed, because it would wait a
    /// minute for its watches.
    pub fn restart_api_server(&self) -> Result<(), ClusterError> {
        let mut api_server = self.api_server.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(running) = api_server.take() {
            running.signal("TERM").map_err(doing("ending the API server"))?;
            thread::sleep(GRACE);
        }
        let answers = || {
            let request = Request::get("/readyz").body(Vec::new()).expect("a constant path is a request");
            let answer =
                self.block_on(async { tokio::time::timeout(PROBE_LIMIT, self.client.request_text(request)).await });
            matches!(answer, Ok(Ok(_)))
        };
        let Ports { api_server: port, etcd } = self.ports;
        *api_server = Some(start_api_server_on(&self.assets, self.folder(), etcd, port, answers)?);
        Ok(())
    }

    /// Pauses or resumes etcd.
    pub fn pause_etcd(&self, paused: bool) {
        self.etcd.signal(if paused { "STOP" } else { "CONT" }).expect("it can be sent a signal");
    }

    /// kubectl as the administrator.
    pub fn kubectl(&self) -> Kubectl {
        self.kubectl_as(User::Admin)
    }

    /// kubectl as `user`.
    pub fn kubectl_as(&self, user: User) -> Kubectl {
        let home = self.folder().join(format!("{user:?}"));
        Kubectl::new(self.assets.program("kubectl"), self.kubeconfig(user), home)
    }

    /// Returns the path of a user's kubeconfig.
    pub fn kubeconfig(&self, user: User) -> PathBuf {
        kubeconfig_of(user, self.folder())
    }

    /// Returns a client with the administrator's rights. Its calls run in [`Cluster::block_on`].
    pub fn client(&self) -> Client {
        self.client.clone()
    }

    /// Returns a client with the rights of `user`. Its calls run in [`Cluster::block_on`].
    ///
    /// # Panics
    ///
    /// When none can be made.
    pub fn client_as(&self, user: User) -> Client {
        self.runtime.block_on(async { client(self.port, &self.authority, user) }).expect("there was a client before")
    }

    /// Returns the port on which etcd serves clients.
    #[allow(dead_code, reason = "asked by a benchmark")]
    pub fn etcd_port(&self) -> u16 {
        self.ports.etcd
    }

    /// Runs a future to its end.
    pub fn block_on<F: Future>(&self, future: F) -> F::Output {
        self.runtime.block_on(future)
    }

    /// Creates a namespace for a test.
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

    /// Applies the CRDs of Landscaper, Crossplane, Flux, Argo CD and Fleet, and waits until they are served.
    ///
    /// # Panics
    ///
    /// If the API server returns an error.
    pub fn apply_crds(&self) {
        for folder in self.assets.crds.iter().chain([&self.delivery_crds]) {
            self.kubectl().args(["apply", "--server-side", "-f", &folder.to_string_lossy()]).run().expect_success();
        }
        self.kubectl()
            .args(["patch", "crd", COMPOSITIONS, "--type=json", "-p", KEEPS_ENVIRONMENT])
            .run()
            .expect_success();
        self.wait_for_crds();
    }

    /// Waits until all CRDs are served.
    ///
    /// # Panics
    ///
    /// When they are not within a minute.
    pub fn wait_for_crds(&self) {
        let wait =
            || self.kubectl().args(["wait", "--for=condition=Established", "crd", "--all", "--timeout=60s"]).run();
        // kubectl fails on a definition that is too new to have conditions
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

    /// Returns the programs of the cluster.
    pub fn assets(&self) -> &Assets {
        &self.assets
    }

    /// Returns the API server's audit log of the release's users, one JSON object per line.
    pub fn audit_log(&self) -> PathBuf {
        self.folder().join(AUDIT_LOG)
    }

    /// Returns a folder that is deleted with the cluster.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }
}

fn temporary_folder() -> Result<TempDir, ClusterError> {
    let made = tempfile::Builder::new().prefix("portcullis-e2e-").tempdir();
    let folder = made.map_err(doing("making a temporary folder"))?;
    cleanup::add_folder(folder.path());
    Ok(folder)
}

/// One thread drives all clients; the tests' own threads block on it.
fn new_runtime() -> Result<Runtime, ClusterError> {
    let made = runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
    made.map_err(doing("starting a runtime"))
}

/// Writes the files of the API server. Returns its self-signed certificate.
fn write_files(folder: &Path) -> Result<CertificateDer<'static>, ClusterError> {
    let names = ["127.0.0.1".to_owned(), "localhost".to_owned()];
    let made = rcgen::generate_simple_self_signed(names)?;
    let write = |name, text| fs::write(folder.join(name), text);
    write("tls.crt", made.cert.pem())
        .and_then(|()| write("tls.key", made.signing_key.serialize_pem()))
        .and_then(|()| write("tokens.csv", user::tokens()))
        .and_then(|()| write("audit-policy.yaml", user::audit_policy()))
        .map_err(doing("writing certificate and tokens"))?;
    Ok(made.cert.into())
}

fn write_kubeconfigs(folder: &Path, port: u16) -> io::Result<()> {
    let authority = folder.join("tls.crt");
    User::ALL.into_iter().try_for_each(|user| fs::write(kubeconfig_of(user, folder), user.kubeconfig(port, &authority)))
}

fn kubeconfig_of(user: User, folder: &Path) -> PathBuf {
    folder.join(format!("{user:?}.kubeconfig"))
}

async fn is_ready(port: u16, authority: &CertificateDer<'_>) -> bool {
    let Ok(client) = client(port, authority, User::Admin) else {
        return false;
    };
    let request = Request::get("/readyz").body(Vec::new()).expect("a constant path is a request");
    let answer = tokio::time::timeout(PROBE_LIMIT, client.request_text(request)).await;
    matches!(answer, Ok(Ok(_)))
}

fn client(port: u16, authority: &CertificateDer<'_>, user: User) -> Result<Client, kube::Error> {
    // A second call finds the provider installed, and that is fine.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let url = Uri::try_from(format!("https://127.0.0.1:{port}")).expect("a port makes a URL");
    let mut config = Config::new(url);
    config.root_cert = Some(vec![authority.to_vec()]);
    config.auth_info = AuthInfo { token: Some(user.token().into()), ..AuthInfo::default() };
    Client::try_from(config)
}

fn doing(doing: &'static str) -> impl FnOnce(io::Error) -> ClusterError {
    move |source| ClusterError::Io { doing, source }
}
