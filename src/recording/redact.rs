//! Removes credentials from objects before they are written to a file.

use serde_json::Value;

/// The replacement of a redacted value. It is valid base64, like the values of a Secret's `data`.
pub(super) const PLACEHOLDER: &str = "UkVEQUNURUQ=";

const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// A kind with credentials, and the fields that contain them.
struct Sensitive {
    group: &'static str,
    kind: &'static str,
    fields: &'static [&'static str],
}

const SENSITIVE: [Sensitive; 3] = [
    Sensitive { group: "", kind: "Secret", fields: &["/data", "/stringData"] },
    // The kubeconfig of a cluster that Landscaper deploys to.
    Sensitive { group: "landscaper.gardener.cloud", kind: "Target", fields: &["/spec/config"] },
    // Exports of deployers, which may contain kubeconfigs and passwords.
    Sensitive { group: "landscaper.gardener.cloud", kind: "DataObject", fields: &["/data"] },
];

/// Returns whether objects of a kind contain credentials.
pub(super) fn is_sensitive(group: &str, kind: &str) -> bool {
    SENSITIVE.iter().any(|known| known.group == group && known.kind == kind)
}

/// Removes credentials from an object. Replaces every value in its sensitive fields, and keeps the keys. Also removes
/// the annotation with the last applied configuration, which repeats the whole object. Returns the JSON pointers of the
/// fields with replaced values.
pub(super) fn redact(object: &mut Value) -> Vec<&'static str> {
    let text = |key| object.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    let (api_version, kind) = (text("apiVersion"), text("kind"));
    let group = api_version.rsplit_once('/').map_or("", |(group, _)| group);
    let Some(sensitive) = SENSITIVE.iter().find(|known| known.group == group && known.kind == kind) else {
        return Vec::new();
    };
    // This annotation repeats the whole object, with its credentials.
    if let Some(annotations) = object.pointer_mut("/metadata/annotations").and_then(Value::as_object_mut) {
        annotations.remove(LAST_APPLIED);
    }
    let mut redacted = sensitive.fields.to_vec();
    redacted.retain(|field| object.pointer_mut(field).is_some_and(|value| replace(value) > 0));
    redacted
}

/// Replaces all scalars except null in a value with [`PLACEHOLDER`]. Returns the number of replaced scalars.
fn replace(value: &mut Value) -> usize {
    match value {
        Value::Null => 0,
        Value::Object(members) => members.values_mut().map(replace).sum(),
        Value::Array(elements) => elements.iter_mut().map(replace).sum(),
        scalar => {
            *scalar = PLACEHOLDER.into();
            1
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn secrets_keep_their_keys_only() {
        let mut secret = json!({"apiVersion": "v1", "kind": "Secret", "type": "Opaque",
            "metadata": {"name": "a", "annotations": {LAST_APPLIED: "{\"data\": \"swordfish\"}", "b": "c"}},
            "data": {"password": "c3dvcmRmaXNo"}, "stringData": {"token": "swordfish"}});
        assert_eq!(redact(&mut secret), ["/data", "/stringData"]);
        assert_eq!(secret["data"], json!({"password": PLACEHOLDER}));
        assert_eq!(secret["metadata"]["annotations"], json!({"b": "c"}));
        assert!(!secret.to_string().contains("swordfish") && !secret.to_string().contains("c3dvcmRmaXNo"));
    }

    #[test]
    fn targets_lose_their_kubeconfig_and_contexts_nothing() {
        let api_version = "landscaper.gardener.cloud/v1alpha1";
        let mut target = json!({"apiVersion": api_version, "kind": "Target",
            "spec": {"type": "t", "config": {"kubeconfig": {"token": "swordfish"}, "port": 6443}}});
        assert_eq!(redact(&mut target), ["/spec/config"]);
        assert_eq!(target["spec"]["config"], json!({"kubeconfig": {"token": PLACEHOLDER}, "port": PLACEHOLDER}));
        let context = json!({"apiVersion": api_version, "kind": "Context", "data": {"a": "b"}});
        let mut same = context.clone();
        assert!(redact(&mut same).is_empty());
        assert_eq!(same, context);
    }
}
