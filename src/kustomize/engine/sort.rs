//! Sorts objects into the order in which they are printed.
//!
//! Source: kustomize's `SortOrderTransformer` and `resid.Gvk.IsLessThan`.

use std::cmp::Ordering;

use super::resmap::ResMap;
use crate::kustomize::identity::{Gvk, Id};

const FIRST: [&str; 22] = [
    "Namespace",
    "ResourceQuota",
    "StorageClass",
    "CustomResourceDefinition",
    "ServiceAccount",
    "PodSecurityPolicy",
    "Role",
    "ClusterRole",
    "RoleBinding",
    "ClusterRoleBinding",
    "ConfigMap",
    "Secret",
    "Endpoints",
    "Service",
    "LimitRange",
    "PriorityClass",
    "PersistentVolume",
    "PersistentVolumeClaim",
    "Deployment",
    "StatefulSet",
    "CronJob",
    "PodDisruptionBudget",
];
const LAST: [&str; 2] = ["MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"];

/// An order of kinds. It lists the kinds that come before all other kinds, and the kinds that come after them.
#[derive(Debug, Clone)]
pub(super) struct Ranks {
    first: Vec<String>,
    last: Vec<String>,
}

impl Default for Ranks {
    fn default() -> Self {
        Self::new(FIRST.map(str::to_owned).into(), LAST.map(str::to_owned).into())
    }
}

impl Ranks {
    /// Creates an order of kinds. The kinds `first` come before all other kinds, and the kinds `last` come after them.
    pub(super) fn new(first: Vec<String>, last: Vec<String>) -> Self {
        Self { first, last }
    }

    fn of(&self, kind: &str) -> isize {
        if let Some(at) = self.last.iter().rposition(|own| own == kind) {
            return at as isize + 1;
        }
        self.first.iter().rposition(|own| own == kind).map_or(0, |at| at as isize - self.first.len() as isize)
    }
}

/// Sorts objects by kind, namespace and name. This is kustomize's order `legacy`. `ranks` is the order of kinds.
pub(super) fn legacy(map: &mut ResMap, ranks: &Ranks) {
    let scope = map.scope.clone();
    let resources = map.resources_mut();
    let ids = resources.iter().map(|resource| resource.id(&scope));
    let keys: Vec<_> = ids.map(|id| (ranks.of(id.gvk.kind), id)).collect();
    let mut order: Vec<_> = (0..keys.len()).collect();
    order.sort_by(|a, b| {
        let ((rank_a, a), (rank_b, b)) = (&keys[*a], &keys[*b]);
        if a.gvk == b.gvk { id_text(a).cmp(id_text(b)) } else { by_rank(&a.gvk, &b.gvk, *rank_a, *rank_b) }
    });
    let mut sorted: Vec<_> = std::mem::take(resources).into_iter().map(Some).collect();
    resources.extend(order.into_iter().filter_map(|at| sorted[at].take()));
}

fn by_rank(a: &Gvk<'_>, b: &Gvk<'_>, rank_a: isize, rank_b: isize) -> Ordering {
    let order = gvk_text(a).cmp(gvk_text(b));
    let are_namespaces = a.kind == "Namespace" && b.kind == "Namespace";
    let is_turned = are_namespaces && (a.group.is_empty() || b.group.is_empty());
    rank_a.cmp(&rank_b).then(if is_turned { order.reverse() } else { order })
}

/// Compares group, version and kind of two field specs, by kustomize's default order of kinds.
pub(super) fn by_kind(a: &Gvk<'_>, b: &Gvk<'_>) -> Ordering {
    rank(a.kind).cmp(&rank(b.kind)).then_with(|| gvk_text(a).cmp(gvk_text(b)))
}

fn rank(kind: &str) -> isize {
    if let Some(at) = LAST.iter().position(|own| *own == kind) {
        return at as isize + 1;
    }
    FIRST.iter().position(|own| *own == kind).map_or(0, |at| at as isize - FIRST.len() as isize)
}

/// Returns the text of a group, version and kind, as bytes. kustomize compares these texts to sort kinds.
fn gvk_text<'r>(gvk: &Gvk<'r>) -> impl Iterator<Item = u8> + use<'r> {
    let [group, version, kind] = [(gvk.group, "~G"), (gvk.version, "~V"), (gvk.kind, "~K")].map(or);
    [group, "_", version, "_", kind].into_iter().flat_map(str::bytes)
}

/// Returns the text of an object's namespace and name, as bytes. kustomize compares these texts to sort objects of the
/// same kind.
fn id_text<'r>(id: &Id<'r>) -> impl Iterator<Item = u8> + use<'r> {
    [or((id.namespace, "~X")), "|", or((id.name, "~N"))].into_iter().flat_map(str::bytes)
}

fn or<'t>((text, none): (&'t str, &'t str)) -> &'t str {
    if text.is_empty() { none } else { text }
}
