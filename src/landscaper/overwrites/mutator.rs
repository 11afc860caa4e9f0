//! The precomputed substitution on an Installation.
//!
//! `annotate` writes two annotations and leaves the spec as the user wrote it; `apply` patches the spec too. Both are
//! gone again when nothing is overwritten any more. In mode `apply` the original reference is kept in the annotation, so
//! that the substitution is always worked out from what the user wrote: applied twice it is applied once.

use json_patch::Patch;
use serde_json::{Value, json};

use super::WRITES;
use super::effect::{self, Effect, Setting};
use crate::admission::patch::Draft;
use crate::admission::{FieldPath, Request, json as wire};
use crate::catalog::View;
use crate::landscaper::component_reference::{Attribute, ComponentReference};
use crate::landscaper::installation::{self, Location};
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
    let written = Written::of(&object);
    let setting = match &written {
        Some(written) => effect::of_reference(
            installation::context_name(&object),
            &request.namespace,
            written.location,
            written.reference.clone(),
            view,
        ),
        None => Setting::NoComponent,
    };
    let effect = match setting {
        // Without knowing, what an earlier admission wrote stands.
        Setting::NotKnown => return Vec::new(),
        Setting::Overwritten(effect) if effect.substitution.changed().next().is_some() => Some(effect),
        _ => None,
    };
    if let Some(written) = written.filter(|written| written.is_replaced) {
        write(draft, written.location, &written.reference);
    }
    annotate(draft, effect.as_deref(), mode);
    let Some(effect) = effect else { return Vec::new() };
    if mode == Mode::Apply {
        apply(draft, &effect.patch());
    }
    effect.lines().into_iter().map(|line| format!("component overwritten: {line}")).collect()
}

/// The component reference as the user wrote it.
struct Written {
    location: Location,
    reference: ComponentReference,
    /// Whether the spec says something else, because an earlier admission replaced it in mode `apply`.
    is_replaced: bool,
}

impl Written {
    fn of(installation: &Value) -> Option<Self> {
        let (location, now) = installation::component_reference(installation, &mut Vec::new())?;
        match Self::recorded(installation, &now) {
            Some(reference) => Some(Self { location, reference, is_replaced: true }),
            None => Some(Self { location, reference: now, is_replaced: false }),
        }
    }

    /// What the annotation says that the user wrote, where the spec still says what we replaced it with.
    fn recorded(installation: &Value, now: &ComponentReference) -> Option<ComponentReference> {
        let annotation = installation.get("metadata")?.get("annotations")?.get(SOURCE_ANNOTATION)?.as_str()?;
        let source = wire::parse(annotation).ok()?;
        if source.get("mode").and_then(Value::as_str) != Some("apply") {
            return None;
        }
        let part = |key| {
            let text = wire::to_go_string(source.get(key)?);
            Some(ComponentReference::parse(&text, &FieldPath::root(), &mut Vec::new()))
        };
        (part("written")? == *now).then(|| part("original")).flatten()
    }
}

/// Writes every part of a reference to where it stands.
fn write(draft: &mut Draft<'_>, location: Location, reference: &ComponentReference) {
    for attribute in Attribute::ALL {
        let path = location.pointer(attribute);
        let Some((parent, key)) = path.rsplit_once('/') else { continue };
        let Some(parent) = draft.to_mut().pointer_mut(parent) else { continue };
        let value = location.wrap(attribute, reference.value(attribute));
        match parent {
            Value::Object(members) if reference.specifies(attribute) => drop(members.insert(key.to_owned(), value)),
            Value::Object(members) => drop(members.remove(key)),
            Value::Array(items) => match key.parse::<usize>().ok().and_then(|at| items.get_mut(at)) {
                Some(item) if reference.specifies(attribute) => *item = value,
                Some(_) => drop(items.pop()),
                None => {}
            },
            _ => {}
        }
    }
}

fn annotate(draft: &mut Draft<'_>, effect: Option<&Effect>, mode: Mode) {
    draft.annotate(PATCH_ANNOTATION, effect.map(|effect| json!(effect.patch()).to_string()));
    draft.annotate(SOURCE_ANNOTATION, effect.map(|effect| source(effect, mode).to_string()));
}

/// What the patch was worked out from: enough to tell whether it is still right, and in mode `apply` to undo it.
fn source(effect: &Effect, mode: Mode) -> Value {
    let mut entries: Vec<usize> =
        Attribute::ALL.into_iter().filter_map(|attribute| effect.substitution.set_by(attribute)).collect();
    entries.sort_unstable();
    entries.dedup();
    let mut source = json!({
        "context": effect.context,
        "overwrites": effect.overwrites.name,
        "entries": entries,
        "original": as_written(effect, &effect.substitution.original).to_json(),
    });
    if let Some(generation) = effect.overwrites.generation {
        source["generation"] = json!(generation);
    }
    if mode == Mode::Apply {
        source["mode"] = json!("apply");
        source["written"] = as_written(effect, &effect.substitution.result).to_json();
    }
    source
}

/// A reference as it stands in the spec: without a repository context that only the Context supplies.
fn as_written(effect: &Effect, reference: &ComponentReference) -> ComponentReference {
    let mut reference = reference.clone();
    let supplied = effect.substitution.original.agrees(&reference, Attribute::RepositoryContext);
    if !effect.own_repository_context && supplied {
        reference.repository_context = None;
    }
    reference
}

/// Applies the patch to the spec; it fits, because it was made from what stands there.
fn apply(draft: &mut Draft<'_>, operations: &[Value]) {
    let patch: Result<Patch, _> = serde_json::from_value(json!(operations));
    if let Ok(patch) = patch {
        // A patch that does not fit changes nothing; the annotation still says what would have been done.
        let _ = json_patch::patch(draft.to_mut(), &patch);
    }
}
