//! The report about a tested deployer, as text and as JSON.

use serde_json::{Value, json};

use super::record::Version;
use crate::admission::Metadata;
use crate::landscaper::deployer::status::Change;

/// The conformance report about a tested deployer.
#[derive(Debug, Clone)]
pub struct Report {
    /// The type of the DeployItems with which the deployer was tested.
    pub type_name: String,
    /// The scenarios of the test, including skipped ones.
    pub scenarios: Vec<Scenario>,
    /// The test result for each requirement of Landscaper's deployer contract.
    pub requirements: Vec<Judged>,
}

/// A scenario of the conformance test, run or skipped.
#[derive(Debug, Clone)]
pub struct Scenario {
    /// The name of the scenario, such as `reconcile`.
    pub name: &'static str,
    /// The reason why the scenario was skipped: an option that the scenario needs is missing. `None` if the scenario
    /// ran.
    pub skipped: Option<String>,
}

/// A requirement of Landscaper's deployer contract, with its test result.
#[derive(Debug, Clone)]
pub struct Judged {
    /// The name of the requirement in the report. This is the id of the rule that checks the requirement, such as
    /// `DP007`. If no rule checks it, the name is a word such as `finishes`.
    pub name: &'static str,
    /// The requirement of Landscaper's deployer contract, as a sentence such as `spec.type does not change`.
    pub sentence: &'static str,
    /// The result of the test: whether the deployer met the requirement, violated it, or was not tested.
    pub verdict: Verdict,
    /// The number of times that the requirement was tested.
    pub times: usize,
    /// The evidence that the deployer violated the requirement. Each item describes a write by the deployer, or an
    /// expected write that is missing.
    pub evidence: Vec<Evidence>,
}

/// The result for one requirement of Landscaper's deployer contract: whether the tested deployer meets the requirement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// The requirement was tested, and the deployer met it in all tests.
    Met,
    /// The deployer violated the requirement.
    Violated,
    /// The deployer violated a requirement that deployers may violate for good reasons. For such a requirement, the
    /// webhook only warns.
    Warning,
    /// No scenario tested the requirement.
    NotTested,
}

/// Evidence that a deployer violated a requirement of Landscaper's deployer contract.
#[derive(Debug, Clone)]
pub struct Evidence {
    /// The name of the scenario in which the requirement was violated.
    pub scenario: &'static str,
    /// The name of the DeployItem that the deployer did not handle as required.
    pub item: String,
    /// A description of what the deployer did wrong.
    pub what: String,
    /// The write that violated the requirement; `None` if an expected write is missing.
    pub write: Option<Write>,
}

/// A write of a DeployItem with which the deployer violated a requirement of Landscaper's deployer contract.
#[derive(Debug, Clone)]
pub struct Write {
    /// The status of the DeployItem before the write, such as `phase "Init", jobID "b", jobIDFinished "a"`.
    pub before: String,
    /// The status after the write, such as `phase "Succeeded", jobID "b", jobIDFinished "b"`.
    pub after: String,
    /// The resource version after the write.
    pub resource_version: String,
    /// The field manager in the most recent entry of `metadata.managedFields`. This is probably the writer. Empty if
    /// there is no entry.
    pub manager: String,
}

/// Maximum number of pieces of evidence that the text report shows for one requirement, so that the text stays short.
/// The JSON report has all.
const SHOWN: usize = 3;

impl Verdict {
    /// Returns the test result as the report shows it: `met`, `violated`, `warning` or `not tested`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Met => "met",
            Self::Violated => "violated",
            Self::Warning => "warning",
            Self::NotTested => "not tested",
        }
    }
}

impl Evidence {
    /// Creates evidence that the deployer did not make an expected write before a timeout. `item` is the name of the
    /// DeployItem, and `what` is the message for the report.
    pub(super) fn waited(scenario: &'static str, item: &str, what: String) -> Self {
        Self { scenario, item: item.to_owned(), what, write: None }
    }

    /// Creates evidence that a write by the deployer violated a requirement. `item` is the name of the written
    /// DeployItem, and `what` is the message for the report. `change` contains the status of the DeployItem before and
    /// after the write. `version` is the DeployItem after the write.
    pub(super) fn write(
        scenario: &'static str,
        item: &str,
        what: &str,
        change: &Change<'_>,
        version: &Version,
    ) -> Self {
        let write = Write {
            before: change.old.summary(),
            after: change.new.summary(),
            resource_version: version.resource_version.clone(),
            manager: manager(&version.object),
        };
        Self { scenario, item: item.to_owned(), what: what.to_owned(), write: Some(write) }
    }
}

/// Returns the field manager of the most recent entry in `metadata.managedFields`. Returns an empty string if there is
/// no entry.
fn manager(object: &Value) -> String {
    let text = |entry: &Value, key: &str| entry.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    let last = Metadata::of(object).managed_fields().max_by_key(|entry| text(entry, "time"));
    last.map(|entry| text(entry, "manager")).unwrap_or_default()
}

impl Report {
    /// Returns whether the test passed: no requirement has the result [`Verdict::Violated`].
    pub fn is_passed(&self) -> bool {
        self.requirements.iter().all(|judged| judged.verdict != Verdict::Violated)
    }

    /// Returns the report as text.
    pub fn to_text(&self) -> String {
        let mut text = format!("deployer of {}\n\n", self.type_name);
        for Scenario { name, skipped } in &self.scenarios {
            let result = skipped.as_ref().map_or_else(|| "ran".to_owned(), |why| format!("skipped: {why}"));
            text += &format!("  {name}: {result}\n");
        }
        text.push('\n');
        for judged in &self.requirements {
            text += &judged.to_text();
        }
        let violated = self.requirements.iter().filter(|judged| judged.verdict == Verdict::Violated).count();
        text + &match violated {
            0 => "\nNo requirement was violated.\n".to_owned(),
            1 => "\n1 requirement was violated.\n".to_owned(),
            many => format!("\n{many} requirements were violated.\n"),
        }
    }

    /// Returns the report as JSON.
    pub fn to_json(&self) -> Value {
        let scenarios: Vec<_> = self
            .scenarios
            .iter()
            .map(|Scenario { name, skipped }| json!({"name": name, "ran": skipped.is_none(), "skipped": skipped}))
            .collect();
        let requirements: Vec<_> = self.requirements.iter().map(Judged::to_json).collect();
        json!({"type": self.type_name, "passed": self.is_passed(), "scenarios": scenarios, "requirements": requirements})
    }
}

impl Judged {
    fn to_text(&self) -> String {
        let Self { name, sentence, verdict, times, evidence } = self;
        let mut text = format!("{:10}  {name}: {sentence} ({times})\n", verdict.as_str());
        for Evidence { scenario, item, what, write } in evidence.iter().take(SHOWN) {
            text += &format!("            {scenario}, {item}: {what}\n");
            if let Some(Write { before, after, resource_version, manager }) = write {
                text += &format!("              before: {before}\n              after:  {after}\n");
                text += &format!("              written by {manager:?}, resourceVersion {resource_version}\n");
            }
        }
        if evidence.len() > SHOWN {
            text += &format!("            and {} more\n", evidence.len() - SHOWN);
        }
        text
    }

    fn to_json(&self) -> Value {
        let Self { name, sentence, verdict, times, evidence } = self;
        json!({
            "name": name, "sentence": sentence, "verdict": verdict.as_str(), "times": times,
            "evidence": evidence.iter().map(Evidence::to_json).collect::<Vec<_>>(),
        })
    }
}

impl Evidence {
    fn to_json(&self) -> Value {
        let Self { scenario, item, what, write } = self;
        let write = write.as_ref().map(|Write { before, after, resource_version, manager }| {
            json!({"before": before, "after": after, "resourceVersion": resource_version, "manager": manager})
        });
        json!({"scenario": scenario, "item": item, "what": what, "write": write})
    }
}
