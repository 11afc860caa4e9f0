//! A scenario as it is played: in its namespace, acting as a person does with kubectl, and waiting for the controllers.

use std::collections::{BTreeMap, BTreeSet};
use std::panic::Location;
use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};

use futures::StreamExt as _;
use kube::Api;
use kube::api::{DynamicObject, ListParams, WatchEvent, WatchParams};
use serde_json::Value;

use crate::kubectl::Output;
use crate::normalize;
use crate::system::Kind;
use crate::testbed::{Mode, Testbed};

/// How long anything is waited for. Controllers that are restarted, or retry after a failure, need most of it.
pub const DEADLINE: Duration = Duration::from_secs(120);
/// How often something that is waited for is looked at.
const PAUSE: Duration = Duration::from_millis(200);
/// How many looks in a row must find the same versions of all objects until they count as at rest.
const QUIET_LOOKS: usize = 15;

/// What is compared between runs: objects by kind and name.
pub type Snapshot = BTreeMap<String, Value>;

/// A scenario that is being played.
pub struct Context<'a> {
    testbed: &'a Testbed,
    /// Its namespace. Objects of the whole cluster have it in their names.
    pub namespace: String,
    snapshots: Mutex<Vec<(String, Snapshot)>>,
}

impl<'a> Context<'a> {
    /// Creates the namespace.
    pub fn begin(testbed: &'a Testbed, name: &str) -> Self {
        let namespace = format!("{}-{name}", testbed.system.name);
        testbed.cluster.kubectl().args(["create", "namespace", &namespace]).run().expect_success();
        Self { testbed, namespace, snapshots: Mutex::default() }
    }

    /// Returns the running parts.
    pub fn testbed(&self) -> &Testbed {
        self.testbed
    }

    /// Returns whether portcullis is there.
    pub fn has_webhooks(&self) -> bool {
        self.testbed.mode == Mode::With
    }

    /// Returns what was seen.
    pub fn end(self) -> Vec<(String, Snapshot)> {
        self.snapshots.into_inner().expect("nobody panics with it")
    }

    /// Applies objects, which must succeed. `$NS` is the namespace. Returns what kubectl said.
    #[track_caller]
    pub fn apply(&self, yaml: &str) -> Output {
        let output = self.try_apply(yaml);
        assert!(output.status.success(), "{}: this was to be applied:\n{yaml}\n{output}", Location::caller());
        output
    }

    /// Applies objects.
    pub fn try_apply(&self, yaml: &str) -> Output {
        let apply = ["apply", "--server-side", "--force-conflicts", "--namespace", &self.namespace, "-f", "-"];
        self.testbed.cluster.kubectl().args(apply).stdin(yaml.replace("$NS", &self.namespace)).run()
    }

    /// Runs kubectl in the namespace, which must succeed.
    #[track_caller]
    pub fn kubectl(&self, arguments: &[&str]) -> Output {
        let arguments: Vec<_> = arguments.iter().map(|argument| argument.replace("$NS", &self.namespace)).collect();
        let output = self.testbed.cluster.kubectl().args(["--namespace", &self.namespace]).args(arguments).run();
        assert!(output.status.success(), "{}: {output}", Location::caller());
        output
    }

    /// Returns an object, by its kind's plural, such as `kustomizations`.
    pub fn get(&self, plural: &str, name: &str) -> Option<Value> {
        let kind = self.kind(plural);
        let found = self.testbed.cluster.block_on(self.api(&kind).get_opt(name)).ok()??;
        serde_json::to_value(found).ok()
    }

    /// Returns every version of an object since it had a resource version, as a watch reports them.
    #[track_caller]
    pub fn history(&self, plural: &str, name: &str, since: &str) -> Vec<Value> {
        // The API server sends what it has at once, and then ends the watch.
        let parameters = WatchParams::default().fields(&format!("metadata.name={name}")).timeout(2);
        let api = self.api(&self.kind(plural));
        let events = self.testbed.cluster.block_on(async {
            let events = api.watch(&parameters, since).await.expect("it can be watched");
            events.collect::<Vec<_>>().await
        });
        let object = |event| match event {
            Ok(WatchEvent::Added(object) | WatchEvent::Modified(object)) => serde_json::to_value(object).ok(),
            Ok(_) => None,
            Err(error) => panic!("{}: {plural} {name} since {since}: {error}", Location::caller()),
        };
        events.into_iter().filter_map(object).collect()
    }

    /// Waits for an Event about an object that has a reason. Returns its note.
    #[track_caller]
    pub fn event(&self, kind: &str, name: &str, reason: &str) -> String {
        let event = self.event_about(kind, name, reason, "");
        event["note"].as_str().unwrap_or_default().to_owned()
    }

    /// Waits for an Event about an object that has a reason, and words in any of its fields.
    #[track_caller]
    pub fn event_about(&self, kind: &str, name: &str, reason: &str, words: &str) -> Value {
        self.eventually(&format!("an Event {reason} about {kind} {name}"), || {
            let listed = self.kubectl(&["get", "events.events.k8s.io", "-o", "json"]).stdout;
            let listed: Value = serde_json::from_str(&listed).ok()?;
            let is_asked = |event: &&Value| {
                let regarding = &event["regarding"];
                regarding["kind"] == kind && regarding["name"] == name && event["reason"] == reason
            };
            listed["items"].as_array()?.iter().filter(is_asked).find(|event| event.to_string().contains(words)).cloned()
        })
    }

    /// Waits until an object is as it should be. Returns it.
    #[track_caller]
    pub fn wait(&self, plural: &str, name: &str, words: &str, is_so: impl Fn(&Value) -> bool) -> Value {
        let begun = Instant::now();
        loop {
            let found = self.get(plural, name);
            match found {
                Some(object) if is_so(&object) => return object,
                found if begun.elapsed() > DEADLINE => {
                    let found =
                        found.map(|object| normalize::readable(&object)).unwrap_or_else(|| "nothing".to_owned());
                    panic!("{}: {plural} {name} was to be {words}, and is\n{found}", Location::caller());
                }
                _ => thread::sleep(PAUSE),
            }
        }
    }

    /// Returns what `attempt` finds, tried again until it does.
    #[track_caller]
    pub fn eventually<T>(&self, words: &str, attempt: impl Fn() -> Option<T>) -> T {
        let begun = Instant::now();
        loop {
            match attempt() {
                Some(found) => return found,
                None if begun.elapsed() > DEADLINE => panic!("{}: this never came: {words}", Location::caller()),
                None => thread::sleep(PAUSE),
            }
        }
    }

    /// Waits until an object is gone.
    #[track_caller]
    pub fn wait_gone(&self, plural: &str, name: &str) {
        let begun = Instant::now();
        while let Some(object) = self.get(plural, name) {
            if begun.elapsed() > DEADLINE {
                panic!("{}: {plural} {name} was to be gone:\n{}", Location::caller(), normalize::readable(&object));
            }
            thread::sleep(PAUSE);
        }
    }

    /// Waits until nothing changes any more, and keeps what is there for the comparison.
    #[track_caller]
    pub fn snapshot(&self, label: &str) {
        let objects = self.wait_until_stable();
        let snapshot = normalize::snapshot(&objects, &self.testbed.fixtures.addresses());
        self.snapshots.lock().expect("nobody panics with it").push((label.to_owned(), snapshot));
    }

    /// Waits until nothing changes any more, and keeps what is there of some kinds, by their plurals.
    #[track_caller]
    pub fn snapshot_of(&self, label: &str, plurals: &[&str]) {
        let kinds: Vec<_> = plurals.iter().map(|plural| self.kind(plural).resource.kind).collect();
        let objects: Vec<_> = self.wait_until_stable();
        let chosen = |object: &Value| kinds.iter().any(|kind| object["kind"] == kind.as_str());
        let mut snapshot = normalize::snapshot(&objects, &self.testbed.fixtures.addresses());
        snapshot.retain(|_, object| chosen(object));
        self.snapshots.lock().expect("nobody panics with it").push((label.to_owned(), snapshot));
    }

    /// Waits until generations and resource versions stand still, whatever the conditions of objects are.
    #[track_caller]
    pub fn wait_until_still(&self) {
        let (begun, mut looks, mut last) = (Instant::now(), 0, BTreeSet::new());
        while looks < QUIET_LOOKS {
            let versions: BTreeSet<String> = self.objects().iter().map(version).collect();
            looks = if versions == last { looks + 1 } else { 0 };
            assert!(begun.elapsed() < DEADLINE, "{}: this never came to rest: {versions:#?}", Location::caller());
            last = versions;
            thread::sleep(PAUSE);
        }
    }

    /// Waits until every object is settled, and generations and resource versions stand still. Returns all objects.
    #[track_caller]
    pub fn wait_until_stable(&self) -> Vec<Value> {
        let (begun, mut looks, mut last) = (Instant::now(), 0, Vec::new());
        loop {
            let objects = self.objects();
            let unstable = self.unstable(&last, &objects);
            looks = if unstable.is_empty() { looks + 1 } else { 0 };
            if looks >= QUIET_LOOKS {
                return objects;
            }
            assert!(begun.elapsed() < DEADLINE, "{}: this never came to rest: {unstable:#?}", Location::caller());
            last = objects;
            thread::sleep(PAUSE);
        }
    }

    /// Returns the objects that changed between two looks, and those that their controllers are not done with.
    fn unstable(&self, before: &[Value], now: &[Value]) -> Vec<String> {
        let versions = |objects: &[Value]| -> BTreeSet<String> { objects.iter().map(version).collect() };
        let (before, after) = (versions(before), versions(now));
        let changed = before.symmetric_difference(&after).map(|version| format!("written: {version}"));
        let unsettled = now.iter().filter(|object| !(self.testbed.system.is_converged)(object));
        let unsettled = unsettled.map(|object| format!("not settled: {}: {}", version(object), object["status"]));
        changed.chain(unsettled).collect()
    }

    /// All objects of the system's kinds that belong to the scenario, sorted by kind and name.
    fn objects(&self) -> Vec<Value> {
        (self.testbed.system.kinds)(&self.namespace).iter().flat_map(|kind| self.list(kind)).collect()
    }

    fn list(&self, kind: &Kind) -> Vec<Value> {
        let listed = self.testbed.cluster.block_on(self.api(kind).list(&ListParams::default()));
        // A kind that is not there yet has no objects.
        let items = listed.map(|list| list.items).unwrap_or_default();
        let mut objects: Vec<_> = items.into_iter().filter(|object| kind.namespaced || self.is_named(object)).collect();
        objects.sort_by_key(|object| object.metadata.name.clone());
        let typed = |object: DynamicObject| {
            let mut value = serde_json::to_value(object).expect("it was read from JSON");
            value["kind"] = kind.resource.kind.clone().into();
            value["apiVersion"] = kind.resource.api_version.clone().into();
            value
        };
        objects.into_iter().map(typed).collect()
    }

    fn is_named(&self, object: &DynamicObject) -> bool {
        object.metadata.name.as_ref().is_some_and(|name| name.contains(&self.namespace))
    }

    /// Returns one of the system's kinds.
    pub fn kind(&self, plural: &str) -> Kind {
        let kinds = (self.testbed.system.kinds)(&self.namespace);
        let found = kinds.into_iter().find(|kind| kind.resource.plural == plural);
        found.unwrap_or_else(|| panic!("{plural} is not among the kinds of {}", self.testbed.system.name))
    }

    fn api(&self, kind: &Kind) -> Api<DynamicObject> {
        let client = self.testbed.cluster.client();
        match kind.namespaced {
            true => Api::namespaced_with(client, &self.namespace, &kind.resource),
            false => Api::all_with(client, &kind.resource),
        }
    }
}

fn version(object: &Value) -> String {
    let metadata = &object["metadata"];
    format!("{} {} at {}", object["kind"], metadata["name"], metadata["resourceVersion"])
}

/// Returns whether a condition of an object has a status: `is(object, "Ready", "True")`.
pub fn is(object: &Value, condition: &str, status: &str) -> bool {
    let conditions = object["status"]["conditions"].as_array().map(Vec::as_slice).unwrap_or_default();
    conditions.iter().any(|found| found["type"] == condition && found["status"] == status)
}
