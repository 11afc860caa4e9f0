//! Computes the conformance report of a deployer. The inputs are the writes that the deployer made, and the expected
//! writes that the deployer did not make in time.

use std::collections::BTreeMap;

use serde_json::Value;

use super::record::{Record, Version};
use super::report::{Evidence, Judged, Report, Verdict};
use super::requirements::{self, TestedRequirement};
use super::scenarios::{Outcome, Played};
use crate::admission::Metadata;
use crate::landscaper::deployer::FINALIZER;
use crate::landscaper::deployer::requirements::REQUIREMENTS;
use crate::landscaper::deployer::status::{Change, Job};

/// The results for each requirement of Landscaper's deployer contract, by name. A result has the number of tests, and
/// the evidence that the deployer violated the requirement.
#[derive(Default)]
struct Results(BTreeMap<&'static str, (usize, Vec<Evidence>)>);

impl Results {
    /// Counts one test of the requirement named `requirement`. Adds `evidence` if the deployer violated the
    /// requirement.
    fn add(&mut self, requirement: &str, evidence: Option<Evidence>) {
        let all = requirements::all();
        let Some(tried) = all.iter().find(|tried| tried.name == requirement) else { return };
        let (times, violations) = self.0.entry(tried.name).or_default();
        *times += 1;
        violations.extend(evidence);
    }
}

/// Returns the conformance report of a deployer. For each requirement of Landscaper's deployer contract, the report
/// says whether the deployer met it. `record` contains the writes of the deployer, which are checked here. `outcome`
/// contains errors about expected writes that did not happen in time.
pub(super) fn report(type_name: &str, outcome: Outcome, record: &Record) -> Report {
    let mut results = Results::default();
    for item in &outcome.items {
        let versions = record.versions.get(&item.name).map(Vec::as_slice).unwrap_or_default();
        for pair in versions.windows(2) {
            let [old, new] = pair else { continue };
            if !record.own.contains(&new.resource_version) && !new.is_gone {
                judge(item, old, new, &mut results);
            }
        }
    }
    for (requirement, name, problem) in &outcome.waited {
        let scenario = outcome.items.iter().find(|item| item.name == *name).map_or("", |item| item.scenario);
        let evidence = problem.clone().map(|what| Evidence::waited(scenario, name, what));
        results.add(requirement.name, evidence);
    }
    let judged = requirements::all().into_iter().map(|tried| judged(tried, &mut results)).collect();
    Report { type_name: type_name.to_owned(), scenarios: outcome.scenarios, requirements: judged }
}

fn judged(tried: TestedRequirement, results: &mut Results) -> Judged {
    let (times, evidence) = results.0.remove(tried.name).unwrap_or_default();
    let verdict = match (times, evidence.is_empty()) {
        (0, _) => Verdict::NotTested,
        (_, true) => Verdict::Met,
        (_, false) if tried.is_binding => Verdict::Violated,
        (_, false) => Verdict::Warning,
    };
    Judged { name: tried.name, sentence: tried.sentence, verdict, times, evidence }
}

/// Checks one observed write of the deployer, from version `old` to `new`, against the requirements of Landscaper's
/// deployer contract.
fn judge(item: &Played, old: &Version, new: &Version, results: &mut Results) {
    let change = Change::of(&old.object, &new.object);
    let evidence = |what: &str| Evidence::write(item.scenario, &item.name, what, &change, new);
    if !item.is_its_own {
        return results.add("DP010", Some(evidence("the deployer writes a DeployItem of another deployer")));
    }
    for requirement in REQUIREMENTS {
        results.add(requirement.rule, (!(requirement.is_met)(&change)).then(|| evidence(requirement.sentence)));
    }
    let has_job = change.new.job() == Job::Open || change.old.job() == Job::Open;
    // Other controllers may write finalizers, labels and annotations.
    if old.object.get("status") != new.object.get("status") {
        let late = (!has_job && change.old.summary() != change.new.summary()).then(|| evidence("there is no open job"));
        results.add(requirements::WAITS.name, late);
        let taken = (change.old.job != change.new.job).then(|| evidence("only Landscaper may write jobID"));
        results.add(requirements::JOB_IS_LANDSCAPERS.name, taken);
    }
    let type_of = |version: &Version| version.object.pointer("/spec/type").cloned();
    results.add("DP007", (type_of(old) != type_of(new)).then(|| evidence("spec.type has changed")));
    let is_released = has_finalizer(&old.object) && !has_finalizer(&new.object) && !change.new.being_deleted;
    results.add(
        "DP009",
        is_released.then(|| evidence("the finalizer is removed, but the DeployItem is not being deleted")),
    );
}

fn has_finalizer(object: &Value) -> bool {
    Metadata::of(object).finalizers().any(|finalizer| finalizer == FINALIZER)
}
