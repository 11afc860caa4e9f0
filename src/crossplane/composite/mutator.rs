//! A mutator that computes the environment of a composite at admission, and writes the results of the patches that read
//! this environment.
//!
//! The mutator writes an annotation with the patches of each composed resource. If [`WriteMode`] allows it, the mutator
//! also writes into the composite. It writes the references to EnvironmentConfigs, and the values that patches copy
//! from the environment to the composite. Crossplane up to 1.17 writes the same values at the first reconcile of the
//! composite.
//!
//! The environment is computed for every request, from the composite in the request. For this, the mutator removes
//! unknown fields and sets default values, as the API server does later. Then it computes the environment again, from
//! the composite with the written values. If the two results differ, the mutator does not write the values.

use json_patch::Patch as JsonPatch;
use serde_json::{Map, Value, json};

use super::computed::{Computed, computed, live_reads, reads_environment};
use super::write_mode::WriteMode;
use super::writes::Writable;
use super::{PATCHES_ANNOTATION, SOURCE_ANNOTATION};
use crate::admission::patch::{Draft, diff};
use crate::admission::{Metadata, Operation, Request};
use crate::catalog::{Stored, View};
use crate::crossplane::environment::{ActionOutcome, Profile, TemplateOutcome};
use crate::crossplane::field_path::{Path, Segment};
use crate::crossplane::kinds::{
    self, ALPHA_ENVIRONMENT_CONFIGS, COMPOSITIONS, DEFINITIONS, ENVIRONMENT_CONFIGS, GROUP, REVISIONS,
};
use crate::rule::{FailurePolicy, Match, Mode, Mutated, Mutator};

/// Maximum size of the annotation `portcullis.dev/environment-patches`, in bytes. It is half of the 256 KiB that
/// Kubernetes allows for all annotations of an object together.
const MAX_ANNOTATION: usize = 128 * 1024;

static MATCHERS: [Match; 1] = [kinds::composites(&[Operation::Create, Operation::Update], FailurePolicy::Ignore)];

/// The mutator `environments`. It computes the environment of a composite, and writes an annotation with the resulting
/// changes to the composed resources. If [`WriteMode`] allows it, the mutator also writes the results of environment
/// patches into the composite.
pub(in crate::crossplane) static MUTATOR: Mutator = Mutator {
    name: "environments",
    family: "EN",
    summary: "the changes from a composite's environment to its composed resources, as JSON Patches; if enabled, also \
              the composite's references to EnvironmentConfigs and the changes from the environment to the composite",
    matchers: &MATCHERS,
    looks_up: &[&COMPOSITIONS, &REVISIONS, &DEFINITIONS, &ENVIRONMENT_CONFIGS, &ALPHA_ENVIRONMENT_CONFIGS],
    live_reads: Some(live_reads),
    mode: Mode::Apply,
    mutate,
};

fn mutate(request: &Request<'_>, view: &View<'_>, mode: Mode, draft: &mut Draft<'_>) -> Mutated {
    let object = draft.value().into_owned();
    let mutation = Mutation { request, view, writable: Writable::of(request, view) };
    let Some((seen, mut computed)) = mutation.computed(&object) else { return Ok(Vec::new()) };
    let writing = WriteMode::of(request, computed.declaration.profile, view);
    if writing == WriteMode::Nothing {
        return Ok(Vec::new());
    }
    let mut notices = Vec::new();
    if mode == Mode::Apply && writing == WriteMode::Composite {
        match mutation.applied(&object, &seen, &computed) {
            Applied::Nothing => {}
            // Patches of composed resources read the composite as it is stored.
            Applied::Stable(written, again) => {
                *draft.to_mut() = written;
                computed = *again;
            }
            Applied::Unstable => notices.push(UNSTABLE.to_owned()),
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

const UNSTABLE: &str = "the patches from the environment into this composite are left to Crossplane: applying them twice gives a different result";

/// The result of writing the values of environment patches into a composite.
enum Applied {
    /// The environment changes no field of the composite.
    Nothing,
    /// The composite after the values of the patches were written into it, and the environment that is computed from
    /// this new composite. The values are stable: if the patches are computed again, they write the same values.
    Stable(Value, Box<Computed>),
    /// The composite is not changed, because the patches are not stable. If Portcullis applies them again to the
    /// changed composite, they give another result.
    Unstable,
}

struct Mutation<'m> {
    request: &'m Request<'m>,
    view: &'m View<'m>,
    writable: Writable,
}

impl Mutation<'_> {
    /// Returns the composite `object` as the API server would store it, without volatile metadata such as `generation`.
    /// Also returns the environment that is computed for this stored composite. `None` if the environment cannot be
    /// computed.
    fn computed(&self, object: &Value) -> Option<(Value, Computed)> {
        let seen = without_volatile_fields(self.writable.stored(object));
        let computed = computed(&seen, self.request, self.view)?;
        Some((seen, computed))
    }

    fn applied(&self, object: &Value, seen: &Value, computed: &Computed) -> Applied {
        let changes = self.changes(seen, computed);
        let stored = self.writable.stored(&changes.written(seen, seen));
        if stored == *seen {
            return Applied::Nothing;
        }
        let Some((_, again)) = self.computed(&stored) else { return Applied::Unstable };
        let twice = self.changes(&stored, &again).written(&stored, &stored);
        let written = changes.written(object, seen);
        let is_stable =
            self.writable.stored(&twice) == stored && without_volatile_fields(self.writable.stored(&written)) == stored;
        if is_stable { Applied::Stable(written, Box::new(again)) } else { Applied::Unstable }
    }

    /// Returns the changes to a composite that follow from its environment. `computed` contains the environment, which
    /// was computed from `seen`. `seen` is the composite as the API server would store it.
    fn changes(&self, seen: &Value, computed: &Computed) -> Changes {
        let mut changes = Changes::default();
        // Crossplane stops at the first patch that fails, and writes nothing.
        if computed.computation.failure.is_some() {
            return changes;
        }
        if let Some(names) = computed.computation.references.as_ref().filter(|names| !names.is_empty()) {
            let reference = |name: &String| json!({"apiVersion": format!("{GROUP}/v1alpha1"), "kind": "EnvironmentConfig", "name": name});
            changes.references = Some(names.iter().map(reference).collect());
        }
        if !computed.is_uncertain() {
            changes.fields = self.writable.writes(seen, computed).fields;
        }
        changes
    }
}

/// The changes to a composite that follow from its environment.
#[derive(Default)]
struct Changes {
    /// The references to EnvironmentConfigs, for `spec.environmentConfigRefs`.
    references: Option<Value>,
    /// The values that patches copy from the environment to the composite, each with its path.
    fields: Vec<(Path, Value)>,
}

impl Changes {
    /// Applies the changes in `self` to a copy of the composite `object`, and returns the copy. `seen` is `object` as
    /// the API server would store it. It shows which `null` fields the API server drops.
    fn written(&self, object: &Value, seen: &Value) -> Value {
        let mut written = object.clone();
        if let (Some(references), Some(spec)) =
            (&self.references, written.get_mut("spec").and_then(Value::as_object_mut))
        {
            spec.insert("environmentConfigRefs".to_owned(), references.clone());
        }
        for (path, value) in &self.fields {
            remove_dropped_null(&mut written, seen, path.segments());
            // This does not fail: the same path was written into the stored composite.
            let _ = path.set(&mut written, value.clone());
        }
        written
    }
}

/// Removes the `null` in a parent field of `path` from `object`, because no value can be written below a `null`.
/// Removes it only if the API server drops it too when it stores the object. `stored` is `object` as the API server
/// stores it, so it does not contain a dropped `null`.
fn remove_dropped_null(object: &mut Value, stored: &Value, path: &[Segment]) {
    let [segment, below @ ..] = path else { return };
    match (segment, object, stored) {
        (Segment::Field(name), Value::Object(members), Value::Object(stored)) => match members.get_mut(name) {
            Some(Value::Null) if !below.is_empty() && !stored.contains_key(name) => drop(members.remove(name)),
            Some(member) => remove_dropped_null(member, stored.get(name).unwrap_or(&Value::Null), below),
            None => {}
        },
        (Segment::Index(at), Value::Array(items), Value::Array(stored)) => {
            let at = *at as usize;
            if let (Some(item), Some(stored)) = (items.get_mut(at), stored.get(at)) {
                remove_dropped_null(item, stored, below);
            }
        }
        _ => {}
    }
}

/// Metadata fields that the API server sets, and that it may change after it has called the webhook. The environment of
/// a composite is computed without these fields, so that the result does not change with each request.
const VOLATILE: [&str; 6] = ["creationTimestamp", "generation", "managedFields", "resourceVersion", "selfLink", "uid"];

/// Returns a composite without the metadata fields in [`VOLATILE`], and without the annotations of this mutator.
fn without_volatile_fields(mut composite: Value) -> Value {
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

/// Returns a JSON object with the changes that the environment makes to composed resources. Each key is the name of a
/// composed resource, or its index if it has no name. Each value is a JSON Patch. `None` if there are no changes.
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

/// Returns the changes to one composed resource by its patches that read the environment, as a JSON Patch. The JSON
/// Patch applies to the field `base` of the composed resource. `None` if there are no changes, or if the resource
/// cannot be rendered.
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
        let version = Metadata::of(stored.value()).resource_version();
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
