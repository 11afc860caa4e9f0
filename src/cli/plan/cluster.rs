//! Reads a Flux Kustomization from a cluster. Also reads the other Kustomizations with the same source, and the objects
//! in the inventory of the Kustomization.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Mutex;

use kube::api::{Api, ApiResource, DynamicObject, GroupVersionKind, ListParams};
use kube::{Client, discovery};
use serde_json::Value;

use super::super::{Unusable, inputs};
use crate::admission::Metadata;
use crate::kustomize::delivery::{Artifact, Sibling, source};
use crate::kustomize::identity::ObjectId;

/// The Flux Kustomization whose effects `portcullis plan` shows, and a client of its cluster.
pub(super) struct Cluster {
    client: Client,
    kustomization: Value,
    siblings: Vec<Value>,
    /// The resources that were looked up, by API group and kind; `None` for kinds that the cluster does not serve.
    resources: Mutex<HashMap<(String, String), Option<Served>>>,
}

/// A resource that the cluster serves, and whether its objects are namespaced.
type Served = (ApiResource, bool);

impl Cluster {
    /// Reads a Flux Kustomization, and the other Kustomizations that have the same source and apply their objects to
    /// the same cluster.
    pub(super) async fn open(kubeconfig: Option<&Path>, namespace: &str, name: &str) -> Result<Self, Unusable> {
        let client = inputs::client(kubeconfig).await?;
        let kind = GroupVersionKind::gvk("kustomize.toolkit.fluxcd.io", "v1", "Kustomization");
        let resource = ApiResource::from_gvk_with_plural(&kind, "kustomizations");
        let failed = |error| Unusable::because(format!("Kustomization {namespace}/{name}"), reason(error));
        let own: Api<DynamicObject> = Api::namespaced_with(client.clone(), namespace, &resource);
        let kustomization = to_value(&own.get(name).await.map_err(failed)?);
        let all: Api<DynamicObject> = Api::all_with(client.clone(), &resource);
        let all = all.list(&ListParams::default()).await.map_err(failed)?;
        let mut siblings: Vec<_> = all.items.iter().map(to_value).collect();
        siblings.retain(|other| is_sibling(other, &kustomization) && named(other) != named(&kustomization));
        Ok(Self { client, kustomization, siblings, resources: Mutex::default() })
    }

    /// Returns the Kustomization whose effects `portcullis plan` shows.
    pub(super) fn kustomization(&self) -> &Value {
        &self.kustomization
    }

    /// Returns the other Kustomizations that have the same source and apply their objects to the same cluster.
    pub(super) fn siblings(&self) -> &[Value] {
        &self.siblings
    }

    /// Reads the source of the Kustomization, such as a GitRepository. Returns its name for messages, and the object.
    pub(super) async fn source(&self) -> Result<(String, Value), Unusable> {
        let [kind, namespace, name] = source_of(&self.kustomization);
        let shown = format!("{kind} {namespace}/{name}");
        let Some(kind) = source::kind(kind) else {
            return Err(Unusable::because(
                shown,
                "artifacts of this kind of source cannot be fetched; use --source DIR",
            ));
        };
        let resource = GroupVersionKind::gvk(kind.group, kind.version, kind.kind);
        let resource = ApiResource::from_gvk_with_plural(&resource, kind.plural);
        let api: Api<DynamicObject> = Api::namespaced_with(self.client.clone(), namespace, &resource);
        match api.get(name).await {
            Ok(found) => Ok((shown, to_value(&found))),
            Err(error) => Err(Unusable::because(shown, reason(error))),
        }
    }

    /// Returns the root and the options with which Flux builds the Kustomization `object`. Includes those variables of
    /// `substituteFrom` that can be read. `None` if the Kustomization is suspended or has no source. Also `None` if its
    /// source, path or components contain unresolved variables.
    pub(super) async fn build(&self, object: &Value, artifact: &Artifact) -> Option<Sibling> {
        let mut sibling = Sibling::of(object, artifact)?;
        if let Some(post_build) = &mut sibling.root.options.flux.post_build {
            let mut values = std::collections::BTreeMap::new();
            let mut unknown = Vec::new();
            for reference in std::mem::take(&mut post_build.from) {
                match self.variables(&reference, Metadata::of(object).namespace()).await {
                    Some(variables) => values.extend(variables),
                    None => unknown.push(reference),
                }
            }
            values.extend(std::mem::take(&mut post_build.substitute));
            (post_build.substitute, post_build.from) = (values, unknown);
        }
        Some(sibling)
    }

    /// Returns the variables that a ConfigMap or Secret defines for `substituteFrom`. `reference` is the kind and name
    /// of this object, such as `ConfigMap/settings`. `None` if the object cannot be read.
    async fn variables(&self, reference: &str, namespace: &str) -> Option<Vec<(String, String)>> {
        use k8s_openapi::api::core::v1::{ConfigMap, Secret};
        let (kind, name) = reference.split_once('/')?;
        let plain = |(key, value): (String, String)| (key, value.replace('\n', ""));
        match kind {
            "ConfigMap" => {
                let api: Api<ConfigMap> = Api::namespaced(self.client.clone(), namespace);
                Some(api.get(name).await.ok()?.data.unwrap_or_default().into_iter().map(plain).collect())
            }
            "Secret" => {
                let api: Api<Secret> = Api::namespaced(self.client.clone(), namespace);
                let data = api.get(name).await.ok()?.data.unwrap_or_default().into_iter();
                data.map(|(key, value)| Some(plain((key, String::from_utf8(value.0).ok()?)))).collect()
            }
            _ => None,
        }
    }

    /// Returns the metadata of a live object; `None` if the object or its kind does not exist.
    ///
    /// # Errors
    ///
    /// Fails with a message if the object cannot be read, or if it is in the remote cluster of `spec.kubeConfig`.
    pub(super) async fn live(&self, id: &ObjectId) -> Result<Option<Value>, String> {
        if self.kustomization.pointer("/spec/kubeConfig").is_some_and(|config| !config.is_null()) {
            return Err("it is in the cluster of spec.kubeConfig".to_owned());
        }
        let Some((resource, is_namespaced)) = self.resource(id).await? else { return Ok(None) };
        let api: Api<DynamicObject> = match is_namespaced {
            true => Api::namespaced_with(self.client.clone(), &id.namespace, &resource),
            false => Api::all_with(self.client.clone(), &resource),
        };
        match api.get_metadata_opt(&id.name).await {
            Ok(found) => Ok(found.map(|found| serde_json::json!({"metadata": found.metadata}))),
            Err(error) => Err(reason(error)),
        }
    }

    /// Removes the namespaces from the ids of cluster-scoped objects, and returns all ids. kustomize adds a namespace
    /// to objects of kinds that it does not know, but the cluster stores cluster-scoped objects without one.
    pub(super) async fn stored(&self, mut ids: Vec<ObjectId>) -> Vec<ObjectId> {
        for id in ids.iter_mut().filter(|id| !id.namespace.is_empty()) {
            if let Ok(Some((_, false))) = self.resource(id).await {
                id.namespace.clear();
            }
        }
        ids
    }

    async fn resource(&self, id: &ObjectId) -> Result<Option<Served>, String> {
        let key = (id.group.clone(), id.kind.clone());
        let known = |resources: &Mutex<HashMap<_, _>>| resources.lock().ok()?.get(&key).cloned();
        if let Some(known) = known(&self.resources) {
            return Ok(known);
        }
        let group = match discovery::group(&self.client, &id.group).await {
            Ok(group) => Some(group),
            Err(kube::Error::Discovery(_)) => None,
            Err(error) => return Err(reason(error)),
        };
        let found = group.and_then(|group| group.recommended_kind(&id.kind));
        let found =
            found.map(|(resource, capabilities)| (resource, capabilities.scope == discovery::Scope::Namespaced));
        if let Ok(mut resources) = self.resources.lock() {
            resources.insert(key, found.clone());
        }
        Ok(found)
    }
}

/// Returns the text of an error. For an error that the API server returned, the text is only the message in the
/// response. This message says, for example, which permission is missing.
fn reason(error: kube::Error) -> String {
    match error {
        kube::Error::Api(status) => status.message,
        other => other.to_string(),
    }
}

fn to_value(object: &DynamicObject) -> Value {
    // The API server sent the object as JSON, so it serializes.
    serde_json::to_value(object).unwrap_or_default()
}

/// Returns whether two Flux Kustomizations have the same source and apply their objects to the same cluster.
fn is_sibling(one: &Value, other: &Value) -> bool {
    source_of(one) == source_of(other) && one.pointer("/spec/kubeConfig") == other.pointer("/spec/kubeConfig")
}

fn named(object: &Value) -> (&str, &str) {
    let metadata = Metadata::of(object);
    (metadata.namespace(), metadata.name())
}

/// Returns kind, namespace and name of the source of a Flux Kustomization.
fn source_of(object: &Value) -> [&str; 3] {
    let text =
        |key: &str| object.pointer(&format!("/spec/sourceRef/{key}")).and_then(Value::as_str).unwrap_or_default();
    let namespace = Some(text("namespace")).filter(|namespace| !namespace.is_empty());
    [text("kind"), namespace.unwrap_or_else(|| Metadata::of(object).namespace()), text("name")]
}
