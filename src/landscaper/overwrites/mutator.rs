//! The precomputed substitution on an Installation.
//!
//! `annotate` writes two annotations and leaves the spec as the user wrote it; `apply` patches the spec too. Both are
//! gone again when nothing is overwritten any more. In mode `apply` the patch in the annotation, with the values that it
//! tested, is also the way back: the substitution is always worked out from what the user wrote, so that applied twice
//! it is applied once.

use json_patch::Patch;
use serde_json::{Value, json};

use super::WRITES;
use super::effect::{self, Effect, Setting};
use crate::admission::patch::Draft;
use crate::admission::{Request, json as wire};
use crate::catalog::View;
use crate::landscaper::component_reference::Attribute;
use crate::landscaper::kinds::{self, CONTEXTS, INSTALLATIONS, OVERWRITES};
use crate::rule::{Match, Mode, Mutator, Outage};

/// The substitution as a JSON Patch of the Installation.
pub const PATCH_ANNOTATION: &str = "portcullis.dev/overwrite-patch";
/// What it was worked out from.
pub const SOURCE_ANNOTATION: &str = "portcullis.dev/overwrite-source";

static SCOPE: [Match; 1] = [kinds::matches(&INSTALLATIONS, WRITES, Outage::Admit)];

/// Works out what overwrites do to an Installation.
pub(super) static MUTATOR: Mutator = Mutator {
    name: "overwrites",
    summary: "the substitution of an Installation's component reference, precomputed as a JSON Patch",
    scope: &SCOPE,
    looks_up: &[&CONTEXTS, &OVERWRITES],
    confirm: Some(|request, view| effect::confirm(request.object(), &request.namespace, view)),
    mode: Mode::Annotate,
    mutate,
};

fn mutate(request: &Request<'_>, view: &View<'_>, mode: Mode, draft: &mut Draft<'_>) -> Vec<String> {
    let object = draft.value();
    let undone = Undone::of(&object);
    let written = undone.as_ref().map_or(&*object, |undone| &undone.0);
    let effect = match effect::of(written, &request.namespace, view) {
        // Without knowing, what an earlier admission wrote stands.
        Setting::NotKnown => return Vec::new(),
        Setting::Overwritten(effect) if effect.substitution.changed().next().is_some() => Some(effect),
        _ => None,
    };
    if let Some(Undone(written)) = undone {
        *draft.to_mut() = written;
    }
    annotate(draft, effect.as_deref(), mode);
    let Some(effect) = effect else { return Vec::new() };
    if mode == Mode::Apply {
        apply(draft, &effect.patch());
    }
    effect.lines().into_iter().map(|line| format!("component overwritten: {line}")).collect()
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
    let written = operation.get("value")?;
    let (parent, key) = path.rsplit_once('/')?;
    match operation.get("op")?.as_str()? {
        "replace" if object.pointer(path)? == written => {
            *object.pointer_mut(path)? = before?.get("value")?.clone();
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

fn annotate(draft: &mut Draft<'_>, effect: Option<&Effect>, mode: Mode) {
    draft.annotate(PATCH_ANNOTATION, effect.map(|effect| Value::Array(effect.patch()).to_string()));
    draft.annotate(SOURCE_ANNOTATION, effect.map(|effect| source(effect, mode).to_string()));
}

/// What the patch was worked out from: enough to tell whether it is still right.
fn source(effect: &Effect, mode: Mode) -> Value {
    let mut entries: Vec<usize> =
        Attribute::ALL.into_iter().filter_map(|attribute| effect.substitution.set_by(attribute)).collect();
    entries.sort_unstable();
    entries.dedup();
    let mut source = json!({
        "context": effect.context,
        "overwrites": effect.overwrites.name,
        "entries": entries,
        "original": effect.substitution.original.to_json(),
    });
    if let Some(generation) = effect.overwrites.generation {
        source["generation"] = json!(generation);
    }
    if mode == Mode::Apply {
        source["mode"] = json!("apply");
    }
    source
}

/// Applies the patch to the spec; it fits, because it was made from what stands there.
fn apply(draft: &mut Draft<'_>, operations: &[Value]) {
    let patch: Result<Patch, _> = serde_json::from_value(json!(operations));
    if let Ok(patch) = patch {
        // A patch that does not fit changes nothing; the annotation still says what would have been done.
        let _ = json_patch::patch(draft.to_mut(), &patch);
    }
}
