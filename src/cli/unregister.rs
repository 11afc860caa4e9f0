//! `portcullis unregister`: deletes the webhook configurations of portcullis from a cluster, so that the API server
//! stops calling it.

use std::fmt::Debug;
use std::path::PathBuf;

use k8s_openapi::api::admissionregistration::v1::{MutatingWebhookConfiguration, ValidatingWebhookConfiguration};
use kube::api::DeleteParams;
use kube::{Api, Client, Resource};
use serde::de::DeserializeOwned;

use super::{OK, Unusable, inputs, print};
use crate::cryptography;
use crate::gate::registration::{DECLARED_NAME, NAME};

/// Delete the webhook configurations of portcullis, so that the API server stops calling it.
///
/// Missing configurations are not an error. The server, its permissions and stored objects are not changed. A hook of
/// the Helm chart runs this command before the chart is uninstalled. Otherwise, the API server would deny all requests
/// that match a webhook with failurePolicy Fail.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The kubeconfig of the cluster; default: the pod's cluster, or kubectl's current context
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
}

pub(super) fn run(args: &Args) -> Result<u8, Unusable> {
    cryptography::install();
    inputs::runtime()?.block_on(async {
        let client = inputs::client(args.kubeconfig.as_deref()).await?;
        for name in [NAME, DECLARED_NAME] {
            delete::<ValidatingWebhookConfiguration>(&client, name).await?;
            delete::<MutatingWebhookConfiguration>(&client, name).await?;
        }
        Ok(OK)
    })
}

async fn delete<K>(client: &Client, name: &str) -> Result<(), Unusable>
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug,
{
    let what = format!("{}/{name}", K::plural(&()));
    let outcome = match Api::<K>::all(client.clone()).delete(name, &DeleteParams::default()).await {
        Ok(_) => "deleted",
        Err(kube::Error::Api(status)) if status.code == 404 => "not found",
        Err(error) => return Err(Unusable::because(what, error)),
    };
    print(&format!("{what}: {outcome}\n"));
    Ok(())
}
