//! Finds problems of Composition patches that read or write the environment of a composite:
//!
//! - The patch fails.
//! - The environment does not contain the value that the patch reads, or the value has the wrong type.
//! - The patch formats the value with a wrong format, so the result contains an error text such as `%!d(float64=7)`.

use std::fmt;

use serde_json::Value;

use super::computed::{Computed, reads_environment, writes_composite};
use crate::crossplane::environment::{ActionOutcome, Ending, Patch, PatchOutcome, Read};
use crate::crossplane::field_path::{Path, Segment};
use crate::crossplane::schema::{Found, Schema, Types};
use crate::suggestion::by_similarity;

/// A patch that fails for a composite, or that reads a missing value or a value of the wrong type from its environment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PatchProblem {
    /// The position of the patch as text, such as `Composition "example", spec.environment.patches[0]`.
    pub place: String,
    /// A description of the problem, such as Crossplane's error message, or a text that says that a value is missing.
    pub why: String,
    /// How to fix the problem.
    pub help: Option<String>,
}

impl fmt::Display for PatchProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.why)
    }
}

impl Computed {
    /// Returns the problems of patches that read the environment, such as a missing value. `schema` is the schema of
    /// the environment. A value is also a problem if its type differs from the type in `schema`. A missing value is not
    /// a problem if `schema` declares it as optional and the patch does not require it.
    pub fn patch_problems(&self, schema: Option<&Schema>) -> Vec<PatchProblem> {
        let one = |(place, outcome, environment)| {
            let of_another_type = schema.and_then(|schema| of_another_type(schema, outcome));
            match of_another_type {
                Some(why) => Some(PatchProblem { place, why, help: None }),
                None if may_be_missing(schema, outcome) => None,
                None => judged(place, outcome, environment),
            }
        };
        self.read().filter_map(one).collect()
    }

    /// Returns the problem of the patch that fails while it writes a value of the composite into the environment.
    /// Returns `None` if no such patch fails. At most one patch can fail, because the patches after a failing patch are
    /// not applied.
    pub fn failing_input(&self) -> Option<PatchProblem> {
        let is_failing = |outcome: &PatchOutcome| matches!(outcome.ending, Ending::Failed(_));
        let (step, at, _, outcome) = self
            .environment_patches()
            .find(|(_, _, patch, outcome)| !writes_composite(patch) && is_failing(outcome))?;
        let place = self.declaration.steps[step].field.key("environment").key("patches").index(at);
        let why = outcome.failure().unwrap_or_default().to_owned();
        Some(PatchProblem { place: format!("{}, {place}", self.composition.shown()), why, help: None })
    }

    /// Returns the results of patches that read the environment. Each item has a text that names the Composition and
    /// the patch, the result of the patch, and the environment after the pipeline step of the patch.
    fn read(&self) -> impl Iterator<Item = (String, &PatchOutcome, &Value)> {
        let name = self.composition.shown();
        let of_composed = name.clone();
        let of_composite = self.environment_patches().filter(|(_, _, patch, _)| writes_composite(patch));
        let of_composite = of_composite.map(move |(step, at, _, outcome)| {
            let place = self.declaration.steps[step].field.key("environment").key("patches").index(at);
            (format!("{name}, {place}"), outcome, &self.computation.steps[step].environment)
        });
        let templates = self.computation.steps.iter().flat_map(|step| match &step.action {
            ActionOutcome::Patched { templates, .. } => templates.iter().map(|one| (one, &step.environment)).collect(),
            _ => Vec::new(),
        });
        of_composite.chain(templates.flat_map(move |(template, environment)| {
            let of = format!("{of_composed}, resource {:?}", template.name);
            let from_environment = template.patches.iter().filter(|(patch, _)| reads_environment(patch));
            from_environment.map(move |(patch, outcome)| (format!("{of}, {}", shown(patch)), outcome, environment))
        }))
    }
}

fn found(schema: &Schema, read: &Read) -> Option<Found> {
    Some(schema.at(&Path::parse(&read.path).ok()?))
}

/// Returns whether a patch was skipped because an optional field is missing. A field is optional if the schema declares
/// it but does not require it.
fn may_be_missing(schema: Option<&Schema>, outcome: &PatchOutcome) -> bool {
    let missing = outcome.reads.iter().find(|read| read.value.is_none());
    let found = schema.zip(missing).and_then(|(schema, missing)| found(schema, missing));
    matches!(outcome.ending, Ending::Skipped(_)) && matches!(found, Some(Found::Something { is_required: false, .. }))
}

/// Returns a message if a value that the patch reads has a type that the schema does not declare; `None` otherwise.
fn of_another_type(schema: &Schema, outcome: &PatchOutcome) -> Option<String> {
    outcome.reads.iter().find_map(|read| match (&read.value, found(schema, read)) {
        (Some(value), Some(Found::Something { types, .. })) if !types.meets(Types::of(value)) => {
            let (path, is) = (&read.path, Types::of(value));
            Some(format!("{path} of the environment is {is}, but its schema declares {types}"))
        }
        _ => None,
    })
}

fn shown(patch: &Patch) -> String {
    let to = patch.to_field_path.as_deref().or(patch.from_field_path.as_deref()).unwrap_or_default();
    format!("patch of {to}")
}

/// Returns the problem of a patch; `None` if it has no problem. `outcome` is the result of the patch, and `place` is
/// its position for messages. `environment` is the environment that the patch reads. It provides the keys for the help
/// text.
fn judged(place: String, outcome: &PatchOutcome, environment: &Value) -> Option<PatchProblem> {
    if !outcome.mistakes.is_empty() {
        let why = format!("the text would contain {}", outcome.mistakes.join(", "));
        return Some(PatchProblem {
            place,
            why,
            help: Some("correct the format, or convert the value first".to_owned()),
        });
    }
    let why = match &outcome.ending {
        Ending::Skipped(why) => format!("the environment has no such value, so the patch is skipped: {why}"),
        Ending::Failed(why) => why.clone(),
        Ending::Written | Ending::Ignored(_) | Ending::Deferred(_) => return None,
    };
    Some(PatchProblem { place, why, help: help(outcome, environment) })
}

/// Returns a help text for a patch that reads a missing value. The text lists keys that exist in the environment. For
/// example, if the patch reads `a.b.c` and the environment has no `a.b`, the text lists the keys of `a`. `None` if no
/// value is missing, or if there are no keys to list.
fn help(outcome: &PatchOutcome, environment: &Value) -> Option<String> {
    let missing = outcome.reads.iter().find(|read| read.value.is_none())?;
    let (at, keys) = near(&Path::parse(&missing.path).ok()?, environment)?;
    Some(format!("{at} has {keys}"))
}

/// Returns the path of the deepest object on `path` that exists in the environment. Also returns a list of the object's
/// keys for a message. The keys that are most similar to the missing key come first. `None` if the whole path exists,
/// if a list element is missing, or if there is no key to suggest.
fn near(path: &Path, environment: &Value) -> Option<(String, String)> {
    /// Maximum number of keys in a message.
    const KEYS: usize = 8;
    let (mut value, mut at) = (environment, "the environment".to_owned());
    for segment in path.segments() {
        let next = match segment {
            Segment::Field(name) => value.get(name),
            Segment::Index(index) => value.get(*index as usize),
        };
        if let Some(next) = next {
            value = next;
            at = match segment {
                Segment::Field(name) if at == "the environment" => name.clone(),
                Segment::Field(name) => format!("{at}.{name}"),
                Segment::Index(index) => format!("{at}[{index}]"),
            };
            continue;
        }
        let Segment::Field(name) = segment else { return None };
        let is_ours = |key: &&String| at != "the environment" || !["apiVersion", "kind"].contains(&key.as_str());
        let keys = value.as_object()?.keys().filter(is_ours).map(String::as_str);
        let keys = by_similarity(name, keys, KEYS);
        return (!keys.is_empty()).then(|| (at, keys.join(", ")));
    }
    None
}
