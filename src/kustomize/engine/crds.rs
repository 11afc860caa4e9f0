//! Derives field specs from the type definitions in the files of the field `crds`. The field specs select fields that
//! contain labels, annotations, names, or references to objects.
//!
//! Source: kustomize's `api/internal/accumulator/loadconfigfromcrds.go`.

use std::sync::Arc;

use serde_json::{Map, Value};

use super::config::{Config, NameReference};
use super::field_spec::FieldSpec;
use super::stop::Failed;
use crate::kustomize::file;
use crate::yaml::{self, Limits, Place};

/// Maximum depth of references between type definitions in a file that the field `crds` of a kustomization file lists.
/// If the references are deeper, the type is assumed to refer to itself, and the file is rejected.
const MAX_DEPTH: usize = 64;

/// Derives field specs from a file that is listed in the field `crds`.
///
/// # Errors
///
/// - If the file is empty, or is neither JSON nor YAML.
/// - If a type definition is invalid, or refers to itself.
/// - If two specs of the same field have different values of `create`.
/// - If it is unknown how kustomize reads the file.
///
/// The error contains the position in the file, if the position is known.
pub(super) fn config(bytes: &[u8]) -> Result<Config, (Option<Place>, Failed)> {
    if bytes.is_empty() {
        // kustomize reads the first byte, and crashes if there is none
        return Err((None, "is empty".into()));
    }
    let text = std::str::from_utf8(bytes).map_err(|error| (None, format!("cannot be read: {error}").into()))?;
    let definitions = file::definitions(text);
    if let Some((place, fault)) = definitions.fault {
        return Err((Some(place), Failed::Refused(fault)));
    }
    if let Some((place, reason)) = definitions.unknown {
        return Err((Some(place), Failed::Unknown(reason)));
    }
    specs(bytes).map_err(|failed| (None, failed.within("cannot be read")))
}

fn specs(bytes: &[u8]) -> Result<Config, Failed> {
    let value = if bytes.first() == Some(&b'{') {
        serde_json::from_slice(bytes).map_err(|error| error.to_string())?
    } else {
        let text = file::text(bytes).map_err(|_| "it contains bytes that YAML does not allow".to_owned())?;
        let document = yaml::first(text, &Limits::default()).map_err(|error| error.to_string())?;
        document.map_or(Value::Null, |document| document.value)
    };
    let mut config = Config::default();
    let empty = Map::new();
    let types = value.as_object().unwrap_or(&empty);
    for (name, definition) in types {
        let is_type = properties(definition)
            .is_some_and(|found| ["kind", "apiVersion", "metadata"].iter().all(|key| found.contains_key(*key)));
        if is_type {
            let kind = name.rsplit('.').next().unwrap_or(name);
            let mut found = Config::default();
            Walk { types, kind, config: &mut found }.follow(name, &mut Vec::new())?;
            config.merge(&found).map_err(|conflict| conflict.to_string())?;
        }
    }
    Ok(config)
}

struct Walk<'v> {
    types: &'v Map<String, Value>,
    kind: &'v str,
    config: &'v mut Config,
}

impl Walk<'_> {
    fn follow(&mut self, name: &str, path: &mut Vec<String>) -> Result<(), String> {
        if path.len() > MAX_DEPTH {
            return Err(format!("{name} refers to itself"));
        }
        let Some(properties) = self.types.get(name).and_then(properties) else { return Ok(()) };
        for (property, schema) in properties {
            path.push(property.clone());
            self.property(schema, path);
            if let Some(next) = schema["$ref"].as_str() {
                self.follow(next, path)?;
            }
            path.pop();
        }
        Ok(())
    }

    fn property(&mut self, schema: &Value, path: &[String]) {
        let text = |key: &str| schema.get(key).and_then(Value::as_str);
        let kind = self.kind;
        let spec = |path: &str| FieldSpec { kind: kind.to_owned().into(), ..FieldSpec::of_all(path.to_owned(), false) };
        let path = path.join("/");
        if text("x-kubernetes-annotation").is_some() {
            Arc::make_mut(&mut self.config.common_annotations).to_mut().push(spec(&path));
        }
        if text("x-kubernetes-label-selector").is_some() {
            Arc::make_mut(&mut self.config.common_labels).to_mut().push(spec(&path));
        }
        if text("x-kubernetes-identity").is_some() {
            Arc::make_mut(&mut self.config.name_prefix).to_mut().push(spec(&path));
        }
        let (version, kind) = (text("x-kubernetes-object-ref-api-version"), text("x-kubernetes-object-ref-kind"));
        if let (Some(version), Some(kind)) = (version, kind) {
            let key = text("x-kubernetes-object-ref-name-key").unwrap_or("name");
            let reference = NameReference {
                group: "".into(),
                version: version.to_owned().into(),
                kind: kind.to_owned().into(),
                referrers: vec![spec(&format!("{path}/{key}"))].into(),
            };
            let other = Config { name_reference: vec![reference].into(), ..Config::default() };
            // `create` is false in all of these specs, so they do not conflict
            drop(self.config.merge(&other));
        }
    }
}

fn properties(definition: &Value) -> Option<&Map<String, Value>> {
    let mut schemas = definition.as_object()?.iter().filter(|(key, _)| key.eq_ignore_ascii_case("schema"));
    schemas.next_back()?.1["properties"].as_object()
}
