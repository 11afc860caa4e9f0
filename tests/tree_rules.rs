//! OW008, OW009 and OW010 beyond what their pages show: they speak only of what is known of these very overwrites.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "in a test a panic is the report")]

mod cases;

use cases::{Case, objects};
use portcullis::admission::{Level, Operation, Phase};
use portcullis::landscaper::component_reference::ComponentReference;
use portcullis::landscaper::components::note::{Missing, Note, fingerprint};
use portcullis::landscaper::overwrites::substitution::read_entries;
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

/// An Installation with a note that was made with `overwrites`.
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
fn an_installation_is_told_what_its_tree_lacks_while_that_is_so() {
    let object = installation("a", &overwrites("v9"), missing());
    let found = findings(object.clone(), stored(vec![overwrites("v9")]), "OW008");
    assert_eq!(found.len(), 1);
    assert!(
        found[0].contains("db v9 did not exist in r.example when it was last looked for (store → db)"),
        "{found:?}"
    );
    assert!(found[0].contains("these versions exist: v8"), "{found:?}");
    // The overwrites are others by now: nobody knows.
    assert!(findings(object, stored(vec![overwrites("v8")]), "OW008").is_empty());
}

#[test]
fn overwrites_are_told_which_entry_leads_nowhere() {
    let user = installation("a", &overwrites("v9"), missing());
    let found = findings(overwrites("v9"), stored(vec![user.clone()]), "OW008");
    assert!(found.len() == 1 && found[0].contains("overwrites[0].substitution"), "{found:?}");
    assert!(findings(overwrites("v8"), stored(vec![user]), "OW008").is_empty());
}

#[test]
fn an_idle_entry_is_recorded_once_every_tree_is_known() {
    let mine = overwrites("v9");
    let known = |name: &str, matched: Vec<usize>| {
        installation(name, &mine, Note { complete: true, matched, ..Note::default() })
    };
    let found = |users: Vec<Value>| findings(mine.clone(), stored(users), "OW009");
    assert_eq!(found(vec![known("a", vec![]), known("b", vec![])]).len(), 1);
    assert!(found(vec![known("a", vec![]), known("b", vec![0])]).is_empty(), "one of them uses it");
    let half = installation("b", &mine, Note::default());
    assert!(found(vec![known("a", vec![]), half]).is_empty(), "what is not known might be what it is for");
    let stale = installation("b", &overwrites("v1"), Note { complete: true, ..Note::default() });
    assert!(found(vec![known("a", vec![]), stale]).is_empty(), "that was about other entries");
    assert!(found(vec![]).is_empty(), "nobody uses it yet");
}

/// What is only recorded is not shown to whoever writes the overwrites.
#[test]
fn an_idle_entry_is_not_shown_at_admission() {
    let mine = overwrites("v9");
    let user = installation("a", &mine, Note { complete: true, ..Note::default() });
    let case = Case::new(Operation::Update, mine.clone()).update(mine).stored(stored(vec![user]));
    let found = case.decide(Phase::Validate).findings;
    let idle: Vec<_> = found.iter().filter(|finding| finding.rule == "OW009").collect();
    assert!(idle.len() == 1 && idle[0].level == Level::Audit, "{found:?}");
}

#[test]
fn a_note_of_two_versions_is_told_while_it_is_about_these_overwrites() {
    let sentence =
        "component log is in the tree as v1 (a, by overwrites[0]) and as v2 (b, which that entry does not match)";
    let note = Note { splits: vec![sentence.to_owned()], ..Note::default() };
    let object = installation("a", &overwrites("v9"), note);
    let found = findings(object.clone(), stored(vec![overwrites("v9")]), "OW010");
    assert!(found.len() == 1 && found[0].contains(sentence), "{found:?}");
    assert!(findings(object, stored(vec![overwrites("v8")]), "OW010").is_empty());
}
