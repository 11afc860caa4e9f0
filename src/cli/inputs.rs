//! Shared inputs of commands: manifests, clusters, and the configuration file.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use kube::Client;
use kube::config::{KubeConfigOptions, Kubeconfig};
use serde_json::Value;

use super::{Unusable, api_client};
use crate::catalog::manifests::{self, ManifestError, Manifests};
use crate::catalog::{Catalog, Freshness, Kind, cluster};
use crate::config;
use crate::gate::{Policy, Registry};
use crate::process::Condition;

/// Loads the configuration file at `path`. Returns the default policy if `path` is `None`.
pub(super) fn policy(path: Option<&Path>, registry: &Registry) -> Result<Policy, Unusable> {
    match path {
        Some(path) => config::load(path, registry).map_err(|error| Unusable::new(error.to_string())),
        None => Ok(Policy::default()),
    }
}

/// File name of the configuration of a repository.
pub(super) const REPOSITORY_FILE: &str = "portcullis.yaml";

/// Returns the path of the configuration file. Returns `given`, if set. Otherwise, searches for `portcullis.yaml` in
/// the current folder and the folders above it, up to the root of the git repository. Without a git repository,
/// searches only the current folder.
pub(super) fn repository_file(given: Option<&Path>) -> Option<PathBuf> {
    if let Some(path) = given {
        return Some(path.to_owned());
    }
    let current = std::env::current_dir().ok()?;
    let mut folders = Vec::new();
    for folder in current.ancestors() {
        folders.push(folder);
        if folder.join(".git").exists() {
            break;
        }
    }
    // Without a git repository, only the current folder counts.
    let is_repository = folders.last().is_some_and(|top| top.join(".git").exists());
    let mut folders = folders.into_iter().take(if is_repository { usize::MAX } else { 1 });
    let found = folders.find(|folder| folder.join(REPOSITORY_FILE).is_file())?;
    Some(if found == current { PathBuf::from(REPOSITORY_FILE) } else { found.join(REPOSITORY_FILE) })
}

/// Reads the objects in files and folders. Objects without a namespace get `namespace`. Fails if one of the files is
/// invalid.
pub(super) fn objects(paths: &[PathBuf], namespace: &str) -> Result<Vec<Value>, Unusable> {
    let manifests = Manifests::load(paths, namespace);
    match manifests.errors.first() {
        Some(error) => Err(Unusable::new(error.to_string())),
        None => Ok(manifests.objects()),
    }
}

/// Returns a catalog that contains the objects in the files and folders `paths`. The catalog is the cache in which
/// rules look up objects. Objects without a namespace get `namespace`. Fails if a file is invalid.
pub(super) fn catalog(registry: &Registry, paths: &[PathBuf], namespace: &str) -> Result<Catalog, Unusable> {
    let catalog = registry.catalog();
    manifests::fill(&catalog, paths, namespace).map_err(unreadable)?;
    Ok(catalog)
}

/// Creates the error of a command whose input files cannot be read. Uses the message of the first error in `errors`.
pub(super) fn unreadable(errors: Vec<ManifestError>) -> Unusable {
    Unusable::new(errors.first().map(ToString::to_string).unwrap_or_default())
}

/// Returns a Kubernetes client for the current context of the file `kubeconfig`. If `kubeconfig` is `None`, uses
/// kubectl's default kubeconfig, or the service account of the pod.
pub(super) async fn client(kubeconfig: Option<&Path>) -> Result<Client, Unusable> {
    api_client::client(cluster_config(kubeconfig).await?, &Freshness::default()).map_err(no_client)
}

/// Returns a Kubernetes client that does not retry requests if the API server is unavailable. `kubeconfig` is used as
/// in [`client`].
pub(super) async fn client_without_retries(kubeconfig: Option<&Path>) -> Result<Client, Unusable> {
    let mut config = cluster_config(kubeconfig).await?;
    config.default_retry = false;
    api_client::client(config, &Freshness::default()).map_err(no_client)
}

fn no_client(error: kube::Error) -> Unusable {
    Unusable::because("the Kubernetes client", error)
}

async fn cluster_config(kubeconfig: Option<&Path>) -> Result<kube::Config, Unusable> {
    match kubeconfig {
        Some(path) => {
            let file = Kubeconfig::read_from(path).map_err(|error| Unusable::because(path.display(), error))?;
            let config = kube::Config::from_custom_kubeconfig(file, &KubeConfigOptions::default()).await;
            config.map_err(|error| Unusable::because(path.display(), error))
        }
        None => kube::Config::infer().await.map_err(|error| {
            Unusable::because(
                "cannot load the cluster configuration; use --kubeconfig FILE, or --manifests PATH if the command has it",
                error,
            )
        }),
    }
}

/// Reads the objects of a cluster into a catalog that stores all fields of each object. The explain commands need more
/// fields than rules do.
pub(super) async fn cluster(kubeconfig: Option<&Path>, registry: &Registry) -> Result<Arc<Catalog>, Unusable> {
    let catalog = Arc::new(registry.catalog().with_whole_objects());
    let client = client(kubeconfig).await?;
    cluster::load(client, &catalog).await.map_err(|error| Unusable::because("the cluster", error))?;
    Ok(catalog)
}

/// Starts a thread that keeps `catalog` synchronized with a cluster. Records the time of the last event of each watch
/// in `freshness`. `kubeconfig` is used as in [`client`].
///
/// The thread has its own client, and it alone allocates the memory of lists and watches. The allocator does not share
/// free memory between threads, so each additional thread would keep memory for itself. Also, admission requests do not
/// wait while a long list is read.
pub(super) async fn follow_cluster(
    kubeconfig: Option<&Path>,
    catalog: Arc<Catalog>,
    freshness: &Freshness,
) -> Result<(), Unusable> {
    let config = cluster_config(kubeconfig).await?;
    let cannot_start = |error| Unusable::because("the thread of the catalog cannot start", error);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(cannot_start)?;
    let client = {
        // The client starts tasks, which must run in this runtime.
        let _entered = runtime.enter();
        api_client::client(config, freshness).map_err(no_client)?
    };
    let follow = move || runtime.block_on(cluster::follow(client, catalog));
    thread::Builder::new().name("catalog".to_owned()).spawn(follow).map_err(cannot_start)?;
    Ok(())
}

/// Interval at which a command checks whether the catalog has loaded the objects of every kind. The catalog is a cache
/// of Kubernetes objects.
const POLL_INTERVAL: Duration = Duration::from_millis(250);

/// Waits until the catalog has listed the objects of every kind, or knows that the cluster does not serve the kind.
/// Then marks the readiness condition `condition` as met and returns.
pub(super) async fn until_listed(catalog: Arc<Catalog>, condition: Condition) {
    loop {
        let pending: Vec<_> = catalog.pending().into_iter().map(Kind::full_name).collect();
        if pending.is_empty() {
            return condition.met();
        }
        condition.unmet(format!("not listed yet: {}", pending.join(", ")));
        tokio::time::sleep(POLL_INTERVAL).await;
    }
}

/// Creates a Tokio runtime for a command that reads a cluster.
pub(super) fn runtime() -> Result<tokio::runtime::Runtime, Unusable> {
    tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| Unusable::because("the runtime cannot start", error))
}
