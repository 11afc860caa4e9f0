//! Finds or builds the programs and CRDs of the end-to-end tests: etcd, kube-apiserver, kubectl, Helm, and the CRDs of
//! Landscaper and Crossplane.
//!
//! etcd, kube-apiserver and kubectl come from the folder in `KUBEBUILDER_ASSETS`, which setup-envtest can fill. Without
//! this variable, they are built once with Go, in the versions that `assets/go.mod` pins.
//!
//! The CRDs come from the folders in `PORTCULLIS_CRDS` and `PORTCULLIS_CROSSPLANE_CRDS`. Without these variables,
//! Landscaper's CRDs come from the Go module that `assets/go.mod` pins, and Crossplane's CRDs from the Go module that
//! `assets/crossplane/go.mod` pins. `assets/crossplane/go.mod` is a separate file, because the requirements of
//! Crossplane would change the versions of the programs.
//!
//! Helm renders the chart. It is the program in `PORTCULLIS_HELM`, or is built in the version that `assets/helm/go.mod`
//! pins.

use std::env::consts::{ARCH, OS};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};

use crate::cache::{self, Cache, CacheError};
use crate::cleanup::Process;

const PINS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/e2e/assets");
const GO_MOD: &str = include_str!("assets/go.mod");
const GO_SUM: &str = include_str!("assets/go.sum");
const CROSSPLANE_PINS: (&str, &str) =
    (include_str!("assets/crossplane/go.mod"), include_str!("assets/crossplane/go.sum"));

/// The `go.mod` and `go.sum` of Helm. They are separate, because the requirements of Helm would change the versions of
/// the other programs.
const HELM_PINS: (&str, &str) = (include_str!("assets/helm/go.mod"), include_str!("assets/helm/go.sum"));
const HELM_VARIABLE: &str = "PORTCULLIS_HELM";

/// The name of each program, and its Go package.
const PROGRAMS: [(&str, &str); 3] = [
    ("etcd", "go.etcd.io/etcd/server/v3"),
    ("kubectl", "k8s.io/kubernetes/cmd/kubectl"),
    ("kube-apiserver", "k8s.io/kubernetes/cmd/kube-apiserver"),
];
/// The source of Landscaper's CRDs.
const LANDSCAPER: Crds = Crds {
    entry: "crds",
    variable: "PORTCULLIS_CRDS",
    pins: PINS,
    module: "github.com/gardener/landscaper/apis",
    folder: "crds/manifests",
    prefix: "",
};
/// The source of Crossplane's CRDs of the API group `apiextensions.crossplane.io`. The pinned release serves
/// EnvironmentConfigs in the versions v1alpha1 and v1beta1.
const CROSSPLANE: Crds = Crds {
    entry: "crossplane-crds",
    variable: "PORTCULLIS_CROSSPLANE_CRDS",
    pins: concat!(env!("CARGO_MANIFEST_DIR"), "/tests/e2e/assets/crossplane"),
    module: "github.com/crossplane/crossplane",
    folder: "cluster/crds",
    prefix: "apiextensions.crossplane.io_",
};

/// A set of CRD files, and the Go module that contains them.
struct Crds {
    /// The name of the folder in the cache to which the CRD files are copied.
    entry: &'static str,
    /// The environment variable that can name a folder with the CRD files. If the variable is set, the Go module is not
    /// used.
    variable: &'static str,
    /// The folder whose `go.mod` pins the version of the Go module.
    pins: &'static str,
    /// The path of the Go module, such as `github.com/gardener/landscaper/apis`.
    module: &'static str,
    /// The folder of the CRD files in the Go module, such as `crds/manifests`.
    folder: &'static str,
    /// The prefix of the CRD file names. Files with other names are not copied.
    prefix: &'static str,
}

/// The paths of the programs and the CRDs.
pub struct Assets {
    /// The folder that contains `etcd`, `kube-apiserver` and `kubectl`.
    programs: PathBuf,
    /// The folder with Landscaper's CRDs and the folder with Crossplane's CRDs, as YAML files.
    pub crds: [PathBuf; 2],
    /// Whether the programs have the pinned versions. If false, the programs come from the folder in
    /// `KUBEBUILDER_ASSETS`.
    pub pinned: bool,
}

/// An error that occurred while finding or building the programs and CRDs.
#[derive(Debug, thiserror::Error)]
pub enum AssetsError {
    /// Go is not installed, and `KUBEBUILDER_ASSETS` is not set.
    #[error(
        "the end-to-end tests need etcd, kube-apiserver and kubectl: install Go 1.26 or newer, or set \
         KUBEBUILDER_ASSETS to a folder that holds them; `make test-fast` runs everything else"
    )]
    NoPrograms,
    /// Go is not installed, and `PORTCULLIS_HELM` is not set.
    #[error(
        "the end-to-end tests need Helm, for the chart: install Go 1.26 or newer, or set {HELM_VARIABLE} to the path of \
         a Helm 3 or 4; `make test-fast` runs everything else"
    )]
    NoHelm,
    /// Go is not installed, and no environment variable names a folder with the CRDs.
    #[error(
        "the end-to-end tests need the CRDs of {module}: install Go 1.26 or newer, or set {variable} to a folder that \
         holds them as yaml files; `make test-fast` runs everything else"
    )]
    NoCrds {
        /// The Go module that contains the CRDs.
        module: &'static str,
        /// The environment variable that can name a folder with the CRDs.
        variable: &'static str,
    },
    /// The folder that an environment variable names does not contain a required file.
    #[error("{variable} is {}, which does not contain {missing}", folder.display())]
    Incomplete {
        /// The environment variable that names the folder.
        variable: &'static str,
        folder: PathBuf,
        missing: &'static str,
    },
    /// `go build` failed.
    #[error("`{command}` in {PINS}: {status}")]
    Go {
        /// The command line, such as `go build k8s.io/kubernetes/cmd/kubectl`.
        command: String,
        status: ExitStatus,
    },
    /// The Go module with the CRDs could not be downloaded, or the CRDs could not be copied.
    #[error("the CRDs of {module}: {source}")]
    Module {
        /// The path of the Go module.
        module: &'static str,
        source: io::Error,
    },
    /// The program `go` could not be run.
    #[error("running `go`: {0}")]
    Run(io::Error),
    #[error(transparent)]
    Cache(#[from] CacheError),
}

impl Assets {
    /// Finds the programs and the CRDs. Builds or downloads the programs and CRDs for which no environment variable
    /// names a folder.
    pub fn find() -> Result<Self, AssetsError> {
        let key = key();
        let from_env = programs_from_env()?;
        Ok(Self {
            pinned: from_env.is_none(),
            programs: from_env.map_or_else(|| build_programs(&key), Ok)?,
            crds: [LANDSCAPER.find(&key)?, CROSSPLANE.find(&cache::key(&[CROSSPLANE_PINS.0, CROSSPLANE_PINS.1]))?],
        })
    }

    /// Returns the path of a program, such as `kubectl`.
    pub fn program(&self, name: &str) -> PathBuf {
        self.programs.join(name)
    }
}

/// Returns the version of Kubernetes that `assets/go.mod` pins, such as `v1.36.3`.
pub fn pinned_kubernetes() -> &'static str {
    let version = GO_MOD.lines().find_map(|line| line.trim().strip_prefix("k8s.io/kubernetes "));
    version.expect("go.mod requires k8s.io/kubernetes")
}

/// Returns the path of kubectl, for tests and benchmarks without a cluster. Builds kubectl if needed.
pub fn kubectl() -> Result<PathBuf, AssetsError> {
    let programs = programs_from_env()?.map_or_else(|| build_programs(&key()), Ok)?;
    Ok(programs.join("kubectl"))
}

/// Returns the path of Helm. Builds Helm if needed.
pub fn helm() -> Result<PathBuf, AssetsError> {
    if let Some(program) = cache::path_from_env(HELM_VARIABLE) {
        return Ok(program);
    }
    let key = cache::key(&[HELM_PINS.0, HELM_PINS.1, OS, ARCH]);
    let folder = Cache::open(&key)?.entry("helm", |folder| {
        require_go(AssetsError::NoHelm)?;
        eprintln!("e2e: building Helm: minutes the first time, then kept");
        let mut command = go();
        command.current_dir(Path::new(PINS).join("helm"));
        build_with(command, "-s -w", "helm.sh/helm/v4/cmd/helm", &folder.join("helm"))
    })?;
    Ok(folder.join("helm"))
}

/// Returns the cache key of the programs and of Landscaper's CRDs. The key changes whenever the built programs would
/// change.
fn key() -> String {
    cache::key(&[GO_MOD, GO_SUM, &version_stamps(pinned_kubernetes()), OS, ARCH])
}

fn programs_from_env() -> Result<Option<PathBuf>, AssetsError> {
    let variable = "KUBEBUILDER_ASSETS";
    let Some(folder) = cache::path_from_env(variable) else {
        return Ok(None);
    };
    match PROGRAMS.iter().find(|(name, _)| !folder.join(name).is_file()) {
        Some((missing, _)) => Err(AssetsError::Incomplete { variable, folder, missing }),
        None => Ok(Some(folder)),
    }
}

fn build_programs(key: &str) -> Result<PathBuf, AssetsError> {
    Cache::open(key)?.entry("bin", |folder| {
        require_go(AssetsError::NoPrograms)?;
        eprintln!("e2e: building etcd, kubectl and kube-apiserver: minutes the first time, then kept");
        PROGRAMS.iter().try_for_each(|(name, package)| build(package, &folder.join(name)))
    })
}

impl Crds {
    fn find(&self, key: &str) -> Result<PathBuf, AssetsError> {
        self.find_in_env()?.map_or_else(|| self.find_in_go_module(key), Ok)
    }

    fn find_in_env(&self) -> Result<Option<PathBuf>, AssetsError> {
        let Self { variable, .. } = *self;
        let Some(folder) = cache::path_from_env(variable) else {
            return Ok(None);
        };
        match yaml_files(&folder) {
            Ok(files) if !files.is_empty() => Ok(Some(folder)),
            _ => Err(AssetsError::Incomplete { variable, folder, missing: "yaml file" }),
        }
    }

    fn find_in_go_module(&self, key: &str) -> Result<PathBuf, AssetsError> {
        let Self { module, variable, .. } = *self;
        Cache::open(key)?.entry(self.entry, |folder| {
            require_go(AssetsError::NoCrds { module, variable })?;
            self.copy(folder).map_err(|source| AssetsError::Module { module, source })
        })
    }

    fn copy(&self, target: &Path) -> io::Result<()> {
        copy_yaml(&module_folder(self.pins, self.module)?.join(self.folder), self.prefix, target)
    }
}

/// Downloads a Go module in the version that the `go.mod` in the folder `pins` requires. Returns the path of the
/// downloaded module.
pub fn module_folder(pins: &str, module: &str) -> io::Result<PathBuf> {
    let mut command = go();
    command.current_dir(pins).args(["mod", "download", "-json", module]);
    let answer = command.stderr(Stdio::inherit()).output()?;
    let answer: serde_json::Value = serde_json::from_slice(&answer.stdout)?;
    answer["Dir"].as_str().map(PathBuf::from).ok_or_else(|| io::Error::other(format!("not downloaded: {answer}")))
}

/// Copies the YAML files whose names start with `prefix` from the folder `source` to the folder `target`.
pub fn copy_yaml(source: &Path, prefix: &str, target: &Path) -> io::Result<()> {
    for file in yaml_files(source)? {
        let name = file.file_name().expect("a file in a folder has a name").to_string_lossy().into_owned();
        if name.starts_with(prefix) {
            fs::write(target.join(name), fs::read(&file)?)?;
        }
    }
    Ok(())
}

fn require_go(error: AssetsError) -> Result<(), AssetsError> {
    let found = go().arg("version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    match found {
        Ok(status) if status.success() => Ok(()),
        _ => Err(error),
    }
}

fn build(package: &str, target: &Path) -> Result<(), AssetsError> {
    build_kubernetes(PINS, package, target)
}

/// Builds a program of Kubernetes in the version that the `go.mod` in the folder `pins` requires, and writes it to the
/// file `target`. The built program reports the pinned version of Kubernetes as its version.
pub fn build_kubernetes(pins: &str, package: &str, target: &Path) -> Result<(), AssetsError> {
    eprintln!("e2e: building {package}");
    let mut command = go();
    command.current_dir(pins);
    build_with(command, &format!("-s -w {}", version_stamps(pinned_kubernetes())), package, target)
}

/// Runs `go build` for the Go package `package`, and writes the program to the file `target`. `command` is a `go`
/// command without arguments, and `flags` are flags for the linker.
pub fn build_with(mut command: Command, flags: &str, package: &str, target: &Path) -> Result<(), AssetsError> {
    command.args(["build", "-mod=readonly", "-buildvcs=false", "-ldflags", flags, "-o"]).arg(target).arg(package);
    let ended = Process::start(&mut command).and_then(|process| process.wait());
    match ended.map_err(AssetsError::Run)? {
        status if status.success() => Ok(()),
        status => Err(AssetsError::Go { command: format!("go build {package}"), status }),
    }
}

/// Returns linker flags that set the version which a Kubernetes program reports. Without these flags, a program reports
/// the version `v0.0.0-master`. Clients use the reported version to check the version skew and to select features.
fn version_stamps(version: &str) -> String {
    let mut numbers = version.trim_start_matches('v').split('.');
    let mut number = || numbers.next().expect("a version has a major and a minor number");
    let stamps = [
        ("gitVersion", version),
        ("gitMajor", number()),
        ("gitMinor", number()),
        ("gitCommit", version),
        ("gitTreeState", "archive"),
    ];
    ["k8s.io/component-base/version", "k8s.io/client-go/pkg/version"]
        .iter()
        .flat_map(|package| stamps.map(|(name, value)| format!("-X {package}.{name}={value}")))
        .collect::<Vec<_>>()
        .join(" ")
}

fn yaml_files(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "yaml" || extension == "yml") {
            files.push(path);
        }
    }
    Ok(files)
}

/// Returns a `go` command that builds for this machine. It ignores a surrounding Go workspace and the environment
/// variables for cross-compilation.
fn go() -> Command {
    let mut command = Command::new("go");
    command.current_dir(PINS).env("GOWORK", "off").env_remove("GOOS").env_remove("GOARCH");
    command
}
