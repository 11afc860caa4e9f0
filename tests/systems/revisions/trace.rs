//! Reads the audit log of the API server, and finds the write requests of kustomize-controller for objects in the
//! generated trees.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use serde_json::Value;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use super::kinds;
use crate::account::KUSTOMIZE_CONTROLLER;

/// A successful write request of kustomize-controller.
#[derive(Debug, Clone)]
pub struct Write {
    /// The time at which the API server received the request.
    pub at: OffsetDateTime,
    /// The identity of the object, such as `Deployment.apps shop/web`.
    pub id: String,
    pub effect: Effect,
    namespace: String,
    name: String,
}

/// The effect of a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    Created,
    /// An existing object was written.
    Changed,
    Deleted,
}

/// The objects that were created, changed and deleted since a point in time. Each object is represented by its
/// identity, such as `Deployment.apps shop/web`.
#[derive(Debug, Default)]
pub struct Effects {
    pub created: BTreeSet<String>,
    /// Objects that already existed and were updated.
    pub changed: BTreeSet<String>,
    pub deleted: BTreeSet<String>,
}

/// Returns all successful writes of kustomize-controller in the file `audit_log`. Ignores objects of kinds that
/// generated trees do not contain.
pub fn read(audit_log: &Path) -> Vec<Write> {
    let text = fs::read_to_string(audit_log).unwrap_or_default();
    text.lines().filter_map(|line| write(&serde_json::from_str(line).ok()?)).collect()
}

fn write(event: &Value) -> Option<Write> {
    let text = |pointer: &str| event.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let code = event.pointer("/responseStatus/code")?.as_u64()?;
    let is_dry_run = text("/requestURI").contains("dryRun=All");
    let is_own = text("/user/username") == KUSTOMIZE_CONTROLLER.user() && text("/objectRef/subresource").is_empty();
    if !is_own || is_dry_run || !(200..300).contains(&code) {
        return None;
    }
    let effect = match (text("/verb"), code) {
        ("delete", _) => Effect::Deleted,
        (_, 201) => Effect::Created,
        _ => Effect::Changed,
    };
    let template = kinds::of_resource(text("/objectRef/apiGroup"), text("/objectRef/resource"))?;
    let (namespace, name) = (text("/objectRef/namespace"), text("/objectRef/name"));
    // For a Namespace, the audit log contains the name also as the namespace.
    let namespace = if template.namespaced { namespace } else { "" };
    Some(Write {
        at: OffsetDateTime::parse(text("/requestReceivedTimestamp"), &Rfc3339).ok()?,
        id: id(template.group, template.kind, namespace, name),
        effect,
        namespace: namespace.to_owned(),
        name: name.to_owned(),
    })
}

/// Returns the identity of an object as text, such as `Deployment.apps shop/web`.
pub fn id(group: &str, kind: &str, namespace: &str, name: &str) -> String {
    let dot = if group.is_empty() { "" } else { "." };
    let slash = if namespace.is_empty() { "" } else { "/" };
    format!("{kind}{dot}{group} {namespace}{slash}{name}")
}

/// Groups writes by the name of a pair of revisions, such as `pair-7`. The name is part of the written object's
/// namespace, such as `pair-7-b`. If the object is cluster-scoped, the name is part of the object's name. Other writes
/// are omitted.
pub fn by_pair(writes: Vec<Write>) -> BTreeMap<String, Vec<Write>> {
    let mut all: BTreeMap<String, Vec<Write>> = BTreeMap::new();
    for write in writes {
        let place = if write.namespace.is_empty() { &write.name } else { &write.namespace };
        let Some(at) = place.find("pair-") else { continue };
        let digits: String = place[at + 5..].chars().take_while(char::is_ascii_digit).collect();
        all.entry(format!("pair-{digits}")).or_default().push(write);
    }
    all
}

impl Effects {
    /// Returns the identities of the objects that were created, changed or deleted since `moment`.
    pub fn since(writes: &[Write], moment: OffsetDateTime) -> Self {
        let mut effects = Self::default();
        for write in writes.iter().filter(|write| write.at >= moment) {
            let set = match write.effect {
                Effect::Created => &mut effects.created,
                Effect::Changed => &mut effects.changed,
                Effect::Deleted => &mut effects.deleted,
            };
            set.insert(write.id.clone());
        }
        effects
    }
}
