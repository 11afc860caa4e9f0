//! The environment of a running scenario: its namespace, functions that run kubectl as a user does, and functions that
//! wait for the controllers.

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

/// Timeout for everything that scenarios wait for. Controllers that are restarted, or that retry after a failure, need
/// most of this time.
pub const DEADLINE: Duration = Duration::from_secs(120);
/// Interval for polling objects.
const PAUSE: Duration = Duration::from_millis(200);
/// Number of successive polls that must find all objects unchanged. The objects then count as stable.
const STABLE_POLLS: usize = 15;

/// The objects of a scenario at a point in time, by kind and name. The runs of a scenario are compared by their
/// snapshots.
pub type Snapshot = BTreeMap<String, Value>;

/// A running scenario.
pub struct Context<'a> {
    testbed: &'a Testbed,
    /// The namespace of the scenario. The names of its cluster-scoped objects contain this namespace.
    pub namespace: String,
    snapshots: Mutex<Vec<(String, Snapshot)>>,
}

impl<'a> Context<'a> {
    /// Creates the namespace of a scenario. Returns the context in which the scenario runs.
    pub fn begin(testbed: &'a Testbed, name: &str) -> Self {
        let namespace = format!("{}-{name}", testbed.system.name);
        testbed.cluster.kubectl().args(["create", "namespace", &namespace]).run().expect_success();
        Self { testbed, namespace, snapshots: Mutex::default() }
    }

    /// Returns the testbed, which contains the cluster and the controllers.
    pub fn testbed(&self) -> &Testbed {
        self.testbed
    }

    /// Returns whether the scenario runs with portcullis.
    pub fn has_webhooks(&self) -> bool {
        self.testbed.mode == Mode::With
    }

    /// Ends the scenario. Returns its snapshots with their labels.
    pub fn end(self) -> Vec<(String, Snapshot)> {
        self.snapshots.into_inner().expect("no thread panicked while it held the lock")
    }

    /// Applies objects with kubectl, and panics if that fails. Replaces `$NS` in `yaml` with the namespace. Returns the
    /// output of kubectl.
    #[track_caller]
    pub fn apply(&self, yaml: &str) -> Output {
        let output = self.try_apply(yaml);
        assert!(output.status.success(), "{}: these objects must be applied:\n{yaml}\n{output}", Location::caller());
        output
    }

    /// Applies objects like [`Self::apply`], but does not panic if kubectl fails.
    pub fn try_apply(&self, yaml: &str) -> Output {
        let apply = ["apply", "--server-side", "--force-conflicts", "--namespace", &self.namespace, "-f", "-"];
        self.testbed.cluster.kubectl().args(apply).stdin(yaml.replace("$NS", &self.namespace)).run()
    }

    /// Runs kubectl in the namespace of the scenario, and panics if that fails. Replaces `$NS` in the arguments with
    /// the namespace.
    #[track_caller]
    pub fn kubectl(&self, arguments: &[&str]) -> Output {
        let arguments: Vec<_> = arguments.iter().map(|argument| argument.replace("$NS", &self.namespace)).collect();
        let output = self.testbed.cluster.kubectl().args(["--namespace", &self.namespace]).args(arguments).run();
        assert!(output.status.success(), "{}: {output}", Location::caller());
        output
    }

    /// Returns an object, or `None` if it does not exist. `plural` is the plural name of its kind, such as
    /// `kustomizations`.
    pub fn get(&self, plural: &str, name: &str) -> Option<Value> {
        let kind = self.kind(plural);
        let found = self.testbed.cluster.block_on(self.api(&kind).get_opt(name)).ok()??;
        serde_json::to_value(found).ok()
    }

    /// Returns all versions of an object that were written after the resource version `since`, as a watch reports them.
    #[track_caller]
    pub fn history(&self, plural: &str, name: &str, since: &str) -> Vec<Value> {
        // The API server sends all events since then immediately. It ends the watch after two seconds.
        let parameters = WatchParams::default().fields(&format!("metadata.name={name}")).timeout(2);
        let api = self.api(&self.kind(plural));
        let events = self.testbed.cluster.block_on(async {
            let events = api.watch(&parameters, since).await.expect("the kind can be watched");
            events.collect::<Vec<_>>().await
        });
        let object = |event| match event {
            Ok(WatchEvent::Added(object) | WatchEvent::Modified(object)) => serde_json::to_value(object).ok(),
            Ok(_) => None,
            Err(error) => panic!("{}: {plural} {name} since {since}: {error}", Location::caller()),
        };
        events.into_iter().filter_map(object).collect()
    }

    /// Waits for an Event with the reason `reason` about the object `name` of the kind `kind`. Returns the note of the
    /// Event.
    #[track_caller]
    pub fn wait_for_event_note(&self, kind: &str, name: &str, reason: &str) -> String {
        let event = self.wait_for_event(kind, name, reason, "");
        event["note"].as_str().unwrap_or_default().to_owned()
    }

    /// Waits for an Event with the reason `reason` about the object `name` of the kind `kind`. The JSON of the Event
    /// must contain `words`. Returns the Event.
    #[track_caller]
    pub fn wait_for_event(&self, kind: &str, name: &str, reason: &str, words: &str) -> Value {
        self.eventually(&format!("an Event {reason} about {kind} {name}"), || {
            let listed = self.kubectl(&["get", "events.events.k8s.io", "-o", "json"]).stdout;
            let listed: Value = serde_json::from_str(&listed).ok()?;
            let is_match = |event: &&Value| {
                let regarding = &event["regarding"];
                regarding["kind"] == kind && regarding["name"] == name && event["reason"] == reason
            };
            listed["items"].as_array()?.iter().filter(is_match).find(|event| event.to_string().contains(words)).cloned()
        })
    }

    /// Waits until `is_expected` returns true for an object, and returns the object. If this takes too long, panics
    /// with `words`, which describe the expected state.
    #[track_caller]
    pub fn wait_for(&self, plural: &str, name: &str, words: &str, is_expected: impl Fn(&Value) -> bool) -> Value {
        let begun = Instant::now();
        loop {
            let found = self.get(plural, name);
            match found {
                Some(object) if is_expected(&object) => return object,
                found if begun.elapsed() > DEADLINE => {
                    let found =
                        found.map(|object| normalize::readable(&object)).unwrap_or_else(|| "missing".to_owned());
                    panic!("{}: {plural} {name} must be {words}, but is\n{found}", Location::caller());
                }
                _ => thread::sleep(PAUSE),
            }
        }
    }

    /// Calls `attempt` until it returns a value, and returns the value. If this takes too long, panics with `words`,
    /// which describe the expected value.
    #[track_caller]
    pub fn eventually<T>(&self, words: &str, attempt: impl Fn() -> Option<T>) -> T {
        let begun = Instant::now();
        loop {
            match attempt() {
                Some(found) => return found,
                None if begun.elapsed() > DEADLINE => {
                    panic!("{}: timeout while waiting for: {words}", Location::caller())
                }
                None => thread::sleep(PAUSE),
            }
        }
    }

    /// Waits until an object does not exist any more.
    #[track_caller]
    pub fn wait_until_gone(&self, plural: &str, name: &str) {
        let begun = Instant::now();
        while let Some(object) = self.get(plural, name) {
            if begun.elapsed() > DEADLINE {
                panic!(
                    "{}: {plural} {name} must not exist any more:\n{}",
                    Location::caller(),
                    normalize::readable(&object)
                );
            }
            thread::sleep(PAUSE);
        }
    }

    /// Waits until all objects are stable, and takes a snapshot of them for the comparison.
    #[track_caller]
    pub fn snapshot(&self, label: &str) {
        let objects = self.wait_until_stable();
        let snapshot = normalize::snapshot(&objects, &self.testbed.fixtures.addresses());
        self.snapshots.lock().expect("no thread panicked while it held the lock").push((label.to_owned(), snapshot));
    }

    /// Waits until all objects are stable, and takes a snapshot of the objects of some kinds. `plurals` contains the
    /// plural names of these kinds.
    #[track_caller]
    pub fn snapshot_of(&self, label: &str, plurals: &[&str]) {
        let kinds: Vec<_> = plurals.iter().map(|plural| self.kind(plural).resource.kind).collect();
        let objects: Vec<_> = self.wait_until_stable();
        let chosen = |object: &Value| kinds.iter().any(|kind| object["kind"] == kind.as_str());
        let mut snapshot = normalize::snapshot(&objects, &self.testbed.fixtures.addresses());
        snapshot.retain(|_, object| chosen(object));
        self.snapshots.lock().expect("no thread panicked while it held the lock").push((label.to_owned(), snapshot));
    }

    /// Waits until no object is written any more. In contrast to [`Self::wait_until_stable`], does not wait until the
    /// controllers have finished processing the objects.
    #[track_caller]
    pub fn wait_until_unchanged(&self) {
        let (begun, mut stable_polls, mut last) = (Instant::now(), 0, BTreeSet::new());
        while stable_polls < STABLE_POLLS {
            let versions: BTreeSet<String> = self.objects().iter().map(describe_version).collect();
            stable_polls = if versions == last { stable_polls + 1 } else { 0 };
            assert!(begun.elapsed() < DEADLINE, "{}: the objects are still written: {versions:#?}", Location::caller());
            last = versions;
            thread::sleep(PAUSE);
        }
    }

    /// Waits until no object is written any more, and the controllers have finished processing all objects. Returns the
    /// objects.
    #[track_caller]
    pub fn wait_until_stable(&self) -> Vec<Value> {
        let (begun, mut stable_polls, mut last) = (Instant::now(), 0, Vec::new());
        loop {
            let objects = self.objects();
            let unstable = self.unstable(&last, &objects);
            stable_polls = if unstable.is_empty() { stable_polls + 1 } else { 0 };
            if stable_polls >= STABLE_POLLS {
                return objects;
            }
            assert!(begun.elapsed() < DEADLINE, "{}: the objects are not stable: {unstable:#?}", Location::caller());
            last = objects;
            thread::sleep(PAUSE);
        }
    }

    /// Returns descriptions of the objects that differ between the polls `before` and `now`, and of the objects that
    /// the controllers have not finished processing.
    fn unstable(&self, before: &[Value], now: &[Value]) -> Vec<String> {
        let versions = |objects: &[Value]| -> BTreeSet<String> { objects.iter().map(describe_version).collect() };
        let (before, after) = (versions(before), versions(now));
        let changed = before.symmetric_difference(&after).map(|version| format!("written: {version}"));
        let unfinished = now.iter().filter(|object| !(self.testbed.system.is_converged)(object));
        let unfinished =
            unfinished.map(|object| format!("not finished: {}: {}", describe_version(object), object["status"]));
        changed.chain(unfinished).collect()
    }

    /// Returns all objects of the scenario whose kinds are in `System::kinds`. The objects are in the order of the
    /// kinds, and the objects of a kind are sorted by name.
    fn objects(&self) -> Vec<Value> {
        (self.testbed.system.kinds)(&self.namespace).iter().flat_map(|kind| self.list(kind)).collect()
    }

    fn list(&self, kind: &Kind) -> Vec<Value> {
        let listed = self.testbed.cluster.block_on(self.api(kind).list(&ListParams::default()));
        // A kind that is not defined yet has no objects.
        let items = listed.map(|list| list.items).unwrap_or_default();
        let mut objects: Vec<_> =
            items.into_iter().filter(|object| kind.namespaced || self.belongs_to_scenario(object)).collect();
        objects.sort_by_key(|object| object.metadata.name.clone());
        let typed = |object: DynamicObject| {
            let mut value = serde_json::to_value(object).expect("the value can be serialized");
            value["kind"] = kind.resource.kind.clone().into();
            value["apiVersion"] = kind.resource.api_version.clone().into();
            value
        };
        objects.into_iter().map(typed).collect()
    }

    fn belongs_to_scenario(&self, object: &DynamicObject) -> bool {
        object.metadata.name.as_ref().is_some_and(|name| name.contains(&self.namespace))
    }

    /// Returns the kind in `System::kinds` that has the plural name `plural`.
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

fn describe_version(object: &Value) -> String {
    let metadata = &object["metadata"];
    format!("{} {} at {}", object["kind"], metadata["name"], metadata["resourceVersion"])
}

/// Returns whether the condition `condition` of an object has the status `status`. Example: `has_condition(object,
/// "Ready", "True")`.
pub fn has_condition(object: &Value, condition: &str, status: &str) -> bool {
    let conditions = object["status"]["conditions"].as_array().map(Vec::as_slice).unwrap_or_default();
    conditions.iter().any(|found| found["type"] == condition && found["status"] == status)
}
