//! Tests component trees in two ways. The cases of `tests/vectors/landscaper/transitive.json` compare them with
//! recorded results of Landscaper. Property tests check that patched descriptors give the same tree as the overwrites,
//! and that the tree does not depend on the order in which descriptors are read.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "in a test a panic is the report")]

mod cases;

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;

use cases::vectors;
use json_patch::PatchOperation;
use portcullis::landscaper::component_reference::{Attribute, ComponentReference};
use portcullis::landscaper::components::closure::{Closure, Component, Found, Gap, MAX_DEPTH, Target};
use portcullis::landscaper::components::descriptor::Descriptor;
use portcullis::landscaper::components::patch;
use portcullis::landscaper::substitution::{Entry, read_entries};
use proptest::prelude::*;
use serde_json::{Value, json};

/// Published component descriptors. The key of a descriptor consists of its repository context, component name and
/// version.
#[derive(Debug, Clone, Default)]
struct ComponentRegistry(BTreeMap<String, Value>);

fn key(reference: &ComponentReference) -> String {
    let context = reference.value(Attribute::RepositoryContext);
    format!("{context} {} {}", reference.component_name, reference.version)
}

fn reference(value: &Value) -> ComponentReference {
    let mut problems = Vec::new();
    let text = value.to_string();
    let read = ComponentReference::parse(&text, &portcullis::admission::FieldPath::root(), &mut problems);
    assert_eq!(problems, []);
    read
}

fn entries(list: &Value) -> Vec<Entry> {
    read_entries(&json!({"overwrites": list}), &mut Vec::new())
}

impl ComponentRegistry {
    /// Creates the component descriptors of `registry`, a list of components in the format of the test vectors. Half of
    /// the descriptors have the schema v2, and half have the schema v3.
    fn of(registry: &Value) -> Self {
        let components = registry.as_array().expect("registry is a list");
        let publish = |(at, component): (usize, &Value)| {
            let place = json!({"componentName": component["name"], "version": component["version"],
                               "repositoryContext": component["repositoryContext"]});
            (key(&reference(&place)), descriptor(component, at % 2 == 0))
        };
        Self(components.iter().enumerate().map(publish).collect())
    }

    fn find(&self, reference: &ComponentReference) -> Found {
        match self.0.get(&key(reference)) {
            Some(value) => Found::Descriptor(Arc::new(Descriptor::read(value).expect("it can be read"))),
            None => Found::Missing { nearest: Vec::new() },
        }
    }

    fn closure(&self, root: &ComponentReference, entries: &[Entry]) -> Closure {
        Closure::of(root.clone(), entries, &|reference: &ComponentReference| self.find(reference))
    }
}

fn descriptor(component: &Value, v2: bool) -> Value {
    let contexts = json!([component["repositoryContext"]]);
    if v2 {
        return json!({"meta": {"schemaVersion": "v2"}, "component": {"name": component["name"],
            "version": component["version"], "repositoryContexts": contexts, "provider": "internal", "sources": [],
            "resources": [], "componentReferences": component["references"]}});
    }
    json!({"apiVersion": "ocm.software/v3alpha1", "kind": "ComponentVersion", "repositoryContexts": contexts,
        "metadata": {"name": component["name"], "version": component["version"], "provider": {"name": "internal"}},
        "spec": {"references": component["references"]}})
}

/// Returns the result of step `at` of the component tree `closure`, in the format of the test vectors. The result
/// contains the component that was looked up, and whether it was found.
fn lookup(closure: &Closure, at: usize) -> Value {
    let step = &closure.steps[at];
    let result = &step.substitution.result;
    json!({"repositoryContext": result.value(Attribute::RepositoryContext), "componentName": result.component_name,
           "version": result.version, "found": !matches!(step.to, Target::Gap(_))})
}

#[test]
fn resolves_every_case_like_landscaper() {
    let file = vectors("landscaper/transitive.json");
    let cases = file["cases"].as_array().expect("cases is a list");
    assert!(!cases.is_empty());
    for case in cases {
        let registry = ComponentRegistry::of(&case["registry"]);
        let closure = registry.closure(&reference(&case["reference"]), &entries(&case["overwrites"]));
        let (name, expect) = (&case["name"], &case["expect"]);
        // Landscaper stops at the first component that it cannot find.
        let first_gap = closure.steps.iter().position(|step| matches!(step.to, Target::Gap(_)));
        let looked_up = first_gap.map_or(closure.steps.len(), |at| at + 1);
        let lookups: Vec<_> = (0..looked_up).map(|at| lookup(&closure, at)).collect();
        assert_eq!(json!(lookups), expect["lookups"], "{name}");
        assert_eq!(closure.failure(), expect.get("error").map(|error| error.as_str().unwrap().to_owned()), "{name}");
        if let Some(components) = expect.get("components") {
            let identity = |c: &Component| format!("{}@{}", c.descriptor.name, c.descriptor.version);
            let identities: BTreeSet<_> = closure.components.iter().map(identity).collect();
            assert_eq!(json!(identities), *components, "{name}");
            assert_eq!(identities.len(), closure.components.len(), "{name}");
        }
    }
}

/// Checks that the patches of a component tree have the same effect as the overwrites. Each patched descriptor must
/// refer to the same components as the original descriptor with the overwrites.
#[test]
fn patches_of_every_case_equal_the_overwrites() {
    for case in vectors("landscaper/transitive.json")["cases"].as_array().expect("cases is a list") {
        let registry = ComponentRegistry::of(&case["registry"]);
        assert_patches_equal_overwrites(&registry, &reference(&case["reference"]), &entries(&case["overwrites"]));
    }
}

fn assert_patches_equal_overwrites(registry: &ComponentRegistry, root: &ComponentReference, entries: &[Entry]) {
    let closure = registry.closure(root, entries);
    let Some(first) = closure.root() else { panic!("the component tree has no root") };
    let context = first.substitution.result.repository_context.clone();
    for (at, component) in closure.components.iter().enumerate() {
        let mut value = registry.0[&key(&component.reference)].clone();
        let patch = patch::of(&component.descriptor, closure.references_of(at));
        json_patch::patch(&mut value, &patch).expect("the patch fits the descriptor it was made for");
        let patched = Descriptor::read(&value).expect("a patched descriptor is a descriptor");
        let patched_targets = patched.references.iter().map(|reference| ComponentReference {
            repository_context: reference.repository_context.as_ref().map(|(_, own)| own.clone()).or(context.clone()),
            component_name: reference.component_name.clone(),
            version: reference.version.clone(),
        });
        let overwritten: Vec<_> = closure.references_of(at).map(|step| step.substitution.result.clone()).collect();
        assert_eq!(patched_targets.collect::<Vec<_>>(), overwritten);
        for (step, reference) in closure.references_of(at).zip(&patched.references) {
            let is_kept = step.substitution.changed().next().is_none();
            let before = component.descriptor.references[step.at].digest.as_ref().filter(|_| is_kept);
            assert_eq!(reference.digest.as_ref(), before, "a digest is kept if and only if the reference is unchanged");
        }
        assert_eq!(
            (patched.name, patched.version),
            (component.descriptor.name.clone(), component.descriptor.version.clone())
        );
        let tests = patch.0.iter().any(|operation| matches!(operation, PatchOperation::Test(_)));
        assert!(!tests || json_patch::patch(&mut value, &patch).is_err(), "the patch can be applied twice");
    }
}

fn context(at: usize) -> Value {
    json!({"type": "ociRegistry", "baseUrl": format!("registry-{at}.example")})
}

const NAMES: [&str; 5] = ["a", "b", "c", "d", "e"];
const VERSIONS: [&str; 3] = ["v1", "v2", "v3"];

fn part() -> impl Strategy<Value = Value> {
    let name = proptest::option::weighted(0.6, proptest::sample::select(&NAMES[..]));
    let version = proptest::option::weighted(0.4, proptest::sample::select(&VERSIONS[..]));
    let repository = proptest::option::weighted(0.2, 0..2usize);
    (name, version, repository).prop_map(|(name, version, repository)| {
        let mut part = json!({});
        name.into_iter().for_each(|name| part["componentName"] = json!(name));
        version.into_iter().for_each(|version| part["version"] = json!(version));
        repository.into_iter().for_each(|at| part["repositoryContext"] = context(at));
        part
    })
}

fn overwrites() -> impl Strategy<Value = Value> {
    let entry =
        (part(), part()).prop_map(|(source, substitution)| json!({"source": source, "substitution": substitution}));
    proptest::collection::vec(entry, 0..5).prop_map(Value::from)
}

/// Generates registries. In each repository, most combinations of the component names and versions exist, each with up
/// to three references.
fn registry(repositories: usize) -> impl Strategy<Value = ComponentRegistry> {
    let target = (proptest::sample::select(&NAMES[..]), proptest::sample::select(&VERSIONS[..]));
    let references = proptest::collection::vec(target, 0..4);
    let count = repositories * NAMES.len() * VERSIONS.len();
    proptest::collection::vec(proptest::option::weighted(0.85, references), count).prop_map(|all| {
        let mut registry = Vec::new();
        for (at, references) in all.into_iter().enumerate() {
            let Some(references) = references else { continue };
            let (name, version) = (NAMES[at % 5], VERSIONS[at / 5 % 3]);
            let reference = |(at, (name, version)): (usize, (&str, &str))| {
                let mut reference = json!({"name": format!("ref-{at}"), "componentName": name, "version": version});
                if at % 2 == 1 {
                    reference["digest"] = json!({"hashAlgorithm": "SHA-256", "value": "00"});
                    reference["labels"] = json!([{"name": "other", "value": 1}]);
                }
                reference
            };
            let references: Vec<_> = references.into_iter().enumerate().map(reference).collect();
            registry.push(json!({"name": name, "version": version, "repositoryContext": context(at / 15),
                                 "references": references}));
        }
        ComponentRegistry::of(&json!(registry))
    })
}

fn root() -> ComponentReference {
    reference(&json!({"componentName": "a", "version": "v1", "repositoryContext": context(0)}))
}

/// Resolves a component tree while descriptors become available one at a time. `shuffle` determines their order.
fn resolve_incrementally(registry: &ComponentRegistry, entries: &[Entry], shuffle: &[usize]) -> Closure {
    let mut known: HashSet<String> = HashSet::new();
    for round in 0.. {
        let find = |reference: &ComponentReference| {
            if known.contains(&key(reference)) { registry.find(reference) } else { Found::Pending }
        };
        let closure = Closure::of(root(), entries, &find);
        let pending: Vec<_> = closure.pending().map(key).collect();
        if pending.is_empty() {
            return closure;
        }
        let first = shuffle.get(round % shuffle.len()).copied().unwrap_or_default();
        known.insert(pending[first % pending.len()].clone());
    }
    unreachable!("each round adds a known descriptor")
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn patched_descriptors_equal_the_overwrites(registry in registry(2), overwrites in overwrites()) {
        assert_patches_equal_overwrites(&registry, &root(), &entries(&overwrites));
    }

    #[test]
    fn is_independent_of_the_order_of_discovery(
        registry in registry(2),
        overwrites in overwrites(),
        shuffle in proptest::collection::vec(0..100usize, 1..8),
    ) {
        let entries = entries(&overwrites);
        prop_assert_eq!(resolve_incrementally(&registry, &entries, &shuffle), registry.closure(&root(), &entries));
    }

    /// If there is only one repository, the components in the tree do not depend on the order of the references in
    /// descriptors.
    #[test]
    fn is_independent_of_the_order_of_references(registry in registry(1), overwrites in overwrites()) {
        let overwrites: Vec<_> = entries(&overwrites).into_iter().map(|mut entry| {
            entry.substitution.repository_context = None;
            entry
        }).collect();
        let mut reversed = registry.clone();
        for value in reversed.0.values_mut() {
            for pointer in ["/component/componentReferences", "/spec/references"] {
                value.pointer_mut(pointer).and_then(Value::as_array_mut).into_iter().for_each(|list| list.reverse());
            }
        }
        let identities = |closure: &Closure| -> BTreeSet<String> {
            closure.components.iter().map(|component| key(&component.reference)).collect()
        };
        let gaps = |closure: &Closure| -> BTreeSet<String> {
            closure.gaps().map(|(step, _)| key(&step.substitution.result)).collect()
        };
        let (one, other) = (registry.closure(&root(), &overwrites), reversed.closure(&root(), &overwrites));
        prop_assert_eq!(identities(&one), identities(&other));
        prop_assert_eq!(gaps(&one), gaps(&other));
    }
}

/// A registry may contain an endless chain of references. Portcullis follows the chain only up to a maximum depth.
#[test]
fn reports_an_endless_chain_as_a_gap() {
    let endless = |reference: &ComponentReference| {
        let next = format!("v{}", reference.version.trim_start_matches('v').parse::<usize>().unwrap() + 1);
        let component = json!({"name": reference.component_name, "version": reference.version,
            "repositoryContext": context(0), "references": [{"name": "next", "componentName": "a", "version": next}]});
        Found::Descriptor(Arc::new(Descriptor::read(&descriptor(&component, true)).unwrap()))
    };
    let closure = Closure::of(root(), &[], &endless);
    assert_eq!(closure.components.len(), MAX_DEPTH + 1);
    let (step, gap) = closure.gaps().next().expect("the end is a gap");
    assert_eq!(*gap, Gap::TooDeep);
    assert_eq!(closure.path_to(step).split(" → ").count(), MAX_DEPTH + 1);
    assert!(closure.failure().unwrap().ends_with("the tree is deeper than 64 levels"));
}
