//! Tests that rules read only the declared parts of stored objects. For each kind, the field `storage` of its `Kind`
//! declares the parts that rules may read. Every rule must have the same result with a catalog that stores only these
//! parts as with a catalog that stores whole objects.
//!
//! The objects come from the examples on the rule pages, and from the files in `tests/vectors`, `tests/recordings` and
//! `examples`. The objects of one example, or of one case in a file, are stored together. Each of them is created,
//! updated and deleted. `Case::decide` makes the same comparison in other tests.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "in a test a panic is the report")]

mod cases;

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cases::pages::Page;
use cases::{Case, repository};
use futures::executor::block_on;
use portcullis::admission::{FieldPath, Finding, Level, Operation, Phase, Request, Verdict};
use portcullis::catalog::{Index, Kind, Storage, Stored, View};
use portcullis::config;
use portcullis::gate::{Gate, Policy, Registry};
use portcullis::landscaper::kinds::INSTALLATIONS;
use portcullis::rule::{Match, Rule, RuleInfo};
use portcullis::yaml;
use serde_json::{Value, json};

/// Maximum number of objects that one catalog stores in this test.
const MAX_GROUP: usize = 40;

/// Adds the Kubernetes objects in a value, including those in YAML texts, to `found`.
fn collect(value: &Value, found: &mut Vec<Value>) {
    match value {
        Value::Object(members) => {
            if ["apiVersion", "kind"].iter().all(|key| members.get(*key).is_some_and(Value::is_string)) {
                found.push(value.clone());
            }
            members.values().for_each(|value| collect(value, found));
        }
        Value::Array(items) => items.iter().for_each(|item| collect(item, found)),
        Value::String(text) if text.contains("apiVersion") => {
            let documents = yaml::read_all(text, &yaml::Limits::default()).0;
            documents
                .iter()
                .filter(|document| !document.value.is_string())
                .for_each(|document| collect(&document.value, found));
        }
        _ => {}
    }
}

fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    let mut entries: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    entries.sort();
    for path in entries {
        match path.is_dir() {
            true => files(&path, found),
            false => found.push(path),
        }
    }
}

/// Returns the objects of this test in groups. A group contains the objects of one example on a rule page, or of one
/// case in a file.
fn groups() -> BTreeMap<String, Vec<Value>> {
    let mut groups: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    for rule in Registry::standard().rules() {
        for (name, example) in Page::of(&rule.info).examples() {
            collect(&json!([example.stored, example.object()]), groups.entry(name).or_default());
        }
    }
    let mut paths = Vec::new();
    ["tests/vectors", "tests/recordings", "examples"]
        .iter()
        .for_each(|folder| files(&repository().join(folder), &mut paths));
    paths.extend(std::env::var_os("PORTCULLIS_VECTORS").into_iter().flat_map(|folder| {
        let mut given = Vec::new();
        files(Path::new(&folder), &mut given);
        given
    }));
    for path in paths {
        let Ok(text) = fs::read_to_string(&path) else { continue };
        let name = path.display().to_string();
        let values: Vec<Value> = match path.extension().and_then(|extension| extension.to_str()) {
            Some("json") => serde_json::from_str(&text).into_iter().collect(),
            // The lines of a recording are stored objects and decisions. All of them belong to one group.
            Some("jsonl") => vec![text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok()).collect()],
            Some("yaml" | "yml") => vec![text.into()],
            _ => continue,
        };
        for value in values {
            let cases = match value {
                Value::Array(cases) if name.ends_with(".json") => cases,
                Value::Object(members) if name.ends_with(".json") => {
                    members.into_iter().map(|(_, case)| case).collect()
                }
                other => vec![other],
            };
            for (at, case) in cases.iter().enumerate() {
                collect(case, groups.entry(format!("{name} {at}")).or_default());
            }
        }
    }
    groups
}

/// Returns a policy in which every rule is enabled. Its settings are the examples under "Configuration" on the pages of
/// all rules.
fn policy(registry: &Registry) -> Policy {
    let mut policy = Policy { composites: HashSet::from(["*".to_owned()]), ..Policy::default() };
    for rule in registry.rules() {
        if rule.info.level == Level::Off {
            policy.levels.insert(rule.info.id.to_owned(), Level::Deny);
        }
    }
    let sections: BTreeSet<_> = registry.rules().iter().map(|rule| Page::of(&rule.info).configuration).collect();
    let text = sections.into_iter().collect::<String>();
    policy.settings =
        config::parse(&text, "the pages", registry).expect("the sections are a valid configuration").settings;
    policy
}

/// Returns two gates for the same objects. The catalog of the first gate stores only the parts that are declared in
/// `Kind::storage`. The catalog of the second gate stores whole objects.
fn gates(registry: impl Fn() -> Registry, stored: &[Value]) -> [Gate; 2] {
    [registry().catalog(), registry().catalog().with_whole_objects()].map(|catalog| {
        let gate = Gate::new(registry(), policy(&Registry::standard()), Arc::new(catalog));
        gate.catalog().replace_all(stored.to_vec());
        gate
    })
}

/// Returns the requests that create, update and delete each of the objects.
fn cases(objects: &[Value]) -> Vec<Case> {
    let mut cases = Vec::new();
    for object in objects {
        let other = objects.iter().find(|other| other["kind"] == object["kind"] && *other != object);
        let mut old = other.unwrap_or(object).clone();
        old["metadata"] = object["metadata"].clone();
        let deletion = Case::new(Operation::Delete, object.clone());
        let update = Case::new(Operation::Update, object.clone()).update(old);
        for subresource in ["", "status"] {
            cases.push(
                Case { old: update.old.clone(), ..Case::new(Operation::Update, object.clone()) }
                    .for_subresource(subresource),
            );
        }
        cases.extend([Case::new(Operation::Create, object.clone()), deletion, update]);
    }
    cases
}

fn verdicts(gates: &[Gate; 2], case: &Case, phase: Phase) -> [Verdict; 2] {
    gates.each_ref().map(|gate| block_on(gate.decide(phase, &case.request())))
}

#[test]
fn rules_read_only_what_kinds_declare() {
    let mut decided = 0;
    for (name, mut objects) in groups() {
        let mut seen = HashSet::new();
        objects.retain(|object| object["metadata"].is_object() && seen.insert(object.to_string()));
        for group in objects.chunks(MAX_GROUP) {
            let gates = gates(Registry::standard, group);
            for case in cases(group) {
                for phase in [Phase::Mutate, Phase::Validate] {
                    let [projected, whole] = verdicts(&gates, &case, phase);
                    assert_eq!(
                        projected, whole,
                        "{name}: {} of {}: a rule reads a part of a stored object that its kind does not declare",
                        case.operation, case.object
                    );
                    decided += 1;
                }
            }
        }
    }
    assert!(decided > 5_000, "only {decided} decisions were compared");
}

/// Returns the keys of an object in an index, computed from only those parts of the object that `storage` declares.
fn keys(kind: &Kind, index: &Index, storage: Storage, object: &Value) -> Vec<String> {
    let Kind { group, version, kind, plural, scope, .. } = *kind;
    let kind = Box::leak(Box::new(Kind { group, version, kind, plural, scope, indexes: &[], storage }));
    (index.keys)(Stored::projected(kind, &object.to_string()).unwrap().value())
}

/// Returns the object without its name and its namespace, unless the index declares that it reads them. All stored
/// objects contain both, but only the declared fields are parsed to compute the keys.
fn without_undeclared_name(index: &Index, object: &Value) -> Value {
    let mut object = object.clone();
    if let Some(metadata) = object["metadata"].as_object_mut() {
        metadata
            .retain(|key, _| !["name", "namespace"].contains(&&**key) || index.parts.contains(&&["metadata", key][..]));
    }
    object
}

#[test]
fn indexes_read_only_what_they_declare() {
    let mut found = BTreeMap::new();
    for (name, mut objects) in groups() {
        objects.retain(|object| object["metadata"].is_object());
        let [gate, _] = gates(Registry::standard, &objects);
        for kind in gate.catalog().kinds().chain(gate.catalog().declared()) {
            for (index, object) in kind.indexes.iter().flat_map(|index| objects.iter().map(move |of| (index, of))) {
                if kind.is_kind_of(object) {
                    let whole = keys(kind, index, Storage::Whole, object);
                    let declared = without_undeclared_name(index, object);
                    let parts = keys(kind, index, Storage::Parts(index.parts), &declared);
                    assert_eq!(parts, whole, "{name}: {}", index.name);
                    *found.entry((&kind.kind, index.name)).or_insert(0) += whole.len();
                }
            }
        }
    }
    let without: Vec<_> = found.iter().filter(|(_, keys)| **keys == 0).collect();
    assert!(found.len() > 10 && without.is_empty(), "no object has a key in {without:?}");
}

/// A faulty rule that reads a field of a stored object, although `Kind::storage` does not contain this field. Used to
/// check that these tests detect such rules.
static UNDECLARED_READ: Rule = Rule {
    info: RuleInfo {
        id: "XX001",
        name: "curious",
        level: Level::Deny,
        summary: "an Installation whose stored phase is Failed",
        page: "",
    },
    matchers: &[Match::create_or_update("landscaper.gardener.cloud", &["v1alpha1"], "installations", "Installation")],
    looks_up: &[&INSTALLATIONS],
    live_reads: None,
    check: read_undeclared_field,
};

fn read_undeclared_field(request: &Request<'_>, view: &View<'_>) -> Vec<Finding> {
    let stored = view.find(&INSTALLATIONS, &request.namespace, &request.name);
    let is_failed = stored.is_some_and(|stored| stored.value().pointer("/status/phase") == Some(&json!("Failed")));
    is_failed.then(|| UNDECLARED_READ.finding(FieldPath::root(), "it failed")).into_iter().collect()
}

#[test]
fn detects_a_rule_that_reads_an_undeclared_field() {
    let object = json!({
        "apiVersion": "landscaper.gardener.cloud/v1alpha1", "kind": "Installation",
        "metadata": {"name": "a", "namespace": "ns"}, "status": {"phase": "Failed"},
    });
    let gates = gates(|| Registry::new(vec![&UNDECLARED_READ], Vec::new()), std::slice::from_ref(&object));
    let [projected, whole] = verdicts(&gates, &Case::new(Operation::Create, object), Phase::Validate);
    assert_eq!((projected.findings.len(), whole.findings.len()), (0, 1));
}
