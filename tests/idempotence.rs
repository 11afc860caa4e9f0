//! Tests that mutators are idempotent: if a stored object is sent again unchanged, no mutator changes it.
//!
//! If a mutator added a field that the API server prunes, it would change the object with every update: the generation
//! would increase, and controllers would reconcile forever. So the tests prune and default the result of a mutator with
//! the schema of its kind, as the API server does, and send it again.
//!
//! The tests run every mutator. The objects come from the test vectors (tests/vectors), the examples of the rule pages,
//! and the recordings (tests/recordings). The status of Flux sources, which Portcullis changes to withhold revisions,
//! is tested in tests/delivery.rs.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "in a test a panic is the report")]

mod cases;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use cases::pages::Page;
use cases::structural::{example_schema, examples, stored};
use cases::{Case, objects, repository, schemas, vectors};
use futures::executor::block_on;
use portcullis::admission::patch::Draft;
use portcullis::admission::{Operation, Phase};
use portcullis::catalog::View;
use portcullis::config;
use portcullis::gate::{Gate, Policy, Registry};
use portcullis::recording::line::Line;
use portcullis::rule::{Match, Mode, Mutated, Mutator};
use proptest::prelude::*;
use serde_json::{Value, json};

const DRY_RUN: &str = "landscaper.gardener.cloud/dry-run";

/// The configurations with which the mutators run:
///
/// 1. the defaults
/// 2. permission to write the `spec` and the labels of all composites
/// 3. the mode `annotate` for all mutators
/// 4. the mode `apply` for all mutators
const CONFIGURATIONS: [&str; 4] = [
    "",
    "environmentConfigs: {native: enabled, writesTo: ['*']}\n",
    "mutators: {overwrites: annotate, dry-run: annotate, environments: annotate}\n",
    "mutators: {overwrites: apply, dry-run: apply, environments: apply}\ndryRun: {}\n\
     environmentConfigs: {native: disabled, writesTo: ['*']}\n",
];

/// An admission handler (`Gate`) for a simulated cluster that contains the objects `stored`. Counts how many objects
/// each mutator changes.
struct CountingGate {
    gate: Gate,
    /// The stored objects, including the CompositeResourceDefinitions that define the kinds of composites.
    stored: Vec<Value>,
    /// Number of objects that each mutator changed, and number of composites whose `spec` was changed.
    changes: RefCell<BTreeMap<&'static str, usize>>,
}

impl CountingGate {
    fn new(stored: Vec<Value>, configuration: &str) -> Self {
        let registry = Registry::standard();
        let policy = config::parse(configuration, "config.yaml", &registry).unwrap();
        Self::of(registry, policy, stored)
    }

    fn of(registry: Registry, policy: Policy, stored: Vec<Value>) -> Self {
        let catalog = registry.catalog_of(stored.clone());
        Self { gate: Gate::new(registry, policy, Arc::new(catalog)), stored, changes: RefCell::default() }
    }

    fn schema(&self, object: &Value) -> Option<Value> {
        let is_landscapers =
            object["apiVersion"].as_str().is_some_and(|it| it.starts_with("landscaper.gardener.cloud/"));
        let landscaper = object["kind"].as_str().filter(|_| is_landscapers).and_then(schemas::landscaper);
        landscaper.or_else(|| schemas::composite(object, &self.stored))
    }

    /// Sends an object to the mutating webhook. Returns the object as the API server would store it, and whether a
    /// mutator changed the object. Returns `None` if the object is denied. `old` is the object before an update; `None`
    /// for a creation.
    fn send(&self, object: &Value, old: Option<&Value>) -> Option<(Value, bool)> {
        let schema = self.schema(object);
        let stored_form =
            |object: &Value| schema.as_ref().map_or_else(|| object.clone(), |schema| stored(object, schema));
        let object = stored_form(object);
        let mut case = Case::new(Operation::Create, object.clone());
        if let Some(old) = old {
            case = case.update(old.clone());
        }
        let verdict = block_on(self.gate.decide(Phase::Mutate, &case.request()));
        if !verdict.is_allowed() {
            return None;
        }
        let Some(patch) = verdict.patch.filter(|patch| !patch.is_empty()) else { return Some((object, false)) };
        let mut changed = object.clone();
        json_patch::patch(&mut changed, &patch).unwrap();
        self.count(&object, &changed);
        Some((stored_form(&changed), true))
    }

    fn count(&self, object: &Value, changed: &Value) {
        let annotations = &changed["metadata"]["annotations"];
        let key = match () {
            () if !annotations["portcullis.dev/overwrite-patch"].is_null() => "overwrites",
            () if changed["kind"] == "XExample" && object["spec"] != changed["spec"] => "composites",
            () if !annotations["portcullis.dev/environment-patches"].is_null() => "environments",
            () if changed["kind"] != "Installation" && !annotations[DRY_RUN].is_null() => "dry-run",
            () => "other",
        };
        *self.changes.borrow_mut().entry(key).or_default() += 1;
    }

    /// Sends `object`, and then sends the resulting stored object. Checks that no mutator changes the stored object.
    /// Returns this object, or `None` if `object` is denied.
    fn assert_idempotent(&self, name: &str, object: &Value, old: Option<&Value>) -> Option<Value> {
        let (first, _) = self.send(object, old)?;
        let (second, is_changed) = self.send(&first, Some(&first)).expect("an admitted object is admitted again");
        assert!(
            !is_changed,
            "{name}: sent again unchanged, it is changed again:\n- {first:#}\n+ {second:#}\nsent:\n{object:#}"
        );
        Some(first)
    }
}

/// Returns variants of an object, each with a description. Two variants have a dry-run annotation. Two have the changes
/// that a controller makes during a reconciliation. One has outdated annotations of Portcullis. `admitted` is the
/// object as the API server stores it after admission.
fn variants(object: &Value, admitted: &Value) -> Vec<(&'static str, Value)> {
    let with = |change: fn(&mut Value)| {
        let mut object = object.clone();
        change(&mut object);
        object
    };
    let mut stale = admitted.clone();
    let annotations = stale.pointer_mut("/metadata/annotations").and_then(Value::as_object_mut);
    for (_, value) in annotations.into_iter().flatten().filter(|(key, _)| key.contains("portcullis.dev/")) {
        *value = "stale".into();
    }
    let reconciled = |object: &mut Value| {
        object["metadata"]["uid"] = "0f5d".into();
        object["metadata"]["generation"] = 3.into();
        object["metadata"]["resourceVersion"] = "77".into();
        object["metadata"]["finalizers"] = json!(["example.org/finalizer"]);
        object["status"] = json!({"phase": "Succeeded", "conditions": [], "observedGeneration": 3});
    };
    let mut reconciled_object = admitted.clone();
    reconciled(&mut reconciled_object);
    vec![
        ("annotated as a dry run", with(|object| annotate(object, "true"))),
        ("annotated as a real run", with(|object| annotate(object, "false"))),
        ("reconciled before it was admitted", with(reconciled)),
        ("reconciled", reconciled_object),
        ("with stale annotations", stale),
    ]
}

fn annotate(object: &mut Value, value: &str) {
    if !object["metadata"]["annotations"].is_object() {
        object["metadata"]["annotations"] = json!({});
    }
    object["metadata"]["annotations"][DRY_RUN] = value.into();
}

/// The number of checked objects, and the number of objects that each mutator changed. An object counts once for each
/// configuration.
#[derive(Default)]
struct Tally {
    objects: usize,
    changes: BTreeMap<&'static str, usize>,
}

impl Tally {
    /// Checks with every configuration that mutation of an object is idempotent: if a mutated object is sent again, it
    /// is not changed again. `stored_objects` are the objects in the catalog.
    ///
    /// The function sends the object itself and its [`variants`]. It sends each variant twice: as a new object, and as
    /// an update. If another configuration was checked before, the function also sends the object that was mutated with
    /// that configuration.
    fn check(&mut self, name: &str, object: &Value, stored_objects: &[Value]) {
        self.check_all(name, std::slice::from_ref(object), stored_objects);
    }

    fn check_all(&mut self, name: &str, objects: &[Value], stored_objects: &[Value]) {
        let gates = CONFIGURATIONS.map(|configuration| CountingGate::new(stored_objects.to_vec(), configuration));
        objects.iter().for_each(|object| self.check_in(&gates, name, object));
        for (key, count) in gates.into_iter().flat_map(|counting_gate| counting_gate.changes.into_inner()) {
            *self.changes.entry(key).or_default() += count;
        }
    }

    fn check_in(&mut self, gates: &[CountingGate], name: &str, object: &Value) {
        let mut before: Option<Value> = None;
        for (counting_gate, configuration) in gates.iter().zip(CONFIGURATIONS) {
            let name = format!("{name} ({})", configuration.trim());
            if let Some(before) = before.take() {
                counting_gate.assert_idempotent(
                    &format!("{name}, after another configuration"),
                    &before,
                    Some(&before),
                );
            }
            if let Some(admitted) = counting_gate.assert_idempotent(&name, object, None) {
                for (variant, other) in variants(object, &admitted) {
                    counting_gate.assert_idempotent(&format!("{name}, created {variant}"), &other, None);
                    counting_gate.assert_idempotent(&format!("{name}, updated {variant}"), &other, Some(&admitted));
                }
                before = Some(admitted);
            }
            self.objects += 1;
        }
    }

    fn change_count(&self, mutator: &str) -> usize {
        self.changes.get(mutator).copied().unwrap_or_default()
    }
}

#[test]
fn mutation_of_rule_examples_is_idempotent() {
    let mut tally = Tally::default();
    for rule in Registry::standard().rules() {
        for (name, example) in Page::of(&rule.info).examples() {
            let stored_objects = objects(example.stored);
            let all = [example.object().into_iter().collect(), stored_objects.clone()].concat();
            tally.check_all(&name, &all, &stored_objects);
        }
    }
    assert!(tally.objects > 300, "{}", tally.objects);
    assert!(tally.change_count("overwrites") > 0 && tally.change_count("dry-run") > 0, "{:?}", tally.changes);
}

#[test]
fn every_mutator_is_covered() {
    let mutators = Registry::standard().mutators().iter().map(|mutator| mutator.name).collect::<Vec<_>>();
    assert_eq!(mutators, ["environments", "overwrites", "dry-run"], "the tests below count the changes of these");
}

/// Checks for every object in a folder of examples that mutating it a second time changes nothing. The catalog contains
/// all objects of the folder. `tally` counts the objects and the changes of each mutator.
fn check_folder(folder: &str, tally: &mut Tally) {
    let mut paths: Vec<_> =
        fs::read_dir(repository().join(folder)).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "yaml"));
    paths.sort();
    let read = |path: &std::path::PathBuf| objects(&fs::read_to_string(path).unwrap());
    let stored_objects: Vec<Value> = paths.iter().flat_map(read).filter(|object| object["kind"].is_string()).collect();
    tally.check_all(folder, &stored_objects, &stored_objects);
}

#[test]
fn mutation_of_examples_is_idempotent() {
    let mut tally = Tally::default();
    for folder in ["examples/landscaper", "examples/dry-run", "examples/crossplane", "examples/environment"] {
        check_folder(folder, &mut tally);
    }
    assert!(tally.change_count("overwrites") > 0 && tally.change_count("environments") > 0, "{:?}", tally.changes);
}

fn recordings(folder: &Path, found: &mut Vec<std::path::PathBuf>) {
    for path in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        if path.is_dir() {
            recordings(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "jsonl") {
            found.push(path);
        }
    }
}

#[test]
fn mutation_of_recordings_is_idempotent() {
    let (mut paths, mut tally) = (Vec::new(), Tally::default());
    recordings(&repository().join("tests/recordings"), &mut paths);
    for path in paths {
        let mut stored_objects: BTreeMap<String, Value> = BTreeMap::new();
        for line in fs::read_to_string(&path).unwrap().lines() {
            let key = |kind: &str, namespace: &str, name: &str| format!("{kind} {namespace}/{name}");
            match serde_json::from_str(line).unwrap() {
                Line::Stored(line) => {
                    let text = |key: &str| line.object["metadata"][key].as_str().unwrap_or_default().to_owned();
                    stored_objects.insert(key(&line.kind, &text("namespace"), &text("name")), line.object);
                }
                Line::Deleted(line) => drop(stored_objects.remove(&key(&line.kind, &line.namespace, &line.name))),
                Line::Decision(line) if line.phase == Phase::Mutate => {
                    let review: Value = serde_json::from_str(line.review.get()).unwrap();
                    let stored_objects: Vec<_> = stored_objects.values().cloned().collect();
                    tally.check(&path.display().to_string(), &review["request"]["object"], &stored_objects);
                }
                _ => {}
            }
        }
    }
    assert!(tally.objects > 1000, "{}", tally.objects);
    for mutator in ["overwrites", "dry-run", "environments"] {
        assert!(tally.change_count(mutator) > 10, "{mutator}: {:?}", tally.changes);
    }
}

/// Searches `value` for objects, and adds them to `found`. Adds only objects for which `is_wanted` returns true. The
/// parameters of `is_wanted` are the API group and the kind of the object.
fn collect(value: &Value, is_wanted: &dyn Fn(&str, &str) -> bool, found: &mut Vec<Value>) {
    let text = |key: &str| value.get(key).and_then(Value::as_str).unwrap_or_default();
    if is_wanted(text("apiVersion").split('/').next().unwrap_or_default(), text("kind")) {
        return found.push(value.clone());
    }
    match value {
        Value::Object(members) => members.values().for_each(|member| collect(member, is_wanted, found)),
        Value::Array(items) => items.iter().for_each(|item| collect(item, is_wanted, found)),
        _ => {}
    }
}

#[test]
fn mutation_of_landscaper_objects_is_idempotent() {
    let mut tally = Tally::default();
    let cases = vectors("landscaper/validation.json");
    for case in cases["cases"].as_array().unwrap() {
        let mut stored_objects = Vec::new();
        collect(case, &|group, _| group == "landscaper.gardener.cloud", &mut stored_objects);
        tally.check_all(case["name"].as_str().unwrap(), &stored_objects, &stored_objects);
    }
    assert!(tally.objects > 400 && tally.change_count("dry-run") > 20, "{} {:?}", tally.objects, tally.changes);
}

/// Tests DeployItems of the helm deployer in a dry run. There is one DeployItem for each provider configuration in the
/// test vectors.
#[test]
fn mutation_of_deployer_configurations_is_idempotent() {
    let mut tally = Tally::default();
    for file in ["landscaper/deployers.json", "landscaper/compressed.json"] {
        let mut configurations = Vec::new();
        collect(&vectors(file), &|_, kind| kind == "ProviderConfiguration", &mut configurations);
        for configuration in configurations {
            let mut stored_objects = owner_chain([Some("true"), None, None], "landscaper.gardener.cloud/helm");
            stored_objects[2]["spec"]["config"] = configuration;
            tally.check(file, &stored_objects[2], &stored_objects);
        }
    }
    assert!(tally.objects > 100 && tally.change_count("dry-run") > 100, "{} {:?}", tally.objects, tally.changes);
}

/// Tests mutation of the recorded composite, with the Composition of each recorded case. Some of these Compositions
/// have a native environment, and the others run functions. The CompositeResourceDefinition declares all fields in
/// `spec` of the composite, so no field is pruned.
#[test]
fn mutation_of_executed_compositions_is_idempotent() {
    let (mut tally, vectors) = (Tally::default(), vectors("crossplane/compositions.json"));
    let composite = &vectors["composite"];
    let definition = definition(&schema_of(&composite["spec"], &|_| false)["properties"]);
    for case in vectors["cases"].as_array().unwrap() {
        let mut stored_objects = vectors["configs"].as_array().unwrap().clone();
        stored_objects.extend([definition.clone(), executed(case)]);
        tally.check(&format!("{} {}", case["profile"], case["name"]), composite, &stored_objects);
    }
    assert!(tally.change_count("environments") > 50 && tally.change_count("composites") > 50, "{:?}", tally.changes);
}

/// Returns the Composition of `case`, which is one of the test cases in `crossplane/compositions.json`.
fn executed(case: &Value) -> Value {
    let mut spec = case["spec"].clone();
    if case["profile"] == "function" {
        let steps = case["resources"].as_array().unwrap().iter().enumerate();
        let mut pipeline = vec![json!({"step": "environment", "input": case["input"]})];
        pipeline.extend(steps.map(|(at, input)| json!({"step": format!("resources-{at}"), "input": input})));
        spec = json!({"mode": "Pipeline", "pipeline": pipeline});
    }
    spec["compositeTypeRef"] = json!({"apiVersion": "example.org/v1", "kind": "XExample"});
    json!({"apiVersion": "apiextensions.crossplane.io/v1", "kind": "Composition", "spec": spec,
           "metadata": {"name": "example", "resourceVersion": "9"}})
}

#[test]
fn mutation_of_overwrite_vectors_is_idempotent() {
    let mut tally = Tally::default();
    let file = vectors("landscaper/overwrites.json");
    for case in file["cases"].as_array().unwrap() {
        let input = &case["input"];
        let meta = |name: &str| json!({"name": name, "namespace": "ns"});
        let api_version = "landscaper.gardener.cloud/v1alpha1";
        let descriptor = match input.get("inlineComponentDescriptor") {
            Some(inline) => json!({"inline": inline}),
            None => json!({"ref": input["reference"]}),
        };
        let mut context = json!({"apiVersion": api_version, "kind": "Context", "metadata": meta("default"),
                                 "componentVersionOverwrites": "some"});
        if let Some(repository) = input.get("contextRepositoryContext") {
            context["repositoryContext"] = repository.clone();
        }
        let overwrites = json!({"apiVersion": api_version, "kind": "ComponentVersionOverwrites",
                                "metadata": meta("some"), "overwrites": input["overwrites"]});
        let installation = json!({"apiVersion": api_version, "kind": "Installation", "metadata": meta("one"),
                                  "spec": {"context": "default", "componentDescriptor": descriptor}});
        tally.check(case["name"].as_str().unwrap(), &installation, &[context, overwrites]);
    }
    assert!(tally.change_count("overwrites") > 100, "{:?}", tally.changes);
}

/// Returns a CompositeResourceDefinition. Its schema declares `fields` as the fields of `spec`.
fn definition(fields: &Value) -> Value {
    json!({"apiVersion": "apiextensions.crossplane.io/v1", "kind": "CompositeResourceDefinition",
        "metadata": {"name": "xexamples.example.org", "labels": {"portcullis.dev/composites": "true"}},
        "spec": {"group": "example.org", "names": {"kind": "XExample", "plural": "xexamples"},
            "versions": [{"name": "v1", "served": true, "referenceable": true, "schema": {"openAPIV3Schema": {
                "type": "object", "properties": {"spec": {"type": "object", "properties": fields},
                                                 "status": {"type": "object", "properties": {}}}}}}]}})
}

/// Returns a Composition with `patches`, which copy values between a composite and its environment. If `is_native` is
/// true, `spec.environment` contains the patches. Otherwise, they are in the input of a function in a pipeline.
fn composition(patches: &Value, is_native: bool) -> Value {
    let resources = json!([{"name": "a", "base": {"apiVersion": "v1", "kind": "ConfigMap"}, "patches": [
        {"type": "FromEnvironmentFieldPath", "fromFieldPath": "a", "toFieldPath": "data.a",
         "policy": {"fromFieldPath": "Optional"}}]}]);
    let selected = json!([{"type": "Reference", "ref": {"name": "base"}}]);
    let spec = if is_native {
        json!({"environment": {"environmentConfigs": selected, "patches": patches}, "resources": resources})
    } else {
        json!({"mode": "Pipeline", "pipeline": [
            {"step": "environment", "functionRef": {"name": "function-environment-configs"},
             "input": {"apiVersion": "environmentconfigs.fn.crossplane.io/v1beta1", "kind": "Input",
                       "spec": {"environmentConfigs": selected}}},
            {"step": "resources", "functionRef": {"name": "function-patch-and-transform"},
             "input": {"apiVersion": "pt.fn.crossplane.io/v1beta1", "kind": "Resources",
                       "environment": {"patches": patches}, "resources": resources}}]})
    };
    let mut composition = json!({"apiVersion": "apiextensions.crossplane.io/v1", "kind": "Composition",
        "metadata": {"name": "example", "resourceVersion": "9"}, "spec": spec});
    composition["spec"]["compositeTypeRef"] = json!({"apiVersion": "example.org/v1", "kind": "XExample"});
    composition
}

fn environment_config(data: &Value) -> Value {
    json!({"apiVersion": "apiextensions.crossplane.io/v1beta1", "kind": "EnvironmentConfig",
           "metadata": {"name": "base", "resourceVersion": "1"}, "data": data})
}

fn composite(spec: &Value) -> Value {
    json!({"apiVersion": "example.org/v1", "kind": "XExample", "metadata": {"name": "mine"}, "spec": spec})
}

/// Returns a schema that `value` satisfies. Omits the fields for which `is_excluded` returns true, so the API server
/// prunes them.
fn schema_of(value: &Value, is_excluded: &dyn Fn(&str) -> bool) -> Value {
    match value {
        Value::Object(members) => {
            let kept = members.iter().filter(|(key, _)| !is_excluded(key));
            let fields: serde_json::Map<_, _> =
                kept.map(|(key, value)| (key.clone(), schema_of(value, is_excluded))).collect();
            json!({"type": "object", "properties": fields})
        }
        Value::Array(elements) => {
            let items = elements.first().map_or_else(|| json!({}), |element| schema_of(element, is_excluded));
            json!({"type": "array", "items": items})
        }
        Value::String(_) => json!({"type": "string"}),
        Value::Bool(_) => json!({"type": "boolean"}),
        Value::Number(number) if number.is_f64() => json!({"type": "number"}),
        Value::Number(_) => json!({"type": "integer"}),
        Value::Null => json!({"x-kubernetes-preserve-unknown-fields": true}),
    }
}

#[test]
fn mutation_of_environment_vectors_is_idempotent() {
    let mut tally = Tally::default();
    let cases = vectors("crossplane/env_patches.json");
    for case in cases.as_array().unwrap() {
        let patched = case.pointer("/native1176/xr/spec").unwrap_or(&Value::Null);
        let (sent, open) = (&case["xr"]["spec"], json!({"x-kubernetes-preserve-unknown-fields": true}));
        let fields = |value: &Value| schema_of(value, &|_| false)["properties"].clone();
        // The schema has all fields that patches write, only the fields that users write, or accepts all fields.
        for (name, schema) in [("all", fields(patched)), ("sent", fields(sent)), ("open", open)] {
            let definition = match name {
                "open" => {
                    let mut definition = definition(&json!({}));
                    definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"] = schema;
                    definition
                }
                _ => definition(&if schema.is_null() { json!({}) } else { schema }),
            };
            for is_native in [true, false] {
                let stored_objects = [
                    definition.clone(),
                    composition(&case["patches"], is_native),
                    environment_config(&case["environmentData"]),
                ];
                let spec = if sent.is_null() { json!({}) } else { sent.clone() };
                tally.check(&format!("{} {name} {is_native}", case["name"]), &composite(&spec), &stored_objects);
            }
        }
    }
    assert!(tally.change_count("environments") > 10 && tally.change_count("composites") > 10, "{:?}", tally.changes);
}

/// Returns a root Installation, its Execution and a DeployItem of the Execution. `annotation_values` are the dry-run
/// annotations of the three objects, and `type_name` is the type of the DeployItem.
fn owner_chain(annotation_values: [Option<&str>; 3], type_name: &str) -> Vec<Value> {
    let object = |kind: &str, name: &str, owner: Option<(&str, &str)>, spec: Value, annotation_value: Option<&str>| {
        let api_version = "landscaper.gardener.cloud/v1alpha1";
        let mut object = json!({"apiVersion": api_version, "kind": kind, "spec": spec,
                                "metadata": {"name": name, "namespace": "ns", "uid": name}});
        if let Some((kind, name)) = owner {
            object["metadata"]["ownerReferences"] =
                json!([{"apiVersion": api_version, "kind": kind, "name": name, "uid": name, "controller": true}]);
        }
        if let Some(annotation_value) = annotation_value {
            annotate(&mut object, annotation_value);
        }
        object
    };
    let item = json!({"type": type_name, "config": {"apiVersion": "a/v1", "kind": "B"}});
    vec![
        object("Installation", "root", None, json!({}), annotation_values[0]),
        object("Execution", "middle", Some(("Installation", "root")), json!({}), annotation_values[1]),
        object("DeployItem", "item", Some(("Execution", "middle")), item, annotation_values[2]),
    ]
}

#[test]
fn mutation_of_dry_runs_is_idempotent() {
    const ANNOTATION_VALUES: [Option<&str>; 4] = [None, Some("true"), Some("false"), Some("")];
    let mut tally = Tally::default();
    for (root, middle, item) in (0..64).map(|number| {
        (ANNOTATION_VALUES[number % 4], ANNOTATION_VALUES[number / 4 % 4], ANNOTATION_VALUES[number / 16])
    }) {
        for type_name in ["landscaper.gardener.cloud/kubernetes-manifest", "landscaper.gardener.cloud/mock"] {
            let stored_objects = owner_chain([root, middle, item], type_name);
            tally.check_all(&format!("{root:?} {middle:?} {item:?} {type_name}"), &stored_objects, &stored_objects);
        }
    }
    assert!(tally.change_count("dry-run") > 500, "{:?}", tally.changes);
}

/// Generates a field path. The names in it come from a small set, so that several patches affect the same field.
fn path() -> impl Strategy<Value = String> {
    let name = || prop::sample::select(vec!["a", "b", "c"]);
    prop_oneof![
        5 => name().prop_map(|a| format!("spec.{a}")),
        3 => (name(), name()).prop_map(|(a, b)| format!("spec.{a}.{b}")),
        2 => (name(), 0..3usize).prop_map(|(a, at)| format!("spec.{a}[{at}]")),
        1 => (name(), 0..2usize, name()).prop_map(|(a, at, b)| format!("spec.{a}[{at}].{b}")),
        1 => name().prop_map(|a| format!("metadata.labels.{a}")),
        1 => name().prop_map(|a| format!("metadata.annotations.{a}")),
        1 => name().prop_map(|a| format!("metadata.{a}")),
        1 => name().prop_map(|a| format!("status.{a}")),
        1 => Just("spec".to_owned()),
    ]
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(json!("text")),
        Just(json!(7)),
        Just(json!(true)),
        Just(json!(1.5)),
        Just(Value::Null),
        Just(json!("")),
    ];
    leaf.prop_recursive(3, 12, 3, |inner| {
        let members = prop::collection::btree_map(prop::sample::select(vec!["a", "b", "c"]), inner.clone(), 0..3);
        prop_oneof![
            prop::collection::vec(inner, 0..3).prop_map(Value::from),
            members.prop_map(|members| json!(members)),
        ]
    })
}

fn object() -> impl Strategy<Value = Value> {
    prop::collection::btree_map(prop::sample::select(vec!["a", "b", "c"]), value(), 0..4)
        .prop_map(|members| json!(members))
}

/// Generates schemas for the fields `a`, `b` and `c`. Some fields have a default, some accept any value, and some have
/// no schema, so they are pruned.
fn fields() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(json!({"type": "string"})),
        Just(json!({"type": "string", "default": "given"})),
        Just(json!({"type": "integer"})),
        Just(json!({"type": "integer", "default": 5})),
        Just(json!({"type": "object", "additionalProperties": {"type": "string"}})),
        Just(json!({"x-kubernetes-preserve-unknown-fields": true})),
        Just(json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true})),
        Just(json!({"type": "string", "nullable": true})),
    ];
    let field = leaf.prop_recursive(2, 8, 3, |inner| {
        let members = prop::collection::btree_map(prop::sample::select(vec!["a", "b", "c"]), inner.clone(), 0..3);
        prop_oneof![
            members.prop_map(|members| json!({"type": "object", "properties": members})),
            inner.prop_map(|items| json!({"type": "array", "items": items})),
        ]
    });
    prop::collection::btree_map(prop::sample::select(vec!["a", "b", "c"]), field, 0..4)
        .prop_map(|members| json!(members))
}

fn patch() -> impl Strategy<Value = Value> {
    let from = prop::sample::select(vec!["a", "b", "c", "a.b", "b.c", "a[0]"]);
    (from, path(), prop::bool::weighted(0.8)).prop_map(|(from, to, is_to_composite)| {
        if is_to_composite {
            json!({"type": "ToCompositeFieldPath", "fromFieldPath": from, "toFieldPath": to})
        } else {
            json!({"type": "FromCompositeFieldPath", "fromFieldPath": to, "toFieldPath": from})
        }
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn mutation_of_composites_is_idempotent(
        fields in fields(),
        patches in prop::collection::vec(patch(), 1..4),
        data in object(),
        spec in object(),
        is_native in any::<bool>(),
    ) {
        let stored_objects = [definition(&fields), composition(&json!(patches), is_native), environment_config(&data)];
        Tally::default().check("generated", &composite(&spec), &stored_objects);
    }
}

/// A faulty mutator that adds a field that the schema does not contain. Used to check that `assert_idempotent` detects
/// such mutators.
static ADDING_MUTATOR: Mutator = Mutator {
    name: "adds",
    family: "OW",
    summary: "adds a field",
    matchers: &[Match::create_or_update("landscaper.gardener.cloud", &["v1alpha1"], "installations", "Installation")],
    looks_up: &[],
    live_reads: None,
    mode: Mode::Apply,
    mutate: add_pruned_field,
};

fn add_pruned_field(_: &portcullis::admission::Request<'_>, _: &View<'_>, _: Mode, draft: &mut Draft<'_>) -> Mutated {
    draft.to_mut()["spec"]["added"] = "a".into();
    Ok(Vec::new())
}

#[test]
#[should_panic(expected = "sent again unchanged, it is changed again")]
fn detects_a_mutator_that_adds_pruned_fields() {
    let counting_gate =
        CountingGate::of(Registry::new(Vec::new(), vec![&ADDING_MUTATOR]), Policy::default(), Vec::new());
    counting_gate.assert_idempotent("adds", &owner_chain([None; 3], "a").remove(0), None);
}

#[test]
fn prunes_and_defaults_as_an_api_server_does() {
    let (schema, object) = (example_schema(), |spec: Value| json!({"apiVersion": "a/v1", "kind": "B", "spec": spec}));
    for (sent, expected) in examples() {
        let found = stored(&object(sent.clone()), &schema);
        assert_eq!(found, object(expected), "{sent}");
        assert_eq!(stored(&found, &schema), found, "{sent}");
    }
}
