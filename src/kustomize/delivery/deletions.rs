//! Predicts which objects in the cluster Flux deletes because of a new revision of a source, and which objects move to
//! another Kustomization.
//!
//! Compares the inventory of a Kustomization with the objects that the revision renders. Also compares the inventory
//! with the objects that the other Kustomizations in the cluster render.

use std::collections::HashSet;
use std::sync::Arc;

use serde_json::Value;

use super::limits::{self, DeletionLimits};
use super::siblings::{self, Sibling, waits_for};
use super::{Consequences, Judged, Root};
use crate::admission::json::Lookup as _;
use crate::admission::{Finding, Metadata, Request};
use crate::catalog::View;
use crate::kustomize::flux::Compared;
use crate::kustomize::identity::ObjectId;
use crate::kustomize::rules::kz063::Order;
use crate::kustomize::rules::{kz060, kz061, kz062, kz063};

/// A check of the effects that creating or updating a Flux Kustomization has on the cluster. It reports objects that
/// Flux deletes, objects that several Kustomizations render, and objects that move to another Kustomization.
pub(super) static OF_UPDATES: Consequences =
    Consequences { siblings: siblings::of_request, findings: of_request, replaces_tree_findings: false };

/// The input for predicting deletions. It contains a Kustomization and its inventory. It also contains the objects that
/// a revision renders for this Kustomization and for the other Kustomizations.
pub struct Plan<'a> {
    /// The Flux Kustomization whose deletions are predicted, as JSON.
    pub kustomization: &'a Value,
    /// The objects that Flux applied before, from `status.inventory`.
    pub inventory: Vec<ObjectId>,
    /// The objects that kustomize builds for the Flux Kustomization in `kustomization`, from a revision of its source.
    pub rendered: &'a [ObjectId],
    /// The other Kustomizations that apply objects to the same cluster, each with the objects that it renders.
    /// Kustomizations that share the source of `kustomization` are built from the same revision.
    pub siblings: Vec<(&'a Sibling, &'a [ObjectId])>,
    /// The short form of the revision, for messages, such as `main@sha1:3f2c9a1b04de`.
    pub revision: String,
    /// The limits beyond which deletions are reported.
    pub limits: DeletionLimits,
}

/// A prediction of whether Flux deletes an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Deletion {
    /// Flux deletes the object.
    Certain,
    /// Flux may delete the object. Either the object in the cluster could not be read, or another Kustomization may
    /// take over the object before Flux deletes it.
    Possible,
    /// Flux does not delete the object.
    Never,
}

impl Deletion {
    /// Returns the word for this prediction in reports: `certain`, `possible` or `never`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Certain => "certain",
            Self::Possible => "possible",
            Self::Never => "never",
        }
    }
}

/// A set of objects that one Kustomization stops rendering, and that another Kustomization now renders. Also contains
/// the order in which Flux applies the two Kustomizations.
struct Move<'p> {
    to: &'p Sibling,
    objects: Vec<&'p ObjectId>,
    /// The order in which Flux applies the Kustomization that loses the objects and the Kustomization that gains them.
    /// `None` if Flux always applies the gaining Kustomization first. Flux then does not delete the objects, because
    /// they already belong to the gaining Kustomization.
    order: Option<Order<'p>>,
}

/// Returns findings about the effects of a request on objects in the cluster. For example, Flux deletes an object, or
/// an object moves from one Kustomization to another. `judged` is the result of building the folder `root`, and
/// `siblings` contains the results of the other Kustomizations.
///
/// Returns no findings if the rendered objects are unknown. Also returns no findings if `root.late` is set, because
/// Flux may then build another artifact than the checked one.
fn of_request(
    request: &Request<'_>,
    view: &View<'_>,
    (root, judged): (&Root, &Judged),
    siblings: &[(Sibling, Arc<Judged>)],
) -> Vec<Finding> {
    let (Some(rendered), Some(artifact), None) = (&judged.rendered, root.artifact(), root.late) else {
        return Vec::new();
    };
    let inventory = ObjectId::of_inventory(request.old_object());
    if inventory.is_empty() && siblings.is_empty() {
        return Vec::new();
    }
    let plan = Plan {
        kustomization: request.object(),
        inventory,
        rendered,
        siblings: with_objects(siblings),
        revision: artifact.short_revision(),
        limits: DeletionLimits::read(view.setting(limits::SECTION)),
    };
    plan.findings()
}

/// Returns the Kustomizations in `siblings` whose rendered objects are known, each with these objects.
pub fn with_objects(siblings: &[(Sibling, Arc<Judged>)]) -> Vec<(&Sibling, &[ObjectId])> {
    siblings.iter().filter_map(|(sibling, judged)| Some((sibling, judged.rendered.as_deref()?))).collect()
}

impl Plan<'_> {
    /// Returns findings about deleted objects (KZ060 and KZ061), objects that several Kustomizations render (KZ062),
    /// and objects that another Kustomization takes over (KZ063). Returns no findings if the Kustomization itself is
    /// being deleted.
    pub fn findings(&self) -> Vec<Finding> {
        if Metadata::of(self.kustomization).is_deleting() {
            return Vec::new();
        }
        let stale = self.stale();
        let moves = self.moves(stale.clone());
        let safe = moves.iter().filter(|one| one.order.is_none()).flat_map(|one| one.objects.iter().copied());
        let safe: HashSet<&ObjectId> = safe.collect();
        let deleted: Vec<_> = stale.into_iter().filter(|id| !safe.contains(id)).collect();
        let protected = deleted.iter().filter(|id| self.limits.protects(id));
        let mut findings: Vec<_> =
            protected.map(|id| kz060::found(id, limits::takes_along(id), &self.revision)).collect();
        if self.limits.is_exceeded(deleted.len(), self.inventory.len()) {
            findings.push(kz061::found(&deleted, self.inventory.len(), &self.revision));
        }
        findings.extend(self.shared());
        let own = Metadata::of(self.kustomization);
        let unsafe_moves = moves.iter().filter_map(|one| Some((one, one.order?)));
        findings.extend(
            unsafe_moves
                .map(|(one, order)| kz063::found(&one.objects, (own.name(), &one.to.name), order, &self.revision)),
        );
        findings
    }

    /// Returns the applied objects that the revision does not render any more. Includes objects that another
    /// Kustomization will render, and objects that are excluded from pruning. Does not include generated objects whose
    /// names change only in the hash. Returns none if Flux does not prune.
    pub fn stale(&self) -> Vec<&ObjectId> {
        if self.prunes() { self.compared().stale } else { Vec::new() }
    }

    /// Returns the generated objects, such as ConfigMaps, whose names change only in the hash. Each pair contains the
    /// object with the old name and the object with the new name. Flux deletes the old object, unless it is excluded
    /// from pruning. Returns none if `spec.prune` is not `true`.
    pub fn replaced(&self) -> Vec<(&ObjectId, &ObjectId)> {
        if self.prunes() { self.compared().replaced } else { Vec::new() }
    }

    /// Returns the applied objects that the revision does not render any more, if Flux does not prune. These objects
    /// stay in the cluster. Returns none if Flux prunes.
    pub fn orphaned(&self) -> Vec<&ObjectId> {
        if self.prunes() {
            return Vec::new();
        }
        let Compared { stale, replaced, .. } = self.compared();
        stale.into_iter().chain(replaced.into_iter().map(|(old, _)| old)).collect()
    }

    /// Returns the rendered objects that the inventory does not list.
    pub fn created(&self) -> Vec<&ObjectId> {
        let Compared { created, replaced, .. } = self.compared();
        created.into_iter().chain(replaced.into_iter().map(|(_, new)| new)).collect()
    }

    /// Returns the rendered objects that the inventory lists.
    pub fn applied(&self) -> Vec<&ObjectId> {
        let created: HashSet<&ObjectId> = self.created().into_iter().collect();
        self.rendered.iter().filter(|id| !created.contains(id)).collect()
    }

    fn compared(&self) -> Compared<'_> {
        Compared::of(&self.inventory, self.rendered)
    }

    /// Returns whether `spec.prune` is `true`. Flux then deletes objects that the revision does not render any more.
    fn prunes(&self) -> bool {
        self.kustomization.at(&["spec", "prune"]) == Some(&Value::Bool(true))
    }

    /// Returns the applied objects that another Kustomization renders instead of this one. Each tuple contains the
    /// object, the other Kustomization as `NAMESPACE/NAME`, and a prediction of whether Flux deletes the object before
    /// the other Kustomization applies it.
    pub fn moved(&self) -> Vec<(&ObjectId, &str, Deletion)> {
        let mut moved = Vec::new();
        for one in self.moves(self.stale()) {
            let deletion = match one.order {
                None => Deletion::Never,
                Some(Order::Any | Order::Elsewhere(_)) => Deletion::Possible,
                Some(Order::LoserFirst) => Deletion::Certain,
            };
            moved.extend(one.objects.into_iter().map(|id| (id, one.to.name.as_str(), deletion)));
        }
        moved
    }

    /// Groups the objects in `left`, which this Kustomization no longer renders, by the other Kustomization that now
    /// renders them. If several other Kustomizations render an object, prefers one that Flux always applies before this
    /// Kustomization. Selects one that Flux always applies after this Kustomization only if there is no other choice.
    fn moves<'p>(&'p self, mut left: Vec<&'p ObjectId>) -> Vec<Move<'p>> {
        if left.is_empty() {
            return Vec::new();
        }
        let mut gainers: Vec<_> =
            self.siblings.iter().map(|(sibling, rendered)| (self.order(sibling), *sibling, *rendered)).collect();
        gainers.sort_by_key(|(order, ..)| order.map_or(0, |order| if order == Order::LoserFirst { 2 } else { 1 }));
        let mut moves = Vec::new();
        for (order, sibling, rendered) in gainers {
            let ids: HashSet<&ObjectId> = rendered.iter().collect();
            let (objects, rest): (Vec<_>, Vec<_>) = left.into_iter().partition(|id| ids.contains(id));
            left = rest;
            moves.push(Move { to: sibling, objects, order });
        }
        moves.retain(|one| !one.objects.is_empty());
        moves
    }

    /// Returns the order in which Flux applies this Kustomization and `sibling`. Returns `None` if Flux always applies
    /// `sibling` first, because this Kustomization depends on it. Flux then does not delete objects that move to
    /// `sibling`.
    fn order<'s>(&self, sibling: &'s Sibling) -> Option<Order<'s>> {
        if let Some(source) = &sibling.elsewhere {
            return Some(Order::Elsewhere(source));
        }
        let all: Vec<_> = self.siblings.iter().map(|(sibling, _)| *sibling).collect();
        if waits_for(&siblings::dependencies(self.kustomization), &sibling.name, &all) {
            None
        } else if waits_for(&sibling.depends_on, &self.name(), &all) {
            Some(Order::LoserFirst)
        } else {
            Some(Order::Any)
        }
    }

    /// Returns a finding for each other Kustomization that renders some of the same objects as this Kustomization.
    /// Ignores objects without the namespace that their kind requires, because Flux cannot apply them.
    fn shared(&self) -> Vec<Finding> {
        if self.siblings.is_empty() {
            return Vec::new();
        }
        let own: HashSet<&ObjectId> = self.rendered.iter().filter(|id| !id.lacks_namespace()).collect();
        let shared = |(sibling, rendered): &(&Sibling, &[ObjectId])| {
            let both: Vec<_> = rendered.iter().filter(|id| own.contains(id)).collect();
            let elsewhere = sibling.elsewhere.as_deref();
            (!both.is_empty()).then(|| kz062::found(&both, (&sibling.name, elsewhere), &self.revision))
        };
        self.siblings.iter().filter_map(shared).collect()
    }

    fn name(&self) -> String {
        let metadata = Metadata::of(self.kustomization);
        format!("{}/{}", metadata.namespace(), metadata.name())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::kustomize::delivery::Artifact;

    fn ids(texts: &[&str]) -> Vec<ObjectId> {
        texts.iter().map(|text| ObjectId::parse(text).unwrap()).collect()
    }

    fn kustomization(name: &str, depends_on: &[&str]) -> Value {
        let depends_on: Vec<_> = depends_on.iter().map(|name| json!({"name": name})).collect();
        json!({"metadata": {"name": name, "namespace": "a"},
               "spec": {"prune": true, "path": name, "dependsOn": depends_on,
                        "sourceRef": {"kind": "GitRepository", "name": "fleet"}}})
    }

    /// Returns the findings about the Kustomization `own`, each as rule id and message. `inventory` contains the
    /// objects that Flux applied for `own`. `rendered` contains the objects that `own` renders now. `siblings` are
    /// other Kustomizations with the objects that they render.
    fn rules(own: &Value, [inventory, rendered]: [&[&str]; 2], siblings: &[(Value, &[&str])]) -> Vec<String> {
        let artifact = Artifact { url: "http://x".into(), digest: "d".into(), revision: "main@sha1:1".into() };
        let siblings: Vec<_> =
            siblings.iter().map(|(object, objects)| (Sibling::of(object, &artifact).unwrap(), ids(objects))).collect();
        let rendered = ids(rendered);
        let plan = Plan {
            kustomization: own,
            inventory: ids(inventory),
            rendered: &rendered,
            siblings: siblings.iter().map(|(sibling, objects)| (sibling, &**objects)).collect(),
            revision: "main@sha1:1".to_owned(),
            limits: DeletionLimits::default(),
        };
        plan.findings().into_iter().map(|finding| format!("{} {}", finding.rule, finding.message)).collect()
    }

    const KEPT: &str = "a_kept__ConfigMap";
    const MOVED: &str = "a_moved__ConfigMap";

    #[test]
    fn the_order_of_a_move_follows_from_dependencies() {
        let found = |loser: &[&str], gainer: &[&str]| {
            let other = (kustomization("to", gainer), &[MOVED][..]);
            let between = (kustomization("between", &["to"]), &["a_x__ConfigMap"][..]);
            rules(&kustomization("from", loser), [&[KEPT, MOVED], &[KEPT]], &[other, between]).join("\n")
        };
        assert_eq!(found(&["to"], &[]), "", "the loser waits");
        assert_eq!(found(&["between"], &[]), "", "and through another one");
        assert!(found(&[], &["from"]).contains("KZ063") && found(&[], &["from"]).contains("depends on this one"));
        assert!(found(&[], &[]).contains("neither waits for the other"));
    }

    #[test]
    fn a_move_to_another_source_is_possible_whatever_depends_on_what() {
        let artifact =
            |revision: &str| Artifact { url: "http://x".into(), digest: "d".into(), revision: revision.into() };
        let other = |name: &str, depends_on: &[&str]| {
            let mut object = kustomization(name, depends_on);
            object["spec"]["sourceRef"]["name"] = "web".into();
            Sibling::elsewhere(&object, &artifact("v2@sha1:2")).unwrap()
        };
        let within =
            |name: &str, depends_on: &[&str]| Sibling::of(&kustomization(name, depends_on), &artifact("r")).unwrap();
        let plan = |own: &[&str], siblings: &[(&Sibling, Vec<ObjectId>)]| {
            let (own, rendered) = (kustomization("from", own), ids(&[KEPT]));
            let plan = Plan {
                kustomization: &own,
                inventory: ids(&[KEPT, MOVED]),
                rendered: &rendered,
                siblings: siblings.iter().map(|(sibling, objects)| (*sibling, &**objects)).collect(),
                revision: "main@sha1:1".to_owned(),
                limits: DeletionLimits::default(),
            };
            let moved: Vec<_> = plan.moved().into_iter().map(|(_, to, deletion)| (to.to_owned(), deletion)).collect();
            (moved, plan.findings().into_iter().map(|finding| finding.message).collect::<Vec<_>>().join("\n"))
        };
        let possible = |name: &str| vec![(name.to_owned(), Deletion::Possible)];
        for (from, to) in [(&["to"][..], &[][..]), (&[], &["from"]), (&[], &[])] {
            let (moved, found) = plan(from, &[(&other("to", to), ids(&[MOVED]))]);
            assert_eq!(moved, possible("a/to"));
            assert!(
                found.contains("in revision v2@sha1:2 of GitRepository a/web: if this one applied them last"),
                "{found}"
            );
        }
        // `from` depends on a Kustomization with another source, which depends on the Kustomization that gets the
        // object.
        let (moved, _) =
            plan(&["between"], &[(&other("between", &["to"]), Vec::new()), (&within("to", &[]), ids(&[MOVED]))]);
        assert_eq!(moved, possible("a/to"));
    }

    #[test]
    fn a_safe_move_is_no_deletion() {
        let to = || (kustomization("to", &[]), &[MOVED, "_n__Namespace"][..]);
        let inventory: [&[&str]; 2] = [&[MOVED, "_n__Namespace"], &[KEPT]];
        assert_eq!(rules(&kustomization("from", &["to"]), inventory, &[to()]), [""; 0]);
        let found = rules(&kustomization("from", &[]), inventory, &[to()]);
        let found: Vec<_> = found.iter().map(|text| &text[..5]).collect();
        assert_eq!(found, ["KZ060", "KZ061", "KZ063"]);
    }

    #[test]
    fn an_object_has_one_kustomization() {
        let found = rules(&kustomization("one", &[]), [&[], &[KEPT]], &[(kustomization("other", &[]), &[KEPT, MOVED])]);
        assert_eq!(found.len(), 1);
        assert!(
            found[0].starts_with("KZ062 in revision main@sha1:1, Kustomization a/other renders ConfigMap a/kept too")
        );
        let mut keeps = kustomization("one", &[]);
        keeps["spec"]["prune"] = false.into();
        assert_eq!(rules(&keeps, [&[KEPT, MOVED], &[]], &[(kustomization("other", &[]), &[MOVED])]), [""; 0]);
    }
}
