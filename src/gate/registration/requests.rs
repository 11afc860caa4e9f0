//! Derives the field `rules` of each webhook configuration from the registry of Portcullis rules. An entry of this
//! field selects the requests for some resources. Portcullis also records which rule families, such as `KZ`, need an
//! entry, so that it can omit entries of disabled families.

use std::collections::BTreeMap;

use super::when::{Families, When};
use crate::admission::{Operation, Phase};
use crate::catalog::{Declaration, Kind};
use crate::gate::Registry;
use crate::kustomize::delivery::Narrowed;
use crate::rule::{FailurePolicy, Match, MatchCondition};

/// A webhook of a webhook configuration, without its field `rules`, which lists the operations and resources of the
/// requests.
pub(super) struct Webhook {
    pub(super) name: &'static str,
    pub(super) phase: Phase,
    pub(super) failure_policy: FailurePolicy,
    pub(super) timeout_seconds: u8,
    pub(super) reason: &'static str,
    /// Match conditions in addition to those that every webhook has. They exclude requests that the checks of this
    /// webhook do not need. `None` for the webhooks in `WEBHOOKS`.
    pub(super) narrowed: Option<&'static Narrowed>,
}

pub(super) const WEBHOOKS: [Webhook; 4] = [
    Webhook {
        name: "mutate.portcullis.dev",
        phase: Phase::Mutate,
        failure_policy: FailurePolicy::Ignore,
        timeout_seconds: 2,
        reason: "The annotations are added with the next change of the object; without them nothing is deployed wrongly.",
        narrowed: None,
    },
    Webhook {
        name: "require.portcullis.dev",
        phase: Phase::Mutate,
        failure_policy: FailurePolicy::Fail,
        timeout_seconds: 3,
        reason: "Without the change the object would have a harmful effect.",
        narrowed: None,
    },
    Webhook {
        name: "validate.portcullis.dev",
        phase: Phase::Validate,
        failure_policy: FailurePolicy::Fail,
        timeout_seconds: 3,
        reason: "People and pipelines write these rarely; an invalid object breaks the objects in its namespace that use it.",
        narrowed: None,
    },
    Webhook {
        name: "advise.portcullis.dev",
        phase: Phase::Validate,
        failure_policy: FailurePolicy::Ignore,
        timeout_seconds: 3,
        reason: "Controllers write these often, and a deletion must not depend on this webhook; errors are small or can be fixed.",
        narrowed: None,
    },
];

/// Returns the webhooks for one admission phase, mutation or validation. First come the webhooks of this phase in
/// [`WEBHOOKS`]. For validation, further webhooks follow for checks that have their own match conditions
/// (`Delivery::narrowed`). Checks with the same match conditions share one webhook.
pub(super) fn webhooks(phase: Phase, registry: &Registry) -> Vec<Webhook> {
    let mut webhooks: Vec<_> = WEBHOOKS.into_iter().filter(|webhook| webhook.phase == phase).collect();
    for (delivery, narrowed) in registry.deliveries().iter().filter_map(|delivery| Some((delivery, delivery.narrowed?)))
    {
        if phase == Phase::Validate && !webhooks.iter().any(|known| known.narrowed == Some(narrowed)) {
            webhooks.push(Webhook {
                name: narrowed.webhook,
                phase,
                failure_policy: delivery.matchers.first().map_or(FailurePolicy::Ignore, |one| one.failure_policy),
                timeout_seconds: 3,
                reason: narrowed.reason,
                narrowed: Some(narrowed),
            });
        }
    }
    webhooks
}

/// One item of the list `rules` in a webhook: the resources and operations for which the API server calls the webhook.
/// The item is generated only if the enabled rule families, such as `KZ`, meet the condition `when`.
pub(super) struct Rules {
    pub(super) group: &'static str,
    pub(super) versions: &'static [&'static str],
    pub(super) operations: Vec<Operation>,
    pub(super) resources: Vec<String>,
    pub(super) when: When,
}

/// A resource whose requests are divided between a webhook with `failurePolicy: Fail` and one with `Ignore`. The second
/// webhook receives the requests that meet `match_condition`, because they need not be denied while the server is
/// unavailable. The first webhook receives all other requests.
pub(super) struct Share {
    pub(super) resource: String,
    pub(super) match_condition: &'static MatchCondition,
    /// The condition for dividing the requests between the two webhooks: at least one of the rule families in `when`,
    /// such as `OW`, is enabled. Otherwise, the webhook with `Ignore` receives all requests for this resource.
    pub(super) when: When,
}

/// A resource, identified by its API group and its plural name. The plural name includes the subresource, if any.
type Key = (&'static str, String);
/// The family of a rule, such as `KZ`, and a request matcher of the rule.
type FamilyMatcher = (&'static str, &'static Match);

/// The API versions of a resource, and the operations on it that Portcullis checks. Each operation comes with the rule
/// families that check it. A family contains all rules with the same prefix in their ids, such as `KZ`.
type Requested = (&'static [&'static str], Vec<(Operation, Wanted)>);

/// The rule families, such as `KZ`, that check requests for one resource and operation. `refusing` contains the
/// families with the failure policy `Fail` or `FailUnless` for these requests. `admitting` contains the families with
/// the failure policy `Ignore`.
#[derive(Default)]
struct Wanted {
    refusing: Families,
    admitting: Families,
}

impl Webhook {
    /// Returns the key of the webhook in the chart's value `webhooks`. The key is the part of the webhook's name before
    /// the first dot, in camel case, such as `validate`.
    pub(super) fn key(&self) -> String {
        let mut words = self.name.split('.').next().unwrap_or_default().split('-');
        let first = words.next().unwrap_or_default().to_owned();
        words.fold(first, |key, word| key + &word[..1].to_uppercase() + &word[1..])
    }

    /// Returns the `rules` of this webhook in the webhook configuration. They select the requests that are needed by
    /// the checks and mutators with the same `failurePolicy` as the webhook. A request that is always sent to a webhook
    /// with `Fail` is not also sent to the webhook with `Ignore`.
    ///
    /// The rules for composites and claims are not included; see `declared_rules`.
    pub(super) fn rules(&self, registry: &Registry) -> Vec<Rules> {
        let match_condition = self.match_condition(registry);
        let mut rules: Vec<Rules> = Vec::new();
        for ((group, resource), (versions, wanted)) in self.requests(registry) {
            let is_shared = match_condition.contains_key(&(group, resource.clone()));
            for (operations, when) in self.sent(&wanted, is_shared) {
                let like = |rule: &&mut Rules| {
                    (rule.group, rule.versions, &rule.operations, &rule.when) == (group, versions, &operations, &when)
                };
                match rules.iter_mut().find(like) {
                    Some(rule) => rule.resources.push(resource.clone()),
                    None => rules.push(Rules { group, versions, operations, resources: vec![resource.clone()], when }),
                }
            }
        }
        rules
    }

    /// Returns the operations on one resource, such as updates, for which the API server calls this webhook. Each list
    /// of operations comes with a condition: which rule families, such as `KZ`, must be enabled or disabled.
    ///
    /// An operation may be needed by both webhooks, the one with `failurePolicy: Fail` and the one with `Ignore`:
    ///
    /// - If `is_shared` is true, both webhooks get the operation. A match condition then selects one of the webhooks
    ///   for each request.
    /// - If `is_shared` is false, only the webhook with `Fail` gets the operation.
    fn sent(&self, wanted: &[(Operation, Wanted)], is_shared: bool) -> Vec<(Vec<Operation>, When)> {
        let mut sent: Vec<(Vec<Operation>, When)> = Vec::new();
        for (operation, Wanted { refusing, admitting }) in wanted {
            let (any, none) = match self.failure_policy.fails() {
                true => (refusing, Families::new()),
                false if is_shared => (admitting, Families::new()),
                false => (admitting, refusing.clone()),
            };
            if any.is_subset(&none) {
                continue;
            }
            let when = When::any_but(any.clone(), none);
            match sent.iter_mut().find(|(_, known)| *known == when) {
                Some((operations, _)) => operations.push(*operation),
                None => sent.push((vec![*operation], when)),
            }
        }
        sent
    }

    fn requests(&self, registry: &Registry) -> BTreeMap<Key, Requested> {
        let mut requests = BTreeMap::new();
        for (family, matcher) in self.fixed(registry) {
            let (_, wanted): &mut (_, Vec<(Operation, Wanted)>) =
                requests.entry(key(matcher)).or_insert((matcher.versions, Vec::new()));
            for operation in matcher.operations {
                if !wanted.iter().any(|(known, _)| known == operation) {
                    wanted.push((*operation, Wanted::default()));
                    wanted.sort_by_key(|(operation, _)| *operation as u8);
                }
                let of_operation = wanted.iter_mut().filter(|(known, _)| known == operation);
                for (_, Wanted { refusing, admitting }) in of_operation {
                    (if matcher.failure_policy.fails() { &mut *refusing } else { &mut *admitting }).insert(family);
                }
            }
        }
        requests
    }

    /// Returns the `rules` of this webhook for `kinds`, which CompositeResourceDefinitions in the cluster declare.
    pub(super) fn declared_rules(
        &self,
        registry: &Registry,
        kinds: &[(&'static Declaration, &'static Kind)],
    ) -> Vec<Rules> {
        let matchers = self.declared(registry);
        let looks = |declaration: &Declaration| matchers.iter().any(|(_, matcher)| matcher.plural == declaration.name);
        let mut operations: Vec<Operation> =
            matchers.iter().flat_map(|(_, matcher)| matcher.operations).copied().collect();
        operations.sort_by_key(|operation| *operation as u8);
        operations.dedup();
        let mut groups: BTreeMap<&'static str, Vec<String>> = BTreeMap::new();
        for (_, kind) in kinds.iter().filter(|(declaration, _)| looks(declaration)) {
            groups.entry(kind.group).or_default().push(kind.plural.to_owned());
        }
        let rules = |(group, mut resources): (_, Vec<String>)| {
            resources.sort_unstable();
            let (versions, when) = (&["\"*\""][..], self.declared_when(registry));
            Rules { group, versions, operations: operations.clone(), resources, when }
        };
        groups.into_iter().map(rules).collect()
    }

    /// Returns the condition under which this webhook receives requests for composites and claims. The condition says
    /// which rule families must be enabled.
    pub(super) fn declared_when(&self, registry: &Registry) -> When {
        When::either(&[When::any(self.declared(registry).into_iter().map(|(family, _)| family).collect())])
    }

    fn declared(&self, registry: &Registry) -> Vec<FamilyMatcher> {
        let is_its =
            |(_, matcher): &FamilyMatcher| matcher.is_declared() && matcher.failure_policy == self.failure_policy;
        self.matchers(registry).into_iter().filter(is_its).collect()
    }

    /// Returns the resources whose requests are divided between a webhook with `failurePolicy: Fail` and a webhook with
    /// `failurePolicy: Ignore`. A match condition selects the requests for the second webhook. Several rules may check
    /// the same resource. Its requests are divided only if all these rules have the same match condition. Rules with
    /// [`FailurePolicy::Ignore`] do not count.
    pub(super) fn shares(&self, registry: &Registry) -> Vec<Share> {
        let share = |((_, resource), (match_condition, families)): (Key, (&'static MatchCondition, Families))| Share {
            resource,
            match_condition,
            when: When::any(families),
        };
        self.match_condition(registry).into_iter().map(share).collect()
    }

    fn match_condition(&self, registry: &Registry) -> BTreeMap<Key, (&'static MatchCondition, Families)> {
        let mut match_condition: BTreeMap<Key, (Option<&'static MatchCondition>, Families)> = BTreeMap::new();
        for (family, matcher) in self.fixed(registry).into_iter().filter(|(_, matcher)| matcher.failure_policy.fails())
        {
            let one = match matcher.failure_policy {
                FailurePolicy::FailUnless(one) => Some(one),
                FailurePolicy::Fail | FailurePolicy::Ignore => None,
            };
            let (all, families) = match_condition.entry(key(matcher)).or_insert((one, Families::new()));
            *all = all.filter(|all| Some(*all) == one);
            families.insert(family);
        }
        match_condition.into_iter().filter_map(|(key, (one, families))| Some((key, (one?, families)))).collect()
    }

    fn fixed(&self, registry: &Registry) -> Vec<FamilyMatcher> {
        self.matchers(registry).into_iter().filter(|(_, matcher)| !matcher.is_declared()).collect()
    }

    fn matchers(&self, registry: &Registry) -> Vec<FamilyMatcher> {
        let of = |family: &'static str, matchers: &'static [Match]| matchers.iter().map(move |one| (family, one));
        match self.phase {
            Phase::Mutate => {
                let withholding = registry.deliveries().iter().filter(|delivery| delivery.withhold.is_some());
                let of_deliveries = withholding.flat_map(|delivery| of(delivery.family, delivery.matchers));
                let of_mutators = registry.mutators().iter().flat_map(|mutator| of(mutator.family, mutator.matchers));
                of_mutators.chain(of_deliveries).collect()
            }
            Phase::Validate => {
                let rules = registry.rules().iter().filter(|_| self.narrowed.is_none());
                let deliveries = registry.deliveries().iter().filter(|delivery| delivery.narrowed == self.narrowed);
                let of_rules = rules.flat_map(|rule| of(rule.info.family(), rule.matchers));
                of_rules.chain(deliveries.flat_map(|delivery| of(delivery.family, delivery.matchers))).collect()
            }
        }
    }
}

fn key(matcher: &Match) -> Key {
    let resource = match matcher.subresource {
        "" => matcher.plural.to_owned(),
        subresource => format!("{}/{subresource}", matcher.plural),
    };
    (matcher.group, resource)
}
