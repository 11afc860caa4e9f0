//! The registry of all rules, mutators and checks of kustomization files, and of the kinds that they look up. In the
//! code, a check of kustomization files is a `Delivery`.

use std::collections::{BTreeMap, HashMap};

use serde_json::Value;

use crate::admission::Request;
use crate::catalog::{Catalog, Declaration, Kind};
use crate::crossplane;
use crate::kustomize;
use crate::kustomize::delivery::{self, Delivery};
use crate::landscaper;
use crate::rule::{ANY, DECLARED, Definition, Match, Mutator, Rule, RuleInfo};

/// A set of rules, mutators and deliveries, with an index by the resources that they match. A delivery is a check of
/// kustomization files.
pub struct Registry {
    rules: Vec<&'static Rule>,
    tree_rules: Vec<&'static RuleInfo>,
    mutators: Vec<&'static Mutator>,
    deliveries: Vec<&'static Delivery>,
    definitions: Vec<&'static Definition>,
    declarations: Vec<&'static Declaration>,
    optional: Vec<&'static Definition>,
    by_resource: ByResource,
}

/// An index of the rules, the mutators and the checks of kustomization files (see [`Delivery`]) by resource. The outer
/// key is the plural name in a [`Match`], and the inner key is the API group:
///
/// - for a resource: for example `deployments` and `apps`
/// - for all resources: `*` and `*`
/// - for kinds that objects in the cluster define: the name of the [`Declaration`], and `*`. For example, `composites`
///   stands for all kinds that CompositeResourceDefinitions define.
#[derive(Default)]
struct ByResource(HashMap<&'static str, BTreeMap<&'static str, Matchable>>);

impl ByResource {
    fn get(&self, group: &str, plural: &str) -> Option<&Matchable> {
        self.0.get(plural)?.get(group)
    }

    fn entry(&mut self, one: &Match) -> &mut Matchable {
        self.0.entry(one.plural).or_default().entry(one.group).or_default()
    }
}

/// A rule, a mutator or a check of kustomize trees, with one of its request matchers.
pub(super) type Matched<T> = (&'static T, &'static Match);

/// The rules, mutators and deliveries for admission requests about one resource, such as `installations`. A delivery is
/// a check of the kustomization files that the object in the request contains or refers to. Each list has one item for
/// each matcher for this resource, so a rule with several such matchers has several items.
#[derive(Default)]
struct Matchable {
    rules: Vec<Matched<Rule>>,
    mutators: Vec<Matched<Mutator>>,
    deliveries: Vec<Matched<Delivery>>,
}

impl Registry {
    /// Creates a registry with all rules, mutators and checks for Crossplane, kustomize and Landscaper.
    pub fn standard() -> Self {
        let mut rules = [crossplane::rules(), kustomize::rules(), landscaper::rules()].concat();
        rules.sort_by_key(|rule| rule.info.id);
        let mutators = [crossplane::mutators(), landscaper::mutators()].concat();
        let (tree_rules, definitions) = (kustomize::tree_rules(), landscaper::definitions());
        let optional = kustomize::delivery::definitions();
        let declarations = crossplane::declarations();
        let standard = Self { tree_rules, definitions, optional, declarations, ..Self::new(rules, mutators) };
        standard.with_deliveries(kustomize::delivery::deliveries())
    }

    /// Restricts the registry to some rule families, such as `OW`. Only the rules, mutators, deliveries and
    /// CustomResourceDefinitions of these families remain. A delivery is a check of kustomization files.
    #[must_use]
    pub fn only(self, families: &[&str]) -> Self {
        let is_on = |family: &str| families.contains(&family);
        let rules = self.rules.into_iter().filter(|rule| is_on(rule.info.family())).collect();
        let mutators = self.mutators.into_iter().filter(|mutator| is_on(mutator.family)).collect();
        let mut only = Self::new(rules, mutators);
        only.tree_rules = self.tree_rules.into_iter().filter(|rule| is_on(rule.family())).collect();
        only.definitions = self.definitions.into_iter().filter(|definition| is_on(definition.family)).collect();
        only.optional = self.optional.into_iter().filter(|definition| is_on(definition.family)).collect();
        let looks_at = |declaration: &&'static Declaration| only.looking_at(declaration).next().is_some();
        only.declarations = self.declarations.into_iter().filter(looks_at).collect();
        let deliveries = self.deliveries.into_iter().filter(|delivery| is_on(delivery.family)).collect();
        only.with_deliveries(deliveries)
    }

    /// Creates a registry of the rules `rules` and the mutators `mutators`. The registry has no checks of kustomization
    /// files and no CustomResourceDefinitions.
    pub fn new(rules: Vec<&'static Rule>, mutators: Vec<&'static Mutator>) -> Self {
        let mut by_resource = ByResource::default();
        for rule in &rules {
            for one in rule.matchers {
                by_resource.entry(one).rules.push((rule, one));
            }
        }
        for mutator in &mutators {
            for one in mutator.matchers {
                by_resource.entry(one).mutators.push((mutator, one));
            }
        }
        let (tree_rules, deliveries) = (Vec::new(), Vec::new());
        let (definitions, optional, declarations) = (Vec::new(), Vec::new(), Vec::new());
        Self { rules, tree_rules, mutators, deliveries, definitions, optional, declarations, by_resource }
    }

    fn with_deliveries(mut self, deliveries: Vec<&'static Delivery>) -> Self {
        for delivery in &deliveries {
            for one in delivery.matchers {
                self.by_resource.entry(one).deliveries.push((delivery, one));
            }
        }
        Self { deliveries, ..self }
    }

    /// Returns the rules that check requests, in the order of their ids.
    pub fn rules(&self) -> &[&'static Rule] {
        &self.rules
    }

    /// Returns the mutators, in the order in which they run.
    pub fn mutators(&self) -> &[&'static Mutator] {
        &self.mutators
    }

    /// Returns all checks that the key `deliveries` of the configuration file configures, in the order in which they
    /// run. They check kustomization files, for example those to which Flux Kustomizations refer.
    pub fn deliveries(&self) -> &[&'static Delivery] {
        &self.deliveries
    }

    /// Returns the definitions of all rules, sorted by id. The result includes the rules that check requests, and the
    /// rules that check kustomize trees.
    pub fn infos(&self) -> Vec<&'static RuleInfo> {
        let mut infos: Vec<_> =
            self.rules.iter().map(|rule| &rule.info).chain(self.tree_rules.iter().copied()).collect();
        infos.sort_by_key(|info| info.id);
        infos
    }

    /// Returns the definition of the rule with this id. Finds both kinds of rules: rules that check requests, and rules
    /// that check kustomization files.
    pub fn info(&self, id: &str) -> Option<&'static RuleInfo> {
        let of_trees = || self.tree_rules.iter().find(|info| info.id == id).copied();
        self.rule(id).map(|rule| &rule.info).or_else(of_trees)
    }

    /// Returns the ids of all rules, in order.
    pub fn ids(&self) -> Vec<&'static str> {
        self.infos().into_iter().map(|info| info.id).collect()
    }

    /// Returns whether a rule checks kustomize trees instead of requests.
    pub fn is_about_trees(&self, info: &RuleInfo) -> bool {
        self.tree_rules.iter().any(|rule| rule.id == info.id)
    }

    /// Returns the CustomResourceDefinitions of kinds that Portcullis adds, such as DryRunConfiguration.
    pub fn definitions(&self) -> &[&'static Definition] {
        &self.definitions
    }

    /// Creates an empty catalog, which is a cache of cluster objects. It can store all kinds of objects that rules,
    /// mutators and checks of kustomization files look up.
    pub fn catalog(&self) -> Catalog {
        Catalog::new(self.kinds()).declaring(self.declarations.clone())
    }

    /// Creates a catalog that contains exactly the objects in `objects`; see [`Catalog::of`].
    pub fn catalog_of(&self, objects: Vec<Value>) -> Catalog {
        let catalog = self.catalog();
        catalog.replace_all(objects);
        catalog
    }

    /// Returns the CustomResourceDefinitions with which a cluster can store kustomize's kinds Kustomization and
    /// Component. The chart installs them only if a chart value enables them.
    pub fn optional_definitions(&self) -> &[&'static Definition] {
        &self.optional
    }

    /// Returns the rule with this id. `None` if no rule has the id, or if the rule checks kustomize trees.
    pub fn rule(&self, id: &str) -> Option<&'static Rule> {
        self.rules.iter().find(|rule| rule.info.id == id).copied()
    }

    /// Returns the families of all rules, such as `OW`, without duplicates.
    pub fn families(&self) -> Vec<&'static str> {
        let mut families: Vec<_> = self.infos().into_iter().map(RuleInfo::family).collect();
        families.dedup();
        families
    }

    /// Returns the rule families that are enabled by default: all except `GD`, which limits deletions.
    pub fn default_families(&self) -> Vec<&'static str> {
        self.families().into_iter().filter(|family| *family != delivery::guard::FAMILY).collect()
    }

    /// Returns every Kubernetes kind whose objects are looked up in the catalog, which caches objects of the cluster.
    /// Rules, mutators and checks of kustomize trees make these look-ups.
    pub fn kinds(&self) -> Vec<&'static Kind> {
        self.looked_up().into_iter().map(|(kind, _)| kind).collect()
    }

    /// Returns the kinds whose objects are looked up in the catalog to check an object of `kind`. The result may
    /// contain duplicates.
    pub fn looked_up_for(&self, kind: &Kind) -> Vec<&'static Kind> {
        let covers =
            |matchers: &[Match]| matchers.iter().any(|one| (one.group, one.plural) == (kind.group, kind.plural));
        let of_rules = self.rules.iter().filter(|rule| covers(rule.matchers)).map(|rule| rule.looks_up);
        let of_deliveries = self.deliveries.iter().filter(|row| covers(row.matchers)).map(|row| row.looks_up);
        of_rules.chain(of_deliveries).flatten().copied().collect()
    }

    /// Returns the kinds of objects that Portcullis looks up in the catalog, its cache of cluster objects. Each kind
    /// comes with the rule families, such as `KZ`, that need these objects.
    pub fn looked_up(&self) -> Vec<(&'static Kind, Vec<&'static str>)> {
        by_kind(self.looks().map(|(family, kind, _)| (family, kind)).chain(self.declaring()))
    }

    /// Returns every kind whose objects are read live from the API server, with the rule families that need these
    /// reads.
    pub fn kinds_read_live(&self) -> Vec<(&'static Kind, Vec<&'static str>)> {
        by_kind(self.looks().filter(|(_, _, is_read_live)| *is_read_live).map(|(family, kind, _)| (family, kind)))
    }

    /// Returns the kinds of cluster objects that Portcullis needs to handle requests. Each kind comes with a rule
    /// family, such as `KZ`, that needs it. The `bool` says whether objects of the kind are also read directly from the
    /// API server, and not only from the cache.
    fn looks(&self) -> impl Iterator<Item = (&'static str, &'static Kind, bool)> {
        let of_rules = self.rules.iter().map(|rule| (rule.info.family(), rule.looks_up, rule.live_reads.is_some()));
        let of_mutators = self.mutators.iter().map(|row| (row.family, row.looks_up, row.live_reads.is_some()));
        let of_deliveries = self.deliveries.iter().map(|row| (row.family, row.looks_up, row.live_reads.is_some()));
        let of_rows = of_rules.chain(of_mutators).chain(of_deliveries);
        of_rows.flat_map(|(family, kinds, is_read_live)| kinds.iter().map(move |kind| (family, *kind, is_read_live)))
    }

    /// Returns the kinds whose objects define other kinds, such as CompositeResourceDefinition. Each kind comes with a
    /// rule family, such as `EN`, that has rules or mutators for the defined kinds.
    pub(super) fn declaring(&self) -> impl Iterator<Item = (&'static str, &'static Kind)> {
        let of = |declaration: &&'static Declaration| {
            let by = declaration.by;
            self.looking_at(declaration).map(move |family| (family, by)).collect::<Vec<_>>()
        };
        self.declarations.iter().flat_map(of)
    }

    /// Returns the families, such as `EN`, of all rules and mutators that match the kinds of `declaration`. A
    /// declaration is a group of kinds that objects in the cluster define, such as `composites`. The result may contain
    /// duplicates.
    fn looking_at(&self, declaration: &Declaration) -> impl Iterator<Item = &'static str> {
        let of_rules = self.rules.iter().map(|rule| (rule.info.family(), rule.matchers));
        let of_mutators = self.mutators.iter().map(|mutator| (mutator.family, mutator.matchers));
        let looks = |matchers: &[Match]| matchers.iter().any(|one| one.is_declared() && one.plural == declaration.name);
        of_rules.chain(of_mutators).filter(move |(_, matchers)| looks(matchers)).map(|(family, _)| family)
    }

    /// Returns the rules that apply to a request, each with the first of its matchers that matches the request.
    ///
    /// `declared_as` is the group of kinds to which the kind of the request's object belongs, such as `composites`. The
    /// kinds of a group are defined by objects in the cluster, such as CompositeResourceDefinitions. `None` if the kind
    /// belongs to no group.
    pub(super) fn rules_for(
        &self,
        request: &Request<'_>,
        declared_as: Option<&Declaration>,
    ) -> impl Iterator<Item = Matched<Rule>> {
        let rules = self.matchable(request, declared_as).into_iter().flat_map(|matchable| &matchable.rules);
        covering(rules, request)
    }

    /// Returns the mutators that apply to a request, each with the first of its matchers that matches the request.
    /// `declared_as` has the same meaning as in [`Registry::rules_for`].
    pub(super) fn mutators_for(
        &self,
        request: &Request<'_>,
        declared_as: Option<&Declaration>,
    ) -> impl Iterator<Item = Matched<Mutator>> {
        let mutators = self.matchable(request, declared_as).into_iter().flat_map(|matchable| &matchable.mutators);
        covering(mutators, request)
    }

    /// Returns the deliveries that apply to a request, each with the first of its matchers that matches the request. A
    /// delivery is a check of kustomization files.
    pub(super) fn deliveries_for(&self, request: &Request<'_>) -> impl Iterator<Item = Matched<Delivery>> {
        let matchable = self.matchable(request, None).into_iter().chain(self.by_resource.get(ANY, ANY));
        covering(matchable.flat_map(|matchable| &matchable.deliveries), request)
    }

    /// Returns the rules, mutators and deliveries with a matcher for the resource of a request. A delivery is a check
    /// of kustomization files. Matchers that apply to all resources are not included.
    fn matchable(&self, request: &Request<'_>, declared_as: Option<&Declaration>) -> Option<&Matchable> {
        match declared_as {
            Some(declaration) => self.by_resource.get(DECLARED, declaration.name),
            None => self.by_resource.get(&request.resource.group, &request.resource.plural),
        }
    }
}

/// Returns the rules, mutators or deliveries that apply to a request. Each is returned once, with its first matcher
/// that matches the request. `candidates` contains pairs of a rule, mutator or delivery and one of its matchers.
///
/// The caller must ensure that:
/// - each matcher in `candidates` is for the resource of the request, or for all resources
/// - all pairs with the same rule, mutator or delivery are next to each other in `candidates`
fn covering<'a, T: 'static>(
    candidates: impl Iterator<Item = &'a Matched<T>>,
    request: &Request<'_>,
) -> impl Iterator<Item = Matched<T>> {
    let mut found: Option<&T> = None;
    candidates.copied().filter(move |(of, one)| {
        let is_first = one.covers_operation(request) && found.is_none_or(|before| !std::ptr::eq(before, *of));
        if is_first {
            found = Some(of);
        }
        is_first
    })
}

/// Groups pairs of a rule family and a Kubernetes kind by the kind. Returns each kind with its distinct rule families.
fn by_kind(looks: impl Iterator<Item = (&'static str, &'static Kind)>) -> Vec<(&'static Kind, Vec<&'static str>)> {
    let mut kinds: Vec<(&'static Kind, Vec<&'static str>)> = Vec::new();
    for (family, kind) in looks {
        match kinds.iter_mut().find(|(known, _)| std::ptr::eq(*known, kind)) {
            Some((_, families)) if families.contains(&family) => {}
            Some((_, families)) => families.push(family),
            None => kinds.push((kind, vec![family])),
        }
    }
    kinds
}

#[cfg(test)]
mod tests {
    use std::ptr;

    use super::*;
    use crate::admission::{Object, Operation, Resource, User};

    fn request(one: &Match, operation: Operation) -> Request<'static> {
        let resource = Resource {
            group: one.group.into(),
            version: one.versions.first().copied().unwrap_or("v1").into(),
            plural: one.plural.into(),
            subresource: one.subresource.into(),
            kind: one.kind.into(),
        };
        let (name, namespace, uid) = ("a".into(), "b".into(), "u".into());
        let (object, old_object) = (Object::default(), Object::default());
        let (user, dry_run, deadline) = (User::default(), false, None);
        Request { uid, resource, name, namespace, operation, user, dry_run, object, old_object, deadline }
    }

    /// Asserts that the index found the right items, such as rules, for `request`. `found` contains the items from the
    /// index, each with its matcher. They must equal the items in `all` that match, which this function finds without
    /// the index. Returns the number of items found.
    fn compare<T>(
        found: impl Iterator<Item = Matched<T>>,
        all: &[&'static T],
        matchers: fn(&T) -> &'static [Match],
        request: &Request<'_>,
        declared_as: Option<&Declaration>,
    ) -> usize {
        let addresses = |(of, one): Matched<T>| (ptr::from_ref(of), ptr::from_ref(one));
        let first = |of: &&'static T| matchers(of).iter().find(|one| one.covers(request, declared_as));
        let expected: Vec<_> = all.iter().filter_map(|of| Some(addresses((of, first(of)?)))).collect();
        assert_eq!(found.map(addresses).collect::<Vec<_>>(), expected, "{request:?}");
        expected.len()
    }

    #[test]
    fn the_index_finds_what_a_comparison_of_all_matchers_finds() {
        let registry = Registry::standard();
        let Registry { rules, mutators, deliveries, declarations, .. } = &registry;
        let matchers = rules.iter().map(|rule| rule.matchers).chain(mutators.iter().map(|mutator| mutator.matchers));
        let matchers = matchers.chain(deliveries.iter().map(|delivery| delivery.matchers));
        let mut found = 0;
        for one in matchers.flatten() {
            let declares = |declaration: &&&Declaration| one.is_declared() && declaration.name == one.plural;
            let declared_as = declarations.iter().find(declares).copied();
            for operation in [Operation::Create, Operation::Update, Operation::Delete, Operation::Connect] {
                let request = request(one, operation);
                let of_rules = registry.rules_for(&request, declared_as);
                found += compare(of_rules, rules, |rule| rule.matchers, &request, declared_as);
                let of_mutators = registry.mutators_for(&request, declared_as);
                found += compare(of_mutators, mutators, |mutator| mutator.matchers, &request, declared_as);
                let of_deliveries = registry.deliveries_for(&request);
                found += compare(of_deliveries, deliveries, |delivery| delivery.matchers, &request, None);
            }
        }
        assert!(found > 100, "{found}");
    }
}
