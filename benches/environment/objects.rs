//! Creates a composite, its Composition with five selected EnvironmentConfigs and fifty patches, and a given number of
//! EnvironmentConfigs.

use serde_json::{Map, Value, json};

pub const GROUP: &str = "example.org";
/// Number of EnvironmentConfigs with the same label `cell`.
const CONFIGS_PER_CELL: usize = 20;
/// Number of keys in the data of an EnvironmentConfig.
const KEYS: usize = 40;
const ENVIRONMENT_PATCHES: usize = 25;
const TEMPLATES: usize = 5;

/// Returns the objects in the cluster: the EnvironmentConfigs, the CompositeResourceDefinition and the Composition.
/// `configs` is the number of EnvironmentConfigs.
pub fn stored(configs: usize) -> Vec<Value> {
    let mut objects: Vec<Value> = (0..configs).map(config).collect();
    objects.extend([definition(), composition()]);
    objects
}

fn config(number: usize) -> Value {
    let data: Map<String, Value> = (0..KEYS)
        .map(|key| {
            (format!("key-{key}"), json!({"value": format!("value-{number}"), "size": number, "list": [1, 2, 3]}))
        })
        .collect();
    json!({
        "apiVersion": "apiextensions.crossplane.io/v1beta1",
        "kind": "EnvironmentConfig",
        "metadata": {
            "name": format!("config-{number:05}"),
            "labels": {"cell": format!("cell-{}", number / CONFIGS_PER_CELL), "stage": if number.is_multiple_of(2) { "prod" } else { "dev" }, "number": number.to_string()},
        },
        "data": data,
    })
}

/// Returns the CompositeResourceDefinition. Its schema declares all fields of the composite that the patches write.
fn definition() -> Value {
    let texts = ["name", "stage", "cell", "number"].map(str::to_owned).into_iter();
    let outputs = (0..ENVIRONMENT_PATCHES).map(|number| format!("out{number}"));
    let fields: Map<String, Value> = texts.chain(outputs).map(|name| (name, json!({"type": "string"}))).collect();
    let schema = json!({"type": "object", "properties": {"spec": {"type": "object", "properties": fields}}});
    json!({
        "apiVersion": "apiextensions.crossplane.io/v1",
        "kind": "CompositeResourceDefinition",
        "metadata": {"name": "xapps.example.org", "labels": {"portcullis.dev/composites": "true"}},
        "spec": {
            "group": GROUP,
            "names": {"kind": "XApp", "plural": "xapps"},
            "versions": [
                {"name": "v1", "served": true, "referenceable": true, "schema": {"openAPIV3Schema": schema}},
            ],
        },
    })
}

/// Returns a Composition with four entries in `environmentConfigs`. Two entries refer to an EnvironmentConfig by name.
/// One entry is a selector that matches one EnvironmentConfig. One entry is a selector that matches ten
/// EnvironmentConfigs and selects two of them.
fn composition() -> Value {
    let label =
        |key: &str, path: &str| json!({"key": key, "type": "FromCompositeFieldPath", "valueFromFieldPath": path});
    let resources: Vec<Value> = (0..TEMPLATES).map(template).collect();
    json!({
        "apiVersion": "apiextensions.crossplane.io/v1",
        "kind": "Composition",
        "metadata": {"name": "apps"},
        "spec": {
            "compositeTypeRef": {"apiVersion": format!("{GROUP}/v1"), "kind": "XApp"},
            "environment": {
                "environmentConfigs": [
                    {"type": "Reference", "ref": {"name": "config-00001"}},
                    {"type": "Reference", "ref": {"name": "config-00042"}},
                    {"type": "Selector", "selector": {"matchLabels": [label("number", "spec.number")]}},
                    {"type": "Selector", "selector": {
                        "mode": "Multiple", "maxMatch": 2, "sortByFieldPath": "metadata.name",
                        "matchLabels": [label("cell", "spec.cell"), label("stage", "spec.stage")],
                    }},
                ],
                "patches": (0..ENVIRONMENT_PATCHES).map(environment_patch).collect::<Vec<_>>(),
            },
            "resources": resources,
        },
    })
}

/// Returns a patch between the composite and the environment. `number` determines the type and the transforms of the
/// patch.
fn environment_patch(number: usize) -> Value {
    match number % 5 {
        0 => {
            json!({"type": "FromCompositeFieldPath", "fromFieldPath": "spec.name", "toFieldPath": format!("tmp.name-{number}"),
            "transforms": [{"type": "string", "string": {"type": "Convert", "convert": "ToUpper"}}]})
        }
        1 => {
            json!({"type": "ToCompositeFieldPath", "fromFieldPath": format!("key-{number}.value"), "toFieldPath": format!("spec.out{number}")})
        }
        2 => json!({"type": "CombineFromComposite", "toFieldPath": format!("tmp.both-{number}"), "combine": {
            "strategy": "string", "string": {"fmt": "%s-%s"},
            "variables": [{"fromFieldPath": "spec.name"}, {"fromFieldPath": "spec.cell"}]}}),
        3 => {
            json!({"type": "ToCompositeFieldPath", "fromFieldPath": format!("key-{number}.value"), "toFieldPath": format!("spec.out{number}"),
            "transforms": [{"type": "string", "string": {"type": "Regexp", "regexp": {"match": "value-([0-9]+)", "group": 1}}}]})
        }
        _ => {
            json!({"type": "FromCompositeFieldPath", "fromFieldPath": "spec.stage", "toFieldPath": format!("tmp.stage-{number}"),
            "transforms": [{"type": "map", "map": {"prod": "production", "dev": "development"}}]})
        }
    }
}

fn template(number: usize) -> Value {
    let patch = |at: usize| {
        json!({"type": "FromEnvironmentFieldPath", "fromFieldPath": format!("key-{}.list", number * 5 + at),
            "toFieldPath": format!("spec.forProvider.list{at}")})
    };
    json!({
        "name": format!("resource-{number}"),
        "base": {"apiVersion": "v1", "kind": "Resource", "spec": {"forProvider": {}}},
        "patches": (0..5).map(patch).collect::<Vec<_>>(),
    })
}

/// Returns the composite in the admission request that the benchmark measures.
pub fn composite() -> Value {
    json!({
        "apiVersion": format!("{GROUP}/v1"),
        "kind": "XApp",
        "metadata": {"name": "app"},
        "spec": {"name": "app", "stage": "prod", "cell": "cell-3", "number": "17"},
    })
}
