//! Test helpers: build admission requests together with the objects in the cluster, and read examples of rule pages.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "in a test a panic is the report")]
#![allow(dead_code, unreachable_pub)]

pub mod pages;
pub mod schemas;
pub mod structural;
pub mod verify;

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, LazyLock};

use futures::executor::block_on;
use portcullis::admission::{Object, Operation, Phase, Request, Resource, User, Verdict};
use portcullis::catalog::Catalog;
use portcullis::gate::{Gate, Policy, Registry};
use portcullis::kustomize::delivery::{Inline, Judge};
use portcullis::yaml;
use serde_json::Value;

/// Returns the path of the folder that contains `Cargo.toml`.
pub fn repository() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// Returns the content of a JSON file with test vectors. Reads it from the folder in `$PORTCULLIS_VECTORS` if the file
/// exists there, and from `tests/vectors` otherwise.
pub fn vectors(file: &str) -> Value {
    let own = repository().join("tests/vectors");
    let given = std::env::var_os("PORTCULLIS_VECTORS").map(|folder| PathBuf::from(folder).join(file));
    let path = given.filter(|path| path.exists()).unwrap_or_else(|| own.join(file));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Returns the objects in a text with YAML documents.
pub fn objects(text: &str) -> Vec<Value> {
    let documents = yaml::read(text, &yaml::Limits::default()).expect("the text is YAML");
    documents.into_iter().map(|document| document.value).collect()
}

/// An admission request, with the objects in the cluster and the policy that applies to the request.
pub struct Case {
    pub operation: Operation,
    pub object: Value,
    pub old: Option<Value>,
    pub stored: Vec<Value>,
    pub policy: Policy,
    pub user: &'static str,
    pub subresource: &'static str,
    /// Checks the kustomize trees to which objects refer.
    pub trees: Arc<dyn Judge>,
}

impl Case {
    pub fn new(operation: Operation, object: Value) -> Self {
        Self {
            operation,
            object,
            old: None,
            stored: Vec::new(),
            policy: Policy::default(),
            user: "somebody",
            subresource: "",
            trees: Arc::new(Inline),
        }
    }

    pub fn stored(mut self, stored: Vec<Value>) -> Self {
        self.stored = stored;
        self
    }

    pub fn policy(mut self, policy: Policy) -> Self {
        self.policy = policy;
        self
    }

    pub fn user(mut self, user: &'static str) -> Self {
        self.user = user;
        self
    }

    /// Changes the request to one for a subresource, such as `status`.
    pub fn for_subresource(mut self, subresource: &'static str) -> Self {
        self.subresource = subresource;
        self
    }

    /// Replaces the [`Judge`], which checks the kustomize trees to which objects refer.
    pub fn with_trees(mut self, trees: Arc<dyn Judge>) -> Self {
        self.trees = trees;
        self
    }

    pub fn update(mut self, old: Value) -> Self {
        self.operation = Operation::Update;
        self.old = Some(old);
        self
    }

    pub fn gate(&self) -> Gate {
        self.gate_over(Registry::standard().catalog())
    }

    fn gate_over(&self, catalog: Catalog) -> Gate {
        catalog.replace_all(self.stored.clone());
        let gate = Gate::new(Registry::standard(), self.policy.clone(), Arc::new(catalog));
        gate.with_trees(self.trees.clone())
    }

    /// Decides the request and returns the verdict. Checks that the verdict does not change in two cases: if the gate
    /// parses only the needed parts of the request's object, and if the catalog stores whole objects instead of only
    /// the declared parts.
    pub fn decide(&self, phase: Phase) -> Verdict {
        let gate = self.gate();
        let verdict = block_on(gate.decide(phase, &self.request()));
        let (new, old) = self.objects(|object| object.to_string());
        let request = self.request_about(Object::raw(new.as_deref()), Object::raw(old.as_deref()));
        assert_eq!(
            block_on(gate.decide(phase, &request)),
            verdict,
            "the verdict must not depend on how {} is parsed",
            self.object
        );
        let whole = self.gate_over(Registry::standard().catalog().with_whole_objects());
        let message = "a rule reads a part of a stored object that its kind does not declare";
        assert_eq!(block_on(whole.decide(phase, &self.request())), verdict, "{message}: {}", self.object);
        verdict
    }

    pub fn request(&self) -> Request<'static> {
        let (new, old) = self.objects(|object| Object::parsed(object.clone()));
        self.request_about(new.unwrap_or_default(), old.unwrap_or_default())
    }

    fn objects<T>(&self, make: impl Fn(&Value) -> T) -> (Option<T>, Option<T>) {
        match self.operation {
            Operation::Delete => (None, Some(make(&self.object))),
            _ => (Some(make(&self.object)), self.old.as_ref().map(make)),
        }
    }

    fn request_about<'a>(&self, object: Object<'a>, old_object: Object<'a>) -> Request<'a> {
        let text = |pointer| self.object.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
        let api_version = text("/apiVersion");
        let (group, version) = api_version.rsplit_once('/').unwrap_or(("", &api_version));
        Request {
            uid: "3f5a".into(),
            resource: Resource {
                group: group.to_owned().into(),
                version: version.to_owned().into(),
                plural: plural(&text("/kind")).into(),
                kind: text("/kind").into(),
                subresource: self.subresource.into(),
            },
            name: text("/metadata/name").into(),
            namespace: text("/metadata/namespace").into(),
            operation: self.operation,
            user: User { name: self.user.into(), groups: Vec::new() },
            dry_run: false,
            object,
            old_object,
            deadline: None,
        }
    }
}

fn plural(kind: &str) -> String {
    static KNOWN: LazyLock<HashMap<&'static str, &'static str>> = LazyLock::new(|| {
        let registry = Registry::standard();
        let matchers = registry.mutators().iter().flat_map(|mutator| mutator.matchers);
        let matchers = matchers.chain(registry.rules().iter().flat_map(|rule| rule.matchers));
        let delivery_matchers = registry.deliveries().iter().flat_map(|delivery| delivery.matchers);
        let matchers = matchers.chain(delivery_matchers).collect::<Vec<_>>();
        // The order is reversed because later entries replace earlier ones. So the first matcher of a kind counts.
        matchers.into_iter().rev().map(|matcher| (matcher.kind, matcher.plural)).collect()
    });
    KNOWN.get(kind).map_or_else(|| format!("{}s", kind.to_lowercase()), |plural| (*plural).to_owned())
}
