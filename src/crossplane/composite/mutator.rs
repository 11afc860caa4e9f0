//! Works out at admission what the environment makes of a composite.
//!
//! In an annotation, for each composed resource, what patches from the environment will write there. Where [`Writing`] says
//! so, also what Crossplane up to 1.17 writes into the composite at its first reconcile: the references to
//! EnvironmentConfigs, and what patches from the environment write there. It is worked out again with every request, from
//! the composite as the API server stores it, and only written where the stored composite gives the same again.

use json_patch::Patch as JsonPatch;
use serde_json::{Map, Value, json};

use super::computed::{Computed, computed, confirm, reads_environment};
use super::writes::Writable;
use super::writing::Writing;
use super::{PATCHES_ANNOTATION, SOURCE_ANNOTATION};
use crate::admission::patch::{Draft, diff};
use crate::admission::{Operation, Request};
use crate::catalog::{Stored, View};
use crate::crossplane::environment::{ActionOutcome, Profile, TemplateOutcome};
use crate::crossplane::field_path::Path;
use crate::crossplane::kinds::{
    self, ALPHA_ENVIRONMENT_CONFIGS, COMPOSITIONS, DEFINITIONS, ENVIRONMENT_CONFIGS, GROUP, REVISIONS,
};
use crate::rule::{Match, Mode, Mutated, Mutator, Outage};

/// All annotations of an object may have 256 KiB together; others need some of it too.
const MAX_ANNOTATION: usize = 128 * 1024;

static SCOPE: [Match; 1] = [kinds::composites(&[Operation::Create, Operation::Update], Outage::Admit)];

/// Works out what the environment makes of a composite.
pub(in crate::crossplane) static MUTATOR: Mutator = Mutator {
    name: "environments",
    family: "EN",
    summary: "what a composite's environment patches into its composed resources; and where chosen, its references to \
              EnvironmentConfigs and what the environment patches into it",
    scope: &SCOPE,
    looks_up: &[&COMPOSITIONS, &REVISIONS, &DEFINITIONS, &ENVIRONMENT_CONFIGS, &ALPHA_ENVIRONMENT_CONFIGS],
    confirm: Some(confirm),
    mode: Mode::Apply,
    mutate,
};

fn mutate(request: &Request<'_>, view: &View<'_>, mode: Mode, draft: &mut Draft<'_>) -> Mutated {
    let object = draft.value().into_owned();
    let mutation = Mutation { request, view, writable: Writable::of(request, view) };
    let Some((seen, mut computed)) = mutation.computed(&object) else { return Ok(Vec::new()) };
    let writing = Writing::of(request, computed.declaration.profile, view);
    if writing == Writing::Nothing {
        return Ok(Vec::new());
    }
    let mut notices = Vec::new();
    if mode == Mode::Apply && writing == Writing::Composite {
        match mutation.applied(&object, &seen, &computed) {
            Applied::Nothing => {}
            // What composed resources get is worked out from the composite as it is stored.
            Applied::Stable(written, again) => {
                *draft.to_mut() = written;
                computed = *again;
            }
            Applied::Growing => notices.push(GROWING.to_owned()),
        }
    }
    let patches = patches(&computed).filter(|_| !computed.is_uncertain() && computed.computation.failure.is_none());
    let text = patches.map(|patches| patches.to_string());
    if text.as_ref().is_some_and(|text| text.len() > MAX_ANNOTATION) {
        notices.push(format!("{PATCHES_ANNOTATION} is left out: it would have more than {MAX_ANNOTATION} bytes"));
    }
    let text = text.filter(|text| text.len() <= MAX_ANNOTATION);
    let source = text.as_ref().map(|_| source(&computed, view).to_string());
    draft.annotate(PATCHES_ANNOTATION, text);
    draft.annotate(SOURCE_ANNOTATION, source);
    Ok(notices)
}

const GROWING: &str =
    "what the environment patches into this composite is left to Crossplane: done twice, it is another value";

/// What writing into a composite comes to.
enum Applied {
    /// There is nothing to write.
    Nothing,
    /// The composite, and what its Composition makes of that.
    Stable(Value, Box<Computed>),
    /// Written again, it would be another one.
    Growing,
}

struct Mutation<'m> {
    request: &'m Request<'m>,
    view: &'m View<'m>,
    writable: Writable,
}

impl Mutation<'_> {
    /// Computes a composite as the API server stores it; and that composite.
    fn computed(&self, object: &Value) -> Option<(Value, Computed)> {
        let seen = settled(self.writable.stored(object));
        let computed = computed(&seen, self.request, self.view)?;
        Some((seen, computed))
    }

    fn applied(&self, object: &Value, seen: &Value, computed: &Computed) -> Applied {
        let stored = self.writable.stored(&self.written(seen, seen, computed));
        if stored == *seen {
            return Applied::Nothing;
        }
        let Some((_, again)) = self.computed(&stored) else { return Applied::Growing };
        let twice = self.written(&stored, &stored, &again);
        let written = self.written(object, seen, computed);
        let is_stable = self.writable.stored(&twice) == stored && settled(self.writable.stored(&written)) == stored;
        if is_stable { Applied::Stable(written, Box::new(again)) } else { Applied::Growing }
    }

    /// Returns an object with the references and the values that its Composition gives to `seen`.
    fn written(&self, object: &Value, seen: &Value, computed: &Computed) -> Value {
        let mut written = object.clone();
        // The first patch that fails is the end of the reconcile, and Crossplane writes nothing.
        if computed.computation.failure.is_some() {
            return written;
        }
        if let Some(names) = computed.computation.references.as_ref().filter(|names| !names.is_empty()) {
            let reference = |name: &String| json!({"apiVersion": format!("{GROUP}/v1alpha1"), "kind": "EnvironmentConfig", "name": name});
            if let Some(spec) = written.get_mut("spec").and_then(Value::as_object_mut) {
                spec.insert("environmentConfigRefs".to_owned(), names.iter().map(reference).collect());
            }
        }
        if computed.is_uncertain() {
            return written;
        }
        for (path, value) in self.writable.writes(seen, computed).fields {
            // The path could be written into the composite as it is stored.
            let _ = path.set(&mut written, value);
        }
        written
    }
}

/// Fields of the metadata that the API server sets: what is worked out from them would be another value in every request.
const VOLATILE: [&str; 6] = ["creationTimestamp", "generation", "managedFields", "resourceVersion", "selfLink", "uid"];

/// Returns a composite without what changes from request to request, and without the annotations that are written here.
fn settled(mut composite: Value) -> Value {
    let Some(metadata) = composite.get_mut("metadata").and_then(Value::as_object_mut) else { return composite };
    metadata.retain(|key, _| !VOLATILE.contains(&key.as_str()));
    if let Some(annotations) = metadata.get_mut("annotations").and_then(Value::as_object_mut) {
        annotations.retain(|key, _| ![PATCHES_ANNOTATION, SOURCE_ANNOTATION].contains(&key.as_str()));
        if annotations.is_empty() {
            metadata.remove("annotations");
        }
    }
    composite
}

/// What patches from the environment write into composed resources, by their names; `None` where that is nothing.
fn patches(computed: &Computed) -> Option<Value> {
    let mut all = Map::new();
    for step in &computed.computation.steps {
        let ActionOutcome::Patched { templates, .. } = &step.action else { continue };
        for (at, template) in templates.iter().enumerate() {
            let name = if template.name.is_empty() { at.to_string() } else { template.name.clone() };
            if let Some(patch) = patch_of(template).and_then(|patch| serde_json::to_value(patch).ok()) {
                all.insert(name, patch);
            }
        }
    }
    (!all.is_empty()).then_some(Value::Object(all))
}

/// The JSON Patch that has on the base of a template the effect of its patches from the environment.
fn patch_of(template: &TemplateOutcome) -> Option<JsonPatch> {
    let rendered = template.rendered.as_ref().ok()?;
    let mut patched = template.base.clone();
    let from_environment = template.patches.iter().filter(|(patch, _)| reads_environment(patch));
    for path in from_environment.flat_map(|(_, outcome)| &outcome.written) {
        let path = Path::parse(path).ok()?;
        path.set(&mut patched, path.get(rendered).ok()?.clone()).ok()?;
    }
    diff(&template.base, &patched)
}

fn source(computed: &Computed, view: &View<'_>) -> Value {
    let names = |stored: &Stored| {
        let version = stored.value().pointer("/metadata/resourceVersion").cloned().unwrap_or_default();
        json!({"name": stored.name(), "resourceVersion": version})
    };
    let profile = match computed.declaration.profile {
        Profile::Native117 => "native-1.17",
        Profile::Function => "function",
    };
    let configs: Vec<_> = computed.selected(view).iter().map(|stored| names(stored)).collect();
    let text = if computed.composition.is_revision { "compositionRevision" } else { "composition" };
    json!({"profile": profile, text: names(&computed.composition.text), "environmentConfigs": configs})
}
