//! Tests of OW008 to OW011 beyond the examples on their pages: outdated tree annotations, and live reads of Contexts.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "in a test a panic is the report")]

mod cases;

use std::sync::Arc;

use cases::{Case, objects};
use portcullis::admission::{Level, Operation, Phase};
use portcullis::catalog::{LiveReader, LiveReading, Reference};
use portcullis::gate::{Gate, Policy, Registry};
use portcullis::landscaper::component_reference::ComponentReference;
use portcullis::landscaper::overwrites::note::{Missing, Note, fingerprint};
use portcullis::landscaper::substitution::read_entries;
use serde_json::{Value, json};

const CONTEXT: &str = "
apiVersion: landscaper.gardener.cloud/v1alpha1
kind: Context
metadata: {name: default, namespace: ns}
componentVersionOverwrites: mine
";

fn overwrites(version: &str) -> Value {
    json!({"apiVersion": "landscaper.gardener.cloud/v1alpha1", "kind": "ComponentVersionOverwrites",
           "metadata": {"name": "mine", "namespace": "ns"},
           "overwrites": [{"source": {"componentName": "db"}, "substitution": {"version": version}}]})
}

/// Returns an Installation with a tree annotation that contains the summary `note`. The annotation also contains a hash
/// of the object `overwrites` and of the component reference of the Installation. So the annotation is current as long
/// as both are unchanged.
fn installation(name: &str, overwrites: &Value, note: Note) -> Value {
    let original =
        ComponentReference { component_name: "app".into(), version: "v1".into(), ..ComponentReference::default() };
    let from = fingerprint(&read_entries(overwrites, &mut Vec::new()), &original);
    let note = serde_json::to_string(&Note { from, ..note }).unwrap();
    json!({"apiVersion": "landscaper.gardener.cloud/v1alpha1", "kind": "Installation",
           "metadata": {"name": name, "namespace": "ns", "annotations": {"portcullis.dev/overwrite-tree": note}},
           "spec": {"componentDescriptor": {"ref": {"componentName": "app", "version": "v1"}}}})
}

fn missing() -> Note {
    let target = json!({"componentName": "db", "version": "v9", "repositoryContext": {"type": "ociRegistry", "baseUrl": "r.example"}});
    let missing = Missing { way: "store → db".into(), target, nearest: vec!["v8".into()], entries: vec![0] };
    Note { missing: vec![missing], ..Note::default() }
}

fn findings(object: Value, stored: Vec<Value>, rule: &str) -> Vec<String> {
    let case = Case::new(Operation::Update, object.clone()).update(object).stored(stored);
    let found = case.decide(Phase::Validate).findings;
    found.iter().filter(|finding| finding.rule == rule).map(|finding| finding.paragraph()).collect()
}

fn stored(others: Vec<Value>) -> Vec<Value> {
    objects(CONTEXT).into_iter().chain(others).collect()
}

#[test]
fn reports_missing_components_while_the_annotation_is_current() {
    let object = installation("a", &overwrites("v9"), missing());
    let found = findings(object.clone(), stored(vec![overwrites("v9")]), "OW008");
    assert_eq!(found.len(), 1);
    assert!(found[0].contains("db v9 did not exist in r.example when it was last checked (store → db)"), "{found:?}");
    assert!(found[0].contains("these versions exist: v8"), "{found:?}");
    // The annotation was computed with other overwrites, so it is outdated.
    assert!(findings(object, stored(vec![overwrites("v8")]), "OW008").is_empty());
}

#[test]
fn reports_the_entry_that_produces_a_missing_reference() {
    let user = installation("a", &overwrites("v9"), missing());
    let found = findings(overwrites("v9"), stored(vec![user.clone()]), "OW008");
    assert!(found.len() == 1 && found[0].contains("overwrites[0].substitution"), "{found:?}");
    assert!(findings(overwrites("v8"), stored(vec![user]), "OW008").is_empty());
}

#[test]
fn records_unmatched_entries_once_every_tree_is_known() {
    let mine = overwrites("v9");
    let known = |name: &str, matched: Vec<usize>| {
        installation(name, &mine, Note { complete: true, matched, ..Note::default() })
    };
    let found = |users: Vec<Value>| findings(mine.clone(), stored(users), "OW009");
    assert_eq!(found(vec![known("a", vec![]), known("b", vec![])]).len(), 1);
    assert!(found(vec![known("a", vec![]), known("b", vec![0])]).is_empty(), "one tree uses the entry");
    let half = installation("b", &mine, Note::default());
    assert!(found(vec![known("a", vec![]), half]).is_empty(), "the entry may match the unknown part");
    let stale = installation("b", &overwrites("v1"), Note { complete: true, ..Note::default() });
    assert!(found(vec![known("a", vec![]), stale]).is_empty(), "the annotation is about other entries");
    assert!(found(vec![]).is_empty(), "no Installation uses the overwrites");
}

/// OW009 has level `audit` at admission, so its findings are not shown to the user.
#[test]
fn hides_unmatched_entries_at_admission() {
    let mine = overwrites("v9");
    let user = installation("a", &mine, Note { complete: true, ..Note::default() });
    let case = Case::new(Operation::Update, mine.clone()).update(mine).stored(stored(vec![user]));
    let found = case.decide(Phase::Validate).findings;
    let unmatched: Vec<_> = found.iter().filter(|finding| finding.rule == "OW009").collect();
    assert!(unmatched.len() == 1 && unmatched[0].level == Level::Audit, "{found:?}");
}

#[test]
fn reports_two_versions_while_the_annotation_is_current() {
    let sentence =
        "component log is in the tree as v1 (a, by overwrites[0]) and as v2 (b, which that entry does not match)";
    let note = Note { splits: vec![sentence.to_owned()], ..Note::default() };
    let object = installation("a", &overwrites("v9"), note);
    let found = findings(object.clone(), stored(vec![overwrites("v9")]), "OW010");
    assert!(found.len() == 1 && found[0].contains(sentence), "{found:?}");
    assert!(findings(object, stored(vec![overwrites("v8")]), "OW010").is_empty());
}

/// A live reader of a Context. `None`: each read fails. `Some(None)`: the Context does not exist. `Some(Some(…))`: each
/// read returns this Context.
struct ContextReader(Option<Option<Value>>);

impl LiveReader for ContextReader {
    fn read<'a>(&'a self, reference: &'a Reference) -> LiveReading<'a> {
        let context = self.0.clone().map(|context| context.filter(|_| reference.kind.kind == "Context"));
        Box::pin(async move {
            let context = context.ok_or_else(|| "no answer".to_owned())?;
            Ok(context.map(|context| context.to_string()))
        })
    }
}

fn context(deleted: bool) -> Value {
    let mut context = objects(CONTEXT).remove(0);
    context["metadata"]["finalizers"] = json!(["example.org/hold"]);
    context["metadata"]["deletionTimestamp"] = if deleted { json!("2026-01-01T12:00:00Z") } else { Value::Null };
    context
}

/// Returns the findings of OW011 about the creation of `object`. The catalog contains a Context that is being deleted.
/// `live` is the result of each live read of this Context, as in [`ContextReader`].
fn findings_of_ow011(object: &Value, live: Option<Option<Value>>) -> Vec<String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let registry = Registry::standard();
    let mut catalog = registry.catalog_of(vec![context(true)]);
    catalog.set_live_reader(Arc::new(ContextReader(live)));
    let gate = Gate::new(registry, Policy::default(), Arc::new(catalog));
    let request = Case::new(Operation::Create, object.clone()).request();
    let found = runtime.block_on(gate.decide(Phase::Validate, &request)).findings;
    found.iter().filter(|finding| finding.rule == "OW011").map(|finding| finding.paragraph()).collect()
}

#[test]
fn warns_about_a_context_only_if_a_live_read_shows_its_deletion() {
    let object = installation("a", &overwrites("v1"), Note::default());
    let found = |live| findings_of_ow011(&object, live);
    let warned = found(Some(Some(context(true))));
    assert!(warned.len() == 1 && warned[0].contains("Context \"default\" has been in deletion"), "{warned:?}");
    assert!(found(Some(Some(context(false)))).is_empty(), "the Context was created again");
    assert!(found(Some(None)).is_empty(), "OW005 reports a Context that does not exist");
    assert!(found(None).is_empty(), "the live read failed");
}

#[test]
fn does_not_warn_about_the_context_of_an_installation_that_is_deleted_too() {
    let live = Some(Some(context(true)));
    let mut object = installation("a", &overwrites("v1"), Note::default());
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "ns"},
                           "status": {"phase": "Terminating"}});
    let terminating = Case::new(Operation::Create, object.clone()).stored(vec![context(true), namespace]);
    let found = terminating.decide(Phase::Validate).findings;
    assert!(!found.iter().any(|finding| finding.rule == "OW011"), "{found:?}");
    object["metadata"]["deletionTimestamp"] = json!("2026-01-01T12:00:00Z");
    assert!(findings_of_ow011(&object, live).is_empty());
}
