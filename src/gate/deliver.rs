//! Deciding about objects that carry trees, or point at them.

use std::collections::HashMap;

use futures::future::join_all;
use time::OffsetDateTime;

use super::{Gate, Policy, Row, last, levelled};
use crate::admission::{Finding, Level, Request};
use crate::catalog::View;
use crate::kustomize::delivery::{Delivery, Outcome, Root, is_unchanged, not_judged, told};

/// A request, and what is there to decide about it.
pub(super) struct Round<'a> {
    pub(super) gate: &'a Gate,
    pub(super) policy: &'a Policy,
    pub(super) request: &'a Request<'a>,
    pub(super) view: &'a View<'a>,
    pub(super) now: OffsetDateTime,
}

impl Round<'_> {
    /// What a delivery finds, at the levels that the policy gives it.
    pub(super) async fn of(&self, delivery: &'static Delivery) -> Vec<Finding> {
        let hosts = &self.policy.artifact_hosts;
        for artifact in delivery.ahead.iter().flat_map(|ahead| ahead(self.request)) {
            self.gate.trees.fetch_ahead(&artifact, hosts);
        }
        let most = self.most(delivery);
        if most == Level::Off {
            return Vec::new();
        }
        let look = (delivery.look)(self.request, self.view);
        let mut findings = look.findings;
        let last = last(self.request);
        let judging = look.roots.iter().map(|root| self.gate.trees.judge(root, hosts, last));
        let outcomes = join_all(judging).await;
        let mut unknown: HashMap<String, Vec<&Root>> = HashMap::new();
        for (root, outcome) in look.roots.iter().zip(outcomes) {
            match outcome {
                Outcome::Judged(judged) => findings.extend(told(root, &judged)),
                Outcome::Unknown(why) => unknown.entry(why).or_default().push(root),
                Outcome::Unasked => {}
            }
        }
        let mut late: Vec<_> = unknown.into_iter().collect();
        late.sort_by(|one, other| one.0.cmp(&other.0));
        findings.extend(late.iter().map(|(why, roots)| not_judged(roots[0], why, roots.len() - 1)));
        findings.into_iter().filter_map(|finding| self.levelled(finding, most)).collect()
    }

    /// What is stored already is not refused anew because of its labels or finalizers.
    fn most(&self, delivery: &Delivery) -> Level {
        let most = self.policy.most(delivery);
        if is_unchanged(self.request) { most.min(Level::Warn) } else { most }
    }

    /// A finding at the level of its own rule, and at most `most`.
    fn levelled(&self, mut finding: Finding, most: Level) -> Option<Finding> {
        let row: Row = self.gate.registry.row(finding.rule)?;
        finding.level = finding.level.min(most);
        Some(levelled(finding, row, self.request, self.policy, self.now)).filter(|finding| finding.level != Level::Off)
    }
}

/// Adds what was found, but for what another delivery found already in the object itself.
pub(super) fn add(findings: &mut Vec<Finding>, found: Vec<Finding>) {
    let before = findings.len();
    for finding in found {
        let known = |old: &Finding| old.rule == finding.rule && old.field == finding.field;
        let of_object = findings.iter().take(before).any(|old| old.place.is_none() && known(old));
        if !of_object {
            findings.push(finding);
        }
    }
}
