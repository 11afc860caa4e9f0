//! Tests of the contract for deployers. Compares the results of our rules with the recorded behavior of Landscaper. For
//! every possible status update, also compares the results with the table of transitions, and with the prose of the
//! contract in Landscaper's documentation.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "in a test a panic is the report")]

mod cases;

use std::collections::BTreeSet;

use cases::{Case, repository, vectors};
use portcullis::admission::{Level, Operation, Phase as Webhook};
use portcullis::landscaper::annotations;
use portcullis::landscaper::deployer::explain;
use portcullis::landscaper::deployer::machine::{self, State, TRANSITIONS, Verdict};
use portcullis::landscaper::deployer::phase::{self, PHASES, Phase};
use portcullis::landscaper::deployer::requirements::{REQUIREMENTS, violated};
use portcullis::landscaper::deployer::status::{Change, Job, Status};
use portcullis::landscaper::duration;
use portcullis::landscaper::kinds::{DEPLOY_ITEMS, EXECUTIONS, INSTALLATIONS};
use serde_json::{Value, json};
use time::{Duration, OffsetDateTime};

fn cases_of(list: &str) -> Vec<Value> {
    let file = vectors("landscaper/phases.json");
    let cases = file[list].as_array().expect("it is a list").clone();
    assert!(!cases.is_empty(), "there are no {list}");
    cases
}

#[test]
fn phases_equal_landscapers() {
    for case in cases_of("phases") {
        let text = case["phase"].as_str().unwrap();
        let phase = Phase::read(text);
        for (of, kind) in [("deployItem", &DEPLOY_ITEMS), ("execution", &EXECUTIONS), ("installation", &INSTALLATIONS)]
        {
            let ours = json!({
                "isFinal": phase.is_final(), "isDeletion": phase::is_deletion_of(kind, text),
                "isFailed": phase.is_failed(), "isEmpty": phase == Phase::Empty,
            });
            assert_eq!(ours, case[of], "{text:?} of {of}");
        }
    }
}

#[test]
fn durations_equal_landscapers() {
    for case in cases_of("durations") {
        let (json, expected) = (&case["json"], &case["expect"]);
        // Go's decoder treats a JSON null as an empty string.
        let text = if json.is_null() { Some("") } else { json.as_str() };
        let nanoseconds = text.and_then(duration::nanoseconds);
        assert_eq!(nanoseconds, expected["nanoseconds"].as_i64(), "{json}");
        if let Some(nanoseconds) = nanoseconds {
            assert_eq!(duration::text(nanoseconds), expected["marshalled"], "{json}");
        }
    }
}

#[test]
fn pickup_equals_landscapers() {
    let now = OffsetDateTime::from_unix_timestamp(1_800_000_000).unwrap();
    let ago = |age: &Value| age.as_i64().map(|age| now - Duration::seconds(age));
    for case in cases_of("pickup") {
        let status = Status {
            generated: ago(&case["jobIDGenerationAgeSeconds"]),
            reconciled: ago(&case["lastReconcileAgeSeconds"]),
            ..status_of("", "", "", None)
        };
        let timeout = Duration::seconds(case["pickupTimeoutSeconds"].as_i64().unwrap());
        let picked_up = status.is_picked_up();
        // Landscaper's pickup timeout applies only to DeployItems that no deployer has picked up.
        let exceeded = !picked_up && status.is_pickup_overdue(now, timeout);
        let ours = json!({"hasBeenPickedUp": picked_up, "isPickupTimeoutExceeded": exceeded});
        assert_eq!(ours, case["expect"], "{}", case["name"]);
    }
}

/// Checks that DP012 reports exactly the Helm arguments that the helm deployer rejects. The level of DP012 is `warn`,
/// because a newer deployer may accept these arguments.
#[test]
fn helm_arguments_are_those_of_the_deployer() {
    let file = vectors("landscaper/deployers.json");
    let cases = file["helmArguments"].as_array().expect("it is a list");
    assert!(cases.len() > 30);
    for case in cases {
        let item = json!({
            "apiVersion": "landscaper.gardener.cloud/v1alpha1", "kind": "DeployItem",
            "metadata": {"name": "item", "namespace": "ns"},
            "spec": {"type": "landscaper.gardener.cloud/helm", "config": case["config"]},
        });
        let findings = Case::new(Operation::Create, item).decide(Webhook::Validate).findings;
        let levels: Vec<_> = findings.iter().filter(|found| found.rule == "DP012").map(|found| found.level).collect();
        let expected: &[Level] = if case["expect"]["accepted"] == true { &[] } else { &[Level::Warn] };
        assert_eq!(levels, expected, "{}: {findings:?}", case["name"]);
    }
}

#[test]
fn reads_annotations_like_landscaper() {
    for case in cases_of("annotations") {
        let object = json!({"metadata": {"annotations": case["annotations"]}});
        let read = json!({
            "ignore": annotations::is_set(&object, annotations::IGNORE),
            "deleteWithoutUninstall": annotations::is_set(&object, annotations::DELETE_WITHOUT_UNINSTALL),
            "cacheHelmCharts": annotations::is_set(&object, annotations::CACHE_HELM_CHARTS),
            "reconcileIfChanged": annotations::is_set(&object, annotations::RECONCILE_IF_CHANGED),
            "operation": annotations::operation(&object),
            "operationReconcile": annotations::operation(&object) == annotations::RECONCILE,
        });
        assert_eq!(read, case["expect"], "{}", case["annotations"]);
    }
}

/// DP013 reports the annotation `landscaper.gardener.cloud/delete-without-uninstall` if Landscaper does not treat its
/// value as true.
#[test]
fn only_the_exact_value_keeps_deployed_objects() {
    for value in ["true", "True", "TRUE", "yes", "", " true", "false"] {
        let object = json!({
            "apiVersion": "landscaper.gardener.cloud/v1alpha1", "kind": "Execution",
            "metadata": {"name": "e", "namespace": "n", "annotations": {annotations::DELETE_WITHOUT_UNINSTALL: value}},
        });
        let keeps = annotations::is_set(&object, annotations::DELETE_WITHOUT_UNINSTALL);
        let verdict = Case::new(Operation::Create, object).decide(Webhook::Validate);
        assert_eq!(verdict.findings.iter().any(|finding| finding.rule == "DP013"), !keeps, "{value}");
    }
}

#[test]
fn a_failed_item_has_landscapers_status() {
    for case in cases_of("setToFailed") {
        assert_eq!(phase::failed(case["deletionTimestamp"] == true), case["phase"]);
    }
}

fn status_of<'v>(phase: &'v str, job: &'v str, finished: &'v str, reconciled: Option<OffsetDateTime>) -> Status<'v> {
    Status {
        phase_text: phase,
        phase: Phase::read(phase),
        job,
        finished,
        reconciled,
        generated: None,
        deployer: "",
        being_deleted: false,
    }
}

/// Older versions of Landscaper write the phase also to the status field `deployItemPhase`, newer ones only to `phase`.
/// Our rules read both fields. If `deployItemPhase` has a value, it takes precedence.
#[test]
fn both_generations_are_read_alike() {
    for (phase, text, _) in PHASES {
        let newer = json!({"status": {"phase": text, "jobID": "b", "jobIDFinished": "a"}});
        let older = json!({"status": {"deployItemPhase": text, "phase": text, "jobID": "b", "jobIDFinished": "a"}});
        let cleared = json!({"status": {"deployItemPhase": null, "phase": text, "jobID": "b", "jobIDFinished": "a"}});
        for object in [&newer, &older, &cleared] {
            assert_eq!((Status::of(object).phase, Status::of(object).job()), (phase, Job::Open), "{object}");
        }
        let inner = json!({"status": {"deployItemPhase": "Progressing", "phase": text}});
        assert_eq!(Status::of(&inner).phase, Phase::Progressing);
    }
}

/// Returns one status for each combination of values of the fields that the contract covers. A job ID is empty or has
/// one of three values.
fn statuses(being_deleted: bool) -> Vec<Status<'static>> {
    let times = [None, Some(1_800_000_000), Some(1_800_000_060)];
    let times = times.map(|time| time.map(|time| OffsetDateTime::from_unix_timestamp(time).unwrap()));
    let mut texts: Vec<_> = PHASES.iter().map(|(_, text, _)| *text).filter(|text| *text != "Processing").collect();
    texts.push("Strange");
    let ids = ["", "a", "b", "c"];
    let mut all = Vec::new();
    for text in texts {
        for (job, finished) in ids.into_iter().flat_map(|job| ids.map(|finished| (job, finished))) {
            all.extend(times.map(|time| Status { being_deleted, ..status_of(text, job, finished, time) }));
        }
    }
    all
}

fn for_each_change(mut visit: impl FnMut(&Change<'_>)) {
    for being_deleted in [false, true] {
        let all = statuses(being_deleted);
        for old in &all {
            for new in &all {
                visit(&Change { old: *old, new: *new });
            }
        }
    }
}

/// Checks two properties. A status update from a valid to an invalid state violates the rule that prevents the invalid
/// state. For each transition in the table [`TRANSITIONS`], there is a status update that violates no rule.
#[test]
fn the_table_and_the_requirements_agree() {
    let mut seen = BTreeSet::new();
    for_each_change(|change| {
        let (from, to) = (State::of(&change.old), State::of(&change.new));
        let rules: Vec<_> = violated(change).iter().map(|requirement| requirement.rule).collect();
        match to.info().prevented_by {
            Some(rule) if from.info().prevented_by.is_none() => assert!(rules.contains(&rule), "{change:?}: {rules:?}"),
            _ => {}
        }
        if let Verdict::Known(_) = machine::judge(change) {
            seen.insert((from, to));
        }
    });
    let rows: BTreeSet<_> = TRANSITIONS.iter().map(|row| (row.from, row.to)).collect();
    assert_eq!(seen, rows, "the rows of the table are the possible updates that meet the requirements");
    assert_eq!(
        REQUIREMENTS.len(),
        REQUIREMENTS.iter().map(|requirement| requirement.rule).collect::<BTreeSet<_>>().len()
    );
}

/// Returns a short name of the sentence in the contract that forbids a status update; `None` if no sentence forbids it.
///
/// The function implements the prose of the contract, independently of Landscaper's code. In the contract, the phase is
/// the value of `deployItemPhase`.
fn violated_sentence(Change { old, new }: &Change<'_>) -> Option<&'static str> {
    let is_processing = |status: &Status<'_>| !["", "Succeeded", "Failed"].contains(&status.phase_text);
    let is_open = |status: &Status<'_>| status.job != status.finished;
    let begins = !is_processing(old) && is_processing(new);
    let ends = is_open(old) && !is_open(new);
    let is_allowed = |phase: &str| ["", "Init", "Progressing", "Deleting", "Succeeded", "Failed"].contains(&phase);
    if !is_allowed(new.phase_text) {
        return Some("values");
    }
    if !is_open(new) && is_processing(new) {
        return Some("equal");
    }
    if !is_open(new) && !new.job.is_empty() && new.phase_text.is_empty() {
        return Some("equal");
    }
    if begins && !is_open(new) {
        return Some("allowed");
    }
    if begins && !is_after(old, new) {
        return Some("reconciled");
    }
    if new.job != old.job && is_open(old) {
        return Some("trigger");
    }
    if new.finished != old.finished && new.finished != new.job {
        return Some("finished");
    }
    if is_processing(old) && !is_processing(new) && is_open(new) {
        return Some("atomic");
    }
    if ends && !is_processing(old) {
        return Some("processed");
    }
    if new.job != old.job && new.finished != old.finished {
        return Some("trigger");
    }
    if !is_open(old) && !is_open(new) && old.phase_text != new.phase_text {
        return Some("finished-phase");
    }
    if old.phase_text != new.phase_text && !is_processing(old) && !is_processing(new) {
        return Some("processed");
    }
    if new.phase_text == "Deleting" && !new.being_deleted {
        return Some("deletion");
    }
    if is_processing(old) && new.phase_text.is_empty() {
        return Some("values");
    }
    None
}

/// Returns whether `lastReconcileTime` is set in `new`, and is not earlier than in `old`. The two times may be equal,
/// because their resolution is one second.
fn is_after(old: &Status<'_>, new: &Status<'_>) -> bool {
    new.reconciled.is_some_and(|time| old.reconciled.is_none_or(|before| time >= before))
}

/// Returns the result of our rules for a status update: `refuses` or `warns` with the ID of the rule, or `admits`.
fn our_result(change: &Change<'_>) -> String {
    let rules: Vec<_> = violated(change).iter().map(|requirement| requirement.rule).collect();
    let warns = ["DP006", "DP014"];
    match rules.iter().find(|rule| !warns.contains(rule)).or(rules.first()) {
        Some(rule) if warns.contains(rule) => format!("warns {rule}"),
        Some(rule) => format!("refuses {rule}"),
        None => "admits".to_owned(),
    }
}

/// Checks that the page `docs/deployer-contract.md` lists all differences between the rules of Portcullis and the text
/// of Landscaper's deployer contract, and no others.
#[test]
fn the_page_explains_all_differences_from_the_prose() {
    let mut differences = BTreeSet::new();
    let mut judged = 0_u64;
    for_each_change(|change| {
        judged += 1;
        let (prose, ours) = (violated_sentence(change), our_result(change));
        match prose {
            Some(sentence) if !ours.starts_with("refuses") => differences.insert(format!("{sentence}, {ours}")),
            None if ours != "admits" => differences.insert(format!("admitted, {ours}")),
            _ => true,
        };
    });
    assert_eq!(judged, 460_800);
    let page = std::fs::read_to_string(repository().join("docs/deployer-contract.md")).unwrap_or_default();
    let keys = page.lines().filter_map(|line| Some(line.strip_prefix("| `")?.split_once('`')?.0.to_owned()));
    let explained = keys.filter(|key| key.contains(", ")).collect::<BTreeSet<_>>();
    assert_eq!(differences, explained);
}

#[test]
fn a_status_is_judged_at_its_subresource_only() {
    let item = |phase: &str, finished: &str| {
        json!({
            "apiVersion": "landscaper.gardener.cloud/v1alpha1", "kind": "DeployItem",
            "metadata": {"name": "item", "namespace": "n"}, "spec": {"type": "t"},
            "status": {"phase": phase, "jobID": "b", "jobIDFinished": finished, "lastReconcileTime": "2026-01-01T12:00:00Z"},
        })
    };
    let case = || Case::new(Operation::Update, item("Progressing", "b")).update(item("Progressing", "a"));
    assert!(case().decide(Webhook::Validate).is_allowed());
    assert!(!case().for_subresource("status").decide(Webhook::Validate).is_allowed());
    let mut deleted = case().for_subresource("status");
    deleted.object["metadata"]["deletionTimestamp"] = json!("2026-01-01T12:00:00Z");
    assert!(!deleted.decide(Webhook::Validate).is_allowed(), "the rules also apply to objects that are being deleted");
    let as_before = case().update(item("Progressing", "b")).for_subresource("status").decide(Webhook::Validate);
    assert_eq!(as_before.findings.iter().map(|finding| finding.level).collect::<Vec<_>>(), [Level::Warn]);
}

#[test]
fn the_page_shows_the_table_that_is_enforced() {
    let page = std::fs::read_to_string(repository().join("docs/deployer-contract.md")).unwrap();
    assert!(page.contains(&explain::markdown()), "put `portcullis explain deployer --output markdown` into the page");
    let drawing = std::fs::read_to_string(repository().join("docs/deployer-contract.svg")).unwrap();
    assert!(drawing == explain::svg(), "docs/deployer-contract.svg is out of date: run `make generate`");
    let mermaid = explain::mermaid();
    for row in &TRANSITIONS {
        let reported =
            explain::edges().into_iter().find(|edge| (edge.from, edge.to, edge.by) == (row.from, row.to, row.by));
        assert!(reported.is_some_and(|edge| edge.names.contains(&row.name)), "{row:?}");
        assert!(mermaid.contains(row.name) && explain::text().contains(row.name), "{row:?}");
    }
}
