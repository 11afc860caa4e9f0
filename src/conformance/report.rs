//! What a trial of a deployer has shown, for people and for programs.

use serde_json::{Value, json};

use super::record::Version;
use crate::landscaper::deployer::status::Change;

/// What a trial has shown.
#[derive(Debug, Clone)]
pub struct Report {
    /// The type of DeployItems that was tried.
    pub type_name: String,
    /// What the deployer was put through.
    pub scenarios: Vec<Scenario>,
    /// What became of every promise.
    pub promises: Vec<Judged>,
}

/// A scenario.
#[derive(Debug, Clone)]
pub struct Scenario {
    /// Its name.
    pub name: &'static str,
    /// What is needed to try it, where it was not tried.
    pub not_tried: Option<String>,
}

/// A promise, and what became of it.
#[derive(Debug, Clone)]
pub struct Judged {
    /// Its name: the id of its rule where it has one.
    pub name: &'static str,
    /// What is promised.
    pub sentence: &'static str,
    /// What became of it.
    pub verdict: Verdict,
    /// How often it could have been broken.
    pub times: usize,
    /// Where it was broken.
    pub evidence: Vec<Evidence>,
}

/// What became of a promise.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It was kept whenever it could have been broken.
    Kept,
    /// It was broken.
    Broken,
    /// Something was done that some deployers do with reason; the webhook warns about it.
    Doubtful,
    /// It could not have been broken: nothing was written that it is about.
    NotTried,
}

/// Where a promise was broken.
#[derive(Debug, Clone)]
pub struct Evidence {
    /// The scenario.
    pub scenario: &'static str,
    /// The DeployItem.
    pub item: String,
    /// What was wrong.
    pub what: String,
    /// The write, where it was one.
    pub write: Option<Write>,
}

/// A write of a DeployItem.
#[derive(Debug, Clone)]
pub struct Write {
    /// The parts of the status that the contract is about, before.
    pub before: String,
    /// The same after it.
    pub after: String,
    /// The version that it made.
    pub resource_version: String,
    /// Who wrote last, as `metadata.managedFields` has it; empty where that says nothing.
    pub manager: String,
}

/// The most evidence that is shown of one promise to people; programs get all.
const SHOWN: usize = 3;

impl Verdict {
    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Kept => "kept",
            Self::Broken => "broken",
            Self::Doubtful => "doubtful",
            Self::NotTried => "not tried",
        }
    }
}

impl Evidence {
    /// Something that did not happen.
    pub(super) fn waited(scenario: &'static str, item: &str, what: String) -> Self {
        Self { scenario, item: item.to_owned(), what, write: None }
    }

    /// A write.
    pub(super) fn write(
        scenario: &'static str,
        item: &str,
        what: &str,
        change: &Change<'_>,
        version: &Version,
    ) -> Self {
        let write = Write {
            before: change.old.told(),
            after: change.new.told(),
            resource_version: version.resource_version.clone(),
            manager: manager(&version.object),
        };
        Self { scenario, item: item.to_owned(), what: what.to_owned(), write: Some(write) }
    }
}

/// Who wrote last.
fn manager(object: &Value) -> String {
    let fields = object.pointer("/metadata/managedFields").and_then(Value::as_array);
    let text = |entry: &Value, key: &str| entry.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    let last = fields.into_iter().flatten().max_by_key(|entry| text(entry, "time"));
    last.map(|entry| text(entry, "manager")).unwrap_or_default()
}

impl Report {
    /// Whether no promise was broken.
    pub fn is_passed(&self) -> bool {
        self.promises.iter().all(|judged| judged.verdict != Verdict::Broken)
    }

    /// For a terminal or the log of a pipeline.
    pub fn to_text(&self) -> String {
        let mut text = format!("deployer of {}\n\n", self.type_name);
        for Scenario { name, not_tried } in &self.scenarios {
            let played = not_tried.as_ref().map_or_else(|| "played".to_owned(), |why| format!("not tried: {why}"));
            text += &format!("  {name}: {played}\n");
        }
        text.push('\n');
        for judged in &self.promises {
            text += &judged.to_text();
        }
        let broken = self.promises.iter().filter(|judged| judged.verdict == Verdict::Broken).count();
        text + &match broken {
            0 => "\nNo promise was broken.\n".to_owned(),
            1 => "\n1 promise was broken.\n".to_owned(),
            many => format!("\n{many} promises were broken.\n"),
        }
    }

    /// For programs.
    pub fn to_json(&self) -> Value {
        let scenarios: Vec<_> = self
            .scenarios
            .iter()
            .map(|Scenario { name, not_tried }| json!({"name": name, "played": not_tried.is_none(), "notTried": not_tried}))
            .collect();
        let promises: Vec<_> = self.promises.iter().map(Judged::to_json).collect();
        json!({"type": self.type_name, "passed": self.is_passed(), "scenarios": scenarios, "promises": promises})
    }
}

impl Judged {
    fn to_text(&self) -> String {
        let Self { name, sentence, verdict, times, evidence } = self;
        let mut text = format!("{:9}  {name}: {sentence} ({times})\n", verdict.as_str());
        for Evidence { scenario, item, what, write } in evidence.iter().take(SHOWN) {
            text += &format!("           {scenario}, {item}: {what}\n");
            if let Some(Write { before, after, resource_version, manager }) = write {
                text += &format!("             before: {before}\n             after:  {after}\n");
                text += &format!("             written by {manager:?}, resourceVersion {resource_version}\n");
            }
        }
        if evidence.len() > SHOWN {
            text += &format!("           and {} more\n", evidence.len() - SHOWN);
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
