//! Writes the ConfigMaps, annotations and status condition of an Installation, if they differ from the stored ones.

use k8s_openapi::jiff::{Timestamp, Unit};
use kube::api::{DeleteParams, DynamicObject, Patch, PatchParams, PostParams, Preconditions};
use serde_json::{Map, Value, json};

use crate::admission::Metadata;
use crate::catalog::{Reference, cluster};
use crate::landscaper::annotations::{SOURCE_ANNOTATION, TREE_ANNOTATION};
use crate::landscaper::overwrites::effect::Effect;
use crate::landscaper::overwrites::message::Condition;
use crate::landscaper::overwrites::note::Note;
use crate::landscaper::overwrites::record::{LABEL, MAX_PARTS, Part, Record, SUMMARY_KEY, difference, part_name};
use crate::landscaper::overwrites::{annotations, conditions};
use crate::oci::digest;
use crate::reconciler::kinds::CONFIG_MAPS;
use crate::reconciler::{Failure, Severity, Tools};

/// Field manager of this controller's writes, as in `metadata.managedFields`.
const MANAGER: &str = "portcullis-overwrite-trees";
/// Maximum length of a label value in Kubernetes, in characters.
const MAX_LABEL_LENGTH: usize = 63;

/// A writer that records the effect of component version overwrites on one Installation. It writes ConfigMaps,
/// annotations of the Installation, and a condition in the status of the Installation.
pub(super) struct Write<'a> {
    pub(super) object: &'a Reference,
    /// The Installation in the state that the watch last reported.
    pub(super) installation: &'a Value,
    pub(super) tools: &'a Tools,
}

impl Write<'_> {
    /// Deletes the ConfigMaps of the Installation, and the annotations about overwrites that this controller writes.
    /// Publishes an Event if the deleted ConfigMaps recorded changes of component references.
    pub(super) async fn clear(&self) -> Result<(), Failure> {
        let before = self.delete_stale(&[]).await?;
        self.annotate(None, None).await?;
        self.report_difference(before.as_deref(), &[]).await;
        Ok(())
    }

    /// Deletes stale ConfigMaps, then writes the annotations, and then writes the new ConfigMaps. The annotations list
    /// the ConfigMaps before they are created. So every existing ConfigMap is listed, even if the function is
    /// interrupted. Publishes Events about new problems and about changes.
    pub(super) async fn record(&self, effect: &Effect, record: &Record) -> Result<(), Failure> {
        let mut before = self.delete_stale(&record.parts).await?;
        self.annotate(Some(effect), Some(&record.note)).await?;
        self.report_problems(&record.note).await;
        for part in &record.parts {
            let summary = self.part(part).await?;
            if self.is_first(&part.name) {
                before = summary;
            }
        }
        self.report_difference(before.as_deref(), &record.lines).await;
        Ok(())
    }

    /// Deletes the ConfigMaps that the annotation `portcullis.dev/overwrite-tree` of the Installation lists and that
    /// are not in `wanted`. If the Installation's first ConfigMap is deleted, returns the value of its key `summary`.
    /// The value lists the changes that the overwrites make.
    async fn delete_stale(&self, wanted: &[Part]) -> Result<Option<String>, Failure> {
        let noted = Note::read(self.installation).map(|note| note.config_maps).unwrap_or_default();
        // Every user who may write the Installation may change the list of ConfigMaps. So only ConfigMaps with names
        // that this controller uses are deleted.
        let is_ours = |name: &str| (0..MAX_PARTS).any(|at| *name == part_name(&self.object.name, at));
        let mut before = None;
        for name in noted.iter().filter(|name| is_ours(name) && !wanted.iter().any(|part| part.name == **name)) {
            let summary = self.delete(name).await?;
            if self.is_first(name) {
                before = summary;
            }
        }
        Ok(before)
    }

    fn is_first(&self, name: &str) -> bool {
        name == part_name(&self.object.name, 0)
    }

    /// Creates the ConfigMap `part`, or updates it if its data has changed. Returns the previous value of its key
    /// `summary`, which lists the changes that the overwrites make. Returns an empty string if there was no previous
    /// value, and `None` if nothing was written.
    async fn part(&self, part: &Part) -> Result<Option<String>, Failure> {
        let reference = self.config_map(&part.name);
        let stored = self.stored(&reference).await?;
        let api = cluster::api(&self.tools.client, &reference);
        let Some(stored) = stored else {
            let params = PostParams { field_manager: Some(MANAGER.to_owned()), ..PostParams::default() };
            api.create(&params, &self.config_map_manifest(part)?)
                .await
                .map_err(Failure::api("writing its ConfigMap"))?;
            return Ok(Some(String::new()));
        };
        let data = json!(part.data);
        if stored.get("data") == Some(&data) {
            return Ok(None);
        }
        let params = PatchParams { field_manager: Some(MANAGER.to_owned()), ..PatchParams::default() };
        let version = Metadata::of(&stored).resource_version();
        let mut members: Map<String, Value> = Map::new();
        for key in stored.get("data").and_then(Value::as_object).into_iter().flat_map(Map::keys) {
            members.insert(key.clone(), Value::Null);
        }
        members.extend(data.as_object().cloned().unwrap_or_default());
        let patch = json!({"metadata": {"resourceVersion": version}, "data": members});
        api.patch(&part.name, &params, &Patch::Merge(patch)).await.map_err(Failure::api("writing its ConfigMap"))?;
        Ok(Some(summary(&stored)))
    }

    async fn delete(&self, name: &str) -> Result<Option<String>, Failure> {
        let reference = self.config_map(name);
        let Some(stored) = self.stored(&reference).await? else { return Ok(None) };
        let uid = Metadata::of(&stored).uid().map(str::to_owned);
        let params =
            DeleteParams { preconditions: Some(Preconditions { uid, resource_version: None }), ..Default::default() };
        match cluster::api(&self.tools.client, &reference).delete(name, &params).await {
            Ok(_) => Ok(Some(summary(&stored))),
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(None),
            Err(error) => Err(Failure::api("deleting its ConfigMap")(error)),
        }
    }

    /// Returns the ConfigMap `reference`, or `None` if it does not exist. Fails if the ConfigMap cannot be read, or if
    /// the Installation does not own it.
    async fn stored(&self, reference: &Reference) -> Result<Option<Value>, Failure> {
        let read = cluster::read(&self.tools.client, reference).await;
        let Some(stored) = read.map_err(Failure::api("reading its ConfigMap"))? else { return Ok(None) };
        let uid = Metadata::of(self.installation).uid();
        if uid.is_some_and(|uid| Metadata::of(&stored).is_owned_by(uid)) {
            return Ok(Some(stored));
        }
        Err(Failure::Unknown(format!("ConfigMap {:?} belongs to another owner and is not changed", reference.name)))
    }

    fn config_map(&self, name: &str) -> Reference {
        Reference::new(&CONFIG_MAPS, &self.object.namespace, name)
    }

    fn config_map_manifest(&self, part: &Part) -> Result<DynamicObject, Failure> {
        let label: String = self.object.name.chars().take(MAX_LABEL_LENGTH).collect();
        let label = label.trim_end_matches(|c: char| !c.is_ascii_alphanumeric());
        let config_map_manifest = json!({
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {
                "name": part.name,
                "namespace": self.object.namespace,
                "labels": {LABEL: label},
                "ownerReferences": [{
                    "apiVersion": self.installation.get("apiVersion"),
                    "kind": self.installation.get("kind"),
                    "name": self.object.name,
                    "uid": Metadata::of(self.installation).uid(),
                }],
            },
            "data": part.data,
        });
        serde_json::from_value(config_map_manifest).map_err(|error| Failure::Unknown(format!("its ConfigMap: {error}")))
    }

    /// Writes the effect of component version overwrites into annotations of the Installation. `note`, the summary of
    /// the component tree, is written into `portcullis.dev/overwrite-tree`, and `effect` into
    /// `portcullis.dev/overwrite-patch` and `portcullis.dev/overwrite-source`. If `note` or `effect` is `None`, its
    /// annotations are removed.
    ///
    /// If the admission webhook has applied the overwrites to the Installation, the annotations for `effect` belong to
    /// the webhook. In this case, the function does not change them.
    async fn annotate(&self, effect: Option<&Effect>, note: Option<&Note>) -> Result<(), Failure> {
        // A note consists of JSON values, so it serializes.
        let note = note.map(|note| serde_json::to_string(note).unwrap_or_default());
        let mut wanted = vec![(TREE_ANNOTATION, note)];
        if !self.is_applied() {
            wanted.extend(annotations(effect.filter(|effect| effect.changes_anything())));
        }
        wanted.retain(|(key, text)| super::own(self.installation, key) != *text);
        if wanted.is_empty() {
            return Ok(());
        }
        let members: Map<_, _> = wanted.into_iter().map(|(key, text)| (key.to_owned(), text.into())).collect();
        let version = Metadata::of(self.installation).resource_version();
        let patch = json!({"metadata": {"resourceVersion": version, "annotations": members}});
        self.patch("", patch, "writing its annotations").await
    }

    fn is_applied(&self) -> bool {
        let source = super::own(self.installation, SOURCE_ANNOTATION).unwrap_or_default();
        let source: Value = serde_json::from_str(&source).unwrap_or_default();
        source.get("mode").is_some_and(|mode| mode == "apply")
    }

    /// Writes `condition`, Landscaper's condition about component version overwrites, into the status of the
    /// Installation.
    pub(super) async fn condition(&self, condition: &Condition) -> Result<(), Failure> {
        let read = cluster::read(&self.tools.client, self.object).await.map_err(Failure::api("reading it"))?;
        let Some(installation) = read else { return Ok(()) };
        let now = Timestamp::now().round(Unit::Second).unwrap_or(Timestamp::UNIX_EPOCH).to_string();
        let stored = installation.pointer("/status/conditions").and_then(Value::as_array).cloned().unwrap_or_default();
        let Some(conditions) = conditions::with(&stored, condition, &now) else { return Ok(()) };
        let version = Metadata::of(&installation).resource_version();
        // Required in a status; Landscaper writes 0 before it has observed anything.
        let observed = installation.pointer("/status/observedGeneration").cloned().unwrap_or(json!(0));
        let status = json!({"observedGeneration": observed, "conditions": conditions});
        let patch = json!({"metadata": {"resourceVersion": version}, "status": status});
        self.patch("status", patch, "writing its condition").await
    }

    async fn patch(&self, subresource: &str, patch: Value, doing: &'static str) -> Result<(), Failure> {
        let api = cluster::api(&self.tools.client, self.object);
        let params = PatchParams { field_manager: Some(MANAGER.to_owned()), ..PatchParams::default() };
        let (name, patch) = (&self.object.name, Patch::Merge(patch));
        let written = match subresource {
            "" => api.patch(name, &params, &patch).await,
            subresource => api.patch_subresource(subresource, name, &params, &patch).await,
        };
        match written {
            Ok(_) => Ok(()),
            // The Installation was deleted in the meantime.
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
            Err(error) => Err(Failure::api(doing)(error)),
        }
    }

    /// Publishes an Event if the overwritten component references have changed. `before` is the previous summary of
    /// these references, and `now` contains the lines of the new summary. Does nothing if `before` is `None`.
    async fn report_difference(&self, before: Option<&str>, now: &[String]) {
        let Some(note) = before.and_then(|before| difference(before, now)) else { return };
        let (namespace, name) = (self.object.namespace.as_str(), self.object.name.as_str());
        tracing::info!(namespace, name, references = now.len(), "the effect of overwrites on its tree has changed");
        self.publish(Severity::Normal, "ComponentsOverwritten", &note).await;
    }

    /// Publishes a Warning Event for each new problem in `note`, such as a component version that does not exist. A
    /// problem is new if the current annotation `portcullis.dev/overwrite-tree` of the Installation does not contain
    /// it.
    async fn report_problems(&self, note: &Note) {
        let before = Note::read(self.installation).unwrap_or_default();
        for missing in note.missing.iter().filter(|missing| !before.missing.contains(missing)) {
            let near = match missing.nearest.join(", ") {
                near if near.is_empty() => near,
                near => format!("; the closest versions are {near}"),
            };
            let text = format!("{}: overwritten to {}, which does not exist{near}", missing.way, missing.target);
            self.publish(Severity::Warning, "OverwriteTargetMissing", &text).await;
        }
        for split in note.splits.iter().filter(|split| !before.splits.contains(split)) {
            self.publish(Severity::Warning, "DifferentVersions", split).await;
        }
    }

    async fn publish(&self, severity: Severity, reason: &str, note: &str) {
        // Events with the same reason and action are aggregated under the first note. So the action contains a hash of
        // the note.
        let hash: String = digest::hex(note.as_bytes()).chars().take(8).collect();
        self.tools.events.publish(self.installation, severity, reason, &format!("Overwrite-{hash}"), note).await;
    }
}

fn summary(config_map: &Value) -> String {
    let text = config_map.get("data").and_then(|data| data.get(SUMMARY_KEY)?.as_str());
    text.unwrap_or_default().to_owned()
}
