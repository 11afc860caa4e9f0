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
struct Simulation {
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

impl Simulation {
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

    fn with_one_export() -> Self {
        Self::new(&manifest(&[export(".data.token")]))
    }

    fn now(&self) -> String {
        format!("2026-01-01T{:02}:{:02}:{:02}Z", self.clock / 3600, self.clock / 60 % 60, self.clock % 60)
    }

    fn item(&self) -> &Value {
        self.item.as_ref().expect("the item exists")
    }

    fn status(&self, key: &str) -> &Value {
        &self.item()["status"][key]
    }

    /// Applies `change` to the DeployItem in the same way as an update by Landscaper.
    fn update_as_landscaper(&mut self, change: &Value) {
        self.write(change, "landscaper", &["status", "metadata"]);
    }

    fn trigger(&mut self, job: &str) {
        let now = self.now();
        self.update_as_landscaper(&json!({"status": {"jobID": job, "jobIDGenerationTime": now}}));
    }

    fn delete(&mut self) {
        let now = self.now();
        self.update_as_landscaper(&json!({"metadata": {"deletionTimestamp": now}}));
        self.remove_if_deleted();
    }

    /// Applies an update, as the API server does: changes only the given `parts` of the DeployItem, such as `status`,
    /// and checks the resource version.
    fn write(&mut self, patch: &Value, manager: &str, parts: &[&str]) {
        let old = self.item().clone();
        let mut new = old.clone();
        for part in parts.iter().filter(|part| patch.get(**part).is_some()) {
            json_patch::merge(&mut new, &json!({*part: patch[*part]}));
        }
        if let Some(expected) = patch.pointer("/metadata/resourceVersion") {
            assert_eq!(*expected, old["metadata"]["resourceVersion"], "every update has the current resource version");
        }
        if old["status"]["phase"] != new["status"]["phase"] {
            new["metadata"]["managedFields"] = json!([{"manager": manager, "fieldsV1": {"f:status": {"f:phase": {}}}}]);
        }
        let version: u64 = old["metadata"]["resourceVersion"].as_str().unwrap().parse().unwrap();
        new["metadata"]["resourceVersion"] = (version + 1).to_string().into();
        self.item = Some(new);
    }

    /// Removes the DeployItem if it is being deleted and has no finalizers.
    fn remove_if_deleted(&mut self) {
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

    /// Executes the next update of the deployer, and checks it against the contract. Returns false if the deployer has
    /// no update to make.
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
            Step::Secret(patch) => json_patch::merge(self.secret.as_mut().expect("the Secret exists"), &patch),
        }
        let (old, new) = (old.expect("the item existed"), self.item().clone());
        match judge(&Change::of(&old, &new)) {
            Verdict::Unchanged | Verdict::Known(_) => {}
            Verdict::Tolerated => panic!("the table of transitions does not have this update:\n{old:#}\n{new:#}"),
            Verdict::Violated(requirements) => {
                let sentences: Vec<_> = requirements.iter().map(|requirement| requirement.sentence).collect();
                panic!("{sentences:?}\n{old:#}\n{new:#}");
            }
        }
        self.remove_if_deleted();
        true
    }

    /// Executes the updates of the deployer one after another, until the deployer has no update to make. Returns the
    /// phases of the DeployItem, in order.
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
        panic!("the deployer does not stop writing: {:#}", self.item());
    }

    fn exported(&self) -> Value {
        use base64::Engine as _;
        let data = self.secret.as_ref().expect("the Secret exists")["data"]["config"].as_str().unwrap().to_owned();
        serde_json::from_slice(&base64::engine::general_purpose::STANDARD.decode(data).unwrap()).unwrap()
    }
}

#[test]
fn a_job_goes_through_the_phases_in_order_and_ends_in_one_write() {
    let mut simulation = Simulation::with_one_export();
    assert_eq!(simulation.next(), Step::Nothing, "without a job, deployers must not write");
    simulation.trigger("job-1");
    assert_eq!(simulation.run(), ["Init", "Progressing", "Succeeded"]);
    assert_eq!((simulation.status("jobIDFinished"), simulation.finished), (&json!("job-1"), 1));
    assert_eq!(*simulation.status("exportRef"), json!({"name": "item-export", "namespace": "ns"}));
    assert_eq!(simulation.exported(), json!({"test-token": "dG9rZW4="}));
    let secret = simulation.secret.clone().unwrap();
    let owner = json!([{"apiVersion": "landscaper.gardener.cloud/v1alpha1", "kind": "DeployItem", "name": "item", "uid": "u-1"}]);
    assert_eq!((&secret["metadata"]["ownerReferences"], &secret["type"]), (&owner, &json!("Opaque")));
    assert_eq!(simulation.item()["metadata"]["finalizers"], json!([FINALIZER]));
    assert_eq!(simulation.next(), Step::Nothing);
}

/// Returns whether the real deployer deploys `item` in its next job. Reads the answer from `deployers.json`: for each
/// status, the file contains the recorded behavior of the real deployer.
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
    let mut simulation = Simulation::with_one_export();
    simulation.update_as_landscaper(&json!({"metadata": {"generation": 3}}));
    simulation.item.as_mut().unwrap()["spec"]["updateOnChangeOnly"] = json!(true);
    simulation.trigger("job-1");
    while simulation.step() {
        assert_ne!(simulation.item()["status"]["observedGeneration"], 3, "observedGeneration was written");
    }
    assert_eq!(simulation.item()["status"]["phase"], "Succeeded");
    assert!(is_deployed_by_the_next_job(simulation.item()), "{:#}", simulation.item()["status"]);
}

/// Earlier versions of the dry-run deployer wrote `observedGeneration`. With this value, real deployers would skip the
/// DeployItems in a later real run. So the dry-run deployer must remove the value.
#[test]
fn removes_the_observed_generation_of_earlier_versions() {
    for is_open in [false, true] {
        for is_dry_run in [false, true] {
            let mut simulation = Simulation::with_one_export();
            let deployer = json!({"name": NAME, "identity": "a", "version": "0.1.0"});
            simulation.update_as_landscaper(&json!({
                "metadata": {"generation": 3, "annotations": {"landscaper.gardener.cloud/dry-run": is_dry_run.to_string()}},
                "status": {"phase": "Succeeded", "observedGeneration": 3, "deployer": deployer, "jobID": "job-1",
                           "jobIDFinished": "job-1"},
            }));
            simulation.item.as_mut().unwrap()["spec"]["updateOnChangeOnly"] = json!(true);
            if is_open {
                simulation.trigger("job-2");
            }
            assert!(!is_deployed_by_the_next_job(simulation.item()));
            assert!(simulation.deployer.is_wanted(simulation.item()) && simulation.step());
            assert!(is_deployed_by_the_next_job(simulation.item()), "{:#}", simulation.item()["status"]);
            assert_eq!(simulation.step(), is_open && is_dry_run, "only an open job of a dry run is continued");
        }
    }
}

#[test]
fn a_second_job_writes_only_what_changed() {
    let mut simulation = Simulation::with_one_export();
    simulation.trigger("job-1");
    simulation.run();
    let secret = simulation.secret.clone();
    simulation.trigger("job-2");
    assert_eq!(simulation.run(), ["Init", "Progressing", "Succeeded"]);
    assert_eq!(simulation.secret, secret);
    simulation.configuration.as_mut().unwrap()["spec"]["exports"][0]["data"]["token"] = "bmV3".into();
    simulation.secret.as_mut().unwrap()["data"]["stale"] = "eA==".into();
    simulation.trigger("job-3");
    simulation.run();
    assert_eq!(simulation.secret.as_ref().unwrap()["data"].as_object().unwrap().len(), 1);
    assert_eq!(simulation.exported(), json!({"test-token": "bmV3"}));
}

#[test]
fn reports_all_problems_at_once_and_clears_them_with_the_next_job() {
    let mut simulation = Simulation::new(&manifest(&[export(".data.tokn"), export(".data.x"), export(".data.token")]));
    simulation.trigger("job-1");
    assert_eq!(simulation.run(), ["Init", "Progressing", "Failed"]);
    let error = simulation.status("lastError").clone();
    let message = error["message"].as_str().unwrap();
    assert!(message.contains("exports[0].jsonPath: tokn is not found") && message.contains("exports[1]"), "{message}");
    assert_eq!(error["codes"], json!(["ERR_CONFIGURATION_PROBLEM"]));
    assert!(simulation.secret.is_none() && simulation.status("exportRef").is_null());
    simulation.item.as_mut().unwrap()["spec"]["config"] = manifest(&[export(".data.token")]);
    simulation.trigger("job-2");
    assert_eq!(simulation.run(), ["Init", "Progressing", "Succeeded"]);
    assert!(simulation.status("lastError").is_null() && simulation.status("firstError").is_null());
}

#[test]
fn names_missing_fragments() {
    for (configuration, words) in [
        (None, "DryRunConfiguration \"test-dry-run\" does not exist"),
        (Some(json!({"spec": {}})), "no fragment of Secret example/test-secret (v1) in the DryRunConfiguration: add {"),
    ] {
        let mut simulation = Simulation { configuration, ..Simulation::with_one_export() };
        simulation.trigger("job-1");
        simulation.run();
        let message = simulation.status("lastError")["message"].as_str().unwrap().to_owned();
        assert!(message.contains(words), "{message}");
    }
    let mut simulation = Simulation { configuration: None, ..Simulation::new(&manifest(&[])) };
    simulation.trigger("job-1");
    assert_eq!(simulation.run(), ["Init", "Progressing", "Succeeded"], "without exports no configuration is needed");
    assert!(simulation.secret.is_none());
}

#[test]
fn a_helm_export_without_an_object_reads_the_values() {
    let config = |path: &str| {
        json!({"apiVersion": "helm.deployer.landscaper.gardener.cloud/v1alpha1", "kind": "ProviderConfiguration",
               "name": "release", "namespace": "example", "values": {"port": 8080},
               "exports": {"exports": [{"key": "port", "jsonPath": path}]}})
    };
    for (path, exported) in [("Values.port", json!(8080)), (".Release.Name", json!("release"))] {
        let mut simulation = Simulation::new(&config(path));
        simulation.trigger("job-1");
        simulation.run();
        assert_eq!(simulation.exported(), json!({"port": exported}));
    }
    let mut simulation = Simulation::new(&config("Values.host"));
    simulation.trigger("job-1");
    simulation.run();
    let message = simulation.status("lastError")["message"].as_str().unwrap();
    assert!(message.contains("host is not found") && message.contains("set the value in config.values"), "{message}");
}

#[test]
fn a_deletion_removes_only_the_finalizer() {
    let mut simulation = Simulation::with_one_export();
    simulation.trigger("job-1");
    simulation.run();
    simulation.delete();
    assert_eq!(simulation.next(), Step::Nothing, "deployers wait until Landscaper starts the deletion");
    simulation.trigger("job-2");
    assert_eq!(simulation.run(), ["InitDelete", "Deleting"]);
    assert_eq!(simulation.item, None);
}

#[test]
fn delete_without_uninstall_skips_the_uninstall_phases() {
    let mut simulation = Simulation::with_one_export();
    simulation.trigger("job-1");
    simulation.run();
    simulation.update_as_landscaper(&json!({"metadata": {"annotations":
        {"landscaper.gardener.cloud/delete-without-uninstall": "true"}}}));
    simulation.delete();
    simulation.trigger("job-2");
    assert_eq!(simulation.run(), ["InitDelete"]);
    assert_eq!(simulation.item, None);
}

#[test]
fn deletes_an_item_during_a_job() {
    let mut simulation = Simulation::with_one_export();
    simulation.trigger("job-1");
    for _ in 0..3 {
        simulation.step();
    }
    assert_eq!(simulation.status("phase"), "Progressing");
    simulation.delete();
    assert_eq!(simulation.run(), ["Deleting"]);
    assert_eq!(simulation.item, None);
}

#[test]
fn both_generations_are_served() {
    let mut simulation = Simulation::with_one_export();
    simulation.deployer.has_old_phase = true;
    simulation.trigger("job-1");
    let mut seen = Vec::new();
    while simulation.step() {
        seen.push((simulation.status("phase").clone(), simulation.status("deployItemPhase").clone()));
    }
    seen.dedup();
    let wanted = [("Init", "Progressing"), ("Progressing", "Progressing"), ("Succeeded", "Succeeded")];
    assert_eq!(seen, wanted.map(|(phase, old)| (json!(phase), json!(old))));
    // If a DeployItem has the field of older Landscapers, the deployer keeps it up to date. Otherwise, its Landscaper
    // would not notice the end of the job.
    let mut simulation = Simulation::with_one_export();
    simulation.update_as_landscaper(&json!({"status": {"deployItemPhase": "Failed", "phase": "Failed"}}));
    simulation.trigger("job-1");
    simulation.run();
    assert_eq!(*simulation.status("deployItemPhase"), "Succeeded");
}

#[test]
fn tolerates_a_clock_behind_landscapers() {
    let mut simulation = Simulation { clock: 100, ..Simulation::with_one_export() };
    simulation.trigger("job-1");
    simulation.clock = 40;
    simulation.step();
    assert_eq!(simulation.status("lastReconcileTime"), simulation.status("jobIDGenerationTime"));
    assert!(Status::of(simulation.item()).is_picked_up());
}

#[test]
fn ignores_items_of_others() {
    for change in [
        json!({"spec": {"type": "landscaper.gardener.cloud/container"}}),
        json!({"metadata": {"annotations": {"landscaper.gardener.cloud/dry-run": "True"}}}),
        json!({"metadata": {"annotations": null}}),
    ] {
        let mut simulation = Simulation::with_one_export();
        simulation.trigger("job-1");
        json_patch::merge(simulation.item.as_mut().unwrap(), &change);
        assert_eq!(simulation.next(), Step::Nothing, "{change}");
    }
}

#[test]
fn stops_when_another_deployer_is_active() {
    let other = || "helm.deployer.landscaper.gardener.cloud".to_owned();
    let named = json!({"status": {"deployer": {"name": other(), "identity": "x", "version": ""}}});
    let field_written_by_helm = |field: &str, of: Value| json!({"metadata": {"managedFields": [{"manager": "helm-deployer", "fieldsV1": {"f:status": {field: of}}}]}});
    let writer = |field| OtherDeployer::Writer { field, manager: "helm-deployer".into() };
    for (steps, change, other_deployer) in [
        (0, named.clone(), OtherDeployer::Deployer(other())),
        (3, named, OtherDeployer::Deployer(other())),
        (
            0,
            json!({"metadata": {"finalizers": [FINALIZER, "example.org/mine"]}}),
            OtherDeployer::Finalizer("example.org/mine".into()),
        ),
        (0, json!({"status": {"phase": "Progressing"}}), OtherDeployer::Phase("Progressing".into())),
        (3, json!({"status": {"providerStatus": {"kind": "ProviderStatus"}}}), OtherDeployer::ProviderStatus),
        (3, field_written_by_helm("f:phase", json!({})), writer("phase")),
        (3, field_written_by_helm("f:lastReconcileTime", json!({})), writer("lastReconcileTime")),
        (3, field_written_by_helm("f:deployer", json!({"f:name": {}})), writer("deployer.name")),
    ] {
        let mut simulation = Simulation::with_one_export();
        simulation.trigger("job-1");
        for _ in 0..steps {
            simulation.step();
        }
        json_patch::merge(simulation.item.as_mut().unwrap(), &change);
        assert_eq!(simulation.next(), Step::Yield(other_deployer), "{change}");
    }
    let mut simulation = Simulation::with_one_export();
    simulation.trigger("job-1");
    json_patch::merge(
        simulation.item.as_mut().unwrap(),
        &json!({"metadata": {"finalizers": [FINALIZER, "foregroundDeletion"]}}),
    );
    assert_eq!(
        simulation.run().last().map(String::as_str),
        Some("Succeeded"),
        "finalizers of Kubernetes do not belong to another deployer"
    );
}

/// If a real deployer cannot update the status because of a conflict, it reports the conflict in an Event. The Event is
/// the only sign that a real deployer processes the DeployItem.
#[test]
fn detects_deployers_by_their_events() {
    let reported = |reporter: &str| {
        let mut simulation = Simulation::with_one_export();
        simulation.trigger("job-1");
        simulation.step();
        simulation.reporters =
            vec!["Landscaper".to_owned(), "portcullis.dev/companion".to_owned(), reporter.to_owned()];
        simulation.next()
    };
    for deployer in ["manifest.deployer.landscaper.gardener.cloud", "generic-deployer-library"] {
        assert_eq!(reported(deployer), Step::Yield(OtherDeployer::Event(deployer.to_owned())));
    }
    assert!(!matches!(reported("policy-controller"), Step::Yield(_)));
}

/// Regression test for issue 18: admission may route a DeployItem of an unsupported type to the dry-run deployer. The
/// job of such a DeployItem must fail at once, not only after the pickup timeout, and its deletion must end.
#[test]
fn a_routed_item_of_another_type_fails_at_once_and_can_be_deleted() {
    let mut simulation = Simulation::with_one_export();
    simulation.item.as_mut().unwrap()["spec"]["type"] = json!("landscaper.gardener.cloud/mock");
    simulation.trigger("job-1");
    assert_eq!(simulation.next(), Step::Nothing, "an item that is not routed to the dry-run deployer was changed");
    simulation.update_as_landscaper(
        &json!({"metadata": {"annotations": {"landscaper.gardener.cloud/deployer-type": ROUTE}}}),
    );
    assert_eq!(simulation.run(), ["Init", "Progressing", "Failed"]);
    assert_eq!(simulation.status("lastError")["reason"], "TypeNotProcessed");
    simulation.delete();
    simulation.trigger("job-2");
    simulation.run();
    assert_eq!(simulation.item, None);
}

#[test]
fn does_not_overwrite_foreign_secrets() {
    let mut simulation = Simulation::with_one_export();
    let theirs = json!({"metadata": {"name": "item-export", "namespace": "ns"}, "data": {"password": "eA=="}});
    simulation.secret = Some(theirs.clone());
    simulation.trigger("job-1");
    assert_eq!(simulation.run().last().map(String::as_str), Some("Failed"));
    assert_eq!(
        (simulation.status("lastError")["reason"].as_str(), simulation.secret.clone()),
        (Some("ExportSecretOfOthers"), Some(theirs))
    );
    // The deployer also ignores references in the status to Secrets in other namespaces.
    let mut simulation = Simulation::with_one_export();
    simulation.update_as_landscaper(&json!({"status": {"exportRef": {"name": "admin", "namespace": "kube-system"}}}));
    assert_eq!(secret_reference(simulation.item()), ("ns".to_owned(), "item-export".to_owned()));
    simulation.update_as_landscaper(&json!({"status": {"exportRef": {"name": "earlier", "namespace": "ns"}}}));
    assert_eq!(secret_reference(simulation.item()), ("ns".to_owned(), "earlier".to_owned()));
}

/// An event between two updates of the dry-run deployer.
#[derive(Debug, Clone, Copy)]
enum Event {
    /// The dry-run deployer executes its next update.
    Step,
    /// The dry-run deployer is killed, and another instance continues.
    Kill,
    /// Landscaper starts the next job, if the last job is finished.
    Trigger,
    /// Landscaper ends the job early, because of an interrupt or a timeout.
    Interrupt,
    /// A user deletes the DeployItem.
    Delete,
    /// The clock jumps back.
    ClockBack,
}

proptest! {
    /// Checks two properties for any sequence of events: all updates of the dry-run deployer meet the requirements of
    /// the contract, and the updates end if there are no more events.
    #[test]
    fn meets_every_requirement_under_random_events(
        events in prop::collection::vec(prop::sample::select(vec![
            Event::Step, Event::Step, Event::Step, Event::Kill, Event::Trigger, Event::Interrupt,
            Event::Delete, Event::ClockBack,
        ]), 0..40),
        has_old_phase: bool,
        fails: bool,
    ) {
        let mut simulation = match fails {
            true => Simulation::new(&manifest(&[export(".nothing")])),
            false => Simulation::with_one_export(),
        };
        simulation.deployer.has_old_phase = has_old_phase;
        for (number, event) in events.into_iter().enumerate() {
            simulation.clock += 1;
            let Some(item) = &simulation.item else { break };
            let (state, is_being_deleted) = (State::of(&Status::of(item)), Status::of(item).being_deleted);
            match event {
                Event::Step => drop(simulation.step()),
                Event::Kill => simulation.deployer.identity = format!("instance-{number}"),
                Event::Trigger if [State::New, State::Finished].contains(&state) => {
                    simulation.trigger(&format!("job-{number}"));
                }
                Event::Interrupt => {
                    let job = format!("job-{number}");
                    let phase = if is_being_deleted { "DeleteFailed" } else { "Failed" };
                    let mut status = json!({"jobID": job, "jobIDFinished": job, "phase": phase});
                    if has_old_phase {
                        status["deployItemPhase"] = "Failed".into();
                    }
                    simulation.update_as_landscaper(&json!({"status": status}));
                }
                Event::Delete if !is_being_deleted => simulation.delete(),
                Event::ClockBack => simulation.clock = 0,
                Event::Trigger | Event::Delete => {}
            }
        }
        simulation.run();
        if let Some(item) = &simulation.item {
            let state = State::of(&Status::of(item));
            prop_assert!([State::New, State::Finished].contains(&state), "{:?}: {:#}", state, item);
            let deployer = item["status"]["deployer"]["name"].as_str();
            prop_assert!(deployer.is_none_or(|name| name == NAME));
        }
    }
}
