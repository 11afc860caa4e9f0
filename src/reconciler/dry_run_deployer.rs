//! A controller that processes DeployItems in dry run. It is for clusters that have no Landscaper deployers, and for
//! DeployItems whose deployers do not support dry runs.
//!
//! The function [`Deployer::next`] decides how to change a DeployItem or its Secret next. This controller reads the
//! objects that the function needs, and sends the change to the API server.

use futures::future::BoxFuture;
use k8s_openapi::api::events::v1::Event;
use k8s_openapi::jiff::{Timestamp, Unit};
use kube::Api;
use kube::api::{DynamicObject, ListParams, Patch, PatchParams, PostParams};
use serde_json::Value;

use super::kinds::SECRETS;
use super::live_read::with_live_reads;
use super::{Controller, Failure, Next, Permission, Severity, Tools, events};
use crate::admission::Metadata;
use crate::catalog::{Kind, Reference, cluster};
use crate::landscaper::dry_run::inheritance::{Inheritance, inheritance, is_consistent};
use crate::landscaper::dry_run::run::{
    Configuration, Deployer, Inputs, MANAGER, OtherDeployer, RunError, Step, claims_deployment, is_routed,
    secret_reference,
};
use crate::landscaper::dry_run_annotations::DryRunAnnotations;
use crate::landscaper::kinds::{DEPLOY_ITEMS, DRY_RUN_CONFIGURATIONS, EXECUTIONS, GROUP, INSTALLATIONS};

/// Maximum number of writes for a DeployItem in one reconciliation. A dry run of a DeployItem needs at most six writes,
/// so reaching this maximum indicates a bug.
const MAX_STEPS: usize = 12;

/// Maximum number of Events of one DeployItem that are read. A deployer reports few Events per job.
const MAX_EVENTS: u32 = 100;

/// A controller that processes DeployItems in dry run, instead of the deployer that normally processes them.
pub(super) struct DryRunDeployer {
    pub(super) deployer: Deployer,
}

impl Controller for DryRunDeployer {
    fn name(&self) -> &'static str {
        "dry-run-deployer"
    }

    fn family(&self) -> Option<&'static str> {
        Some("DR")
    }

    fn summary(&self) -> &'static str {
        "processes DeployItems that are in dry run, without writing to a target"
    }

    fn watches(&self) -> &'static [&'static Kind] {
        &DEPLOY_ITEM
    }

    fn looks_up(&self) -> &'static [&'static Kind] {
        &ABOVE
    }

    fn permissions(&self) -> &'static [Permission] {
        &[
            Permission {
                group: GROUP,
                resources: &["deployitems", "deployitems/status"],
                names: &[],
                verbs: &["patch"],
            },
            Permission { group: GROUP, resources: &["dryrunconfigurations"], names: &[], verbs: &["get"] },
            Permission { group: "", resources: &["secrets"], names: &[], verbs: &["create", "get", "patch"] },
            events::RIGHT,
            Permission { group: "events.k8s.io", resources: &["events"], names: &[], verbs: &["list"] },
        ]
    }

    fn is_optional(&self) -> bool {
        true
    }

    fn reconcile<'a>(&'a self, object: &'a Reference, tools: &'a Tools) -> BoxFuture<'a, Result<Next, Failure>> {
        Box::pin(async move {
            let known = tools.catalog.find(object.kind, &object.namespace, &object.name);
            if known.is_none_or(|known| !self.deployer.is_wanted(known.value())) {
                return Ok(Next::Done);
            }
            let read = cluster::read(&tools.client, object).await.map_err(Failure::api("reading it"))?;
            let Some(mut item) = read.filter(|item| self.deployer.is_wanted(item)) else { return Ok(Next::Done) };
            if claims_deployment(&item) {
                match self.step(object, item, tools).await? {
                    Some(written) => item = written,
                    None => return Ok(Next::Done),
                }
            }
            if !self.deployer.has_dry_run(&item) || !is_in_dry_run(object, &item, tools).await? {
                return Ok(Next::Done);
            }
            for _ in 0..MAX_STEPS {
                match self.step(object, item, tools).await? {
                    Some(written) => item = written,
                    None => return Ok(Next::Done),
                }
            }
            Err(Failure::Unknown(format!("not finished after {MAX_STEPS} writes")))
        })
    }
}

static DEPLOY_ITEM: [&Kind; 1] = [&DEPLOY_ITEMS];
static ABOVE: [&Kind; 2] = [&EXECUTIONS, &INSTALLATIONS];

impl DryRunDeployer {
    /// Makes the next write that the DeployItem needs: to the DeployItem itself or to its Secret. `object` is the
    /// reference to the DeployItem, and `item` is its content. Returns the DeployItem after the write. Returns `None`
    /// if no further write is needed, if another deployer processes the DeployItem, or if the DeployItem was deleted.
    async fn step(&self, object: &Reference, item: Value, tools: &Tools) -> Result<Option<Value>, Failure> {
        let now = Timestamp::now().round(Unit::Second).unwrap_or(Timestamp::UNIX_EPOCH).to_string();
        let read = match self.deployer.reads(&item) {
            true => Read::of(&item, tools).await?,
            false => Read::default(),
        };
        let surroundings = Inputs {
            configuration: read.configuration(&item),
            secret: read.secret.as_ref(),
            reporters: &read.event_reporters,
            now: &now,
        };
        match self.deployer.next(&item, &surroundings) {
            Step::Nothing => Ok(None),
            Step::Yield(rival) => {
                step_back(&item, &rival, tools).await;
                Ok(None)
            }
            Step::Item(patch) => patched(object, "", patch, tools).await,
            Step::Status(patch) => patched(object, "status", patch, tools).await,
            Step::Finish(patch, result) => {
                let written = patched(object, "status", patch, tools).await?;
                finished(&item, &result, tools).await;
                Ok(written)
            }
            Step::CreateSecret(secret) => create(&read.reference, secret, tools).await.map(|()| Some(item)),
            Step::Secret(patch) => patched(&read.reference, "", patch, tools).await.map(|_| Some(item)),
        }
    }
}

/// Returns whether the DeployItem `item`, which has a dry-run annotation, should be processed as a dry run. Compares
/// the dry-run annotations of `item` with those that it inherits from its root. The root is the last object in its
/// chain of owners, usually an Installation.
///
/// - Returns `true` if these annotations are equal, or if `item` has no root.
/// - Returns `false` if these annotations differ, because those of `item` may be outdated.
/// - Fails if an owner cannot be read.
async fn is_in_dry_run(object: &Reference, item: &Value, tools: &Tools) -> Result<bool, Failure> {
    match with_live_reads(tools, |view| inheritance(item, &object.namespace, view)).await {
        Inheritance::Itself | Inheritance::Orphan(_) | Inheritance::Replaced(_) => Ok(true),
        Inheritance::Root(root) => Ok(is_consistent(item, root.value())),
        Inheritance::Unreadable(above) => {
            Err(Failure::Unknown(format!("{above:?} in its owner chain could not be read")))
        }
    }
}

/// The data from the API server that is needed to compute the next write of a DeployItem. It consists of the
/// DryRunConfiguration, the Secret with the exported values, and the names of controllers that reported Events on the
/// DeployItem.
struct Read {
    configuration: Option<Value>,
    secret: Option<Value>,
    reference: Reference,
    event_reporters: Vec<String>,
}

impl Default for Read {
    fn default() -> Self {
        Self {
            configuration: None,
            secret: None,
            reference: Reference::new(&SECRETS, "", ""),
            event_reporters: Vec::new(),
        }
    }
}

impl Read {
    async fn of(item: &Value, tools: &Tools) -> Result<Self, Failure> {
        let (namespace, name) = secret_reference(item);
        let reference = Reference::new(&SECRETS, &namespace, &name);
        let configuration = match DryRunAnnotations::of(item).configuration.filter(|name| !name.is_empty()) {
            Some(name) => {
                let reference = Reference::new(&DRY_RUN_CONFIGURATIONS, &namespace, name);
                let read = cluster::read(&tools.client, &reference).await;
                read.map_err(Failure::api("reading its DryRunConfiguration"))?
            }
            None => None,
        };
        let secret = cluster::read(&tools.client, &reference).await.map_err(Failure::api("reading its Secret"))?;
        let event_reporters = event_reporters(item, &namespace, tools).await?;
        Ok(Self { configuration, secret, reference, event_reporters })
    }

    fn configuration<'v>(&'v self, item: &'v Value) -> Configuration<'v> {
        match (&self.configuration, DryRunAnnotations::of(item).configuration.filter(|name| !name.is_empty())) {
            (Some(configuration), _) => Configuration::Found(configuration),
            (None, Some(name)) => Configuration::Missing(name),
            (None, None) => Configuration::NotNamed,
        }
    }
}

/// Returns the controllers that have reported Events on a DeployItem since its job started. Empty if Portcullis does
/// not have the permission to list Events.
async fn event_reporters(item: &Value, namespace: &str, tools: &Tools) -> Result<Vec<String>, Failure> {
    let text = |pointer| item.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let since: Option<Timestamp> = text("/status/jobIDGenerationTime").parse().ok();
    let api: Api<Event> = Api::namespaced(tools.client.clone(), namespace);
    let of_item = ListParams::default()
        .fields(&format!("regarding.uid={}", Metadata::of(item).uid().unwrap_or_default()))
        .limit(MAX_EVENTS);
    let events = match api.list(&of_item).await {
        Ok(events) => events.items,
        Err(kube::Error::Api(status)) if status.code == 403 => Vec::new(),
        Err(error) => return Err(Failure::api("reading its Events")(error)),
    };
    let during_job = |event: &Event| since.is_none_or(|since| last_seen(event).is_none_or(|seen| seen >= since));
    Ok(events.into_iter().filter(during_job).filter_map(reporter).collect())
}

/// Returns when an Event was last observed. This is the latest time in its fields `series.lastObservedTime`,
/// `deprecatedLastTimestamp` and `eventTime`.
fn last_seen(event: &Event) -> Option<Timestamp> {
    let series = event.series.as_ref().map(|series| series.last_observed_time.0);
    let times = [
        series,
        event.deprecated_last_timestamp.as_ref().map(|time| time.0),
        event.event_time.as_ref().map(|time| time.0),
    ];
    times.into_iter().flatten().max()
}

fn reporter(event: Event) -> Option<String> {
    let deprecated = event.deprecated_source.and_then(|source| source.component);
    event.reporting_controller.filter(|name| !name.is_empty()).or(deprecated)
}

/// Patches an object, or one of its subresources if `subresource` is not empty. Returns the patched object. `None` if
/// the object no longer exists.
async fn patched(object: &Reference, subresource: &str, patch: Value, tools: &Tools) -> Result<Option<Value>, Failure> {
    let api = cluster::api(&tools.client, object);
    let params = PatchParams { field_manager: Some(MANAGER.to_owned()), ..PatchParams::default() };
    let patch = Patch::Merge(patch);
    let written = match subresource {
        "" => api.patch(&object.name, &params, &patch).await,
        subresource => api.patch_subresource(subresource, &object.name, &params, &patch).await,
    };
    match written {
        Ok(written) => Ok(cluster::to_value(object.kind, written)),
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(None),
        Err(error) => Err(Failure::api("writing it")(error)),
    }
}

async fn create(reference: &Reference, secret: Value, tools: &Tools) -> Result<(), Failure> {
    let params = PostParams { field_manager: Some(MANAGER.to_owned()), ..PostParams::default() };
    let secret: DynamicObject =
        serde_json::from_value(secret).map_err(|error| Failure::Unknown(format!("its Secret: {error}")))?;
    match cluster::api(&tools.client, reference).create(&params, &secret).await {
        Ok(_) => Ok(()),
        // The Secret exists by now. The next step reads it.
        Err(kube::Error::Api(status)) if status.reason == "AlreadyExists" => Ok(()),
        Err(error) => Err(Failure::api("writing its Secret")(error)),
    }
}

async fn finished(item: &Value, result: &Result<(), RunError>, tools: &Tools) {
    let name = Some(Metadata::of(item).name());
    let namespace = Some(Metadata::of(item).namespace());
    match result {
        Ok(()) => {
            tracing::info!(namespace, name, "dry run succeeded");
            tools.events.publish(item, Severity::Normal, "DryRunSucceeded", "DryRun", success_note(item)).await;
        }
        Err(trouble) => {
            let reason = trouble.reason();
            tracing::info!(namespace, name, reason, "dry run failed");
            tools.events.publish(item, Severity::Warning, reason, "DryRun", &trouble.to_string()).await;
        }
    }
}

/// Returns the message of the Event for a successful dry run of a DeployItem. If no annotation assigns the DeployItem
/// to the dry-run deployer, another deployer may have deployed it, and the message says so. The status of the
/// DeployItem does not show whether this happened, because a deployer can deploy objects before it updates the status.
fn success_note(item: &Value) -> &'static str {
    match is_routed(item) {
        true => {
            "The dry run succeeded: exports come from the DryRunConfiguration. The item is routed to the dry-run deployer, \
             which writes to no Target."
        }
        false => {
            "The dry run succeeded: exports come from the DryRunConfiguration. The dry-run deployer writes to no Target. The \
             item is not routed to the dry-run deployer, so whether another deployer has deployed it is not known."
        }
    }
}

async fn step_back(item: &Value, rival: &OtherDeployer, tools: &Tools) {
    let name = Some(Metadata::of(item).name());
    let namespace = Some(Metadata::of(item).namespace());
    tracing::warn!(namespace, name, %rival, "another deployer processes an item in dry run: the dry-run deployer stops");
    let note = format!(
        "The dry-run deployer stops: {rival}. Make other deployers ignore dry runs; see docs/dry-run-deployer.md."
    );
    tools.events.publish(item, Severity::Warning, "AnotherDeployer", "DryRun", &note).await;
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Checks that the message of the Event does not contain "nothing was deployed". This statement would be wrong if
    /// another deployer had deployed the item before the dry-run deployer processed it.
    #[test]
    fn the_event_does_not_claim_that_nothing_was_deployed() {
        let note = |deployer: &str| {
            let annotations = json!({"landscaper.gardener.cloud/deployer-type": deployer});
            success_note(&json!({"metadata": {"annotations": annotations}}))
        };
        let routed = note("portcullis.dev/dry-run");
        let not_routed = note("landscaper.gardener.cloud/helm");
        assert!(routed.contains("is routed to the dry-run deployer"), "{routed}");
        assert!(not_routed.contains("whether another deployer has deployed it is not known"), "{not_routed}");
        assert!([routed, not_routed].iter().all(|note| !note.contains("nothing was deployed")));
    }
}
