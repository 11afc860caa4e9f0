//! The configuration objects of built-in plugins, as kustomize decodes them.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer};
use serde_json::Value;

use super::config::WrittenSpec;
use crate::kustomize::file::{Image, Replacement, Replica};

/// The configuration of a built-in plugin. The type contains the fields of all built-in plugins. Each plugin uses only
/// some of these fields.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Config {
    pub(super) metadata: Metadata,
    pub(super) annotations: BTreeMap<String, Text>,
    pub(super) labels: BTreeMap<String, Text>,
    pub(super) field_specs: Option<Vec<WrittenSpec>>,
    pub(super) image_tag: Image,
    pub(super) replica: Replica,
    pub(super) unset_only: bool,
    pub(super) set_role_binding_subjects: String,
    pub(super) prefix: Text,
    pub(super) suffix: Text,
    pub(super) paths: Vec<String>,
    pub(super) patches: String,
    pub(super) json_op: String,
    pub(super) replacements: Vec<Replacement>,
}

/// The field `metadata` of the object that configures a plugin.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Metadata {
    pub(super) name: Text,
    pub(super) namespace: Text,
}

/// The configuration of `IAMPolicyGenerator`.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct IamPolicy {
    pub(super) metadata: Metadata,
    pub(super) cloud: String,
    pub(super) kubernetes_service: IamService,
    pub(super) service_account: IamService,
}

/// A service account of Kubernetes or Google Cloud in the configuration of `IAMPolicyGenerator`.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct IamService {
    pub(super) name: String,
    pub(super) namespace: String,
    pub(super) project_id: String,
}

/// A string field of a plugin configuration. Like kustomize, also accepts numbers and booleans, and converts them to
/// strings.
#[derive(Debug, Default, Clone)]
pub(super) struct Text(pub(super) String);

impl<'de> Deserialize<'de> for Text {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match Value::deserialize(deserializer)? {
            Value::String(text) => Ok(Self(text)),
            Value::Null => Ok(Self::default()),
            value @ (Value::Bool(_) | Value::Number(_)) => Ok(Self(value.to_string())),
            _ => Err(serde::de::Error::custom("a string was expected")),
        }
    }
}

/// Converts the values of a mapping to strings.
pub(super) fn texts(map: BTreeMap<String, Text>) -> BTreeMap<String, String> {
    map.into_iter().map(|(key, text)| (key, text.0)).collect()
}

/// Fields of plugin configurations that contain mappings with arbitrary keys. [`normal`] does not change these keys.
const FREE: [&str; 4] = ["labels", "annotations", "commonLabels", "commonAnnotations"];
/// The field names of plugin configurations in their exact case. kustomize ignores the case of these names.
const FIELDS: [&str; 30] = [
    "allowKindChange",
    "allowNameChange",
    "annotationSelector",
    "apiVersion",
    "disableNameSuffixHash",
    "fieldPath",
    "fieldPaths",
    "fieldSpecs",
    "filePathPosition",
    "imageTag",
    "jsonOp",
    "kubernetesService",
    "labelSelector",
    "newName",
    "newTag",
    "notSelector",
    "projectId",
    "serviceAccount",
    "setRoleBindingSubjects",
    "sourceValue",
    "tagSuffix",
    "targetFilePath",
    "unsetOnly",
    "path",
    "digest",
    "name",
    "prefix",
    "suffix",
    "patch",
    "target",
];

/// Normalizes a plugin configuration in the same way as Go decodes JSON. Removes null fields, and corrects the case of
/// field names.
pub(super) fn normal(value: Value) -> Value {
    match value {
        Value::Object(members) => {
            let field = |(key, value): (String, Value)| {
                let name =
                    FIELDS.iter().find(|name| name.eq_ignore_ascii_case(&key)).map_or(key, |name| (*name).to_owned());
                let is_free = FREE.contains(&name.as_str());
                (name, if is_free { value } else { normal(value) })
            };
            Value::Object(members.into_iter().filter(|(_, value)| !value.is_null()).map(field).collect())
        }
        Value::Array(items) => Value::Array(items.into_iter().map(normal).collect()),
        other => other,
    }
}
