//! The CRDs of Flux, Argo CD and policy reports from Go modules, and a minimal CRD of Fleet's Bundle.
//!
//! If `PORTCULLIS_DELIVERY_CRDS` is set, the CRDs of Flux, Argo CD and Fleet come from the folder that it names. If
//! `PORTCULLIS_REPORT_CRDS` is set, the CRDs of policy reports come from the folder that it names.
//!
//! This file contains the versions of these Go modules. If they were in `assets/go.mod`, they would change the versions
//! of the dependencies of Kubernetes.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::cache::{self, Cache, CacheError};

const FLEET: &str = include_str!("crds/bundles.yaml");

/// A Go module, and the CRD files that are copied from it.
struct Module {
    path: &'static str,
    version: &'static str,
    /// The hash of the Go module, as in `go.sum`.
    sum: &'static str,
    folder: &'static str,
    files: &'static [&'static str],
}

const MODULES: [Module; 3] = [
    Module {
        path: "github.com/fluxcd/source-controller",
        version: "v1.9.6",
        sum: "h1:nG534/bI6nVpyHra7ONAk6xDB3xPsVT+EOLHZHXPrrc=",
        folder: "config/crd/bases",
        files: &[
            "source.toolkit.fluxcd.io_buckets.yaml",
            "source.toolkit.fluxcd.io_externalartifacts.yaml",
            "source.toolkit.fluxcd.io_gitrepositories.yaml",
            "source.toolkit.fluxcd.io_ocirepositories.yaml",
        ],
    },
    Module {
        path: "github.com/fluxcd/kustomize-controller",
        version: "v1.9.6",
        sum: "h1:XB+G3A0mky0j5uVHZWv4oSlS2RvZBoNIUhstIvY0JKE=",
        folder: "config/crd/bases",
        files: &["kustomize.toolkit.fluxcd.io_kustomizations.yaml"],
    },
    Module {
        path: "github.com/argoproj/argo-cd/v3",
        version: "v3.5.7",
        sum: "h1:Xm1BF+I5OgDKUG3SDK49vn2/Y5AMyaNVko+/JT08gj0=",
        folder: "manifests/crds",
        files: &["application-crd.yaml", "applicationset-crd.yaml"],
    },
];

/// The Go modules with the CRDs of policy reports, for the API groups `openreports.io` and `wgpolicyk8s.io`. The CRDs
/// of `wgpolicyk8s.io` come from Kyverno, because the Go module of the working group itself is not available.
const REPORTS: [Module; 2] = [
    Module {
        path: "github.com/openreports/reports-api",
        version: "v0.2.1",
        sum: "h1:g9KS3yle9Y1elmww4TK9EkD1rl6inIaiIJPX6e+u680=",
        folder: "config/crd",
        files: &["openreports.io_clusterreports.yaml", "openreports.io_reports.yaml"],
    },
    Module {
        path: "github.com/kyverno/kyverno",
        version: "v1.13.4",
        sum: "h1:2zUi+eszlisLdCir+WIf2NtuUfFPvJtjUNpewdtLjVw=",
        folder: "config/crds/policyreport",
        files: &["wgpolicyk8s.io_clusterpolicyreports.yaml", "wgpolicyk8s.io_policyreports.yaml"],
    },
];

/// An error that occurred while getting the CRDs.
#[derive(Debug, thiserror::Error)]
pub enum CrdsError {
    /// A Go module could not be downloaded, or its files could not be copied.
    #[error("the CRDs of {module}: {source}; set {variable} to a folder that contains them as YAML files")]
    Module {
        module: &'static str,
        /// The name of an environment variable. Users can set it to the path of a folder with the CRDs.
        variable: &'static str,
        source: io::Error,
    },
    #[error(transparent)]
    Cache(#[from] CacheError),
}

/// Returns the path of the folder with the CRDs of Flux, Argo CD and Fleet.
pub fn folder() -> Result<PathBuf, CrdsError> {
    if let Some(folder) = cache::path_from_env("PORTCULLIS_DELIVERY_CRDS") {
        return Ok(folder);
    }
    let variable = "PORTCULLIS_DELIVERY_CRDS";
    let sums: Vec<_> = MODULES.iter().map(|module| module.sum).chain([FLEET]).collect();
    Cache::open(&cache::key(&sums))?.entry("delivery-crds", |folder| {
        fill(&MODULES, variable, folder)?;
        let write = fs::write(folder.join("bundles.yaml"), FLEET);
        write.map_err(|source| CrdsError::Module { module: "fleet", variable, source })
    })
}

/// Returns the path of the folder with the CRDs of policy reports. Only the tests of audits install them.
pub fn report_crds() -> Result<PathBuf, CrdsError> {
    let variable = "PORTCULLIS_REPORT_CRDS";
    if let Some(folder) = cache::path_from_env(variable) {
        return Ok(folder);
    }
    let sums: Vec<_> = REPORTS.iter().map(|module| module.sum).collect();
    Cache::open(&cache::key(&sums))?.entry("report-crds", |folder| fill(&REPORTS, variable, folder))
}

fn fill(modules: &[Module], variable: &'static str, folder: &Path) -> Result<(), CrdsError> {
    for module in modules {
        copy(module, folder).map_err(|source| CrdsError::Module { module: module.path, variable, source })?;
    }
    Ok(())
}

fn copy(module: &Module, target: &Path) -> io::Result<()> {
    let wanted = format!("{}@{}", module.path, module.version);
    eprintln!("e2e: fetching {wanted}");
    let mut go = Command::new("go");
    go.current_dir(target).env("GOWORK", "off").args(["mod", "download", "-json", &wanted]);
    let answer = go.stderr(Stdio::inherit()).output()?;
    let found: serde_json::Value = serde_json::from_slice(&answer.stdout)?;
    let folder = found["Dir"].as_str().filter(|_| found["Sum"] == module.sum);
    let folder = folder.ok_or_else(|| io::Error::other(format!("the checksum is not the pinned one: {found}")))?;
    for file in module.files {
        fs::write(target.join(file), fs::read(Path::new(folder).join(module.folder).join(file))?)?;
    }
    Ok(())
}
