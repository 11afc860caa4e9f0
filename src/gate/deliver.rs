//! Checks kustomization files during an admission request. The object in the request contains these files, as a
//! ConfigMap can, or refers to them, as a Flux Kustomization does.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use futures::future::join_all;
use time::OffsetDateTime;

use super::{Gate, Policy, levelled, live_read_deadline};
use crate::admission::{Finding, Level, Request};
use crate::catalog::View;
use crate::kustomize::delivery::{
    Consequences, Delivery, Judged, Outcome, Root, is_unchanged, not_judged, tree_findings,
};

/// Timeout for building the other Flux Kustomizations of the same cluster. Their objects are compared with those of the
/// checked Kustomization. The timeout is short, because by default only warnings depend on the comparison. Results of
/// the builds are cached for later requests.
const SIBLINGS_TIMEOUT: Duration = Duration::from_millis(500);

/// The inputs for checking kustomize trees during one admission request. A kustomize tree is a folder with
/// kustomization files, which the object in the request contains or refers to.
pub(super) struct DeliveryContext<'a> {
    pub(super) gate: &'a Gate,
    pub(super) policy: &'a Policy,
    pub(super) request: &'a Request<'a>,
    pub(super) view: &'a View<'a>,
    pub(super) now: OffsetDateTime,
}

impl DeliveryContext<'_> {
    /// Runs `delivery`, one check of kustomization files, for the request. Returns its findings. The object in the
    /// request contains these files, or refers to them, as a Flux Kustomization does. The policy sets the level of each
    /// finding, such as `warn`.
    pub(super) async fn findings_of(&self, delivery: &'static Delivery) -> Vec<Finding> {
        let hosts = &self.policy.artifact_hosts;
        for artifact in delivery.ahead.iter().flat_map(|ahead| ahead(self.request)) {
            self.gate.trees.fetch_ahead(&artifact, hosts);
        }
        let max_level = self.max_level(delivery);
        if max_level == Level::Off {
            return Vec::new();
        }
        let look = (delivery.look)(self.request, self.view);
        let mut findings = look.findings;
        let last = live_read_deadline(self.request);
        let outcomes = match look.roots.as_slice() {
            // Most objects have one root.
            [root] => vec![self.gate.trees.judge(root, hosts, last).await],
            roots => join_all(roots.iter().map(|root| self.gate.trees.judge(root, hosts, last))).await,
        };
        let mut unknown: HashMap<String, Vec<&Root>> = HashMap::new();
        for (root, outcome) in look.roots.iter().zip(outcomes) {
            match outcome {
                Outcome::Judged(judged) => {
                    if delivery.consequences.is_none_or(|consequences| !consequences.replaces_tree_findings) {
                        findings.extend(tree_findings(root, &judged));
                    }
                    if let Some(consequences) = delivery.consequences.filter(|_| self.has_consequences()) {
                        findings.extend(self.of_consequences(consequences, (root, &judged)).await);
                    }
                }
                Outcome::Unknown(why) => unknown.entry(why).or_default().push(root),
                Outcome::Unasked => {}
            }
        }
        let mut late: Vec<_> = unknown.into_iter().collect();
        late.sort_by(|one, other| one.0.cmp(&other.0));
        findings.extend(late.iter().map(|(why, roots)| not_judged(roots[0], why, roots.len() - 1)));
        findings.into_iter().filter_map(|finding| self.levelled(finding, max_level)).collect()
    }

    /// Returns whether to predict the [`Consequences`] of the request, such as deletions in the cluster. Returns
    /// `false` for an update that does not affect the build result, such as an update of labels. As an exception,
    /// returns `true` for an update that changes nothing at all, because audits check existing objects with such
    /// updates.
    fn has_consequences(&self) -> bool {
        !is_unchanged(self.request) || self.request.object() == self.request.old_object()
    }

    /// Returns findings about changes in the cluster, such as deletions, when the build result of `root` is applied.
    /// `root` is a folder with kustomization files, and `judged` is its build result. To compare objects, also builds
    /// the other Kustomizations of the same cluster, for at most [`SIBLINGS_TIMEOUT`].
    async fn of_consequences(&self, consequences: &Consequences, (root, judged): (&Root, &Judged)) -> Vec<Finding> {
        let siblings = (consequences.siblings)(self.request, self.view, root);
        let last = live_read_deadline(self.request).min(Instant::now() + SIBLINGS_TIMEOUT);
        let judging =
            siblings.iter().map(|sibling| self.gate.trees.judge(&sibling.root, &self.policy.artifact_hosts, last));
        let outcomes = join_all(judging).await;
        let known = siblings.into_iter().zip(outcomes).filter_map(|(sibling, outcome)| match outcome {
            Outcome::Judged(judged) => Some((sibling, judged)),
            Outcome::Unknown(_) | Outcome::Unasked => None,
        });
        (consequences.findings)(self.request, self.view, (root, judged), &known.collect::<Vec<_>>())
    }

    /// Returns the maximum level, such as `warn`, for findings about kustomization files. The maximum is configured
    /// separately for each check of such files, and `delivery` is one of these checks. For an update that does not
    /// affect the files, such as an update of labels, the maximum is at most `warn`, so that the update is not denied.
    fn max_level(&self, delivery: &Delivery) -> Level {
        let max_level = self.policy.max_level(delivery, &self.request.namespace);
        if is_unchanged(self.request) { max_level.min(Level::Warn) } else { max_level }
    }

    /// Sets a finding to the configured level of its rule, and then reduces this level to at most `max_level`. Returns
    /// `None` if the result is `off`.
    fn levelled(&self, finding: Finding, max_level: Level) -> Option<Finding> {
        let info = self.gate.registry.info(finding.rule)?;
        let mut finding = levelled(finding, info, self.request, self.policy, self.now);
        finding.level = finding.level.min(max_level);
        Some(finding).filter(|finding| finding.level != Level::Off)
    }
}

/// Appends the findings in `found` to `findings`, except for duplicates. A finding is a duplicate if `findings` already
/// contains a finding of the same rule for the same field, and this older finding has no `location` in a file.
pub(super) fn add(findings: &mut Vec<Finding>, found: Vec<Finding>) {
    let before = findings.len();
    for finding in found {
        let known = |old: &Finding| old.rule == finding.rule && old.field == finding.field;
        let of_object = findings.iter().take(before).any(|old| old.location.is_none() && known(old));
        if !of_object {
            findings.push(finding);
        }
    }
}
