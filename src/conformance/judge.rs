//! From what was seen to what it means.

use std::collections::BTreeMap;

use serde_json::Value;

use super::promises::{self, Tried};
use super::record::{Record, Version};
use super::report::{Evidence, Judged, Report, Verdict};
use super::scenarios::{Played, Told};
use crate::landscaper::deployer::FINALIZER;
use crate::landscaper::deployer::promises::PROMISES;
use crate::landscaper::deployer::status::{Change, Job};

/// What was found of each promise, by its name.
#[derive(Default)]
struct Ledger(BTreeMap<&'static str, (usize, Vec<Evidence>)>);

impl Ledger {
    fn note(&mut self, promise: &str, evidence: Option<Evidence>) {
        let all = promises::all();
        let Some(tried) = all.iter().find(|tried| tried.name == promise) else { return };
        let (times, broken) = self.0.entry(tried.name).or_default();
        *times += 1;
        broken.extend(evidence);
    }
}

/// Judges all writes of the deployer, and what was seen by waiting.
pub(super) fn report(type_name: &str, told: Told, record: &Record) -> Report {
    let mut ledger = Ledger::default();
    for item in &told.items {
        let versions = record.versions.get(&item.name).map(Vec::as_slice).unwrap_or_default();
        for pair in versions.windows(2) {
            let [old, new] = pair else { continue };
            if !record.own.contains(&new.resource_version) && !new.is_gone {
                judge(item, old, new, &mut ledger);
            }
        }
    }
    for (promise, name, problem) in &told.waited {
        let scenario = told.items.iter().find(|item| item.name == *name).map_or("", |item| item.scenario);
        let evidence = problem.clone().map(|what| Evidence::waited(scenario, name, what));
        ledger.note(promise.name, evidence);
    }
    let judged = promises::all().into_iter().map(|tried| judged(tried, &mut ledger)).collect();
    Report { type_name: type_name.to_owned(), scenarios: told.scenarios, promises: judged }
}

fn judged(tried: Tried, ledger: &mut Ledger) -> Judged {
    let (times, evidence) = ledger.0.remove(tried.name).unwrap_or_default();
    let verdict = match (times, evidence.is_empty()) {
        (0, _) => Verdict::NotTried,
        (_, true) => Verdict::Kept,
        (_, false) if tried.is_binding => Verdict::Broken,
        (_, false) => Verdict::Doubtful,
    };
    Judged { name: tried.name, sentence: tried.sentence, verdict, times, evidence }
}

/// Judges a write that is not the kit's.
fn judge(item: &Played, old: &Version, new: &Version, ledger: &mut Ledger) {
    let change = Change::of(&old.object, &new.object);
    let evidence = |what: &str| Evidence::write(item.scenario, &item.name, what, &change, new);
    if !item.is_its_own {
        return ledger.note("DP010", Some(evidence("a DeployItem that is not the deployer's is written")));
    }
    for promise in PROMISES {
        ledger.note(promise.rule, (!(promise.is_kept)(&change)).then(|| evidence(promise.sentence)));
    }
    let has_job = change.new.job() == Job::Open || change.old.job() == Job::Open;
    // Somebody else's finalizers, labels and annotations are nobody's business here.
    if old.object.get("status") != new.object.get("status") {
        let late = (!has_job && change.old.told() != change.new.told()).then(|| evidence("there is no open job"));
        ledger.note(promises::WAITS.name, late);
        let taken = (change.old.job != change.new.job).then(|| evidence("jobID is Landscaper's to write"));
        ledger.note(promises::JOB_IS_LANDSCAPERS.name, taken);
    }
    let type_of = |version: &Version| version.object.pointer("/spec/type").cloned();
    ledger.note("DP007", (type_of(old) != type_of(new)).then(|| evidence("spec.type has changed")));
    let is_released = has_finalizer(&old.object) && !has_finalizer(&new.object) && !change.new.being_deleted;
    ledger.note("DP009", is_released.then(|| evidence("the finalizer is taken off, and nothing is being deleted")));
}

fn has_finalizer(object: &Value) -> bool {
    let finalizers = object.pointer("/metadata/finalizers").and_then(Value::as_array);
    finalizers.is_some_and(|finalizers| finalizers.iter().any(|finalizer| finalizer == FINALIZER))
}
