//! KZ043: reports dependencies of a Flux Kustomization that are circular, or that do not exist.
//!
//! Source: kustomize-controller's `internal/controller`. `checkDependencies` in `kustomization_controller.go` reads
//! every dependency, and waits until the dependency is ready. `sortAndEnqueue` in `kustomization_indexers.go` sorts the
//! Kustomizations of a source. If they cannot be sorted, it triggers none of them.

use std::collections::{HashMap, VecDeque};

use serde_json::Value;

use crate::admission::json::Lookup as _;
use crate::admission::{FieldPath, Finding, Level, Operation, Request};
use crate::catalog::{LiveRead, Reference, View};
use crate::kustomize::delivery::kustomization::{KUSTOMIZATIONS, MATCHERS, is_open};
use crate::rule::{Rule, RuleInfo};

/// The rule definition of KZ043.
pub(super) static RULE: Rule = Rule {
    info: RuleInfo {
        id: "KZ043",
        name: "flux-dependency-never-ready",
        level: Level::Deny,
        summary: "a dependsOn of a Flux Kustomization that names itself, forms a cycle, or names a missing Kustomization",
        page: include_str!("../../../../docs/rules/KZ043.md"),
    },
    matchers: &MATCHERS,
    looks_up: &[&KUSTOMIZATIONS],
    live_reads: Some(live_reads),
    check,
};

/// Maximum number of Kustomizations that are examined for one entry of `spec.dependsOn`, to find a dependency cycle.
/// Even in the largest clusters, fewer Kustomizations depend on each other. The limit is low enough to read all these
/// Kustomizations during a request.
const MAX_FOLLOWED: usize = 256;

/// Namespace and name of a Kustomization.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Key {
    namespace: String,
    name: String,
}

impl Key {
    fn of(request: &Request<'_>) -> Self {
        Self { namespace: request.namespace.to_string(), name: request.display_name() }
    }

    fn reference(&self) -> Reference {
        Reference::new(&KUSTOMIZATIONS, &self.namespace, &self.name)
    }

    fn words(&self) -> String {
        format!("{}/{}", self.namespace, self.name)
    }
}

/// An entry of `spec.dependsOn`.
struct Dependency {
    index: usize,
    key: Key,
    /// Whether the dependency has a CEL expression (`readyExpr`). The expression replaces the check that the dependency
    /// is ready.
    has_expression: bool,
}

/// Returns the objects to read live before a finding is reported. Live reads are necessary because the cache may be out
/// of date: a missing dependency may exist now, and a cycle may be gone.
fn live_reads(request: &Request<'_>, view: &View<'_>) -> Vec<Reference> {
    let own = Key::of(request);
    let dependencies = dependencies(request.object(), &request.namespace);
    let reads = |Dependency { key, .. }: Dependency| {
        let missing = view.unless_found(&KUSTOMIZATIONS, &key.namespace, &key.name);
        let members = cycle(&key, &own, view).unwrap_or_default();
        missing.into_iter().chain(members.iter().map(Key::reference).collect::<Vec<_>>())
    };
    dependencies.into_iter().filter(|dependency| dependency.key != own).flat_map(reads).collect()
}

fn check(request: &Request<'_>, view: &View<'_>) -> Vec<Finding> {
    if request.is_deleting() {
        return Vec::new();
    }
    let dependencies = dependencies(request.object(), &request.namespace);
    let mut findings: Vec<_> = dependencies.iter().filter_map(|one| finding(one, request, view)).collect();
    if is_unchanged(request) {
        findings.iter_mut().for_each(|finding| finding.level = finding.level.min(Level::Warn));
    }
    findings
}

fn finding(dependency: &Dependency, request: &Request<'_>, view: &View<'_>) -> Option<Finding> {
    let Dependency { index, key, has_expression } = dependency;
    let (own, field) = (Key::of(request), FieldPath::of(["spec", "dependsOn"]).index(*index));
    if *key == own {
        let message = format!(
            "{} depends on itself: it waits forever, and new revisions of its source trigger none of the source's \
             Kustomizations",
            own.words()
        );
        let may_be_ready = *has_expression || is_suspended(request.object());
        let finding = RULE.finding(field, message).help("remove the entry, or name another Kustomization");
        return Some(if may_be_ready { warning(finding) } else { finding });
    }
    if view.is_missing(&KUSTOMIZATIONS, &key.namespace, &key.name) {
        let message = format!("Kustomization {} does not exist: this one waits until it exists", key.words());
        return Some(warning(RULE.finding(field, message).help("apply it too, or correct the name and namespace")));
    }
    let members = cycle(key, &own, view)?;
    // If a Kustomization could not be read from the API server, the cycle may not exist any more.
    let is_unknown = |key: &Key| matches!(view.live_read(&key.reference()), Some(LiveRead::Unknown(_)));
    if members.iter().any(is_unknown) {
        return None;
    }
    let way: Vec<_> = [&own].into_iter().chain(&members).chain([&own]).map(Key::words).collect();
    let message =
        format!("the dependencies form a cycle, in which each Kustomization waits for the next: {}", way.join(" → "));
    Some(warning(RULE.finding(field, message).help("remove one of these dependencies")))
}

/// Changes the level of a finding about a dependency to `warn`, so that the finding does not deny the request. The
/// reason is that the error may be temporary. For example, the same `kubectl apply` may create a missing Kustomization
/// later, or change another Kustomization of a dependency cycle.
fn warning(mut finding: Finding) -> Finding {
    finding.level = Level::Warn;
    finding
}

fn is_suspended(object: &Value) -> bool {
    object.at(&["spec", "suspend"]).and_then(Value::as_bool) == Some(true)
}

/// Returns whether the request is an update that leaves the dependencies unchanged. For example, kustomize-controller
/// sends such an update to write finalizers.
fn is_unchanged(request: &Request<'_>) -> bool {
    let depends_on = |object: &Value| object.at(&["spec", "dependsOn"]).cloned();
    request.operation == Operation::Update && depends_on(request.old_object()) == depends_on(request.object())
}

/// Returns the dependencies of a Kustomization. Skips dependencies whose name or namespace contains variables.
fn dependencies(object: &Value, namespace: &str) -> Vec<Dependency> {
    let entries = object.at(&["spec", "dependsOn"]).and_then(Value::as_array).into_iter().flatten().enumerate();
    let dependency = |(index, entry): (usize, &Value)| {
        let text = |key: &str| entry.get(key).and_then(Value::as_str).filter(|text| !text.is_empty());
        let (name, namespace) = (text("name")?.to_owned(), text("namespace").unwrap_or(namespace).to_owned());
        let is_known = !is_open(&name) && !is_open(&namespace);
        let has_expression = text("readyExpr").is_some();
        is_known.then_some(Dependency { index, key: Key { namespace, name }, has_expression })
    };
    entries.filter_map(dependency).collect()
}

/// Returns the dependency cycle that leads from the Kustomization `own` to its dependency `start` and back to `own`.
/// The result begins with `start` and omits `own`. `None` if there is no cycle, or if the search finds none among the
/// first [`MAX_FOLLOWED`] Kustomizations.
fn cycle(start: &Key, own: &Key, view: &View<'_>) -> Option<Vec<Key>> {
    let mut before: HashMap<Key, Option<Key>> = HashMap::from([(start.clone(), None)]);
    let mut open = VecDeque::from([start.clone()]);
    while let Some(key) = open.pop_front() {
        let Some(stored) = view.find(&KUSTOMIZATIONS, &key.namespace, &key.name) else { continue };
        for Dependency { key: next, .. } in dependencies(stored.value(), &key.namespace) {
            if next == *own {
                return Some(way(key, &before));
            }
            if before.len() < MAX_FOLLOWED && !before.contains_key(&next) {
                before.insert(next.clone(), Some(key.clone()));
                open.push_back(next);
            }
        }
    }
    None
}

fn way(last: Key, before: &HashMap<Key, Option<Key>>) -> Vec<Key> {
    let mut way: Vec<_> = std::iter::successors(Some(last), |key| before.get(key).cloned().flatten()).collect();
    way.reverse();
    way
}
