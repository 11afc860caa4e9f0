//! Tests of rule KZ043 that the examples in its documentation do not cover: which findings are warnings, and how the
//! result of a live read affects the findings.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "in a test a panic is the report")]

mod cases;

use std::sync::Arc;

use cases::Case;
use portcullis::admission::{Operation, Phase};
use portcullis::catalog::{LiveReader, LiveReading, Reference};
use portcullis::gate::{Gate, Policy, Registry};
use serde_json::{Value, json};

fn kustomization(name: &str, spec: Value) -> Value {
    let mut object = json!({"apiVersion": "kustomize.toolkit.fluxcd.io/v1", "kind": "Kustomization",
                            "metadata": {"name": name, "namespace": "flux-system"}, "spec": spec});
    object["spec"]["path"] = json!("./app");
    object["spec"]["sourceRef"] = json!({"kind": "GitRepository", "name": "fleet"});
    object
}

fn kustomization_depending_on(name: &str, on: &str) -> Value {
    kustomization(name, json!({"dependsOn": [{"name": on}]}))
}

/// Returns the level and the headline of each KZ043 finding in `verdict`.
fn found(verdict: &portcullis::admission::Verdict) -> Vec<String> {
    let findings = verdict.findings.iter().filter(|finding| finding.rule == "KZ043");
    findings.map(|finding| format!("{} {}", finding.level, finding.headline())).collect()
}

fn created(object: Value, stored: Vec<Value>) -> Vec<String> {
    found(&Case::new(Operation::Create, object).stored(stored).decide(Phase::Validate))
}

const SELF: &str = "KZ043 spec.dependsOn[0]: flux-system/apps depends on itself: it waits forever, and new revisions of its \
                    source trigger none of the source's Kustomizations";

#[test]
fn denies_a_dependency_on_itself() {
    assert_eq!(created(kustomization_depending_on("apps", "apps"), vec![]), [format!("deny {SELF}")]);
    let named = json!({"dependsOn": [{"name": "apps", "namespace": "flux-system"}]});
    assert_eq!(created(kustomization("apps", named), vec![]), [format!("deny {SELF}")]);
}

#[test]
fn warns_if_the_dependency_may_become_ready() {
    let expression = json!({"dependsOn": [{"name": "apps", "readyExpr": "true"}]});
    assert_eq!(created(kustomization("apps", expression), vec![]), [format!("warn {SELF}")]);
    let suspended = json!({"suspend": true, "dependsOn": [{"name": "apps"}]});
    assert_eq!(created(kustomization("apps", suspended), vec![]), [format!("warn {SELF}")]);
}

#[test]
fn admits_updates_that_leave_the_dependencies_unchanged() {
    let stored = kustomization_depending_on("apps", "apps");
    let mut object = stored.clone();
    object["metadata"]["finalizers"] = json!(["finalizers.fluxcd.io"]);
    let case = Case::new(Operation::Update, object.clone()).stored(vec![stored.clone()]).update(stored.clone());
    assert_eq!(found(&case.decide(Phase::Validate)), [format!("warn {SELF}")]);
    object["metadata"]["deletionTimestamp"] = json!("2026-01-01T12:00:00Z");
    let case = Case::new(Operation::Update, object).stored(vec![stored.clone()]).update(stored);
    assert!(found(&case.decide(Phase::Validate)).is_empty());
}

#[test]
fn ignores_names_with_variables_and_other_namespaces() {
    let variable = json!({"dependsOn": [{"name": "${name}"}]});
    assert!(created(kustomization("apps", variable), vec![]).is_empty());
    let mut other = kustomization_depending_on("apps", "apps");
    other["metadata"]["namespace"] = json!("team-a");
    let object = kustomization("apps", json!({"dependsOn": [{"name": "apps", "namespace": "team-a"}]}));
    assert!(created(object, vec![kustomization("apps", json!({})), other]).is_empty());
}

#[test]
fn follows_long_cycles_and_ends_in_cycles_without_the_object() {
    let chain = |last: &str| {
        let mut stored: Vec<_> =
            (0..50).map(|at| kustomization_depending_on(&format!("k{at}"), &format!("k{}", at + 1))).collect();
        stored.push(kustomization_depending_on("k50", last));
        stored
    };
    let closed = created(kustomization_depending_on("apps", "k0"), chain("apps"));
    assert!(
        closed.len() == 1
            && closed[0].starts_with("warn ")
            && closed[0].ends_with("flux-system/k50 → flux-system/apps")
    );
    assert!(created(kustomization_depending_on("apps", "k0"), chain("k7")).is_empty());
}

/// A live reader that returns the same result for every read. The tests use it for Kustomizations.
struct FixedReader(Result<Option<Value>, ()>);

impl LiveReader for FixedReader {
    fn read<'a>(&'a self, _: &'a Reference) -> LiveReading<'a> {
        let answer = self.0.clone();
        Box::pin(async move {
            let object = answer.map_err(|()| "no answer".to_owned())?;
            Ok(object.map(|object| object.to_string()))
        })
    }
}

/// Returns the findings about a new Kustomization `apps` that depends on the Kustomization `infra`. The catalog
/// contains the objects in `stored`, and live reads return `live`.
fn decided(stored: Vec<Value>, live: Result<Option<Value>, ()>) -> Vec<String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let mut catalog = Registry::standard().catalog_of(stored);
    catalog.set_live_reader(Arc::new(FixedReader(live)));
    let gate = Gate::new(Registry::standard(), Policy::default(), Arc::new(catalog));
    let case = Case::new(Operation::Create, kustomization_depending_on("apps", "infra"));
    found(&runtime.block_on(gate.decide(Phase::Validate, &case.request())))
}

#[test]
fn reads_a_missing_dependency_before_it_is_reported() {
    let missing = "warn KZ043 spec.dependsOn[0]: Kustomization flux-system/infra does not exist: this one waits until it \
                   exists";
    assert_eq!(decided(vec![], Ok(None)), [missing]);
    assert!(decided(vec![], Ok(Some(kustomization("infra", json!({}))))).is_empty());
    assert_eq!(
        decided(vec![], Ok(Some(kustomization_depending_on("infra", "apps")))).len(),
        1,
        "a cycle with an object that was just created"
    );
}

#[test]
fn reads_the_members_of_a_cycle_before_it_is_reported() {
    let cycle = kustomization_depending_on("infra", "apps");
    let reported = "warn KZ043 spec.dependsOn[0]: the dependencies form a cycle, in which each Kustomization waits for the next: \
                    flux-system/apps → flux-system/infra → flux-system/apps";
    assert_eq!(decided(vec![cycle.clone()], Ok(Some(cycle.clone()))), [reported], "the cycle still exists");
    assert!(
        decided(vec![cycle.clone()], Ok(Some(kustomization("infra", json!({}))))).is_empty(),
        "the dependency was changed"
    );
    assert!(decided(vec![cycle.clone()], Ok(None))[0].contains("does not exist"), "the dependency was deleted");
    assert!(decided(vec![cycle], Err(())).is_empty(), "the API server does not answer");
}
