//! Namespaces, prefixes and suffixes, labels, replicas.
//!
//! Source: `NamespaceTransformer`, `PrefixTransformer`, `LabelTransformer` and `ReplicaCountTransformer` in kustomize's
//! `api/internal/builtins`.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use serde_json::{Map, Value};

use super::{Layer, Walk};
use crate::admission::FieldPath;
use crate::kustomize::accumulate::{Accumulator, Id, Object};
use crate::kustomize::finding::Site;
use crate::kustomize::rules::kz030;

/// The kinds whose `spec.replicas` is set.
const SCALED: [&str; 4] = ["Deployment", "StatefulSet", "ReplicaSet", "ReplicationController"];

impl Walk<'_> {
    /// Applies `namespace`: moves namespaced objects, and renames Namespace objects.
    pub(super) fn namespace(&mut self, layer: &Layer<'_>, acc: &mut Accumulator) {
        let namespace = &layer.kustomization().namespace;
        if namespace.is_empty() {
            return;
        }
        self.adds(format!("namespace {namespace}"));
        let site = layer.site(FieldPath::of(["namespace"]));
        if acc.custom_names {
            self.unsure(acc, &site, "configurations change which namespaces are set");
            return;
        }
        let mut count: HashMap<Id, usize> = HashMap::new();
        for object in acc.objects().iter().filter(|object| object.sure) {
            *count.entry(object.id.effective()).or_default() += 1;
        }
        for at in 0..acc.objects().len() {
            let Some(object) = acc.objects_mut().get_mut(at) else { continue };
            let before = object.id.effective();
            object.remember();
            if object.id.kind == "Namespace" && object.id.api_version() == "v1" {
                object.id.name.clone_from(namespace);
            }
            if !object.id.is_cluster_scoped() {
                object.id.namespace.clone_from(namespace);
            }
            if !object.sure {
                continue;
            }
            let (id, made) = (object.id.clone(), Arc::clone(&object.site));
            if let Some(old) = count.get_mut(&before) {
                *old -= 1;
            }
            let same = count.entry(id.effective()).or_default();
            *same += 1;
            if *same > 1 {
                self.report(kz030::same_in_namespace(site.clone(), &id, &before, &made));
            }
        }
    }

    /// Applies `namePrefix`, then `nameSuffix`.
    pub(super) fn affix(&mut self, layer: &Layer<'_>, acc: &mut Accumulator) {
        let kustomization = layer.kustomization();
        let affixes = [("namePrefix", &kustomization.name_prefix), ("nameSuffix", &kustomization.name_suffix)];
        for (field, text) in affixes.into_iter().filter(|(_, text)| !text.is_empty()) {
            self.adds(format!("{field} {text}"));
            if acc.custom_names {
                self.unsure(acc, &layer.site(FieldPath::of([field])), "configurations change which names are set");
                continue;
            }
            for object in acc.objects_mut().iter_mut().filter(|object| !keeps_its_name(&object.original())) {
                object.remember();
                let name = &object.id.name;
                object.id.name = if field == "namePrefix" { format!("{text}{name}") } else { format!("{name}{text}") };
            }
        }
    }

    fn unsure(&mut self, acc: &mut Accumulator, site: &crate::kustomize::finding::Site, why: &str) {
        acc.objects_mut().iter_mut().for_each(|object| object.sure = false);
        self.uncertainty(site, why);
    }

    /// Applies `labels`, `commonLabels` and `commonAnnotations`.
    pub(super) fn labels(&mut self, layer: &Layer<'_>, acc: &mut Accumulator) {
        let kustomization = layer.kustomization();
        let site = |field| Arc::new(layer.site(FieldPath::of([field])));
        for label in &kustomization.labels {
            let deep = label.include_selectors || label.include_templates || !label.fields.is_empty();
            put(acc, "labels", &label.pairs, deep, &site("labels"));
        }
        put(acc, "labels", &kustomization.common_labels, true, &site("commonLabels"));
        put(acc, "annotations", &kustomization.common_annotations, true, &site("commonAnnotations"));
        let pairs = kustomization.labels.iter().map(|label| label.pairs.len()).sum::<usize>();
        let all = [
            ("labels", pairs + kustomization.common_labels.len()),
            ("annotations", kustomization.common_annotations.len()),
        ];
        for (what, count) in all.into_iter().filter(|(_, count)| *count > 0) {
            self.adds(format!("{count} {what}"));
        }
    }

    /// Applies `replicas`, which must find an object to scale.
    pub(super) fn replicas(&mut self, layer: &Layer<'_>, acc: &mut Accumulator) {
        for (index, replica) in layer.kustomization().replicas.iter().enumerate() {
            let site = layer.site(FieldPath::of(["replicas"]).index(index));
            self.adds(format!("replicas of {}", replica.name));
            let is_meant = |object: &Object| {
                object.sure && object.ids().any(|id| id.name == replica.name && SCALED.contains(&id.kind.as_str()))
            };
            let mut found = false;
            let mut odd = false;
            for object in acc.objects_mut().iter_mut().filter(|object| is_meant(object)) {
                found = true;
                odd |= object.raw().get("spec").is_some_and(|spec| !spec.is_object());
                object.invalidate("/spec/replicas");
            }
            if odd {
                self.uncertainty(&site, format!("the spec of {} is no mapping", replica.name));
            }
            if found || !acc.complete {
                continue;
            }
            if acc.is_certain() && !acc.custom_replicas {
                let names = acc.objects().iter().filter(|object| SCALED.contains(&object.id.kind.as_str()));
                let names: Vec<_> = names.map(|object| object.id.name.as_str()).collect();
                self.report(kz030::nothing_to_scale(site, &replica.name, &names));
            } else {
                self.uncertainty(&site, format!("whether {} is there to be scaled is not certain", replica.name));
            }
        }
    }
}

/// Returns whether prefixes and suffixes do not apply to the kind.
fn keeps_its_name(id: &Id) -> bool {
    match id.kind.as_str() {
        "CustomResourceDefinition" | "Namespace" => true,
        "APIService" => id.group == "apiregistration.k8s.io",
        _ => false,
    }
}

fn put(acc: &mut Accumulator, field: &str, pairs: &BTreeMap<String, String>, deep: bool, site: &Arc<Site>) {
    if pairs.is_empty() {
        return;
    }
    for object in acc.objects_mut() {
        if deep {
            object.invalidate("/spec");
        }
        let mapping = format!("/metadata/{field}");
        let before = |key: &&String| object.raw()["metadata"][field].get(key.as_str()).is_none();
        let fresh: Vec<_> = pairs.keys().filter(before).collect();
        fresh.into_iter().for_each(|key| object.write_key(&mapping, key, site));
        if let Some(content) = object.raw_mut().as_object_mut() {
            // a list without items may have none
            content.entry("metadata").or_insert_with(|| Value::Object(Map::new()));
        }
        let metadata = object.raw_mut().get_mut("metadata").and_then(Value::as_object_mut);
        let Some(metadata) = metadata else { continue };
        let labels = metadata.entry(field).or_insert_with(|| Value::Object(Map::new()));
        if labels.is_null() {
            *labels = Value::Object(Map::new());
        }
        if let Some(labels) = labels.as_object_mut() {
            labels.extend(pairs.iter().map(|(key, value)| (key.clone(), value.as_str().into())));
        }
    }
}
