//! Parses Flux's inventory, which lists the objects that a Kustomization applied. Compares the inventory with the
//! objects that a revision renders.
//!
//! Source: `ObjMetadata` in fluxcd/cli-utils' `pkg/object`, and `Diff` in kustomize-controller's `internal/inventory`.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use crate::admission::json::Lookup as _;
use crate::kustomize::identity::ObjectId;

/// Length of the hash that kustomize appends to the names of generated objects.
const HASH: usize = 10;
/// The 16 characters of the hashes that kustomize appends to the names of generated objects. They are the hexadecimal
/// digits, but kustomize replaces the digits 0, 1, 3, a and e with g, h, k, m and t. This prevents hashes that look
/// like offensive words.
const HASH_LETTERS: &str = "2456789bcdfghkmt";

impl ObjectId {
    /// Parses an inventory entry of the form `NAMESPACE_NAME_GROUP_KIND`. `__` in the name stands for a colon. Returns
    /// `None` if the text does not have this form.
    pub fn parse(id: &str) -> Option<Self> {
        let (namespace, rest) = id.split_once('_')?;
        let (rest, kind) = rest.rsplit_once('_')?;
        let (name, group) = rest.rsplit_once('_')?;
        let name = name.replace("__", ":");
        Some(Self { namespace: namespace.to_owned(), name, group: group.to_owned(), kind: kind.to_owned() })
    }

    /// Returns the identity that Flux reads from the inventory entry of this object. The identity can differ from the
    /// object's own, because Flux reads `__` in the name as a colon.
    fn as_parsed(&self) -> Self {
        Self { name: self.name.replace("__", ":"), ..self.clone() }
    }

    /// Formats the identity as an entry of an inventory. This is the inverse of [`ObjectId::parse`].
    pub fn to_entry(&self) -> String {
        format!("{}_{}_{}_{}", self.namespace, self.name.replace(':', "__"), self.group, self.kind)
    }

    /// Returns the identities in `status.inventory` of a Flux Kustomization. Skips entries that cannot be parsed. Flux
    /// cannot parse them either, so it does not delete their objects.
    pub fn of_inventory(kustomization: &Value) -> Vec<Self> {
        let entries = kustomization.at(&["status", "inventory", "entries"]).and_then(Value::as_array);
        entries.into_iter().flatten().filter_map(|entry| Self::parse(entry.get("id")?.as_str()?)).collect()
    }

    /// Returns the name, group and kind, without the namespace. Cluster-scoped objects are compared without the
    /// namespace, because kustomize may have set a namespace in such an object. This happens if kustomize does not know
    /// that the kind of the object is cluster-scoped.
    fn without_namespace(&self) -> (&str, &str, &str) {
        (&self.name, &self.group, &self.kind)
    }

    /// Returns the identity of a generated ConfigMap or Secret without the hash in its name: namespace, name, group and
    /// kind. `None` for other objects.
    fn stem(&self) -> Option<(&str, &str, &str, &str)> {
        let (stem, hash) = self.name.rsplit_once('-')?;
        let is_hash = hash.len() == HASH && hash.chars().all(|letter| HASH_LETTERS.contains(letter));
        let is_generated = is_hash && self.group.is_empty() && ["ConfigMap", "Secret"].contains(&&*self.kind);
        is_generated.then_some((&self.namespace, stem, &self.group, &self.kind))
    }
}

/// The differences between an inventory and the objects that a revision renders.
#[derive(Debug, Default)]
pub(in crate::kustomize) struct Compared<'p> {
    /// The applied objects that the revision no longer renders. Generated objects that change only the hash in their
    /// names are in `replaced` instead.
    pub(in crate::kustomize) stale: Vec<&'p ObjectId>,
    /// The generated objects whose old and new names differ only in the hash. Each tuple contains the old object and
    /// the new object.
    pub(in crate::kustomize) replaced: Vec<(&'p ObjectId, &'p ObjectId)>,
    /// The rendered objects that are not in the inventory. Generated objects that change only the hash in their names
    /// are in `replaced` instead.
    pub(in crate::kustomize) created: Vec<&'p ObjectId>,
}

impl<'p> Compared<'p> {
    /// Compares the objects in an inventory with the objects that a revision renders.
    pub(in crate::kustomize) fn of(inventory: &'p [ObjectId], rendered: &'p [ObjectId]) -> Self {
        if inventory.is_empty() {
            return Self { created: rendered.iter().collect(), ..Self::default() };
        }
        let (mut compared, mut created) = (Self::default(), added(inventory, rendered));
        let by_stem: HashMap<_, &ObjectId> = created.iter().filter_map(|id| Some((id.stem()?, *id))).collect();
        for old in dropped(inventory, rendered) {
            match old.stem().and_then(|stem| by_stem.get(&stem)) {
                Some(new) => compared.replaced.push((old, new)),
                None => compared.stale.push(old),
            }
        }
        let successors: HashSet<&ObjectId> = compared.replaced.iter().map(|(_, new)| *new).collect();
        created.retain(|id| !successors.contains(id));
        Self { created, ..compared }
    }
}

/// Returns the objects of an inventory that are no longer rendered.
fn dropped<'p>(inventory: &'p [ObjectId], rendered: &[ObjectId]) -> Vec<&'p ObjectId> {
    // Flux converts the new objects to inventory entries before it compares, so `__` in a name becomes a colon.
    let rendered: Vec<_> = rendered.iter().map(ObjectId::as_parsed).collect();
    let ids: HashSet<&ObjectId> = rendered.iter().collect();
    let global: HashSet<_> = rendered.iter().map(ObjectId::without_namespace).collect();
    let is_rendered =
        |id: &&ObjectId| ids.contains(id) || id.namespace.is_empty() && global.contains(&id.without_namespace());
    inventory.iter().filter(|id| !is_rendered(id)).collect()
}

/// Returns the rendered objects that are not in an inventory.
fn added<'p>(inventory: &[ObjectId], rendered: &'p [ObjectId]) -> Vec<&'p ObjectId> {
    let ids: HashSet<&ObjectId> = inventory.iter().collect();
    let global = inventory.iter().filter(|id| id.namespace.is_empty()).map(ObjectId::without_namespace);
    let global: HashSet<_> = global.collect();
    let is_applied = |id: &&ObjectId| {
        let parsed = id.as_parsed();
        ids.contains(&parsed) || global.contains(&parsed.without_namespace())
    };
    rendered.iter().filter(|id| !is_applied(id)).collect()
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

    fn shown(ids: &[&ObjectId]) -> Vec<String> {
        ids.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn compares_as_the_cluster_stores_objects() {
        let inventory = ids(&[
            "_x_example.org_Cluster",
            "_a__b_rbac.authorization.k8s.io_ClusterRole",
            "a_c-2428d88g5t__ConfigMap",
            "a_c-tools__ConfigMap",
            "a_w_apps_Deployment",
        ]);
        // an unknown kind gets a namespace, a hash changes, the version is no part of the identity
        let mut rendered = ids(&["a_x_example.org_Cluster", "a_c-thf66bgm55__ConfigMap", "b_w_apps_Deployment"]);
        let group = "rbac.authorization.k8s.io".to_owned();
        rendered.push(ObjectId { group, kind: "ClusterRole".into(), namespace: String::new(), name: "a__b".into() });
        let compared = Compared::of(&inventory, &rendered);
        assert_eq!(shown(&compared.stale), ["ConfigMap a/c-tools", "Deployment.apps a/w"]);
        assert_eq!(shown(&compared.created), ["Deployment.apps b/w"]);
        let replaced: Vec<_> = compared.replaced.iter().map(|(old, new)| shown(&[old, new])).collect();
        assert_eq!(replaced, [["ConfigMap a/c-2428d88g5t", "ConfigMap a/c-thf66bgm55"]]);
    }

    #[test]
    fn a_word_of_ten_letters_is_no_hash() {
        let (inventory, rendered) = (ids(&["a_c-production__ConfigMap"]), ids(&["a_c-monitoring__ConfigMap"]));
        let compared = Compared::of(&inventory, &rendered);
        assert_eq!(shown(&compared.stale), ["ConfigMap a/c-production"]);
        assert!(compared.replaced.is_empty());
    }

    #[test]
    fn an_object_whose_successor_was_applied_before_is_stale() {
        let inventory = ids(&["a_c-2428d88g5t__ConfigMap", "a_c-thf66bgm55__ConfigMap"]);
        let compared = Compared::of(&inventory, &inventory[1..]);
        assert_eq!(shown(&compared.stale), ["ConfigMap a/c-2428d88g5t"]);
    }
}
