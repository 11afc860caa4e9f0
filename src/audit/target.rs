//! Selects the stored objects to check. An audit covers every resource that a rule checks and that the cluster serves.

use std::collections::{BTreeMap, HashSet};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::APIResourceList;
use kube::Client;
use kube::api::{Api, ApiResource, DynamicObject};
use kube::core::GroupVersionKind;

use crate::admission::Operation;
use crate::catalog::Scope;
use crate::gate::{Gate, Policy, Registry};
use crate::rule::{Match, Rule};

/// Ids of rules about the user who writes an object. An audit cannot run these rules, because a stored object does not
/// record its writer.
const ABOUT_WRITERS: [&str; 1] = ["DP010"];
/// API group and plural name of resources that an audit does not list, because the lists would contain confidential
/// data.
const CONFIDENTIAL: [(&str, &str); 1] = [("", "secrets")];

pub(super) fn is_confidential(group: &str, plural: &str) -> bool {
    CONFIDENTIAL.contains(&(group, plural))
}

/// The selection of rules that an audit runs.
#[derive(Debug, Clone, Default)]
pub struct Chosen {
    /// The rules to run, as rule ids such as `KZ001` or id prefixes such as `KZ`; empty for all rules.
    pub rules: Vec<String>,
}

impl Chosen {
    /// Returns whether the audit runs the rule with this id and family.
    pub(super) fn has(&self, id: &str, family: &str) -> bool {
        let is_named = |name: &String| name == id || name == family;
        !ABOUT_WRITERS.contains(&id) && (self.rules.is_empty() || self.rules.iter().any(is_named))
    }

    fn asks(&self, rule: &Rule, policy: &Policy) -> bool {
        self.has(rule.info.id, rule.info.family())
            && policy.may_report(rule.info.id, rule.info.family(), rule.info.level)
    }
}

/// A resource whose objects are checked.
#[derive(Debug, Clone)]
pub(super) struct Target {
    pub(super) group: String,
    /// API versions of the resource that rules can read. The audit uses the first one that the cluster serves.
    pub(super) versions: Vec<String>,
    pub(super) plural: String,
    pub(super) kind: String,
    /// The subresources that rules check; `""` is the main resource.
    pub(super) subresources: Vec<&'static str>,
    /// Ids of the rules that check updates of the resource or of one of its subresources. The audit runs these rules on
    /// a simulated update of each object.
    pub(super) asked: HashSet<&'static str>,
    /// Ids of the rules that check create requests, but not update requests.
    pub(super) of_creation: HashSet<&'static str>,
}

/// Returns the resources to audit: those for which a chosen rule checks create or update requests, and those that can
/// contain a kustomize tree, if a chosen rule checks trees. Secrets are left out. Does not check whether the cluster
/// serves the resources.
///
/// Some rules check kinds that exist only at run time, such as all kinds that CompositeResourceDefinitions define. For
/// such a rule, the result contains each of these kinds that the catalog watches.
pub(super) fn all(gate: &Gate, chosen: &Chosen) -> Vec<Target> {
    let (registry, policy) = (gate.registry(), gate.policy());
    let mut targets: BTreeMap<(String, String), Target> = BTreeMap::new();
    for (matcher, rule) in matchers(registry, &policy, chosen) {
        for target in of(matcher, gate) {
            let key = (target.group.clone(), target.plural.clone());
            targets.entry(key).or_insert(target).add(matcher, rule);
        }
    }
    targets.into_values().filter(|target| !target.subresources.is_empty()).collect()
}

type Matchers<'r> = Vec<(&'static Match, Option<&'r Rule>)>;

/// Returns pairs of a request matcher and its rule, for the rules that the audit runs.
///
/// If one of these rules checks kustomize trees, the result also contains the matchers for all kinds of objects from
/// which Portcullis reads kustomize trees. These matchers belong to no rule, so the second element of their pairs is
/// `None`.
fn matchers<'r>(registry: &'r Registry, policy: &Policy, chosen: &Chosen) -> Matchers<'r> {
    let rules = registry.rules().iter().filter(|rule| chosen.asks(rule, policy));
    let of_rules = rules.flat_map(|rule| rule.matchers.iter().map(move |matcher| (matcher, Some(*rule))));
    let asks_trees =
        registry.infos().iter().any(|info| registry.is_about_trees(info) && chosen.has(info.id, info.family()));
    let deliveries = registry.deliveries().iter().filter(|_| asks_trees);
    of_rules.chain(deliveries.flat_map(|delivery| delivery.matchers.iter().map(|matcher| (matcher, None)))).collect()
}

/// Returns the resources to audit for `matcher`. A matcher describes the requests that a rule checks. Usually, the
/// matcher names one resource, and the result is this resource. A matcher can also name a group of kinds that are known
/// only at run time, such as all kinds that CompositeResourceDefinitions define. The result is then every kind of this
/// group that the catalog watches.
fn of(matcher: &Match, gate: &Gate) -> Vec<Target> {
    if !matcher.is_declared() {
        let versions = matcher.versions.iter().map(|version| (*version).to_owned()).collect();
        return vec![Target::new(matcher.group, versions, matcher.plural, matcher.kind)];
    }
    let declared = gate.catalog().declared().into_iter().filter(|kind| {
        let declaration = gate.catalog().declared_as(kind.group, kind.plural);
        declaration.is_some_and(|(declaration, _)| declaration.name == matcher.plural)
    });
    declared.map(|kind| Target::new(kind.group, vec![kind.version.to_owned()], kind.plural, kind.kind)).collect()
}

impl Target {
    fn new(group: &str, versions: Vec<String>, plural: &str, kind: &str) -> Self {
        Self {
            group: group.to_owned(),
            versions,
            plural: plural.to_owned(),
            kind: kind.to_owned(),
            subresources: Vec::new(),
            asked: HashSet::new(),
            of_creation: HashSet::new(),
        }
    }

    fn add(&mut self, matcher: &'static Match, rule: Option<&Rule>) {
        let looks_at = |operation| matcher.operations.contains(&operation);
        if is_confidential(matcher.group, matcher.plural)
            || !(looks_at(Operation::Update) || looks_at(Operation::Create))
        {
            return;
        }
        if !self.subresources.contains(&matcher.subresource) {
            self.subresources.push(matcher.subresource);
        }
        match rule {
            Some(rule) if looks_at(Operation::Update) => self.asked.insert(rule.info.id),
            Some(rule) => self.of_creation.insert(rule.info.id),
            None => false,
        };
    }

    /// Returns the full name of the resource, such as `installations.landscaper.gardener.cloud`.
    pub(super) fn full_name(&self) -> String {
        if self.group.is_empty() { self.plural.clone() } else { format!("{}.{}", self.plural, self.group) }
    }

    /// Returns whether the objects of this resource have the given API group and kind.
    pub(super) fn is_of(&self, group: &str, kind: &str) -> bool {
        kind == self.kind && group == self.group
    }
}

/// A resource whose objects are audited, and how the cluster serves it: its API version and its scope.
#[derive(Debug, Clone)]
pub(super) struct Served {
    pub(super) target: Target,
    pub(super) version: String,
    pub(super) scope: Scope,
}

impl Served {
    /// Finds the first of the target's API versions that the cluster serves; `None` if the cluster serves none of them.
    pub(super) async fn find(client: &Client, target: Target) -> Result<Option<Self>, kube::Error> {
        for version in &target.versions {
            let Some(resources) = resources(client, &target.group, version).await? else { continue };
            if let Some(found) = resources.resources.iter().find(|resource| resource.name == target.plural) {
                let scope = if found.namespaced { Scope::Namespaced } else { Scope::Cluster };
                let version = version.clone();
                return Ok(Some(Self { target, version, scope }));
            }
        }
        Ok(None)
    }

    pub(super) fn api_version(&self) -> String {
        if self.target.group.is_empty() {
            self.version.clone()
        } else {
            format!("{}/{}", self.target.group, self.version)
        }
    }

    /// Returns the client for the objects of the target in `namespace`. If `namespace` is `None`, the client is for all
    /// namespaces.
    pub(super) fn api(&self, client: &Client, namespace: Option<&str>) -> Api<DynamicObject> {
        let gvk = GroupVersionKind::gvk(&self.target.group, &self.version, &self.target.kind);
        let resource = ApiResource::from_gvk_with_plural(&gvk, &self.target.plural);
        match namespace {
            Some(namespace) => Api::namespaced_with(client.clone(), namespace, &resource),
            None => Api::all_with(client.clone(), &resource),
        }
    }
}

/// Returns the resources of an API group and version; `None` if the cluster does not serve this version.
async fn resources(client: &Client, group: &str, version: &str) -> Result<Option<APIResourceList>, kube::Error> {
    let listed = match group {
        "" => client.list_core_api_resources(version).await,
        group => client.list_api_group_resources(&format!("{group}/{version}")).await,
    };
    match listed {
        Ok(resources) => Ok(Some(resources)),
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(None),
        Err(error) => Err(error),
    }
}
