//! A cluster with the controllers of one system, without or with portcullis.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use tempfile::TempDir;

use crate::account;
use crate::cleanup;
use crate::cluster::Cluster;
use crate::controller_manager::{self, ControllerManager};
use crate::daemon::Daemon;
use crate::gate::{Gate, GateOptions};
use crate::git::GitServer;
use crate::programs;
use crate::registry::{Options, Registry};
use crate::system::System;
use crate::user::User;

/// Maximum number of lines of each log in the message of a failure.
const SHOWN_LINES: usize = 12;

/// Whether portcullis runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Portcullis does not run.
    Without,
    /// Portcullis does not run, as in `Without`. The run is compared with a run in the mode `Without`. Only the
    /// controllers themselves can cause differences between the two runs.
    Control,
    /// Portcullis runs: its webhooks are registered, and `portcullis reconcile` is started.
    With,
}

/// The temporary folder and the OCI registry of a test system. They are created before the cluster starts.
pub struct Fixtures {
    /// A temporary folder, which is deleted at the end.
    pub folder: TempDir,
    pub git: GitServer,
    /// The OCI registry for component versions, if the system needs one.
    pub registry: Option<Registry>,
    ports: Mutex<BTreeMap<&'static str, u16>>,
}

/// The cluster and all other programs that the scenarios of a system share.
pub struct Testbed {
    // The fields are dropped in this order.
    controllers: Vec<Daemon>,
    manager: Option<ControllerManager>,
    gate: Option<Gate>,
    pub cluster: Cluster,
    pub fixtures: Fixtures,
    pub system: &'static System,
    pub mode: Mode,
}

impl Fixtures {
    fn new(system: &System) -> Self {
        let folder = TempDir::new().expect("a temporary folder can be created");
        cleanup::add_folder(folder.path());
        let registry = (system.name == "landscaper").then(|| Registry::start(&Options::default()));
        let fixtures = Self { folder, git: GitServer::start(), registry, ports: Mutex::default() };
        (system.prepare)(&fixtures);
        fixtures
    }

    /// Returns the port with the name `name`. The first call with a name selects a free port.
    pub fn port(&self, name: &'static str) -> u16 {
        let mut ports = self.ports.lock().expect("no thread panicked while it held the lock");
        *ports.entry(name).or_insert_with(|| {
            let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port is free");
            listener.local_addr().expect("the socket is bound").port()
        })
    }

    /// Returns the path of the folder in which portcullis records requests.
    fn recordings(&self) -> PathBuf {
        self.folder.path().join("recordings")
    }

    /// Returns the addresses that differ between runs, and the text that replaces each of them in snapshots.
    pub fn addresses(&self) -> Vec<(String, String)> {
        let ports = self.ports.lock().expect("no thread panicked while it held the lock");
        let of_ports = ports.iter().map(|(name, port)| (format!("127.0.0.1:{port}"), format!("<{name}>")));
        let registry = self.registry.iter().map(|registry| (registry.host(), "<registry>".to_owned()));
        of_ports.chain(registry).chain([(self.git.host(), "<git>".to_owned())]).collect()
    }
}

impl Testbed {
    /// Starts the cluster and the controllers, and also portcullis in [`Mode::With`].
    ///
    /// # Panics
    ///
    /// If a program does not start.
    pub fn start(system: &'static System, mode: Mode) -> Self {
        let fixtures = Fixtures::new(system);
        let cluster = Cluster::start(|folder| account::prepare(folder).expect("the files can be written"));
        let cluster = cluster.unwrap_or_else(|error| panic!("{error}"));
        apply_crds(&cluster, system);
        let gate = (mode == Mode::With).then(|| register(&cluster, system, &fixtures));
        let manager = (mode == Mode::With).then(|| reconcile(&cluster, system, &fixtures));
        let controllers = (system.start)(&cluster, &fixtures);
        Self { controllers, manager, gate, cluster, fixtures, system, mode }
    }

    /// Stops portcullis, and copies the recording of its requests into the folder `target`. Does nothing without
    /// portcullis.
    ///
    /// # Panics
    ///
    /// If there is no recording.
    pub fn save_recording(&self, target: &Path) {
        let Some(gate) = &self.gate else { return };
        gate.terminate().expect("the process receives the signal");
        let mut files =
            fs::read_dir(self.fixtures.recordings()).expect("the folder with the recordings can be read").flatten();
        let file = files.next().expect("portcullis wrote a recording").path();
        fs::copy(file, target.join(format!("{}.jsonl", self.system.name))).expect("the file can be copied");
    }

    /// Returns the path of portcullis' log. `None` without portcullis.
    pub fn log_path(&self) -> Option<PathBuf> {
        self.gate.as_ref().map(Gate::log)
    }

    /// Returns, for each log, the last lines that contain `namespace`.
    pub fn logs(&self, namespace: &str) -> String {
        let manager = self.manager.iter().map(|manager| ("reconcile", manager.log()));
        let controllers = self.controllers.iter().map(|daemon| (daemon.name(), read(&daemon.log())));
        let gate = self.gate.iter().map(|gate| ("serve", read(&gate.log())));
        gate.chain(manager).chain(controllers).map(|(name, log)| tail(name, &log, namespace)).collect()
    }
}

fn read(path: &Path) -> String {
    String::from_utf8_lossy(&fs::read(path).unwrap_or_default()).into_owned()
}

fn tail(name: &str, log: &str, namespace: &str) -> String {
    let lines: Vec<_> = log.lines().filter(|line| line.contains(namespace)).collect();
    format!("--- {name}\n{}\n", lines[lines.len().saturating_sub(SHOWN_LINES)..].join("\n"))
}

fn apply_crds(cluster: &Cluster, system: &System) {
    for pin in system.pins {
        let folder = programs::pin(pin).crds().unwrap_or_else(|error| panic!("{error}"));
        if fs::read_dir(&folder).is_ok_and(|mut files| files.next().is_some()) {
            let apply = ["apply", "--server-side", "-f", &folder.to_string_lossy()];
            cluster.kubectl().args(apply).run().expect_success();
        }
    }
    cluster.wait_for_crds();
}

fn register(cluster: &Cluster, system: &System, fixtures: &Fixtures) -> Gate {
    let configuration = (system.configuration)(fixtures);
    let recordings = fixtures.recordings().display().to_string();
    let options = GateOptions {
        config: Some(&configuration),
        traces: None,
        arguments: &["--record", &recordings],
        is_active: &|cluster| (system.is_active)(cluster),
    };
    let gate = Gate::start(cluster, &options).unwrap_or_else(|error| panic!("{error}"));
    gate.register(cluster, &options).unwrap_or_else(|error| panic!("{error}"));
    gate
}

/// Starts `portcullis reconcile` for all namespaces, with the same configuration as the webhook server.
fn reconcile(cluster: &Cluster, system: &System, fixtures: &Fixtures) -> ControllerManager {
    let file = fixtures.folder.path().join("reconcile.yaml");
    fs::write(&file, (system.configuration)(fixtures)).expect("the file can be written");
    let file = file.display().to_string();
    let arguments = [&["--config", &file], system.reconcile].concat();
    let options = controller_manager::Options {
        namespace: "",
        kubeconfig: cluster.kubeconfig(User::ControllerManager),
        lease_namespace: controller_manager::NAMESPACE,
        arguments: &arguments,
        timing: &[],
    };
    options.start(cluster)
}
