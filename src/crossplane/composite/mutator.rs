//! What the environment makes of a composite, done at admission.
//!
//! The references to EnvironmentConfigs that Crossplane up to 1.17 would write at its first reconcile; what patches from
//! the environment write into the composite, where a mutating webhook may write; and in an annotation, for each composed
//! resource, what patches from the environment will write there. It is worked out again with every admission, and only
//! written where doing it twice is as good as once.

use json_patch::Patch as JsonPatch;
use serde_json::{Map, Value, json};

use super::computed::{Computed, computed, confirm, reads_environment, writes_composite};
use super::writable::Writable;
use super::{PATCHES_ANNOTATION, SOURCE_ANNOTATION};
use crate::admission::patch::{Draft, diff};
use crate::admission::{Operation, Request};
use crate::catalog::{Stored, View};
use crate::crossplane::environment::{ActionOutcome, Ending, Profile, TemplateOutcome};
use crate::crossplane::field_path::Path;
use crate::crossplane::kinds::{
    self, ALPHA_ENVIRONMENT_CONFIGS, COMPOSITIONS, DEFINITIONS, ENVIRONMENT_CONFIGS, GROUP,
};
use crate::rule::{Match, Mode, Mutated, Mutator, Outage};

/// All annotations of an object may have 256 KiB together; others need some of it too.
const MAX_ANNOTATION: usize = 128 * 1024;

static SCOPE: [Match; 1] = [kinds::composites(&[Operation::Create, Operation::Update], Outage::Admit)];

/// Works out what the environment makes of a composite.
pub(in crate::crossplane) static MUTATOR: Mutator = Mutator {
    name: "environments",
    family: "EN",
    summary: "a composite's references to EnvironmentConfigs, what the environment patches into it, and what it will patch \
              into composed resources",
    scope: &SCOPE,
    looks_up: &[&COMPOSITIONS, &DEFINITIONS, &ENVIRONMENT_CONFIGS, &ALPHA_ENVIRONMENT_CONFIGS],
    confirm: Some(confirm),
    mode: Mode::Apply,
    mutate,
};

fn mutate(request: &Request<'_>, view: &View<'_>, mode: Mode, draft: &mut Draft<'_>) -> Mutated {
    let object = draft.value().into_owned();
    let Some(mut computed) = computed(&object, request, view) else { return Ok(Vec::new()) };
    let mut notices = Vec::new();
    if mode == Mode::Apply {
        match applied(&object, &computed, request, view) {
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

fn applied(composite: &Value, computed: &Computed, request: &Request<'_>, view: &View<'_>) -> Applied {
    let writable = Writable::of(request, view);
    let written = self::written(composite, computed, &writable);
    if written == *composite {
        return Applied::Nothing;
    }
    match self::computed(&written, request, view) {
        Some(again) if self::written(&written, &again, &writable) == written => {
            Applied::Stable(written, Box::new(again))
        }
        _ => Applied::Growing,
    }
}

/// A composite with the references and the values that its Composition gives to it.
fn written(composite: &Value, computed: &Computed, writable: &Writable) -> Value {
    let mut written = composite.clone();
    if let Some(names) = computed.computation.references.as_ref().filter(|names| !names.is_empty()) {
        let reference = |name: &String| json!({"apiVersion": format!("{GROUP}/v1alpha1"), "kind": "EnvironmentConfig", "name": name});
        if let Some(spec) = written.get_mut("spec").and_then(Value::as_object_mut) {
            spec.insert("environmentConfigRefs".to_owned(), names.iter().map(reference).collect());
        }
    }
    // The first patch that fails is the end of the reconcile, and nothing is written.
    if computed.computation.failure.is_some() || computed.is_uncertain() {
        return written;
    }
    for (_, _, patch, outcome) in computed.environment_patches() {
        if !writes_composite(patch) || outcome.ending != Ending::Written {
            continue;
        }
        for path in outcome.written.iter().filter_map(|path| Path::parse(path).ok()).filter(|path| writable.has(path)) {
            if let Ok(value) = path.get(&computed.computation.composite) {
                // Where it cannot be written, Crossplane could not either.
                let _ = path.set(&mut written, value.clone());
            }
        }
    }
    written
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
    json!({"profile": profile, "composition": names(&computed.composition), "environmentConfigs": configs})
}
