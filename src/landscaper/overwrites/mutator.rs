//! The precomputed substitution on an Installation.
//!
//! `annotate` writes two annotations and leaves the spec as the user wrote it; `apply` patches the spec too. Both are
//! gone again when nothing is overwritten any more. In mode `apply` the patch in the annotation, with the values that it
//! tested, is also the way back: the substitution is always worked out from what the user wrote, so that applied twice
//! it is applied once.

use json_patch::Patch;
use serde::Serialize;
use serde_json::Value;

use super::WRITES;
use super::effect::{self, Effect, Setting};
use crate::admission::patch::Draft;
use crate::admission::{Request, json as wire};
use crate::catalog::View;
use crate::landscaper::installation;
use crate::landscaper::kinds::{self, CONTEXTS, INSTALLATIONS, OVERWRITES};
use crate::rule::{Match, Mode, Mutated, Mutator, Outage};

/// The substitution as a JSON Patch of the Installation.
pub const PATCH_ANNOTATION: &str = "portcullis.dev/overwrite-patch";
/// What it was worked out from.
pub const SOURCE_ANNOTATION: &str = "portcullis.dev/overwrite-source";

/// How many changes a user is told of: kubectl prints each on a line of its own.
const NAMED: usize = 12;

static SCOPE: [Match; 1] = [kinds::matches(&INSTALLATIONS, WRITES, Outage::Admit).reading(installation::REFERENCE)];

/// Works out what overwrites do to an Installation.
pub(super) static MUTATOR: Mutator = Mutator {
    name: "overwrites",
    family: "OW",
    summary: "the substitution of an Installation's component reference, precomputed as a JSON Patch",
    scope: &SCOPE,
    looks_up: &[&CONTEXTS, &OVERWRITES],
    confirm: Some(|request, view| effect::confirm(request.object(), &request.namespace, view)),
    mode: Mode::Annotate,
    mutate,
};

fn mutate(request: &Request<'_>, view: &View<'_>, mode: Mode, draft: &mut Draft<'_>) -> Mutated {
    let object = draft.value();
    let undone = Undone::of(&object);
    let written = undone.as_ref().map_or(&*object, |undone| &undone.0);
    let effect = match effect::of(written, &request.namespace, view) {
        // Without knowing, what an earlier admission wrote stands.
        Setting::NotKnown => return Ok(Vec::new()),
        Setting::Overwritten(effect) if effect.changes_anything() => Some(effect),
        _ => None,
    };
    if let Some(Undone(written)) = undone {
        *draft.to_mut() = written;
    }
    let patch = effect.as_deref().map(Effect::patch);
    annotate(draft, effect.as_deref().zip(patch.as_ref()), mode);
    let Some((effect, patch)) = effect.zip(patch) else { return Ok(Vec::new()) };
    if mode == Mode::Apply {
        // A patch that does not fit changes nothing; the annotation still says what would have been done.
        let _ = json_patch::patch(draft.to_mut(), &patch);
    }
    Ok(notices(&effect))
}

/// What the user should know, of many references only the first.
fn notices(effect: &Effect) -> Vec<String> {
    let lines = effect.lines();
    let mut notices: Vec<_> = lines.iter().take(NAMED).map(|line| ["component overwritten: ", line].concat()).collect();
    if lines.len() > NAMED {
        notices.push(format!("component overwritten: and {} more", lines.len() - NAMED));
    }
    notices
}

/// An Installation as the user wrote it, where an earlier admission patched its spec in mode `apply`.
struct Undone(Value);

impl Undone {
    fn of(installation: &Value) -> Option<Self> {
        let annotations = installation.get("metadata")?.get("annotations")?;
        let read = |key: &str| wire::parse(annotations.get(key)?.as_str()?).ok();
        if read(SOURCE_ANNOTATION)?.get("mode")? != "apply" {
            return None;
        }
        let operations = read(PATCH_ANNOTATION)?;
        let operations = operations.as_array()?;
        let mut undone = installation.clone();
        for (at, operation) in operations.iter().enumerate() {
            let before = at.checked_sub(1).and_then(|at| operations.get(at));
            // What was edited since is the user's, and stays.
            let _ = undo(&mut undone, before, operation);
        }
        Some(Self(undone))
    }
}

/// Undoes one operation, if what it wrote still stands. `before` is the operation before it: the test of the old value.
fn undo(object: &mut Value, before: Option<&Value>, operation: &Value) -> Option<()> {
    let path = operation.get("path")?.as_str().filter(|path| path.starts_with("/spec/componentDescriptor/"))?;
    let written = operation.get("value").unwrap_or(&Value::Null);
    let (parent, key) = path.rsplit_once('/')?;
    match operation.get("op")?.as_str()? {
        "replace" if object.pointer(path)? == written => {
            *object.pointer_mut(path)? = before?.get("value")?.clone();
        }
        // A member that was taken away, such as a digest, was tested just before.
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

/// The two annotations of an Installation whose spec stays as the user wrote it: the patch, and its source.
pub fn annotations(effect: Option<&Effect>) -> [(&'static str, Option<String>); 2] {
    let patch = effect.map(Effect::patch);
    let (patch, source) = effect.zip(patch.as_ref()).map(|both| texts(both, Mode::Annotate)).unzip();
    [(PATCH_ANNOTATION, patch), (SOURCE_ANNOTATION, source)]
}

/// Neither holds anything that JSON could not say.
fn texts((effect, patch): (&Effect, &Patch), mode: Mode) -> (String, String) {
    let text = serde_json::to_string(patch).unwrap_or_default();
    (text, serde_json::to_string(&source(effect, mode)).unwrap_or_default())
}

fn annotate(draft: &mut Draft<'_>, effect: Option<(&Effect, &Patch)>, mode: Mode) {
    let (patch, source) = effect.map(|both| texts(both, mode)).unzip();
    draft.annotate(PATCH_ANNOTATION, patch);
    draft.annotate(SOURCE_ANNOTATION, source);
}

/// What the patch was worked out from: enough to tell whether it is still right. Members are sorted, as elsewhere.
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
