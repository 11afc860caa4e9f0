//! What is known of an Installation's tree, in short: an annotation that rules read, and people.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::closure::{Closure, Gap};
use super::split::splits;
use crate::landscaper::component_reference::ComponentReference;
use crate::landscaper::overwrites::effect::Effect;
use crate::landscaper::overwrites::substitution::{Entry, Outcome};
use crate::oci::digest;

/// The annotation.
pub const TREE_ANNOTATION: &str = "portcullis.dev/overwrite-tree";
/// How many things of a kind are named: an annotation is no place for more.
const NAMED: usize = 10;

/// What is known of a tree.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Note {
    /// What it was worked out from; see [`fingerprint`].
    pub from: String,
    /// How many component versions the tree holds.
    pub components: usize,
    /// How many references become others.
    pub overwritten: usize,
    /// Whether everything in the tree is known.
    pub complete: bool,
    /// The entries that match anything in it.
    pub matched: Vec<usize>,
    /// The ConfigMaps with the patches.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub config_maps: Vec<String>,
    /// Overwritten references to what does not exist.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<Missing>,
    /// Components in different versions, a sentence for each.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub splits: Vec<String>,
    /// What could not be read, a sentence for each.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unknown: Vec<String>,
}

/// An overwritten reference whose target does not exist.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Missing {
    /// The way to it, from the root.
    pub way: String,
    /// What is not there.
    pub target: Value,
    /// What is, where that is known.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub nearest: Vec<String>,
    /// The entries that made it so.
    pub entries: Vec<usize>,
}

impl Note {
    /// What is to be noted of a tree.
    pub fn of(effect: &Effect, closure: &Closure) -> Self {
        let overwritten = closure.steps.iter().filter(|step| step.substitution.changed().next().is_some());
        Self {
            from: fingerprint(&effect.overwrites.entries, &effect.substitution.original),
            components: closure.components.len(),
            overwritten: overwritten.count(),
            complete: closure.is_complete(),
            matched: matched(closure),
            config_maps: Vec::new(),
            missing: missing(closure),
            splits: splits(closure).iter().take(NAMED).map(|split| split.sentence(closure)).collect(),
            unknown: unknown(closure),
        }
    }

    /// What is noted on an Installation; `None` where there is nothing, or nothing that can be read.
    pub fn read(installation: &Value) -> Option<Self> {
        let text = installation.get("metadata")?.get("annotations")?.get(TREE_ANNOTATION)?.as_str()?;
        serde_json::from_str(text).ok()
    }

    /// Whether it is about these overwrites and this reference, and not about what was before.
    pub fn is_about(&self, entries: &[Entry], original: &ComponentReference) -> bool {
        self.from == fingerprint(entries, original)
    }
}

/// Tells apart what trees are worked out from: the entries, and the Installation's reference with its repository context.
pub fn fingerprint(entries: &[Entry], original: &ComponentReference) -> String {
    let entry = |entry: &Entry| json!([entry.source.to_json(), entry.substitution.to_json()]);
    let all = json!([entries.iter().map(entry).collect::<Vec<_>>(), original.to_json()]);
    digest::hex(all.to_string().as_bytes()).chars().take(16).collect()
}

fn matched(closure: &Closure) -> Vec<usize> {
    let mut matched: Vec<usize> = Vec::new();
    for step in &closure.steps {
        for (at, outcome) in step.substitution.trace.iter().enumerate() {
            if matches!(outcome, Outcome::Applied { .. } | Outcome::Rejected { .. }) && !matched.contains(&at) {
                matched.push(at);
            }
        }
    }
    matched.sort_unstable();
    matched
}

fn missing(closure: &Closure) -> Vec<Missing> {
    let of = |(step, gap): (&super::closure::Step, &Gap)| {
        let Gap::Missing { nearest } = gap else { return None };
        let mut entries: Vec<usize> =
            step.substitution.changed().filter_map(|part| step.substitution.set_by(part)).collect();
        entries.dedup();
        let target = step.substitution.result.to_json();
        (!entries.is_empty()).then(|| Missing { way: closure.way(step), target, nearest: nearest.clone(), entries })
    };
    closure.gaps().filter_map(of).take(NAMED).collect()
}

fn unknown(closure: &Closure) -> Vec<String> {
    let of = |(step, gap): (&super::closure::Step, &Gap)| {
        let why = gap.to_string();
        let is_told = matches!(gap, Gap::Missing { .. }) && step.substitution.changed().next().is_some();
        (!is_told).then(|| format!("{}: {why}", closure.way(step)))
    };
    closure.gaps().filter_map(of).take(NAMED).collect()
}
