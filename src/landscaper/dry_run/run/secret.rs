//! The Secret with the exported values, as Landscaper's deployers write it: `<item>-export`, its JSON under `config`, owned by
//! the item.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::version;

const KEY: &str = "config";

/// The name of an item's Secret: the one that its status refers to, in its own namespace, or a new one.
///
/// Landscaper's deployers take any namespace from the status. Whoever may write a status could so have us write anywhere.
pub(super) fn name(item: &Value) -> String {
    let reference = |key: &str| item.pointer("/status/exportRef").and_then(|of| of.get(key)?.as_str());
    let is_here = reference("namespace") == metadata(item, "namespace");
    let referred = reference("name").filter(|name| is_here && !name.is_empty());
    referred.map_or_else(|| format!("{}-export", metadata(item, "name").unwrap_or_default()), str::to_owned)
}

/// The namespace and the name of the Secret that an item's exports go to.
pub fn reference(item: &Value) -> (String, String) {
    (metadata(item, "namespace").unwrap_or_default().to_owned(), name(item))
}

/// The Secret, new.
pub(super) fn manifest(item: &Value, name: &str, values: &Value) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Secret",
        "type": "Opaque",
        "metadata": {
            "name": name,
            "namespace": metadata(item, "namespace"),
            "ownerReferences": [{
                "apiVersion": item.get("apiVersion"),
                "kind": item.get("kind"),
                "name": metadata(item, "name"),
                "uid": metadata(item, "uid"),
            }],
        },
        "data": {KEY: encoded(values)},
    })
}

/// Whether a Secret is the item's, and not one that happens to have its name.
pub(super) fn belongs_to(secret: &Value, item: &Value) -> bool {
    let owners = secret.pointer("/metadata/ownerReferences").and_then(Value::as_array);
    let uid = metadata(item, "uid");
    uid.is_some() && owners.into_iter().flatten().any(|owner| owner.get("uid").and_then(Value::as_str) == uid)
}

/// Whether a Secret holds these values and nothing else.
pub(super) fn holds(secret: &Value, values: &Value) -> bool {
    let data = secret.get("data").and_then(Value::as_object);
    let held = |text: &Value| serde_json::from_slice::<Value>(&STANDARD.decode(text.as_str()?).ok()?).ok();
    data.is_some_and(|data| data.len() == 1 && data.get(KEY).and_then(held).as_ref() == Some(values))
}

/// A merge patch of a Secret, after which it holds these values and nothing else.
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

fn metadata<'v>(object: &'v Value, key: &str) -> Option<&'v str> {
    object.get("metadata")?.get(key)?.as_str()
}
