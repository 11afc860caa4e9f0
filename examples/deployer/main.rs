//! A minimal deployer that fulfills Landscaper's contract for deployers. It creates a ConfigMap for each DeployItem of
//! its type.
//!
//! ```sh
//! cargo run --example deployer -- --namespace default
//! portcullis conformance deployer --type example.org/config-map --config examples/deployer/config.yaml \
//!   --failing-config examples/deployer/failing.yaml
//! ```
//!
//! With `--break`, it violates a requirement of the contract, to show how `portcullis conformance` and the webhook
//! report it.

#![allow(clippy::expect_used, clippy::print_stderr, reason = "an example is a program of its own")]

use std::path::PathBuf;
use std::time::Duration;

use clap::{Parser, ValueEnum};
use futures::TryStreamExt;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, ApiResource, DeleteParams, DynamicObject, Patch, PatchParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::core::GroupVersionKind;
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Client, Config, ResourceExt};
use serde_json::{Value, json};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

const TYPE: &str = "example.org/config-map";
const FINALIZER: &str = "finalizer.landscaper.gardener.cloud";

#[derive(Parser)]
struct Args {
    /// The namespace of the DeployItems
    #[arg(long, default_value = "default")]
    namespace: String,
    /// Serve only Targets whose label `zone` has this value. Default: all Targets
    #[arg(long)]
    zone: Option<String>,
    /// The kubeconfig of the cluster. Default: the one that kubectl uses
    #[arg(long)]
    kubeconfig: Option<PathBuf>,
    /// A requirement to break
    #[arg(long = "break", value_enum)]
    broken: Option<Broken>,
}

/// The requirements of the contract that the deployer can violate, with the rule that reports the violation.
#[derive(Clone, Copy, PartialEq, ValueEnum)]
enum Broken {
    /// DP001: writes jobIDFinished before the final phase
    Order,
    /// DP002: finishes another job than the open one
    Job,
    /// DP003: changes the result of a finished job
    Result,
    /// DP004: starts work without lastReconcileTime
    Pickup,
    /// DP010: processes DeployItems of every type
    Type,
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args = Args::parse();
    // An error means that a crypto provider is installed already.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let config = match &args.kubeconfig {
        Some(path) => {
            Config::from_custom_kubeconfig(Kubeconfig::read_from(path)?, &KubeConfigOptions::default()).await?
        }
        None => Config::infer().await?,
    };
    let deployer = Deployer::new(Client::try_from(config)?, args);
    let events = watcher(deployer.items.clone(), watcher::Config::default()).default_backoff().applied_objects();
    let mut events = std::pin::pin!(events);
    while let Some(item) = events.try_next().await? {
        // An update fails with a conflict if there is a newer version of the object. A watch event for that version
        // follows.
        if let Err(error) = deployer.handle(&item).await {
            eprintln!("{}: {error}", item.name_any());
        }
    }
    Ok(())
}

struct Deployer {
    args: Args,
    items: Api<DynamicObject>,
    targets: Api<DynamicObject>,
    config_maps: Api<ConfigMap>,
}

impl Deployer {
    fn new(client: Client, args: Args) -> Self {
        let api = |kind| {
            let resource = ApiResource::from_gvk(&GroupVersionKind::gvk("landscaper.gardener.cloud", "v1alpha1", kind));
            Api::namespaced_with(client.clone(), &args.namespace, &resource)
        };
        let config_maps = Api::namespaced(client.clone(), &args.namespace);
        Self { items: api("DeployItem"), targets: api("Target"), config_maps, args }
    }

    fn breaks(&self, requirement: Broken) -> bool {
        self.args.broken == Some(requirement)
    }

    /// Processes a DeployItem if this deployer is responsible for it and it has an open job.
    async fn handle(&self, event: &DynamicObject) -> Result<(), kube::Error> {
        let Some(item) = &self.items.get_opt(&event.name_any()).await? else { return Ok(()) };
        let status = |key: &str| item.data["status"][key].as_str().unwrap_or_default();
        let job = status("jobID");
        if !self.is_responsible(item).await? || job == status("jobIDFinished") {
            return Ok(());
        }
        let deleting = item.metadata.deletion_timestamp.is_some();
        // After a restart of the deployer, a job that was started before begins again.
        let begin = if deleting { "InitDelete" } else { "Init" };
        let item = self.write(item, self.pickup(begin)).await?;
        if deleting { self.uninstall(&item).await } else { self.deploy(&item, job).await }
    }

    /// Reports whether this deployer is responsible for the type and the Target of a DeployItem.
    async fn is_responsible(&self, item: &DynamicObject) -> Result<bool, kube::Error> {
        if item.data["spec"]["type"] != TYPE && !self.breaks(Broken::Type) {
            return Ok(false);
        }
        let (Some(zone), Some(name)) = (&self.args.zone, item.data["spec"]["target"]["name"].as_str()) else {
            return Ok(true);
        };
        let target = self.targets.get_opt(name).await?;
        Ok(target.is_some_and(|target| target.labels().get("zone") == Some(zone)))
    }

    fn pickup(&self, phase: &str) -> Value {
        let now = OffsetDateTime::now_utc().format(&Rfc3339).expect("the current time can be formatted");
        let deployer = json!({"name": "config-map", "identity": "example", "version": "v1"});
        let mut status = json!({"phase": phase, "deployer": deployer, "lastError": null, "lastReconcileTime": now});
        if self.breaks(Broken::Pickup) {
            status["lastReconcileTime"] = Value::Null;
        }
        status
    }

    async fn deploy(&self, item: &DynamicObject, job: &str) -> Result<(), kube::Error> {
        let item = self.write(item, json!({"phase": "Progressing"})).await?;
        let config = &item.data["spec"]["config"];
        if let Some(message) = config["fail"].as_str() {
            return self.finish(&item, job, failure(message)).await;
        }
        let name = item.name_any();
        let object =
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": config["data"]});
        let params = PatchParams::apply("config-map-deployer").force();
        match self.config_maps.patch(&name, &params, &Patch::Apply(object)).await {
            Ok(_) => self.finish(&item, job, json!({"phase": "Succeeded"})).await,
            Err(error) => self.finish(&item, job, failure(&error.to_string())).await,
        }
    }

    /// Finishes the job: sets the final phase and `jobIDFinished` in one update.
    async fn finish(&self, item: &DynamicObject, job: &str, mut status: Value) -> Result<(), kube::Error> {
        if self.breaks(Broken::Order) {
            let item = self.write(item, json!({"jobIDFinished": job})).await?;
            self.write(&item, status).await?;
            return Ok(());
        }
        status["jobIDFinished"] = json!(job);
        if self.breaks(Broken::Job) {
            status["jobIDFinished"] = json!("the-job-before");
            // The job stays open, so each update of the DeployItem makes the deployer process it again. The delay
            // limits the rate.
            tokio::time::sleep(Duration::from_millis(500)).await;
        }
        let item = self.write(item, status).await?;
        if self.breaks(Broken::Result) {
            self.write(&item, failure("the result of the finished job changes")).await?;
        }
        Ok(())
    }

    /// Deletes the deployed object, then removes the finalizer.
    async fn uninstall(&self, item: &DynamicObject) -> Result<(), kube::Error> {
        let item = self.write(item, json!({"phase": "Deleting"})).await?;
        let keep = item.annotations().get("landscaper.gardener.cloud/delete-without-uninstall");
        if keep.is_none_or(|keep| keep != "true") {
            match self.config_maps.delete(&item.name_any(), &DeleteParams::default()).await {
                Err(kube::Error::Api(status)) if status.code == 404 => {}
                other => drop(other?),
            }
        }
        let finalizers: Vec<_> = item.finalizers().iter().filter(|finalizer| *finalizer != FINALIZER).collect();
        let release = json!({"metadata": {"finalizers": finalizers, "resourceVersion": item.resource_version()}});
        self.items.patch(&item.name_any(), &PatchParams::default(), &Patch::Merge(release)).await?;
        Ok(())
    }

    /// Updates fields of the status. Fails with a conflict if the object has changed.
    async fn write(&self, item: &DynamicObject, mut status: Value) -> Result<DynamicObject, kube::Error> {
        status["observedGeneration"] = json!(item.metadata.generation);
        let patch = json!({"metadata": {"resourceVersion": item.resource_version()}, "status": status});
        let params = PatchParams { field_manager: Some("config-map-deployer".to_owned()), ..PatchParams::default() };
        self.items.patch_status(&item.name_any(), &params, &Patch::Merge(patch)).await
    }
}

fn failure(message: &str) -> Value {
    let now = OffsetDateTime::now_utc().format(&Rfc3339).expect("the current time can be formatted");
    let error = json!({
        "operation": "Deploy", "reason": "Failed", "message": message, "lastTransitionTime": now, "lastUpdateTime": now,
    });
    json!({"phase": "Failed", "lastError": error})
}
