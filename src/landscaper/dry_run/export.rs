//! Exports of DeployItems. Each export copies a value from an object on the target into the exported result of the
//! DeployItem.
//!
//! The manifest deployer and the helm deployer read exports from `config.exports.exports`. The helm deployer also reads
//! the older list `config.exportsFromManifests`.
//!
//! Source: the types in Landscaper's `apis/deployer/utils/managedresource/types.go`, and `doExport` and
//! `exportFromReferencedResource` in its `pkg/deployer/lib/resourcemanager/exporter.go`. The results of running these
//! functions are recorded in `tests/vectors/landscaper/exports.json`.

use serde_json::Value;

use super::fragment::{self, Identity};
use crate::admission::{FieldPath, json as wire};
use crate::landscaper::export_path::{self, Path, PathError};

/// A deployer whose exports Portcullis can evaluate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Deployer {
    /// The manifest deployer (`manifest.deployer.landscaper.gardener.cloud`). It ignores exports without
    /// `fromResource`.
    Manifest,
    /// The helm deployer (`helm.deployer.landscaper.gardener.cloud`). An export without `fromResource` reads the values
    /// of the chart.
    Helm,
}

/// An export in the configuration of a DeployItem: a value that the deployer reads from a deployed object and passes to
/// Landscaper.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Export {
    /// The field path of the export in the configuration of the DeployItem.
    pub field: FieldPath,
    /// The deployer that processes the export.
    pub deployer: Deployer,
    /// Whether the export is in the older list `exportsFromManifests`. In this list, `fromResource` must contain a
    /// namespace.
    pub from_manifests: bool,
    /// `key`: the path in the exported result at which the value is stored.
    pub key: String,
    /// `jsonPath`: the JSONPath that selects the value in the object.
    pub json_path: String,
    /// `fromResource`: the identity of the object on the target, from which the value is read.
    pub from_resource: Option<Identity>,
    /// `fromObjectRef`: a reference to a second object. If it is set, the value that `jsonPath` selects contains the
    /// name and namespace of the second object. The exported value is then read from the second object.
    pub from_object_ref: Option<ObjectRef>,
    /// `targetName`: the name of the target from which the export reads; `None` for the target of the DeployItem.
    pub target_name: Option<String>,
}

/// The field `fromObjectRef` of an export, which refers to a second object. The exported value is read from this second
/// object. The first object, in `fromResource`, contains the name and namespace of the second object. The export's
/// `jsonPath` selects them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObjectRef {
    /// `fromObjectRef.apiVersion`: the `apiVersion` of the object that `fromObjectRef` refers to.
    pub api_version: String,
    /// `fromObjectRef.kind`: the `kind` of the object that `fromObjectRef` refers to.
    pub kind: String,
    /// `fromObjectRef.jsonPath`: the JSONPath that selects the exported value in the object that `fromObjectRef` refers
    /// to.
    pub json_path: String,
}

/// The reason why an export has no value in a dry run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Failure {
    /// The DryRunConfiguration does not contain the object with this identity.
    Missing(Identity),
    /// A JSONPath of the export cannot be evaluated on an object in the DryRunConfiguration.
    Path {
        /// The identity of the object on which the JSONPath was evaluated.
        identity: Identity,
        /// Which JSONPath of the export failed: `fromObjectRef.jsonPath` if true, `jsonPath` if false.
        second: bool,
        /// The error of parsing or evaluating the JSONPath.
        error: Box<PathError>,
    },
    /// `fromObjectRef` is set, but the value that `jsonPath` selects does not contain the name of another object.
    Reference {
        /// The apiVersion, kind, namespace and name of the object in which `jsonPath` of the export found the value. A
        /// dry run reads this object from the DryRunConfiguration, not from the target cluster.
        identity: Box<Identity>,
        /// The reason why the value is not a valid reference to another object, for example: it contains no name.
        problem: String,
    },
    /// The key of the export is invalid.
    Key(PathError),
}

/// Returns the deployer that the `spec.config` of a DeployItem configures, based on its apiVersion and kind; `None` if
/// it is neither the manifest nor the helm deployer.
pub fn deployer(config: &Value) -> Option<Deployer> {
    let (group, version) = config.get("apiVersion")?.as_str()?.split_once('/')?;
    let is_configuration = config.get("kind")? == "ProviderConfiguration";
    match (group, version) {
        ("manifest.deployer.landscaper.gardener.cloud", "v1alpha1" | "v1alpha2") if is_configuration => {
            Some(Deployer::Manifest)
        }
        ("helm.deployer.landscaper.gardener.cloud", "v1alpha1") if is_configuration => Some(Deployer::Helm),
        _ => None,
    }
}

/// Returns the exports in `config`, the `spec.config` of a DeployItem, in the order in which the deployer evaluates
/// them. Returns no exports if the deployer is neither the manifest nor the helm deployer.
pub fn exports(config: &Value) -> Vec<Export> {
    let Some(deployer) = deployer(config) else { return Vec::new() };
    let mut lists = vec![(FieldPath::of(["exports", "exports"]), "/exports/exports", false)];
    if deployer == Deployer::Helm {
        lists.push((FieldPath::of(["exportsFromManifests"]), "/exportsFromManifests", true));
    }
    let mut exports = Vec::new();
    for (field, pointer, from_manifests) in lists {
        let list = config.pointer(pointer).and_then(Value::as_array);
        let read = |(at, value)| Export::read(field.index(at), deployer, from_manifests, value);
        exports.extend(list.into_iter().flatten().enumerate().map(read));
    }
    exports
}

impl Export {
    /// Reads the export `value` from the configuration of a DeployItem. `field` is the path of the export in the
    /// configuration. `from_manifests` is true if the export is in the list `exportsFromManifests`. A text field that
    /// is not a string counts as empty.
    pub fn read(field: FieldPath, deployer: Deployer, from_manifests: bool, value: &Value) -> Self {
        let text = |of: &Value, key: &str| of.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
        let given = |key: &str| value.get(key).filter(|value| !value.is_null());
        Self {
            field,
            deployer,
            from_manifests,
            key: text(value, "key"),
            json_path: text(value, "jsonPath"),
            from_resource: given("fromResource").map(|from| Identity {
                api_version: text(from, "apiVersion"),
                kind: text(from, "kind"),
                namespace: text(from, "namespace"),
                name: text(from, "name"),
            }),
            from_object_ref: given("fromObjectRef").map(|from| ObjectRef {
                api_version: text(from, "apiVersion"),
                kind: text(from, "kind"),
                json_path: text(from, "jsonPath"),
            }),
            target_name: given("targetName").and_then(Value::as_str).map(str::to_owned),
        }
    }

    /// Returns the value of this export in a dry run. The value is read from an object in `configuration`, a
    /// DryRunConfiguration. `None` for an export without `fromResource`, because it reads no object.
    ///
    /// # Errors
    /// Returns the reason why the export has no value: an object is missing, a JSONPath cannot be evaluated, or the key
    /// of the export is invalid.
    pub fn evaluate(&self, configuration: &Value) -> Result<Option<Value>, Failure> {
        let Some(identity) = &self.from_resource else { return Ok(None) };
        let mut value = found(configuration, identity, &self.json_path, false)?;
        if let Some(next) = &self.from_object_ref {
            let named = next.identity(&value, &identity.namespace).map_err(|problem| {
                let identity = Box::new(identity.clone());
                Failure::Reference { identity, problem }
            })?;
            value = found(configuration, &named, &next.json_path, true)?;
        }
        export_path::key(&self.key).map_err(Failure::Key)?;
        Ok(Some(value))
    }
}

fn found(configuration: &Value, identity: &Identity, path: &str, second: bool) -> Result<Value, Failure> {
    let fragment = fragment::find(configuration, identity).ok_or_else(|| Failure::Missing(identity.clone()))?;
    let read = Path::parse(path).and_then(|path| path.find(fragment.object));
    read.map_err(|error| Failure::Path { identity: identity.clone(), second, error: Box::new(error) })
}

impl ObjectRef {
    /// Returns the identity of the object that `fromObjectRef` refers to. `value` is the value that `jsonPath` of the
    /// export selects. `value` must contain the name of the object, and may contain its namespace. If it contains no
    /// namespace, the object is in `namespace`. Fails with a message if `value` contains no name.
    fn identity(&self, value: &Value, namespace: &str) -> Result<Identity, String> {
        let members = value
            .as_object()
            .ok_or_else(|| format!("{} is not an object with a name and a namespace", wire::brief(value)))?;
        let text = |key: &str| match members.get(key) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.clone())),
            Some(other) => Err(format!("its {key} {} is not a string", wire::brief(other))),
        };
        let name = text("name")?.ok_or_else(|| format!("{} has no name", wire::brief(value)))?;
        Ok(Identity {
            api_version: self.api_version.clone(),
            kind: self.kind.clone(),
            namespace: text("namespace")?.unwrap_or_else(|| namespace.to_owned()),
            name,
        })
    }
}

/// Evaluates exports on a DryRunConfiguration, and merges their values into one object. Returns `null` if no export has
/// a value. Stops at the first failure, as Landscaper does.
///
/// # Errors
/// Returns the index of the failed export, and the reason for the failure.
pub fn result(exports: &[Export], configuration: &Value) -> Result<Value, (usize, Failure)> {
    let mut result = Value::Null;
    for (at, export) in exports.iter().enumerate() {
        let Some(value) = export.evaluate(configuration).map_err(|failure| (at, failure))? else { continue };
        let built = export_path::construct(&export.key, &value).map_err(|error| (at, Failure::Key(error)))?;
        export_path::merge(&mut result, built);
    }
    Ok(result)
}
