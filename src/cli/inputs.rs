//! What several commands take: manifests that stand for a cluster, a cluster, the configuration file.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use kube::Client;
use kube::client::ClientBuilder;
use kube::config::{KubeConfigOptions, Kubeconfig};
use serde_json::Value;

use super::Unusable;
use crate::catalog::manifests::Manifests;
use crate::catalog::{Catalog, Heard, Kind, cluster};
use crate::config;
use crate::gate::{Policy, Registry};
use crate::process::Condition;

/// The configuration file, or every default.
pub(super) fn policy(path: Option<&Path>, registry: &Registry) -> Result<Policy, Unusable> {
    match path {
        Some(path) => config::load(path, registry).map_err(|error| Unusable::new(error.to_string())),
        None => Ok(Policy::default()),
    }
}

/// The objects in files and folders, all of which must be readable.
pub(super) fn objects(paths: &[PathBuf], namespace: &str) -> Result<Vec<Value>, Unusable> {
    let manifests = Manifests::load(paths, namespace);
    match manifests.errors.first() {
        Some(error) => Err(Unusable::new(error.to_string())),
        None => Ok(manifests.objects()),
    }
}

/// A client of the cluster that a kubeconfig names, or that kubectl would use.
pub(super) async fn client(kubeconfig: Option<&Path>) -> Result<Client, Unusable> {
    Client::try_from(cluster_config(kubeconfig).await?).map_err(no_client)
}

/// The same, which notes when it has heard of which kind.
pub(super) async fn listening_client(kubeconfig: Option<&Path>, heard: &Heard) -> Result<Client, Unusable> {
    let builder = ClientBuilder::try_from(cluster_config(kubeconfig).await?).map_err(no_client)?;
    Ok(builder.with_layer(heard).build())
}

fn no_client(error: kube::Error) -> Unusable {
    Unusable::because("the cluster's client", error)
}

async fn cluster_config(kubeconfig: Option<&Path>) -> Result<kube::Config, Unusable> {
    match kubeconfig {
        Some(path) => {
            let file = Kubeconfig::read_from(path).map_err(|error| Unusable::because(path.display(), error))?;
            let config = kube::Config::from_custom_kubeconfig(file, &KubeConfigOptions::default()).await;
            config.map_err(|error| Unusable::because(path.display(), error))
        }
        None => kube::Config::infer().await.map_err(|error| {
            Unusable::because("there is no cluster to ask; name a kubeconfig, or a folder with --manifests", error)
        }),
    }
}

/// A catalog of the cluster as it is now, of whole objects: explanations read more of them than rules.
pub(super) async fn cluster(kubeconfig: Option<&Path>, registry: &Registry) -> Result<Arc<Catalog>, Unusable> {
    let catalog = Arc::new(registry.catalog().with_whole_objects());
    let client = client(kubeconfig).await?;
    cluster::load(client, &catalog).await.map_err(|error| Unusable::because("the cluster", error))?;
    Ok(catalog)
}

/// How often it is looked whether everything is listed.
const LOOK_EVERY: Duration = Duration::from_millis(250);

/// Meets the condition as soon as every kind is listed, or known to be absent.
pub(super) async fn until_listed(catalog: Arc<Catalog>, condition: Condition) {
    loop {
        let pending: Vec<_> = catalog.pending().into_iter().map(Kind::full_name).collect();
        if pending.is_empty() {
            return condition.met();
        }
        condition.unmet(format!("not listed yet: {}", pending.join(", ")));
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

/// A runtime for a command that asks a cluster.
pub(super) fn runtime() -> Result<tokio::runtime::Runtime, Unusable> {
    tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| Unusable::because("the runtime cannot start", error))
}
