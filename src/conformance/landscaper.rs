//! Simulates Landscaper in tests of a deployer. The simulation creates DeployItems, asks the deployer to process them,
//! and deletes them.
//!
//! Source: the function `deployOrTrigger` and the code that deletes DeployItems in Landscaper's
//! `pkg/landscaper/execution`. The annotations come from `GenerateDeployItem`.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use kube::api::{Api, DeleteParams, DynamicObject, ObjectMeta, Patch, PatchParams, PostParams, TypeMeta};
use kube::{Client, ResourceExt};
use serde_json::{Value, json};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use super::record::{Recorder, api};
use super::{ConformanceError, Options};
use crate::landscaper::annotations::{TARGET_ANNOTATION, TYPE_ANNOTATION};
use crate::landscaper::deployer::{FINALIZER, NO_TARGET};
use crate::landscaper::kinds::DEPLOY_ITEMS;

/// The field manager of the conformance kit's writes.
const MANAGER: &str = "portcullis-conformance";

/// A simulation of Landscaper for one namespace.
pub(super) struct Landscaper {
    pub(super) options: Options,
    pub(super) recorder: Recorder,
    items: Api<DynamicObject>,
    jobs: AtomicUsize,
    created: Mutex<Vec<String>>,
}

impl Landscaper {
    pub(super) fn new(client: Client, options: Options, recorder: Recorder) -> Self {
        let items = api(&client, &options.namespace);
        Self { options, recorder, items, jobs: AtomicUsize::new(0), created: Mutex::default() }
    }

    /// Creates a DeployItem as Landscaper does for an Execution, and returns the name of the DeployItem. The name
    /// contains `scenario`. `target` is the name of its Target, and `config` is its `spec.config`.
    pub(super) async fn create(
        &self,
        scenario: &str,
        type_name: &str,
        target: Option<&str>,
        config: Option<&Value>,
    ) -> Result<String, ConformanceError> {
        let mut item = self.item(scenario, type_name, target);
        if let Some(config) = config {
            item.data["spec"]["config"] = config.clone();
        }
        let params = PostParams { field_manager: Some(MANAGER.to_owned()), ..PostParams::default() };
        let created = self.items.create(&params, &item).await;
        let created = created.map_err(refused(format!("creating a DeployItem of type {type_name}")))?;
        self.recorder.own(&created);
        let name = created.name_any();
        self.created.lock().unwrap_or_else(PoisonError::into_inner).push(name.clone());
        Ok(name)
    }

    fn item(&self, scenario: &str, type_name: &str, target: Option<&str>) -> DynamicObject {
        let mut annotations: BTreeMap<_, _> = self.options.annotations.iter().cloned().collect();
        annotations.insert(TYPE_ANNOTATION.to_owned(), type_name.to_owned());
        annotations.insert(TARGET_ANNOTATION.to_owned(), target.unwrap_or(NO_TARGET).to_owned());
        let mut spec = json!({"type": type_name});
        if let Some(target) = target {
            spec["target"] = json!({"name": target, "namespace": self.options.namespace});
        }
        let metadata = ObjectMeta {
            generate_name: Some(format!("conformance-{scenario}-")),
            finalizers: Some(vec![FINALIZER.to_owned()]),
            annotations: Some(annotations),
            ..ObjectMeta::default()
        };
        let types = TypeMeta { api_version: DEPLOY_ITEMS.api_version(), kind: DEPLOY_ITEMS.kind.to_owned() };
        DynamicObject { types: Some(types), metadata, data: json!({"spec": spec}) }
    }

    /// Asks the deployer to process the DeployItem `name`, as Landscaper does. For this, writes a new value into
    /// `status.jobID` of the DeployItem. Returns this value.
    pub(super) async fn trigger(&self, name: &str) -> Result<String, ConformanceError> {
        let job = format!("conformance-job-{}", self.jobs.fetch_add(1, Ordering::Relaxed) + 1);
        let now = now();
        let status = json!({"status": {
            "jobID": job, "jobIDGenerationTime": now, "transitionTimes": {"triggerTime": now}, "observedGeneration": 0,
        }});
        let written = self.items.patch_status(name, &params(), &Patch::Merge(status)).await;
        self.recorder.own(&written.map_err(refused(format!("requesting a job of DeployItem {name}")))?);
        Ok(job)
    }

    /// Asks the deployer to uninstall the DeployItem `name`, which is being deleted.
    ///
    /// Does not fail if the DeployItem no longer exists, because a deployer may already have uninstalled it without
    /// this request.
    pub(super) async fn trigger_deletion(&self, name: &str) -> Result<(), ConformanceError> {
        match self.trigger(name).await {
            Err(ConformanceError::Refused { source, .. }) if is_not_found(&source) => Ok(()),
            other => other.map(drop),
        }
    }

    /// Sets an annotation of a DeployItem.
    pub(super) async fn annotate(&self, name: &str, key: &str, value: &str) -> Result<(), ConformanceError> {
        let annotations = json!({"metadata": {"annotations": {key: value}}});
        let written = self.items.patch(name, &params(), &Patch::Merge(annotations)).await;
        self.recorder.own(&written.map_err(refused(format!("annotating DeployItem {name}")))?);
        Ok(())
    }

    /// Deletes a DeployItem. The DeployItem continues to exist until the deployer removes its finalizer.
    pub(super) async fn delete(&self, name: &str) -> Result<(), ConformanceError> {
        let deleted = self.items.delete(name, &DeleteParams::default()).await;
        if let Some(object) = deleted.map_err(refused(format!("deleting DeployItem {name}")))?.left() {
            self.recorder.own(&object);
        }
        Ok(())
    }

    /// Deletes all DeployItems that this simulation created, and removes their finalizers.
    pub(super) async fn clean_up(&self) {
        let created = std::mem::take(&mut *self.created.lock().unwrap_or_else(PoisonError::into_inner));
        for name in created {
            // Errors are ignored: the item may no longer exist.
            let _ = self.items.delete(&name, &DeleteParams::default()).await;
            let release = Patch::Merge(json!({"metadata": {"finalizers": null}}));
            let _ = self.items.patch(&name, &params(), &release).await;
        }
    }
}

fn params() -> PatchParams {
    PatchParams { field_manager: Some(MANAGER.to_owned()), ..PatchParams::default() }
}

fn is_not_found(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == 404)
}

fn refused(doing: String) -> impl FnOnce(kube::Error) -> ConformanceError {
    move |source| ConformanceError::Refused { doing, source: Box::new(source) }
}

/// Returns the current time in whole seconds, in the format of Kubernetes.
fn now() -> String {
    let now = OffsetDateTime::now_utc();
    // 0 is a valid nanosecond, and the current year has four digits, so neither call fails.
    now.replace_nanosecond(0).unwrap_or(now).format(&Rfc3339).unwrap_or_default()
}
