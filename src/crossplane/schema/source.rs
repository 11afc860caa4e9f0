//! The places where a Composition declares the schema of its environment.
//!
//! A ConfigMap with a schema is read from the API server during a decision. ConfigMaps are not watched, because a watch
//! in all namespaces needs the permission to read all of them. To read one ConfigMap, the permission `get` is enough.
//! The chart creates a Role with this permission in the namespace of Portcullis. For schemas in other namespaces, users
//! create a Role there.

use std::sync::Arc;

use serde_json::Value;

use super::{Schema, SchemaError};
use crate::admission::Metadata;
use crate::catalog::{Kind, LiveRead, Reference, Scope, Storage, View};

/// The annotation of a Composition that contains the schema of its environment. The value is a JSON Schema, written as
/// JSON or YAML.
pub const ANNOTATION: &str = "portcullis.dev/environment-schema";
/// The annotation that names the key of a ConfigMap with the schema: `NAMESPACE/NAME/KEY`.
pub const FROM_ANNOTATION: &str = "portcullis.dev/environment-schema-from";

/// `ConfigMap`: may contain the schema of an environment.
pub static CONFIG_MAPS: Kind = Kind {
    group: "",
    version: "v1",
    kind: "ConfigMap",
    plural: "configmaps",
    scope: Scope::Namespaced,
    indexes: &[],
    storage: Storage::ByName(&[&["data"]]),
};

/// Returns the schema that a Composition declares for its environment, and the annotation that declares it. `None` if
/// the Composition declares no schema.
///
/// # Errors
/// If the declared schema cannot be read.
pub fn declared(composition: &Value, view: &View<'_>) -> Option<(&'static str, Result<Arc<Schema>, SchemaError>)> {
    if let Some(text) = annotation(composition, ANNOTATION) {
        return Some((ANNOTATION, Schema::read(text)));
    }
    let reference = annotation(composition, FROM_ANNOTATION)?;
    Some((FROM_ANNOTATION, from_config_map(reference, view)))
}

/// Returns a reference to the ConfigMap that contains the schema of a Composition's environment. The caller must read
/// this ConfigMap from the API server, because ConfigMaps are not cached. `None` if the Composition names no ConfigMap,
/// or contains the schema itself.
pub fn live_reads(composition: &Value) -> Option<Reference> {
    if annotation(composition, ANNOTATION).is_some() {
        return None;
    }
    let (namespace, name, _) = parts(annotation(composition, FROM_ANNOTATION)?)?;
    Some(Reference::new(&CONFIG_MAPS, namespace, name))
}

fn from_config_map(text: &str, view: &View<'_>) -> Result<Arc<Schema>, SchemaError> {
    let (namespace, name, key) = parts(text).ok_or(SchemaError::NoReference)?;
    let shown = format!("ConfigMap {namespace}/{name}");
    if let Some(LiveRead::Unknown(why)) = view.live_read(&Reference::new(&CONFIG_MAPS, namespace, name)) {
        let is_forbidden = why.to_lowercase().contains("forbidden");
        let why = if is_forbidden {
            ": its ServiceAccount needs permission to get it"
        } else {
            " now: the request to the API server failed"
        };
        return Err(SchemaError::Unread(shown, why));
    }
    let found = view.find(&CONFIG_MAPS, namespace, name).ok_or(SchemaError::Missing(shown.clone()))?;
    let text = found.value().get("data").and_then(|data| data.get(key)?.as_str());
    Schema::read(text.ok_or_else(|| SchemaError::Missing(format!("{key} of {shown}")))?)
}

fn annotation<'v>(composition: &'v Value, name: &str) -> Option<&'v str> {
    Metadata::of(composition).annotation(name)
}

/// Splits `reference`, which has the form `NAMESPACE/NAME/KEY`, into its three parts. It refers to a key of a
/// ConfigMap. Returns `None` if a part is missing.
fn parts(reference: &str) -> Option<(&str, &str, &str)> {
    let mut parts = reference.trim().splitn(3, '/').filter(|part| !part.is_empty());
    Some((parts.next()?, parts.next()?, parts.next()?))
}
