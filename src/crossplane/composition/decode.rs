//! Reads the declaration of an environment from the JSON of a Composition. The environment of a composite is computed
//! from this declaration.
//!
//! Crossplane's first design document of environments used other field names in `spec.environment`, such as
//! `reference`. This module converts these names to the current ones, such as `ref`. If a Composition cannot be
//! decoded, the functions of this module return `None` or an empty list, and [`super::problems`] reports why.

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::pipeline::{self, ENVIRONMENT_CONFIGS, PATCH_AND_TRANSFORM};
use crate::admission::FieldPath;
use crate::crossplane::environment::{
    Action, Declaration, PatchSet, Patches, Policy, Profile, Selection, Step, Template,
};

/// Returns the environment that a Composition declares. `None` if the Composition declares none or cannot be decoded.
pub fn declaration(composition: &Value) -> Option<Declaration> {
    let spec = composition.get("spec")?;
    let is_pipeline = spec.get("mode").and_then(Value::as_str) == Some("Pipeline");
    let is_native = spec.get("environment").is_some_and(|environment| !environment.is_null());
    match (is_pipeline, is_native) {
        (true, false) => function_declaration(spec),
        // In mode Pipeline, Crossplane up to 1.17 selects the environment and passes it to the functions.
        (_, true) => native_declaration(spec, is_pipeline),
        (false, false) => None,
    }
}

/// Returns the selections of EnvironmentConfigs in a Composition, each with the path of its field. Returns an empty
/// list if the Composition has no selection or cannot be decoded.
pub fn sources(composition: &Value) -> Vec<(FieldPath, Selection)> {
    let Some(Declaration { profile, steps }) = declaration(composition) else { return Vec::new() };
    let selection = |step: Step| match step.action {
        Action::Select(selection) if profile == Profile::Function => Some((step.field.key("spec"), selection)),
        Action::Select(selection) => Some((step.field, selection)),
        _ => None,
    };
    steps.into_iter().filter_map(selection).collect()
}

/// Returns which software computes the environment of a Composition: Composition functions, or Crossplane itself (up to
/// version 1.17). `None` if the Composition declares no environment, or if it cannot be decoded.
pub fn profile(composition: &Value) -> Option<Profile> {
    Some(declaration(composition)?.profile)
}

fn native_declaration(spec: &Value, is_pipeline: bool) -> Option<Declaration> {
    let environment = spec.get("environment")?;
    let field = FieldPath::of(["spec", "environment"]);
    let select =
        Step { name: String::new(), field, action: Action::Select(selection(environment, Profile::Native117)?) };
    let mut steps = vec![select];
    if !is_pipeline {
        let action = Action::Patch(patches(spec)?);
        steps.push(Step { name: String::new(), field: FieldPath::of(["spec"]), action });
    }
    Some(Declaration { profile: Profile::Native117, steps }.with_schema_defaults())
}

fn function_declaration(spec: &Value) -> Option<Declaration> {
    let pipeline = spec.get("pipeline")?.as_array()?;
    let mut steps = Vec::new();
    for (at, step) in pipeline.iter().enumerate() {
        let input = step.get("input").unwrap_or(&Value::Null);
        let action = match pipeline::group(input) {
            ENVIRONMENT_CONFIGS => Action::Select(match input.get("spec") {
                Some(spec) => selection(&with_canonical_keys(spec), Profile::Function)?,
                None => Selection::default(),
            }),
            PATCH_AND_TRANSFORM => Action::Patch(patches(&with_canonical_keys(input))?),
            _ => Action::Other,
        };
        let name = step.get("step").and_then(Value::as_str).unwrap_or_default().to_owned();
        steps.push(Step { name, field: FieldPath::of(["spec", "pipeline"]).index(at).key("input"), action });
    }
    let is_about = steps.iter().any(|step| step.action != Action::Other);
    is_about.then_some(Declaration { profile: Profile::Function, steps })
}

fn selection(environment: &Value, profile: Profile) -> Option<Selection> {
    let default_data = match environment.get("defaultData") {
        None | Some(Value::Null) => None,
        Some(data) => Some(data.as_object()?.clone()),
    };
    let sources = match environment.get("environmentConfigs") {
        None | Some(Value::Null) => None,
        Some(sources) if profile == Profile::Native117 => Some(decoded(&to_current_spelling(sources))?),
        Some(sources) => Some(decoded(sources)?),
    };
    let policy: Policy = optional(environment, "policy")?;
    Some(Selection { default_data, sources, policy })
}

fn patches(spec: &Value) -> Option<Patches> {
    let environment = spec.get("environment").unwrap_or(&Value::Null);
    let sets: Vec<Value> = optional(spec, "patchSets")?;
    let set = |set: &Value| {
        Some(PatchSet { name: text(set, "name").unwrap_or_default(), patches: optional(set, "patches")? })
    };
    let resources: Vec<Value> = optional(spec, "resources")?;
    let template = |resource: &Value| {
        let base = resource.get("base").cloned().unwrap_or_default();
        Some(Template { name: text(resource, "name"), base, patches: optional(resource, "patches")? })
    };
    Some(Patches {
        environment: optional(environment, "patches")?,
        patch_sets: sets.iter().map(set).collect::<Option<_>>()?,
        templates: resources.iter().map(template).collect::<Option<_>>()?,
    })
}

fn text(object: &Value, key: &str) -> Option<String> {
    object.get(key)?.as_str().map(str::to_owned)
}

fn decoded<T: DeserializeOwned>(value: &Value) -> Option<T> {
    T::deserialize(value).ok()
}

fn optional<T: DeserializeOwned + Default>(object: &Value, key: &str) -> Option<T> {
    match object.get(key) {
        None | Some(Value::Null) => Some(T::default()),
        Some(value) => decoded(value),
    }
}

/// Converts the entries of `environmentConfigs` from the format in Crossplane's first design document of environments
/// to the current format. Renames `reference` to `ref`. Replaces an entry that has a list of selectors with one entry
/// for each selector.
fn to_current_spelling(sources: &Value) -> Value {
    let Some(sources) = sources.as_array() else { return sources.clone() };
    let mut today = Vec::with_capacity(sources.len());
    for source in sources {
        let mut source = source.clone();
        if let Some(members) = source.as_object_mut()
            && !members.contains_key("ref")
            && let Some(reference) = members.remove("reference")
        {
            members.insert("ref".to_owned(), reference);
        }
        match source.get("selector").and_then(Value::as_array).cloned() {
            Some(selectors) => today.extend(selectors.into_iter().map(|selector| {
                let mut source = source.clone();
                source["selector"] = selector;
                source
            })),
            None => today.push(source),
        }
    }
    Value::Array(today)
}

/// The names of fields in the inputs of Composition functions, in their documented spelling. The functions ignore the
/// case of field names. Therefore, Portcullis first changes each name in an input to its spelling in this list.
const FIELDS: &[&str] = &[
    "appendSlice",
    "base",
    "clampMax",
    "clampMin",
    "combine",
    "convert",
    "defaultData",
    "environment",
    "environmentConfigs",
    "fallbackTo",
    "fallbackValue",
    "fmt",
    "format",
    "fromFieldPath",
    "fromFieldPathPolicy",
    "group",
    "join",
    "key",
    "literal",
    "match",
    "matchLabels",
    "math",
    "maxMatch",
    "minMatch",
    "mode",
    "multiply",
    "name",
    "patchSetName",
    "patchSets",
    "patches",
    "patterns",
    "policy",
    "ref",
    "regexp",
    "replace",
    "resolution",
    "resources",
    "result",
    "search",
    "selector",
    "separator",
    "sortByFieldPath",
    "strategy",
    "string",
    "toFieldPath",
    "toType",
    "transforms",
    "trim",
    "type",
    "value",
    "valueFromFieldPath",
    "variables",
];
/// Fields whose values are user data. The keys inside these values are not changed to the spelling in [`FIELDS`].
const FREE: &[&str] = &["base", "defaultData", "map", "fallbackValue", "result"];

/// Returns the input of a function with canonical field names. This is needed because Go ignores the case of names when
/// it decodes JSON.
fn with_canonical_keys(input: &Value) -> Value {
    match input {
        Value::Array(items) => Value::Array(items.iter().map(with_canonical_keys).collect()),
        Value::Object(members) => {
            let mut out = Map::new();
            for (name, value) in members {
                let known = FIELDS.iter().find(|field| field.eq_ignore_ascii_case(name));
                let name = known.map_or(name.as_str(), |field| field);
                let value = if FREE.contains(&name) { value.clone() } else { with_canonical_keys(value) };
                out.insert(name.to_owned(), value);
            }
            Value::Object(out)
        }
        other => other.clone(),
    }
}
