//! The Secret with the exported values of a DeployItem.
//!
//! The Secret has the format of Landscaper's deployers: its default name is `<item>-export`, it contains JSON under the
//! key `config`, and the DeployItem owns it.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::version;
use crate::admission::Metadata;

const KEY: &str = "config";

/// Returns the name of the Secret with the exports of a DeployItem. This is the name in `status.exportRef` if that
/// Secret is in the namespace of the DeployItem. Otherwise, it is the default name `<item>-export`.
///
/// Unlike Landscaper's deployers, this function ignores a Secret in another namespace. Otherwise, a user who may write
/// a status could make Portcullis write to any namespace.
pub(super) fn name(item: &Value) -> String {
    let reference = |key: &str| item.pointer("/status/exportRef").and_then(|of| of.get(key)?.as_str());
    let is_here = reference("namespace") == Some(Metadata::of(item).namespace());
    let referred = reference("name").filter(|name| is_here && !name.is_empty());
    referred.map_or_else(|| format!("{}-export", Metadata::of(item).name()), str::to_owned)
}

/// Returns the namespace and name of the Secret with the exports of a DeployItem.
pub fn reference(item: &Value) -> (String, String) {
    (Metadata::of(item).namespace().to_owned(), name(item))
}

/// Returns the manifest of a new Secret with the name `name` and the exported values `values`. The DeployItem `item`
/// owns the Secret.
pub(super) fn manifest(item: &Value, name: &str, values: &Value) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Secret",
        "type": "Opaque",
        "metadata": {
            "name": name,
            "namespace": Metadata::of(item).namespace(),
            "ownerReferences": [{
                "apiVersion": item.get("apiVersion"),
                "kind": item.get("kind"),
                "name": Metadata::of(item).name(),
                "uid": Metadata::of(item).uid(),
            }],
        },
        "data": {KEY: encoded(values)},
    })
}

/// Reports whether the DeployItem `item` owns the Secret `secret`.
pub(super) fn belongs_to(secret: &Value, item: &Value) -> bool {
    Metadata::of(item).uid().is_some_and(|uid| Metadata::of(secret).is_owned_by(uid))
}

/// Reports whether the data of `secret` consists only of the exported values `values`.
pub(super) fn holds(secret: &Value, values: &Value) -> bool {
    let data = secret.get("data").and_then(Value::as_object);
    let held = |text: &Value| serde_json::from_slice::<Value>(&STANDARD.decode(text.as_str()?).ok()?).ok();
    data.is_some_and(|data| data.len() == 1 && data.get(KEY).and_then(held).as_ref() == Some(values))
}

/// Returns a JSON merge patch that sets the data of `secret` to the exported values `values`. The patch removes all
/// other keys from the data.
pub(super) fn patch(secret: &Value, values: &Value) -> Value {
    let mut data = json!({KEY: encoded(values)});
    for key in secret.get("data").and_then(Value::as_object).into_iter().flat_map(|data| data.keys()) {
        if key != KEY {
            data[key] = Value::Null;
        }
    }
    json!({"metadata": {"resourceVersion": version(secret)}, "data": data})
}

fn encoded(values: &Value) -> String {
    STANDARD.encode(values.to_string())
}
