//! The tree annotation: a summary of an Installation's component tree, for rules and for users.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::admission::Metadata;
use crate::landscaper::annotations::TREE_ANNOTATION;
use crate::landscaper::component_reference::ComponentReference;
use crate::landscaper::components::closure::{Closure, Gap, MAX_STEPS, Step};
use crate::landscaper::components::split::splits;
use crate::landscaper::overwrites::effect::Effect;
use crate::landscaper::substitution::{Entry, Outcome};
use crate::oci::digest;

/// Maximum number of entries in each of the lists `splits`, `missing` and `unknown` of the tree annotation. The limit
/// keeps the annotation small.
const NAMED: usize = 10;

/// A summary of an Installation's component tree. It is stored as JSON in the annotation
/// `portcullis.dev/overwrite-tree` of the Installation.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Note {
    /// A hash of the data from which this summary was computed: the overwrites, and the Installation's component
    /// reference. The summary is outdated if [`fingerprint`] returns another hash for the current data.
    pub from: String,
    /// The number of component versions in the component tree.
    pub components: usize,
    /// The number of component references that the overwrites change.
    pub overwritten: usize,
    /// Whether all component descriptors of the component tree were read.
    pub complete: bool,
    /// The indexes of the ComponentVersionOverwrites entries that match a reference in the component tree.
    pub matched: Vec<usize>,
    /// The names of the ConfigMaps that record how the overwrites change component descriptors. The ConfigMaps contain
    /// JSON Patches of the changed descriptors.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub config_maps: Vec<String>,
    /// The references for which overwrites set a component version that does not exist.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<Missing>,
    /// Descriptions of the components that have several versions in the component tree. Each string is one sentence
    /// about one component.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub splits: Vec<String>,
    /// Descriptions of the unknown parts of the component tree, such as a component descriptor that cannot be read.
    /// Each string is one sentence.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unknown: Vec<String>,
}

/// A component reference that the overwrites change to a component version that does not exist.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Missing {
    /// The path from the root of the component tree to the reference, such as `db → store`.
    pub way: String,
    /// The component reference after the substitution, as JSON.
    pub target: Value,
    /// The existing versions of the component that are closest to the missing one; empty if they are unknown.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub nearest: Vec<String>,
    /// The indexes of the ComponentVersionOverwrites entries that changed the reference.
    pub entries: Vec<usize>,
}

impl Note {
    /// Creates the summary of `closure`, the component tree of an Installation. `effect` contains the overwrites that
    /// were applied to the tree. The field `config_maps` is empty, because the ConfigMaps are built later.
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

    /// Reads the summary of an Installation's component tree from the annotation `portcullis.dev/overwrite-tree`.
    /// `None` if the annotation is missing or invalid.
    pub fn read(installation: &Value) -> Option<Self> {
        let text = Metadata::of(installation).annotation(TREE_ANNOTATION)?;
        serde_json::from_str(text).ok()
    }

    /// Reports whether the summary is current. A summary is current if it was computed from the overwrites `entries`
    /// and the Installation's component reference `original`.
    pub fn is_about(&self, entries: &[Entry], original: &ComponentReference) -> bool {
        self.from == fingerprint(entries, original)
    }
}

/// Returns a hash of the values that determine a component tree: the overwrites, and the Installation's component
/// reference with its repository context.
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
    let of = |(step, gap): (&Step, &Gap)| {
        let Gap::Missing { nearest } = gap else { return None };
        let mut entries: Vec<usize> =
            step.substitution.changed().filter_map(|part| step.substitution.set_by(part)).collect();
        entries.dedup();
        let target = step.substitution.result.to_json();
        (!entries.is_empty()).then(|| Missing { way: closure.path_to(step), target, nearest: nearest.clone(), entries })
    };
    closure.gaps().filter_map(of).take(NAMED).collect()
}

fn unknown(closure: &Closure) -> Vec<String> {
    let of = |(step, gap): (&Step, &Gap)| {
        let why = gap.to_string();
        let is_listed = matches!(gap, Gap::Missing { .. }) && step.substitution.changed().next().is_some();
        (!is_listed).then(|| format!("{}: {why}", closure.path_to(step)))
    };
    let cut = closure.is_cut.then(|| format!("the tree has more than {MAX_STEPS} references"));
    cut.into_iter().chain(closure.gaps().filter_map(of)).take(NAMED).collect()
}
