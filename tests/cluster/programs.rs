//! The programs that run on the node of the test cluster. The end-to-end tests provide etcd, kube-apiserver and
//! kubectl. Go builds the other programs once, and a cache keeps them.

use std::env::consts::{ARCH, OS};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::assets::{self, Assets, AssetsError};
use crate::cache::{self, Cache};

const PINS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cluster/assets");
const GO_MOD: &str = include_str!("assets/go.mod");
const GO_SUM: &str = include_str!("assets/go.sum");
const PAUSE: &str = include_str!("assets/pause/main.go");
const KUBERNETES: [&str; 4] = ["kubelet", "kube-controller-manager", "kube-scheduler", "kube-proxy"];
const CERT_MANAGER: &str = "github.com/cert-manager/cert-manager";
const CERT_MANAGER_PINS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cluster/assets/cert-manager");
const CERT_MANAGER_SOURCES: [&str; 3] = [
    include_str!("assets/cert-manager/go.mod"),
    include_str!("assets/cert-manager/go.sum"),
    include_str!("assets/cert-manager/main.go"),
];
const PORTCULLIS: &str = env!("CARGO_BIN_EXE_portcullis");

/// The paths of the programs that run on the node, and of the programs that users of the cluster run, such as helm.
pub struct Programs {
    assets: Assets,
    node: PathBuf,
    cert_manager: PathBuf,
    helm: PathBuf,
}

impl Programs {
    /// Finds the programs, and builds those that are not in the cache.
    pub fn find() -> Result<Self, AssetsError> {
        Ok(Self {
            assets: Assets::find()?,
            node: build_node_programs()?,
            cert_manager: build_cert_manager()?,
            helm: assets::helm()?,
        })
    }

    /// Returns whether the cache contains the programs that are built for the node, such as the kubelet, and
    /// cert-manager.
    pub fn are_built() -> bool {
        let has = |key: &str, name: &str| Cache::open(key).is_ok_and(|cache| cache.has(name));
        has(&key(), "node") && has(&cert_manager_key(), "cert-manager")
    }

    /// Returns the path of etcd, kube-apiserver or kubectl.
    pub fn control_plane_program(&self, name: &str) -> PathBuf {
        self.assets.program(name)
    }

    /// Returns the path of a program that is built for the node.
    pub fn node_program(&self, name: &str) -> PathBuf {
        self.node.join(name)
    }

    /// Returns the path of the program with cert-manager's controllers.
    pub fn cert_manager(&self) -> PathBuf {
        self.cert_manager.join("controllers")
    }

    /// Returns the path of the folder with cert-manager's CRDs.
    pub fn cert_manager_crds(&self) -> PathBuf {
        self.cert_manager.join("crds")
    }

    /// Creates symbolic links to kubectl, helm and portcullis in a folder. The `PATH` of commands from the
    /// documentation contains this folder.
    pub fn link_into(&self, folder: &Path) -> std::io::Result<()> {
        fs::create_dir_all(folder)?;
        let kubectl = self.control_plane_program("kubectl");
        for (name, program) in [("kubectl", &kubectl), ("helm", &self.helm), ("portcullis", &PORTCULLIS.into())] {
            std::os::unix::fs::symlink(program, folder.join(name))?;
        }
        Ok(())
    }
}

fn key() -> String {
    cache::key(&[GO_MOD, GO_SUM, PAUSE, assets::pinned_kubernetes(), OS, ARCH])
}

fn build_node_programs() -> Result<PathBuf, AssetsError> {
    Cache::open(&key())?.entry("node", |folder| {
        eprintln!("cluster: building {}: minutes the first time, then kept", KUBERNETES.join(", "));
        for name in KUBERNETES {
            assets::build_kubernetes(PINS, &format!("k8s.io/kubernetes/cmd/{name}"), &folder.join(name))?;
        }
        let mut pause = Command::new("go");
        pause.current_dir(PINS).env("GOWORK", "off").env("CGO_ENABLED", "0");
        assets::build_with(pause, "-s -w", "./pause", &folder.join("pause"))
    })
}

fn cert_manager_key() -> String {
    let [pins, sums, source] = CERT_MANAGER_SOURCES;
    cache::key(&[pins, sums, source, OS, ARCH])
}

fn build_cert_manager() -> Result<PathBuf, AssetsError> {
    Cache::open(&cert_manager_key())?.entry("cert-manager", |folder| {
        eprintln!("cluster: building cert-manager: minutes the first time, then kept");
        let mut controllers = Command::new("go");
        controllers.current_dir(CERT_MANAGER_PINS).env("GOWORK", "off").env("CGO_ENABLED", "0");
        assets::build_with(controllers, "-s -w", ".", &folder.join("controllers"))?;
        let crds = folder.join("crds");
        let copied = fs::create_dir(&crds)
            .and_then(|()| assets::module_folder(CERT_MANAGER_PINS, CERT_MANAGER))
            .and_then(|module| assets::copy_yaml(&module.join("deploy/crds"), "", &crds));
        copied.map_err(|source| AssetsError::Module { module: CERT_MANAGER, source })
    })
}
