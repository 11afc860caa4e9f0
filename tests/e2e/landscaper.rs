//! Simulates Landscaper for dry runs. Makes the same writes as Landscaper's controllers, with one API call for each
//! write.
//!
//! As with Landscaper, sub-installations and DeployItems have generated names, and the templates in an Execution are
//! compressed. Each call of [`Landscaper::start`] replaces the annotations of existing sub-installations, and writes
//! the id of the job into the status of all objects.

use std::io::Write as _;
use std::time::Instant;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::GzEncoder;
use k8s_openapi::jiff::{Timestamp, Unit};
use kube::api::{Api, ApiResource, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams};
use kube::core::GroupVersionKind;
use serde_json::{Value, json};

use crate::cluster::Cluster;
use crate::daemon::PAUSE;
use crate::deadline::deadline;

const GROUP: &str = "landscaper.gardener.cloud";
const FINALIZER: &str = "finalizer.landscaper.gardener.cloud";

/// A simulated Landscaper for the objects in one namespace.
pub struct Landscaper<'a> {
    pub cluster: &'a Cluster,
    pub namespace: &'a str,
}

/// The template of a DeployItem: its name, its type and its configuration.
pub type Template = (&'static str, &'static str, Value);

impl Landscaper<'_> {
    /// Processes the root Installation `root` until every DeployItem is finished. Returns the DeployItems. `subs`
    /// contains the names of the sub-installations, each with the templates of its DeployItems. `job` is the id of the
    /// job.
    ///
    /// A second call updates the existing objects.
    pub fn process(&self, root: &str, subs: &[(&str, Vec<Template>)], job: &str) -> Vec<Value> {
        self.start(root, subs, job);
        self.finish(root, job)
    }

    /// Starts to process the root Installation `root`, as Landscaper does: creates or updates its sub-installations,
    /// Executions and DeployItems, and writes the job id `job` into the status of each object. The deployers then
    /// process the DeployItems. `subs` contains the names of the sub-installations, each with the templates of its
    /// DeployItems.
    pub fn start(&self, root: &str, subs: &[(&str, Vec<Template>)], job: &str) {
        self.set_status("Installation", root, json!({"jobID": job, "phase": "Init", "observedGeneration": 1}));
        let root = self.get("Installation", root).expect("the root exists");
        for (sub, templates) in subs {
            let installation = self.sub_installation(&root, sub);
            let name = name(&installation);
            let status = json!({"jobID": job, "phase": "Progressing", "observedGeneration": 1});
            self.set_status("Installation", &name, status);
            let execution = self.execution(&installation, templates);
            self.set_status("Execution", &name, json!({"jobID": job, "phase": "Progressing"}));
            for template in templates {
                let item = self.deploy_item(&execution, template);
                self.trigger(&item, job);
            }
        }
        self.set_status("Installation", &name(&root), json!({"phase": "Progressing"}));
    }

    /// Waits until the deployers have finished the job of every DeployItem. Then writes the final phase and the
    /// finished job into the status of the Executions and Installations. Returns the DeployItems.
    pub fn finish(&self, root: &str, job: &str) -> Vec<Value> {
        let items = self.finished_items(job);
        let phase = match items.iter().all(|item| item.pointer("/status/phase") == Some(&json!("Succeeded"))) {
            true => "Succeeded",
            false => "Failed",
        };
        for kind in ["Execution", "Installation"] {
            for object in self.list(kind).iter().filter(|object| name(object) != root) {
                self.set_status(kind, &name(object), json!({"phase": phase, "jobIDFinished": job}));
            }
        }
        self.set_status("Installation", root, json!({"phase": phase, "jobIDFinished": job}));
        items
    }

    /// Waits until every DeployItem has finished the job with the id `job`, and returns the DeployItems.
    pub fn finished_items(&self, job: &str) -> Vec<Value> {
        let start = Instant::now();
        loop {
            let items = self.list("DeployItem");
            let is_finished = |item: &Value| item.pointer("/status/jobIDFinished") == Some(&json!(job));
            if items.iter().all(is_finished) {
                return items;
            }
            assert!(start.elapsed() < deadline(), "not finished: {items:#?}");
            std::thread::sleep(PAUSE);
        }
    }

    /// Requests a job from the deployer of a DeployItem: writes the id of the job into the status.
    pub fn trigger(&self, item: &Value, job: &str) {
        let now = Timestamp::now().round(Unit::Second).expect("timestamps can be rounded to seconds").to_string();
        let generation = item.pointer("/metadata/generation");
        let status = json!({
            "jobID": job, "jobIDGenerationTime": now, "transitionTimes": {"triggerTime": now},
            "observedGeneration": generation, "deployer": {"identity": "", "name": "", "version": ""},
        });
        let known = item.pointer("/status/deployer").is_some();
        let status = if known { without(status, "deployer") } else { status };
        self.set_status("DeployItem", &name(item), status);
    }

    /// Deletes a DeployItem, and requests a job in which the deployer performs the deletion.
    pub fn delete_item(&self, item: &Value, job: &str) {
        let api = self.api("DeployItem");
        self.cluster
            .block_on(api.delete(&name(item), &DeleteParams::default()))
            .expect("the DeployItem can be deleted");
        self.trigger(item, job);
    }

    fn sub_installation(&self, root: &Value, sub: &str) -> Value {
        let label = format!("{GROUP}/subinstallation-name");
        let annotations = json!({label.as_str(): sub});
        let existing =
            self.list("Installation").into_iter().find(|found| found["metadata"]["annotations"][&label] == sub);
        if let Some(existing) = existing {
            let replace = json!([{"op": "replace", "path": "/metadata/annotations", "value": annotations}]);
            let patch: json_patch::Patch = serde_json::from_value(replace).expect("the patch is valid");
            return self.patch("Installation", &name(&existing), "", &Patch::Json::<()>(patch));
        }
        self.create(
            "Installation",
            json!({
                "metadata": {
                    "generateName": format!("{sub}-"), "annotations": annotations, "finalizers": [FINALIZER],
                    "labels": {format!("{GROUP}/encompassed-by"): name(root)}, "ownerReferences": [owner(root)],
                },
                "spec": {"context": "default", "blueprint": {"inline": {"filesystem": {}}}},
            }),
        )
    }

    fn execution(&self, installation: &Value, templates: &[Template]) -> Value {
        let list: Vec<_> = templates
            .iter()
            .map(|(name, type_name, config)| {
                json!({"name": name, "type": type_name, "config": config,
                "target": {"name": "nowhere", "namespace": self.namespace}})
            })
            .collect();
        let spec = json!({"context": "default", "deployItemsCompressed": compress(&json!(list))});
        let name = name(installation);
        if self.get("Execution", &name).is_some() {
            return self.patch("Execution", &name, "", &Patch::Merge(json!({"spec": spec})));
        }
        let metadata = json!({"name": name, "finalizers": [FINALIZER], "ownerReferences": [owner(installation)]});
        self.create("Execution", json!({"metadata": metadata, "spec": spec}))
    }

    fn deploy_item(&self, execution: &Value, (template, type_name, config): &Template) -> Value {
        let labels = json!({
            "execution.landscaper.gardener.cloud/managed-by": name(execution),
            "execution.landscaper.gardener.cloud/name": template,
        });
        let annotations = json!({
            format!("{GROUP}/reconcile-time"): Timestamp::now().to_string(),
            format!("{GROUP}/deployer-type"): type_name,
            format!("{GROUP}/deployer-target-name"): "nowhere",
        });
        let spec = json!({"type": type_name, "context": "default", "config": config,
            "target": {"name": "nowhere", "namespace": self.namespace}});
        let existing = self.list("DeployItem").into_iter().find(|item| item["metadata"]["labels"] == labels);
        if let Some(existing) = existing {
            let patch = json!({"metadata": {"annotations": annotations}, "spec": spec});
            return self.patch("DeployItem", &name(&existing), "", &Patch::Merge(patch));
        }
        let metadata = json!({
            "generateName": format!("{}-{template}-", name(execution)), "annotations": annotations, "labels": labels,
            "ownerReferences": [owner(execution)],
        });
        self.create("DeployItem", json!({"metadata": metadata, "spec": spec}))
    }

    /// Creates an object of one of Landscaper's kinds, and returns the stored object.
    pub fn create(&self, kind: &str, mut object: Value) -> Value {
        object["apiVersion"] = format!("{GROUP}/v1alpha1").into();
        object["kind"] = kind.into();
        let object: DynamicObject = serde_json::from_value(object).expect("the value is an object");
        let made = self.cluster.block_on(self.api(kind).create(&PostParams::default(), &object));
        serde_json::to_value(made.unwrap_or_else(|error| panic!("{kind}: {error}")))
            .expect("the object can be serialized")
    }

    /// Returns the object with this kind and name, if it exists.
    pub fn get(&self, kind: &str, name: &str) -> Option<Value> {
        let found = self.cluster.block_on(self.api(kind).get_opt(name)).expect("the API server answers");
        found.map(|object| serde_json::to_value(object).expect("the object can be serialized"))
    }

    /// Returns all objects of a kind in the namespace.
    pub fn list(&self, kind: &str) -> Vec<Value> {
        let list = self.cluster.block_on(self.api(kind).list(&ListParams::default())).expect("the API server answers");
        list.items
            .into_iter()
            .map(|object| serde_json::to_value(object).expect("the object can be serialized"))
            .collect()
    }

    /// Merges `status` into the status of an object, and returns the stored object.
    pub fn set_status(&self, kind: &str, name: &str, status: Value) -> Value {
        self.patch(kind, name, "status", &Patch::Merge(json!({"status": status})))
    }

    /// Patches an object, or a subresource if `subresource` is not empty. Returns the stored object.
    pub fn patch<P: serde::Serialize + std::fmt::Debug>(
        &self,
        kind: &str,
        name: &str,
        subresource: &str,
        patch: &Patch<P>,
    ) -> Value {
        let (api, params) = (self.api(kind), PatchParams::default());
        let patched = self.cluster.block_on(async {
            match subresource {
                "" => api.patch(name, &params, patch).await,
                subresource => api.patch_subresource(subresource, name, &params, patch).await,
            }
        });
        serde_json::to_value(patched.unwrap_or_else(|error| panic!("{kind} {name}: {error}")))
            .expect("the object can be serialized")
    }

    /// Returns the API client for one of Landscaper's kinds in the namespace.
    pub fn api(&self, kind: &str) -> Api<DynamicObject> {
        let plural = format!("{}s", kind.to_lowercase());
        let resource = ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk(GROUP, "v1alpha1", kind), &plural);
        Api::namespaced_with(self.cluster.client(), self.namespace, &resource)
    }
}

/// Returns the name of an object.
pub fn name(object: &Value) -> String {
    object.pointer("/metadata/name").and_then(Value::as_str).expect("the object has a name").to_owned()
}

/// Returns an owner reference to an object, with `controller: true`.
pub fn owner(object: &Value) -> Value {
    json!({
        "apiVersion": object["apiVersion"], "kind": object["kind"], "name": name(object),
        "uid": object["metadata"]["uid"], "controller": true, "blockOwnerDeletion": true,
    })
}

fn compress(list: &Value) -> String {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(list.to_string().as_bytes()).expect("memory can be written to");
    STANDARD.encode(encoder.finish().expect("memory can be written to"))
}

fn without(mut value: Value, key: &str) -> Value {
    value.as_object_mut().map(|members| members.remove(key));
    value
}
