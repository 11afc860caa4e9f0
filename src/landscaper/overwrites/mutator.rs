//! The mutator that records how a ComponentVersionOverwrites object changes the component reference of an Installation.
//! It writes the change as a JSON Patch into an annotation of the Installation.
//!
//! In mode `annotate`, the mutator writes two annotations: the JSON Patch, and the values from which it was computed.
//! In mode `apply`, it also applies the JSON Patch to the spec of the Installation. When the overwrites no longer
//! change anything, the mutator removes the annotations and reverts the patch.
//!
//! If an earlier request has applied a patch, the mutator first reverts this patch. It takes the original values from
//! the JSON Patch in the annotation. Then it applies the overwrites again. So the result is the same if the mutator
//! runs twice.

use json_patch::Patch;
use serde::Serialize;
use serde_json::Value;

use super::effect::{self, Effect, Evaluation};
use crate::admission::patch::Draft;
use crate::admission::{Metadata, Request, json as wire};
use crate::catalog::View;
use crate::landscaper::annotations::{PATCH_ANNOTATION, SOURCE_ANNOTATION};
use crate::landscaper::installation;
use crate::landscaper::kinds::{self, CONTEXTS, INSTALLATIONS, OVERWRITES, WRITES};
use crate::rule::{FailurePolicy, Match, Mode, Mutated, Mutator};

/// Maximum number of changes that are reported as warnings. The limit keeps the output of kubectl short, which prints
/// one line for each warning.
const NAMED: usize = 12;

static MATCHERS: [Match; 1] =
    [kinds::matches(&INSTALLATIONS, WRITES, FailurePolicy::Ignore).reading(installation::REFERENCE)];

/// The definition of the mutator `overwrites`. It computes how a ComponentVersionOverwrites object changes the
/// component reference of an Installation, and writes this change into annotations of the Installation.
pub(super) static MUTATOR: Mutator = Mutator {
    name: "overwrites",
    family: "OW",
    summary: "the substitution of an Installation's component reference, precomputed as a JSON Patch",
    matchers: &MATCHERS,
    looks_up: &[&CONTEXTS, &OVERWRITES],
    live_reads: Some(|request, view| effect::live_reads(request.object(), &request.namespace, view)),
    mode: Mode::Annotate,
    mutate,
};

fn mutate(request: &Request<'_>, view: &View<'_>, mode: Mode, draft: &mut Draft<'_>) -> Mutated {
    let object = draft.value();
    let restored = Restored::of(&object);
    let written = restored.as_ref().map_or(&*object, |restored| &restored.0);
    let effect = match effect::of(written, &request.namespace, view) {
        // Keep what an earlier admission has written, until the Context and the overwrites are known.
        Evaluation::Unknown => return Ok(Vec::new()),
        Evaluation::Overwritten(effect) if effect.changes_anything() => Some(effect),
        _ => None,
    };
    if let Some(Restored(written)) = restored {
        *draft.to_mut() = written;
    }
    let patch = effect.as_deref().map(Effect::patch);
    annotate(draft, effect.as_deref().zip(patch.as_ref()), mode);
    let Some((effect, patch)) = effect.zip(patch) else { return Ok(Vec::new()) };
    if mode == Mode::Apply {
        // A patch that cannot be applied changes nothing; the annotation still contains it.
        let _ = json_patch::patch(draft.to_mut(), &patch);
    }
    Ok(notices(&effect))
}

/// Returns the warnings for the user about the component references that the overwrites change. The warnings contain
/// the first [`NAMED`] changes, and the number of remaining changes.
fn notices(effect: &Effect) -> Vec<String> {
    let lines = effect.lines();
    let mut notices: Vec<_> = lines.iter().take(NAMED).map(|line| ["component overwritten: ", line].concat()).collect();
    if lines.len() > NAMED {
        notices.push(format!("component overwritten: and {} more", lines.len() - NAMED));
    }
    notices
}

/// A copy of an Installation that contains the values that the user wrote.
///
/// In mode `apply`, the mutator `overwrites` patches the spec of an Installation. In the copy, the patch from an
/// earlier request is reverted.
struct Restored(Value);

impl Restored {
    fn of(installation: &Value) -> Option<Self> {
        let metadata = Metadata::of(installation);
        let read = |key: &str| wire::parse(metadata.annotation(key)?).ok();
        if read(SOURCE_ANNOTATION)?.get("mode")? != "apply" {
            return None;
        }
        let operations = read(PATCH_ANNOTATION)?;
        let operations = operations.as_array()?;
        let mut restored = installation.clone();
        for (at, operation) in operations.iter().enumerate() {
            let before = at.checked_sub(1).and_then(|at| operations.get(at));
            // Keep values that the user has edited since then.
            let _ = undo(&mut restored, before, operation);
        }
        Some(Self(restored))
    }
}

/// Reverts `operation`, one operation of a JSON Patch, in `object`, if `object` still has the value that the patch set.
/// `before` is the preceding operation of the patch. If `operation` replaces or removes a value, `before` is a `test`
/// operation with the old value, and this value is restored. Operations outside of `/spec/componentDescriptor/` are
/// ignored.
///
/// Returns `None` if the operation is invalid, or if `object` no longer has the value that the patch set. Callers
/// ignore the result.
fn undo(object: &mut Value, before: Option<&Value>, operation: &Value) -> Option<()> {
    let path = operation.get("path")?.as_str().filter(|path| path.starts_with("/spec/componentDescriptor/"))?;
    let written = operation.get("value").unwrap_or(&Value::Null);
    let (parent, key) = path.rsplit_once('/')?;
    match operation.get("op")?.as_str()? {
        "replace" if object.pointer(path)? == written => {
            *object.pointer_mut(path)? = before?.get("value")?.clone();
        }
        // The operation before a removal tests the removed value, such as a digest.
        "remove" => {
            let (value, parent) = (before?.get("value")?.clone(), object.pointer_mut(parent)?.as_object_mut()?);
            parent.entry(key).or_insert(value);
        }
        "add" => match object.pointer_mut(parent)? {
            Value::Array(items) if items.last()? == written => drop(items.pop()),
            Value::Object(members) if members.get(key)? == written => drop(members.remove(key)),
            _ => {}
        },
        _ => {}
    }
    Some(())
}

/// Returns the annotations [`PATCH_ANNOTATION`] and [`SOURCE_ANNOTATION`] that the mutator writes into an Installation
/// in mode `annotate`, as pairs of key and value. The values are `None` if `effect` is `None`.
pub fn annotations(effect: Option<&Effect>) -> [(&'static str, Option<String>); 2] {
    let patch = effect.map(Effect::patch);
    let (patch, source) = effect.zip(patch.as_ref()).map(|both| texts(both, Mode::Annotate)).unzip();
    [(PATCH_ANNOTATION, patch), (SOURCE_ANNOTATION, source)]
}

/// Returns the values of [`PATCH_ANNOTATION`] and [`SOURCE_ANNOTATION`] for an Installation.
fn texts((effect, patch): (&Effect, &Patch), mode: Mode) -> (String, String) {
    // Both can always be written as JSON.
    let text = serde_json::to_string(patch).unwrap_or_default();
    (text, serde_json::to_string(&source(effect, mode)).unwrap_or_default())
}

fn annotate(draft: &mut Draft<'_>, effect: Option<(&Effect, &Patch)>, mode: Mode) {
    let (patch, source) = effect.map(|both| texts(both, mode)).unzip();
    draft.annotate(PATCH_ANNOTATION, patch);
    draft.annotate(SOURCE_ANNOTATION, source);
}

/// The content of [`SOURCE_ANNOTATION`]: the objects and values from which the patch was computed. The fields are
/// sorted by name, so that equal contents have equal texts.
#[derive(Serialize)]
struct Source<'e> {
    context: &'e str,
    entries: Vec<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    generation: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    mode: Option<&'static str>,
    original: Value,
    overwrites: &'e str,
}

fn source(effect: &Effect, mode: Mode) -> Source<'_> {
    Source {
        context: &effect.context,
        entries: effect.entries(),
        generation: effect.overwrites.generation,
        mode: (mode == Mode::Apply).then_some("apply"),
        original: effect.substitution.original.to_json(),
        overwrites: &effect.overwrites.name,
    }
}
