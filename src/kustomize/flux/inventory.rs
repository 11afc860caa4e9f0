//! Flux's inventory of the objects that a Kustomization applied, and which of them a revision does not render any more.
//!
//! Source: `ObjMetadata` in fluxcd/cli-utils' `pkg/object`, and `Diff` in kustomize-controller's `internal/inventory`.

use std::collections::HashSet;

use serde_json::Value;

use crate::kustomize::object_id::ObjectId;

/// Letters of the hash that kustomize appends to the names of generated objects.
const HASH: usize = 10;

impl ObjectId {
    /// Parses an entry: `NAMESPACE_NAME_GROUP_KIND`, with `__` for a colon in the name. `None` for other texts.
    pub fn parse(id: &str) -> Option<Self> {
        let (namespace, rest) = id.split_once('_')?;
        let (rest, kind) = rest.rsplit_once('_')?;
        let (name, group) = rest.rsplit_once('_')?;
        let name = name.replace("__", ":");
        Some(Self { namespace: namespace.to_owned(), name, group: group.to_owned(), kind: kind.to_owned() })
    }

    /// Returns the identity that Flux reads from the entry of this object: `__` in a name stands for a colon.
    fn as_parsed(&self) -> Self {
        Self { name: self.name.replace("__", ":"), ..self.clone() }
    }

    /// Returns the entry of an inventory; see [`ObjectId::parse`].
    pub fn to_entry(&self) -> String {
        format!("{}_{}_{}_{}", self.namespace, self.name.replace(':', "__"), self.group, self.kind)
    }

    /// Returns the identities in `status.inventory` of a Kustomization. Unreadable entries are left out, as Flux cannot delete
    /// them either.
    pub fn of_inventory(kustomization: &Value) -> Vec<Self> {
        let entries = kustomization.pointer("/status/inventory/entries").and_then(Value::as_array);
        entries.into_iter().flatten().filter_map(|entry| Self::parse(entry.get("id")?.as_str()?)).collect()
    }

    /// Returns the identity without the namespace: kustomize adds one to objects of unknown kinds, which may have none in the
    /// cluster.
    fn without_namespace(&self) -> (&str, &str, &str) {
        (&self.name, &self.group, &self.kind)
    }

    /// Returns the identity without the hash in the name of a generated object.
    fn stem(&self) -> Option<(&str, &str, &str, &str)> {
        let (stem, hash) = self.name.rsplit_once('-')?;
        let is_generated =
            hash.len() == HASH && self.group.is_empty() && ["ConfigMap", "Secret"].contains(&&*self.kind);
        is_generated.then_some((&self.namespace, stem, &self.group, &self.kind))
    }
}

/// Returns the objects of an inventory that are not rendered any more, without generated ones that only have another hash in
/// their names.
pub(in crate::kustomize) fn stale<'i>(inventory: &'i [ObjectId], rendered: &[ObjectId]) -> Vec<&'i ObjectId> {
    // Flux writes the new objects into an inventory too, before it compares.
    let rendered: Vec<_> = rendered.iter().map(ObjectId::as_parsed).collect();
    let ids: HashSet<&ObjectId> = rendered.iter().collect();
    let global: HashSet<_> = rendered.iter().map(ObjectId::without_namespace).collect();
    let stems: HashSet<_> = rendered.iter().filter_map(ObjectId::stem).collect();
    let is_rendered = |id: &&ObjectId| {
        ids.contains(id)
            || id.namespace.is_empty() && global.contains(&id.without_namespace())
            || id.stem().is_some_and(|stem| stems.contains(&stem))
    };
    inventory.iter().filter(|id| !is_rendered(id)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(texts: &[&str]) -> Vec<ObjectId> {
        texts.iter().map(|text| ObjectId::parse(text).unwrap()).collect()
    }

    #[test]
    fn parses_entries_as_flux_does() {
        for (entry, shown) in [
            ("t1_b__ConfigMap", "ConfigMap t1/b"),
            ("_s1ns__Namespace", "Namespace s1ns"),
            ("shop_web_apps_Deployment", "Deployment.apps shop/web"),
            ("_sys__x__y_rbac.authorization.k8s.io_ClusterRole", "ClusterRole.rbac.authorization.k8s.io sys:x:y"),
            ("_a_b_rbac.authorization.k8s.io_ClusterRole", "ClusterRole.rbac.authorization.k8s.io a_b"),
        ] {
            assert_eq!(ObjectId::parse(entry).unwrap().to_string(), shown);
        }
        assert_eq!(ObjectId::parse("a_b_c"), None);
    }

    #[test]
    fn compares_as_the_cluster_stores_objects() {
        let inventory = ids(&[
            "_x_example.org_Cluster",
            "a_c-2428d88g5t__ConfigMap",
            "a_c-tools__ConfigMap",
            "a_w_apps_Deployment",
        ]);
        // an unknown kind gets a namespace, a hash changes, the version is no part of the identity
        let rendered = ids(&["a_x_example.org_Cluster", "a_c-thf66bgm55__ConfigMap", "b_w_apps_Deployment"]);
        let stale: Vec<_> = stale(&inventory, &rendered).iter().map(ToString::to_string).collect();
        assert_eq!(stale, ["ConfigMap a/c-tools", "Deployment.apps a/w"]);
    }
}
