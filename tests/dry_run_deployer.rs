//! Tests of the dry-run deployer without a cluster: its updates must meet the requirements of the contract for
//! deployers.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "in a test a panic is the report")]

use portcullis::landscaper::annotations::ROUTE;
use portcullis::landscaper::deployer::machine::{State, Verdict, judge};
use portcullis::landscaper::deployer::status::{Change, Status};
use portcullis::landscaper::dry_run::run::{
    Configuration, Deployer, Inputs, MANAGER, NAME, OtherDeployer, Step, TYPES, secret_reference,
};
use proptest::prelude::*;
use serde_json::{Value, json};

/// A simulated API server with a DeployItem, its Secret and its DryRunConfiguration, and the dry-run deployer.
#[derive(Debug, Clone)]
struct World {
    item: Option<Value>,
    secret: Option<Value>,
    configuration: Option<Value>,
    deployer: Deployer,
    reporters: Vec<String>,
    clock: u32,
    finished: usize,
}

const FINALIZER: &str = "finalizer.landscaper.gardener.cloud";

fn export(path: &str) -> Value {
    let from = json!({"apiVersion": "v1", "kind": "Secret", "name": "test-secret", "namespace": "example"});
    json!({"key": "test-token", "jsonPath": path, "fromResource": from})
}

fn manifest(exports: &[Value]) -> Value {
    json!({"apiVersion": "manifest.deployer.landscaper.gardener.cloud/v1alpha2", "kind": "ProviderConfiguration",
           "exports": {"exports": exports}})
}

fn fragment() -> Value {
    json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "test-secret", "namespace": "example"},
           "data": {"token": "dG9rZW4="}})
}

impl World {
    fn new(config: &Value) -> Self {
        let annotations = json!({"landscaper.gardener.cloud/dry-run": "true",
                                 "landscaper.gardener.cloud/dry-run-configuration": "test-dry-run"});
        let item = json!({
            "apiVersion": "landscaper.gardener.cloud/v1alpha1", "kind": "DeployItem",
            "metadata": {"name": "item", "namespace": "ns", "uid": "u-1", "generation": 1, "resourceVersion": "1",
                         "annotations": annotations},
            "spec": {"type": TYPES[0], "config": config},
        });
        let deployer =
            Deployer { types: TYPES.map(str::to_owned).to_vec(), identity: "a".to_owned(), has_old_phase: false };
        let configuration = Some(json!({"spec": {"exports": [fragment()]}}));
        Self { item: Some(item), secret: None, configuration, deployer, reporters: Vec::new(), clock: 0, finished: 0 }
    }

    fn seed() -> Self {
        Self::new(&manifest(&[export(".data.token")]))
    }

    fn now(&self) -> String {
        format!("2026-01-01T{:02}:{:02}:{:02}Z", self.clock / 3600, self.clock / 60 % 60, self.clock % 60)
    }

    fn item(&self) -> &Value {
        self.item.as_ref().expect("it is there")
    }

    fn status(&self, key: &str) -> &Value {
        &self.item()["status"][key]
    }

    /// Applies an update by Landscaper.
    fn landscaper(&mut self, change: &Value) {
        self.write(change, "landscaper", &["status", "metadata"]);
    }

    fn trigger(&mut self, job: &str) {
        let now = self.now();
        self.landscaper(&json!({"status": {"jobID": job, "jobIDGenerationTime": now}}));
    }

    fn delete(&mut self) {
        let now = self.now();
        self.landscaper(&json!({"metadata": {"deletionTimestamp": now}}));
        self.collect();
    }

    /// Applies an update like the API server: changes only the given parts of the object, and compares resource
    /// versions.
    fn write(&mut self, patch: &Value, manager: &str, parts: &[&str]) {
        let old = self.item().clone();
        let mut new = old.clone();
        for part in parts.iter().filter(|part| patch.get(**part).is_some()) {
            json_patch::merge(&mut new, &json!({*part: patch[*part]}));
        }
        if let Some(expected) = patch.pointer("/metadata/resourceVersion") {
            assert_eq!(*expected, old["metadata"]["resourceVersion"], "every write is guarded");
        }
        if old["status"]["phase"] != new["status"]["phase"] {
            new["metadata"]["managedFields"] = json!([{"manager": manager, "fieldsV1": {"f:status": {"f:phase": {}}}}]);
        }
        let version: u64 = old["metadata"]["resourceVersion"].as_str().unwrap().parse().unwrap();
        new["metadata"]["resourceVersion"] = (version + 1).to_string().into();
        self.item = Some(new);
    }

    /// Removes the DeployItem if it is being deleted and has no finalizers.
    fn collect(&mut self) {
        let metadata = &self.item()["metadata"];
        let held = metadata["finalizers"].as_array().is_some_and(|finalizers| !finalizers.is_empty());
        if metadata["deletionTimestamp"].is_string() && !held {
            self.item = None;
        }
    }

    fn next(&self) -> Step {
        let configuration = match &self.configuration {
            Some(configuration) => Configuration::Found(configuration),
            None => Configuration::Missing("test-dry-run"),
        };
        let now = self.now();
        let Some(item) = &self.item else { return Step::Nothing };
        self.deployer
            .next(item, &Inputs { configuration, secret: self.secret.as_ref(), reporters: &self.reporters, now: &now })
    }

    /// Executes the next update of the deployer and checks it against the contract. Returns false if there was none.
    fn step(&mut self) -> bool {
        let old = self.item.clone();
        match self.next() {
            Step::Nothing | Step::Yield(_) => return false,
            Step::Item(patch) => self.write(&patch, MANAGER, &["metadata"]),
            Step::Status(patch) => self.write(&patch, MANAGER, &["status"]),
            Step::Finish(patch, _) => {
                self.write(&patch, MANAGER, &["status"]);
                self.finished += 1;
            }
            Step::CreateSecret(secret) => {
                assert!(self.secret.is_none());
                let (namespace, name) = secret_reference(self.item());
                assert_eq!(
                    (&secret["metadata"]["namespace"], &secret["metadata"]["name"]),
                    (&json!(namespace), &json!(name))
                );
                self.secret = Some(secret);
            }
            Step::Secret(patch) => json_patch::merge(self.secret.as_mut().expect("there is one"), &patch),
        }
        let (old, new) = (old.expect("it was there"), self.item().clone());
        match judge(&Change::of(&old, &new)) {
            Verdict::Unchanged | Verdict::Known(_) => {}
            Verdict::Tolerated => panic!("nobody is known to write this:\n{old:#}\n{new:#}"),
            Verdict::Violated(requirements) => {
                let sentences: Vec<_> = requirements.iter().map(|requirement| requirement.sentence).collect();
                panic!("{sentences:?}\n{old:#}\n{new:#}");
            }
        }
        self.collect();
        true
    }

    /// Executes updates until there are no more. Returns the phases in between.
    fn run(&mut self) -> Vec<String> {
        let mut phases: Vec<String> = Vec::new();
        for _ in 0..12 {
            if !self.step() {
                return phases;
            }
            let phase = self.item.as_ref().and_then(|item| item["status"]["phase"].as_str());
            if let Some(phase) = phase.filter(|phase| phases.last().is_none_or(|last| last != phase)) {
                phases.push(phase.to_owned());
            }
        }
        panic!("it does not rest: {:#}", self.item());
    }

    fn exported(&self) -> Value {
        use base64::Engine as _;
        let data = self.secret.as_ref().expect("there is a Secret")["data"]["config"].as_str().unwrap().to_owned();
        serde_json::from_slice(&base64::engine::general_purpose::STANDARD.decode(data).unwrap()).unwrap()
    }
}

#[test]
fn a_job_goes_through_the_phases_in_order_and_ends_in_one_write() {
    let mut world = World::seed();
    assert_eq!(world.next(), Step::Nothing, "without a job nobody may work");
    world.trigger("job-1");
    assert_eq!(world.run(), ["Init", "Progressing", "Succeeded"]);
    assert_eq!((world.status("jobIDFinished"), world.finished), (&json!("job-1"), 1));
    assert_eq!(*world.status("exportRef"), json!({"name": "item-export", "namespace": "ns"}));
    assert_eq!(world.exported(), json!({"test-token": "dG9rZW4="}));
    let secret = world.secret.clone().unwrap();
    let owner = json!([{"apiVersion": "landscaper.gardener.cloud/v1alpha1", "kind": "DeployItem", "name": "item", "uid": "u-1"}]);
    assert_eq!((&secret["metadata"]["ownerReferences"], &secret["type"]), (&owner, &json!("Opaque")));
    assert_eq!(world.item()["metadata"]["finalizers"], json!([FINALIZER]));
    assert_eq!(world.next(), Step::Nothing);
}

/// Reports whether the next job of a DeployItem is deployed, by the executed case with the same status.
fn is_deployed_by_the_next_job(item: &Value) -> bool {
    let text = include_str!("vectors/landscaper/deployers.json");
    let file: Value = serde_json::from_str(text).unwrap();
    let (observed, generation) = (&item["status"]["observedGeneration"], &item["metadata"]["generation"]);
    let of = if observed == generation { json!(3) } else { observed.clone() };
    let is_same = |case: &&Value| {
        let of_case = &case["item"];
        of_case["phase"] == item["status"]["phase"]
            && of_case["observedGeneration"] == of
            && of_case["updateOnChangeOnly"] == item["spec"]["updateOnChangeOnly"]
            && of_case["deployerType"] == TYPES[0]
    };
    let case = file["jobs"].as_array().unwrap().iter().find(is_same);
    case.unwrap_or_else(|| panic!("no case was executed for {item:#}"))["expect"]["deployed"].as_bool().unwrap()
}

#[test]
fn a_real_run_after_a_dry_run_is_not_skipped() {
    let mut world = World::seed();
    world.landscaper(&json!({"metadata": {"generation": 3}}));
    world.item.as_mut().unwrap()["spec"]["updateOnChangeOnly"] = json!(true);
    world.trigger("job-1");
    while world.step() {
        assert_ne!(world.item()["status"]["observedGeneration"], 3, "not even for a moment");
    }
    assert_eq!(world.item()["status"]["phase"], "Succeeded");
    assert!(is_deployed_by_the_next_job(world.item()), "{:#}", world.item()["status"]);
}

/// Earlier versions wrote `observedGeneration`, so real deployers would skip their DeployItems too.
#[test]
fn removes_claims_of_a_deployment() {
    for is_open in [false, true] {
        for is_dry_run in [false, true] {
            let mut world = World::seed();
            let deployer = json!({"name": NAME, "identity": "a", "version": "0.1.0"});
            world.landscaper(&json!({
                "metadata": {"generation": 3, "annotations": {"landscaper.gardener.cloud/dry-run": is_dry_run.to_string()}},
                "status": {"phase": "Succeeded", "observedGeneration": 3, "deployer": deployer, "jobID": "job-1",
                           "jobIDFinished": "job-1"},
            }));
            world.item.as_mut().unwrap()["spec"]["updateOnChangeOnly"] = json!(true);
            if is_open {
                world.trigger("job-2");
            }
            assert!(!is_deployed_by_the_next_job(world.item()));
            assert!(world.deployer.is_wanted(world.item()) && world.step());
            assert!(is_deployed_by_the_next_job(world.item()), "{:#}", world.item()["status"]);
            assert_eq!(world.step(), is_open && is_dry_run, "and nothing else is written of it");
        }
    }
}

#[test]
fn a_second_job_writes_only_what_changed() {
    let mut world = World::seed();
    world.trigger("job-1");
    world.run();
    let secret = world.secret.clone();
    world.trigger("job-2");
    assert_eq!(world.run(), ["Init", "Progressing", "Succeeded"]);
    assert_eq!(world.secret, secret);
    world.configuration.as_mut().unwrap()["spec"]["exports"][0]["data"]["token"] = "bmV3".into();
    world.secret.as_mut().unwrap()["data"]["stale"] = "eA==".into();
    world.trigger("job-3");
    world.run();
    assert_eq!(world.secret.as_ref().unwrap()["data"].as_object().unwrap().len(), 1);
    assert_eq!(world.exported(), json!({"test-token": "bmV3"}));
}

#[test]
fn reports_all_problems_at_once_and_clears_them_with_the_next_job() {
    let mut world = World::new(&manifest(&[export(".data.tokn"), export(".data.x"), export(".data.token")]));
    world.trigger("job-1");
    assert_eq!(world.run(), ["Init", "Progressing", "Failed"]);
    let error = world.status("lastError").clone();
    let message = error["message"].as_str().unwrap();
    assert!(message.contains("exports[0].jsonPath: tokn is not found") && message.contains("exports[1]"), "{message}");
    assert_eq!(error["codes"], json!(["ERR_CONFIGURATION_PROBLEM"]));
    assert!(world.secret.is_none() && world.status("exportRef").is_null());
    world.item.as_mut().unwrap()["spec"]["config"] = manifest(&[export(".data.token")]);
    world.trigger("job-2");
    assert_eq!(world.run(), ["Init", "Progressing", "Succeeded"]);
    assert!(world.status("lastError").is_null() && world.status("firstError").is_null());
}

#[test]
fn names_missing_fragments() {
    for (configuration, words) in [
        (None, "DryRunConfiguration \"test-dry-run\" does not exist"),
        (Some(json!({"spec": {}})), "no fragment of Secret example/test-secret (v1) in the DryRunConfiguration: add {"),
    ] {
        let mut world = World { configuration, ..World::seed() };
        world.trigger("job-1");
        world.run();
        let message = world.status("lastError")["message"].as_str().unwrap().to_owned();
        assert!(message.contains(words), "{message}");
    }
    let mut world = World { configuration: None, ..World::new(&manifest(&[])) };
    world.trigger("job-1");
    assert_eq!(world.run(), ["Init", "Progressing", "Succeeded"], "without exports no configuration is needed");
    assert!(world.secret.is_none());
}

#[test]
fn a_helm_export_without_an_object_reads_the_values() {
    let config = |path: &str| {
        json!({"apiVersion": "helm.deployer.landscaper.gardener.cloud/v1alpha1", "kind": "ProviderConfiguration",
               "name": "release", "namespace": "example", "values": {"port": 8080},
               "exports": {"exports": [{"key": "port", "jsonPath": path}]}})
    };
    for (path, exported) in [("Values.port", json!(8080)), (".Release.Name", json!("release"))] {
        let mut world = World::new(&config(path));
        world.trigger("job-1");
        world.run();
        assert_eq!(world.exported(), json!({"port": exported}));
    }
    let mut world = World::new(&config("Values.host"));
    world.trigger("job-1");
    world.run();
    let message = world.status("lastError")["message"].as_str().unwrap();
    assert!(message.contains("host is not found") && message.contains("set the value in config.values"), "{message}");
}

#[test]
fn a_deletion_removes_only_the_finalizer() {
    let mut world = World::seed();
    world.trigger("job-1");
    world.run();
    world.delete();
    assert_eq!(world.next(), Step::Nothing, "Landscaper says when");
    world.trigger("job-2");
    assert_eq!(world.run(), ["InitDelete", "Deleting"]);
    assert_eq!(world.item, None);
}

#[test]
fn delete_without_uninstall_skips_the_uninstall_phases() {
    let mut world = World::seed();
    world.trigger("job-1");
    world.run();
    world.landscaper(&json!({"metadata": {"annotations":
        {"landscaper.gardener.cloud/delete-without-uninstall": "true"}}}));
    world.delete();
    world.trigger("job-2");
    assert_eq!(world.run(), ["InitDelete"]);
    assert_eq!(world.item, None);
}

#[test]
fn deletes_an_item_during_a_job() {
    let mut world = World::seed();
    world.trigger("job-1");
    for _ in 0..3 {
        world.step();
    }
    assert_eq!(world.status("phase"), "Progressing");
    world.delete();
    assert_eq!(world.run(), ["Deleting"]);
    assert_eq!(world.item, None);
}

#[test]
fn both_generations_are_served() {
    let mut world = World::seed();
    world.deployer.has_old_phase = true;
    world.trigger("job-1");
    let mut seen = Vec::new();
    while world.step() {
        seen.push((world.status("phase").clone(), world.status("deployItemPhase").clone()));
    }
    seen.dedup();
    let wanted = [("Init", "Progressing"), ("Progressing", "Progressing"), ("Succeeded", "Succeeded")];
    assert_eq!(seen, wanted.map(|(phase, old)| (json!(phase), json!(old))));
    // If a DeployItem has the field of older Landscapers, the deployer keeps it up to date. Otherwise, its Landscaper
    // would not notice the end of the job.
    let mut world = World::seed();
    world.landscaper(&json!({"status": {"deployItemPhase": "Failed", "phase": "Failed"}}));
    world.trigger("job-1");
    world.run();
    assert_eq!(*world.status("deployItemPhase"), "Succeeded");
}

#[test]
fn tolerates_a_clock_behind_landscapers() {
    let mut world = World { clock: 100, ..World::seed() };
    world.trigger("job-1");
    world.clock = 40;
    world.step();
    assert_eq!(world.status("lastReconcileTime"), world.status("jobIDGenerationTime"));
    assert!(Status::of(world.item()).is_picked_up());
}

#[test]
fn ignores_items_of_others() {
    for change in [
        json!({"spec": {"type": "landscaper.gardener.cloud/container"}}),
        json!({"metadata": {"annotations": {"landscaper.gardener.cloud/dry-run": "True"}}}),
        json!({"metadata": {"annotations": null}}),
    ] {
        let mut world = World::seed();
        world.trigger("job-1");
        json_patch::merge(world.item.as_mut().unwrap(), &change);
        assert_eq!(world.next(), Step::Nothing, "{change}");
    }
}

#[test]
fn stops_when_another_deployer_is_active() {
    let other = || "helm.deployer.landscaper.gardener.cloud".to_owned();
    let named = json!({"status": {"deployer": {"name": other(), "identity": "x", "version": ""}}});
    let wrote = |field: &str, of: Value| json!({"metadata": {"managedFields": [{"manager": "helm-deployer", "fieldsV1": {"f:status": {field: of}}}]}});
    let writer = |field| OtherDeployer::Writer { field, manager: "helm-deployer".into() };
    for (steps, change, rival) in [
        (0, named.clone(), OtherDeployer::Deployer(other())),
        (3, named, OtherDeployer::Deployer(other())),
        (
            0,
            json!({"metadata": {"finalizers": [FINALIZER, "example.org/mine"]}}),
            OtherDeployer::Finalizer("example.org/mine".into()),
        ),
        (0, json!({"status": {"phase": "Progressing"}}), OtherDeployer::Phase("Progressing".into())),
        (3, json!({"status": {"providerStatus": {"kind": "ProviderStatus"}}}), OtherDeployer::ProviderStatus),
        (3, wrote("f:phase", json!({})), writer("phase")),
        (3, wrote("f:lastReconcileTime", json!({})), writer("lastReconcileTime")),
        (3, wrote("f:deployer", json!({"f:name": {}})), writer("deployer.name")),
    ] {
        let mut world = World::seed();
        world.trigger("job-1");
        for _ in 0..steps {
            world.step();
        }
        json_patch::merge(world.item.as_mut().unwrap(), &change);
        assert_eq!(world.next(), Step::Yield(rival), "{change}");
    }
    let mut world = World::seed();
    world.trigger("job-1");
    json_patch::merge(
        world.item.as_mut().unwrap(),
        &json!({"metadata": {"finalizers": [FINALIZER, "foregroundDeletion"]}}),
    );
    assert_eq!(world.run().last().map(String::as_str), Some("Succeeded"), "Kubernetes' own finalizers are nobody's");
}

/// If a deployer fails to update the status because of a conflict, it reports that in an Event. The Event is the only
/// sign of this deployer.
#[test]
fn detects_deployers_by_their_events() {
    let reported = |reporter: &str| {
        let mut world = World::seed();
        world.trigger("job-1");
        world.step();
        world.reporters = vec!["Landscaper".to_owned(), "portcullis.dev/companion".to_owned(), reporter.to_owned()];
        world.next()
    };
    for deployer in ["manifest.deployer.landscaper.gardener.cloud", "generic-deployer-library"] {
        assert_eq!(reported(deployer), Step::Yield(OtherDeployer::Event(deployer.to_owned())));
    }
    assert!(!matches!(reported("policy-controller"), Step::Yield(_)));
}

/// Regression test for issue 18: DeployItems of other types that were routed to the dry-run deployer failed only after
/// the pickup timeout, and their deletion never ended.
#[test]
fn a_routed_item_of_another_type_fails_at_once_and_can_be_deleted() {
    let mut world = World::seed();
    world.item.as_mut().unwrap()["spec"]["type"] = json!("landscaper.gardener.cloud/mock");
    world.trigger("job-1");
    assert_eq!(world.next(), Step::Nothing, "an item with a deployer of its own is not touched");
    world.landscaper(&json!({"metadata": {"annotations": {"landscaper.gardener.cloud/deployer-type": ROUTE}}}));
    assert_eq!(world.run(), ["Init", "Progressing", "Failed"]);
    assert_eq!(world.status("lastError")["reason"], "TypeNotProcessed");
    world.delete();
    world.trigger("job-2");
    world.run();
    assert_eq!(world.item, None);
}

#[test]
fn does_not_overwrite_foreign_secrets() {
    let mut world = World::seed();
    let theirs = json!({"metadata": {"name": "item-export", "namespace": "ns"}, "data": {"password": "eA=="}});
    world.secret = Some(theirs.clone());
    world.trigger("job-1");
    assert_eq!(world.run().last().map(String::as_str), Some("Failed"));
    assert_eq!(
        (world.status("lastError")["reason"].as_str(), world.secret.clone()),
        (Some("ExportSecretOfOthers"), Some(theirs))
    );
    // The deployer also ignores references in the status to Secrets in other namespaces.
    let mut world = World::seed();
    world.landscaper(&json!({"status": {"exportRef": {"name": "admin", "namespace": "kube-system"}}}));
    assert_eq!(secret_reference(world.item()), ("ns".to_owned(), "item-export".to_owned()));
    world.landscaper(&json!({"status": {"exportRef": {"name": "earlier", "namespace": "ns"}}}));
    assert_eq!(secret_reference(world.item()), ("ns".to_owned(), "earlier".to_owned()));
}

/// An event between two updates of the dry-run deployer.
#[derive(Debug, Clone, Copy)]
enum Happening {
    /// The dry-run deployer executes its next update.
    Step,
    /// The dry-run deployer is killed, and another instance continues.
    Kill,
    /// Landscaper starts the next job, if the last job is finished.
    Trigger,
    /// Landscaper interrupts the job, or its timeout expires.
    Interrupt,
    /// A user deletes the DeployItem.
    Delete,
    /// The clock jumps back.
    ClockBack,
}

proptest! {
    /// For any sequence of events, no requirement of the contract is violated, and the updates end if there are no more
    /// events.
    #[test]
    fn meets_every_requirement_under_random_events(
        happenings in prop::collection::vec(prop::sample::select(vec![
            Happening::Step, Happening::Step, Happening::Step, Happening::Kill, Happening::Trigger, Happening::Interrupt,
            Happening::Delete, Happening::ClockBack,
        ]), 0..40),
        has_old_phase: bool,
        fails: bool,
    ) {
        let mut world = if fails { World::new(&manifest(&[export(".nothing")])) } else { World::seed() };
        world.deployer.has_old_phase = has_old_phase;
        for (number, happening) in happenings.into_iter().enumerate() {
            world.clock += 1;
            let Some(item) = &world.item else { break };
            let (state, is_going) = (State::of(&Status::of(item)), Status::of(item).being_deleted);
            match happening {
                Happening::Step => drop(world.step()),
                Happening::Kill => world.deployer.identity = format!("instance-{number}"),
                Happening::Trigger if [State::New, State::Finished].contains(&state) => world.trigger(&format!("job-{number}")),
                Happening::Interrupt => {
                    let job = format!("job-{number}");
                    let phase = if is_going { "DeleteFailed" } else { "Failed" };
                    let mut status = json!({"jobID": job, "jobIDFinished": job, "phase": phase});
                    if has_old_phase {
                        status["deployItemPhase"] = "Failed".into();
                    }
                    world.landscaper(&json!({"status": status}));
                }
                Happening::Delete if !is_going => world.delete(),
                Happening::ClockBack => world.clock = 0,
                Happening::Trigger | Happening::Delete => {}
            }
        }
        world.run();
        if let Some(item) = &world.item {
            let state = State::of(&Status::of(item));
            prop_assert!([State::New, State::Finished].contains(&state), "{:?}: {:#}", state, item);
            let deployer = item["status"]["deployer"]["name"].as_str();
            prop_assert!(deployer.is_none_or(|name| name == NAME));
        }
    }
}
