//! `portcullis unregister`: the webhook configurations away, and with them every call.

use std::fmt::Debug;
use std::path::PathBuf;

use k8s_openapi::api::admissionregistration::v1::{MutatingWebhookConfiguration, ValidatingWebhookConfiguration};
use kube::api::DeleteParams;
use kube::{Api, Client, Resource};
use serde::de::DeserializeOwned;

use super::{OK, Unusable, inputs, print};
use crate::cryptography;
use crate::gate::registration::{DECLARED_NAME, NAME};

/// Delete portcullis' webhook configurations, so that the API server asks nobody any more.
///
/// What is not there is no failure. Everything else stays as it is: the server, its rights, what is stored. The chart does
/// this before it is uninstalled; otherwise what fails closed would be refused as soon as the server is gone.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The cluster; without, the one around the pod, or the one that kubectl would ask
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
        Err(kube::Error::Api(status)) if status.code == 404 => "not there",
        Err(error) => return Err(Unusable::because(what, error)),
    };
    print(&format!("{what}: {outcome}\n"));
    Ok(())
}
