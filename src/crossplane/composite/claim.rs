//! The composite that Crossplane creates for a claim.
//!
//! Source: `internal/controller/apiextensions/claim/syncer_ssa.go` and `internal/xcrd/schemas.go` in Crossplane 1.17.

use std::borrow::Cow;
use std::sync::Arc;

use serde_json::{Map, Value, json};

use crate::admission::{Metadata, Request};
use crate::catalog::{Stored, View};
use crate::crossplane::kinds::{BY_CLAIM, DEFINITIONS, claim_key};

/// Fields of `spec` that Crossplane does not copy from a claim to its composite. Exception: with the composition update
/// policy `Manual`, Crossplane copies `compositionRevisionRef`.
const OWN: [&str; 5] = [
    "compositeDeletePolicy",
    "compositionRevisionRef",
    "publishConnectionDetailsTo",
    "resourceRef",
    "writeConnectionSecretToRef",
];

/// The composite that a request creates or changes, directly or through a claim.
#[derive(Debug)]
pub struct Subject<'r> {
    /// The composite. For a claim, this is the composite as Crossplane will create or update it.
    pub composite: Cow<'r, Value>,
    /// The plural name of the composite's kind.
    pub plural: Cow<'r, str>,
}

impl<'r> Subject<'r> {
    /// Returns the composite for `object`, which is a composite or a claim. `request` names the kind of `object`. For a
    /// claim, computes the composite as Crossplane will create or update it. Returns `object` itself if no
    /// CompositeResourceDefinition in `view` defines the claim.
    pub fn of(object: &'r Value, request: &'r Request<'_>, view: &View<'_>) -> Self {
        let resource = &request.resource;
        let key = claim_key(&resource.plural, &resource.group);
        let offering = view.indexed(&DEFINITIONS, &BY_CLAIM, "", &key, 1).pop();
        match offering.and_then(|definition| claimed(object, &definition, view)) {
            Some((composite, plural)) => Self { composite: Cow::Owned(composite), plural: Cow::Owned(plural) },
            None => Self { composite: Cow::Borrowed(object), plural: Cow::Borrowed(&resource.plural) },
        }
    }
}

/// Returns the composite that Crossplane will create or update for a claim, and the plural name of the composite's
/// kind. `definition` is the CompositeResourceDefinition of this kind. `None` if `definition` does not contain the
/// names of the kind.
fn claimed(claim: &Value, definition: &Stored, view: &View<'_>) -> Option<(Value, String)> {
    let names = definition.value().get("spec")?.get("names")?;
    let text = |value: &Value, key: &str| value.get(key).and_then(Value::as_str).map(str::to_owned);
    let (kind, plural) = (text(names, "kind")?, text(names, "plural")?);
    let mut composite = existing(claim, &kind, view)
        .map_or_else(|| json!({"metadata": {}, "spec": {}}), |stored| stored.value().clone());
    composite["apiVersion"] = claim.get("apiVersion").cloned().unwrap_or_default();
    composite["kind"] = json!(kind);
    let metadata = Metadata::of(claim);
    merge(&mut composite["metadata"]["labels"], metadata.labels().cloned().unwrap_or_default());
    merge(&mut composite["metadata"]["annotations"], metadata.annotations().cloned().unwrap_or_default());
    let (name, namespace) = (metadata.name(), metadata.namespace());
    let labels = json!({"crossplane.io/claim-name": name, "crossplane.io/claim-namespace": namespace});
    merge(&mut composite["metadata"]["labels"], labels.as_object().cloned().unwrap_or_default());
    let mut spec = claim.get("spec").and_then(Value::as_object).cloned().unwrap_or_default();
    let is_manual = spec.get("compositionUpdatePolicy").is_some_and(|policy| policy == "Manual");
    spec.retain(|key, _| !OWN.contains(&key.as_str()) || is_manual && key == "compositionRevisionRef");
    merge(&mut composite["spec"], spec);
    Some((composite, plural))
}

/// Returns the existing composite that `spec.resourceRef` of a claim names. `kind` is the kind of the composite. `None`
/// if the claim names no composite, or if the catalog does not contain it.
fn existing(claim: &Value, kind: &str, view: &View<'_>) -> Option<Arc<Stored>> {
    let name = claim.get("spec")?.get("resourceRef")?.get("name")?.as_str()?;
    let group = claim.get("apiVersion")?.as_str()?.split_once('/')?.0;
    let kind = view.declared().into_iter().find(|known| known.kind == kind && known.group == group)?;
    view.find(kind, "", name)
}

fn merge(object: &mut Value, members: Map<String, Value>) {
    match object {
        Value::Object(own) => own.extend(members),
        other => *other = Value::Object(members),
    }
}
