//! Keeps the webhook configurations for composites up to date. The rules of these configurations list the kinds of
//! composites that the selected CompositeResourceDefinitions declare. A CompositeResourceDefinition is selected by a
//! label or by a flag.
//!
//! `portcullis manifests` writes the configurations without rules. Until this controller adds rules, the API server
//! sends no requests for these configurations.

use std::collections::BTreeMap;

use futures::future::BoxFuture;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};

use super::{Controller, Failure, Next, Permission, Tools};
use crate::admission::Metadata;
use crate::catalog::{CHOOSING_LABEL, Catalog, Change, Kind, Reference, Scope, Storage, cluster};
use crate::crossplane::kinds::{CLAIMS, COMPOSITES, DEFINITIONS};
use crate::gate::registration::DECLARED_NAME;

/// The name of the controller. The flag `--composites` of `portcullis reconcile` enables it.
pub const NAME: &str = "composites";
const GROUP: &str = "admissionregistration.k8s.io";

static MUTATING: Kind = configurations("MutatingWebhookConfiguration", "mutatingwebhookconfigurations");
static VALIDATING: Kind = configurations("ValidatingWebhookConfiguration", "validatingwebhookconfigurations");

static WATCHES: [&Kind; 3] = [&DEFINITIONS, &MUTATING, &VALIDATING];
static PERMISSIONS: [Permission; 1] = [Permission {
    group: GROUP,
    resources: &["mutatingwebhookconfigurations", "validatingwebhookconfigurations"],
    names: &[DECLARED_NAME],
    verbs: &["patch"],
}];

const fn configurations(kind: &'static str, plural: &'static str) -> Kind {
    // A change only triggers a reconciliation, which reads the object from the API server.
    let storage = Storage::Parts(&[&["metadata", "resourceVersion"]]);
    Kind { group: GROUP, version: "v1", kind, plural, scope: Scope::Cluster, indexes: &[], storage }
}

/// A controller that keeps the rules of the mutating and the validating webhook configuration up to date. The rules
/// name the composites that the CompositeResourceDefinitions in the cluster declare.
pub(super) struct Composites {
    /// Names of CompositeResourceDefinitions whose composites the webhooks receive, or `*` for all. The webhooks also
    /// receive the composites of each CompositeResourceDefinition with the label [`CHOOSING_LABEL`].
    pub(super) chosen: Vec<String>,
}

impl Controller for Composites {
    fn name(&self) -> &'static str {
        NAME
    }

    fn family(&self) -> Option<&'static str> {
        Some("EN")
    }

    fn summary(&self) -> &'static str {
        "updates the rules of the webhooks for composites when the selected CompositeResourceDefinitions change"
    }

    fn watches(&self) -> &'static [&'static Kind] {
        &WATCHES
    }

    fn reads(&self) -> Vec<&'static Kind> {
        vec![&MUTATING, &VALIDATING]
    }

    fn permissions(&self) -> &'static [Permission] {
        &PERMISSIONS
    }

    /// Returns `true`, because the controller is optional: it runs only with the flag `--composites`. Its permissions
    /// are also granted only then. They are broad, because the controller watches all webhook configurations in the
    /// cluster.
    fn is_optional(&self) -> bool {
        true
    }

    fn affected(&self, change: &Change, _catalog: &Catalog) -> Vec<Reference> {
        if std::ptr::eq(change.kind, &DEFINITIONS) {
            return [&MUTATING, &VALIDATING].map(|kind| Reference::new(kind, "", DECLARED_NAME)).into();
        }
        let changed = change.reference();
        if changed.name == DECLARED_NAME { vec![changed] } else { Vec::new() }
    }

    fn reconcile<'a>(&'a self, object: &'a Reference, tools: &'a Tools) -> BoxFuture<'a, Result<Next, Failure>> {
        Box::pin(async move {
            if object.name != DECLARED_NAME {
                return Ok(Next::Done);
            }
            let found = cluster::read(&tools.client, object).await.map_err(Failure::api("reading it"))?;
            let Some(stored) = found else {
                let kind = object.kind.kind;
                tracing::warn!(
                    "{kind} {DECLARED_NAME} does not exist, so composites are not handled: apply the output of `portcullis manifests`"
                );
                return Ok(Next::Done);
            };
            let is_validating = std::ptr::eq(object.kind, &VALIDATING);
            let Some(patch) = patch(&stored, &self.resources(&tools.catalog, is_validating)) else {
                return Ok(Next::Done);
            };
            let api = cluster::api(&tools.client, object);
            let params =
                PatchParams { field_manager: Some("portcullis-companion".to_owned()), ..PatchParams::default() };
            let patched = api.patch(&object.name, &params, &Patch::Json::<Value>(patch)).await;
            patched.map_err(Failure::api("writing its rules"))?;
            tracing::info!(
                kind = object.kind.kind,
                name = object.name,
                "updated its rules to the selected definitions"
            );
            Ok(Next::Done)
        })
    }
}

impl Composites {
    /// Returns the plural resource names of composites, by API group. Uses the CompositeResourceDefinitions that are
    /// selected by label or by flag. If `with_claims` is true, the result also contains their claims. Claims get
    /// warnings and are never changed, so only the validating configuration includes them.
    fn resources(&self, catalog: &Catalog, with_claims: bool) -> BTreeMap<String, Vec<String>> {
        let declarations = if with_claims { &[&COMPOSITES, &CLAIMS][..] } else { &[&COMPOSITES][..] };
        let mut groups: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for definition in catalog.all(&DEFINITIONS) {
            let label = Metadata::of(definition.value()).label(CHOOSING_LABEL);
            let is_named = self.chosen.iter().any(|name| name == "*" || name == definition.name());
            if is_named || label == Some("true") {
                let declared = declarations.iter().filter_map(|one| (one.declares)(definition.value()));
                declared.for_each(|one| groups.entry(one.group).or_default().push(one.plural));
            }
        }
        groups.values_mut().for_each(|plurals| plurals.sort_unstable());
        groups
    }
}

/// Returns the JSON Patch that sets the rules of every webhook in a configuration to `resources`. `None` if the rules
/// are already correct. The API server rejects the patch if the configuration has changed since it was read.
fn patch(stored: &Value, resources: &BTreeMap<String, Vec<String>>) -> Option<json_patch::Patch> {
    let rule = |(group, plurals): (&String, &Vec<String>)| {
        json!({"apiGroups": [group], "apiVersions": ["*"], "operations": ["CREATE", "UPDATE"], "resources": plurals,
               "scope": "*"})
    };
    let rules: Value = resources.iter().map(rule).collect();
    let webhooks = stored.get("webhooks")?.as_array()?;
    let has = |webhook: &Value| webhook.get("rules").filter(|rules| !rules.is_null()).unwrap_or(&json!([])) == &rules;
    let version = Metadata::of(stored).resource_version()?;
    let mut operations = vec![json!({"op": "test", "path": "/metadata/resourceVersion", "value": version})];
    for (at, _) in webhooks.iter().enumerate().filter(|(_, webhook)| !has(webhook)) {
        operations.push(json!({"op": "add", "path": format!("/webhooks/{at}/rules"), "value": rules}));
    }
    (operations.len() > 1).then(|| serde_json::from_value(Value::Array(operations)).ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    fn configuration(rules: Value) -> Value {
        json!({"metadata": {"name": DECLARED_NAME, "resourceVersion": "7"}, "webhooks": [{"name": "a", "rules": rules}, {"name": "b"}]})
    }

    #[test]
    fn writes_rules_of_declared_kinds_once() {
        let resources = BTreeMap::from([("example.org".to_owned(), vec!["xdatabases".to_owned()])]);
        let mut stored = configuration(json!([]));
        let first = patch(&stored, &resources).unwrap();
        json_patch::patch(&mut stored, &first).unwrap();
        for at in [0, 1] {
            assert_eq!(stored["webhooks"][at]["rules"][0]["resources"], json!(["xdatabases"]));
        }
        assert!(patch(&stored, &resources).is_none());
        assert!(patch(&stored, &BTreeMap::new()).is_some());
        assert!(patch(&configuration(Value::Null), &BTreeMap::new()).is_none());
    }

    /// Checks that the validating webhook configuration selects Crossplane claims, so that their authors get warnings.
    /// The mutating webhook configuration must not select claims.
    #[test]
    fn only_the_validating_configuration_names_claims() {
        let catalog = Catalog::new([&DEFINITIONS]);
        catalog.insert(
            &DEFINITIONS,
            json!({"metadata": {"name": "xdatabases.example.org", "labels": {CHOOSING_LABEL: "true"}}, "spec": {
                "group": "example.org", "names": {"kind": "XDatabase", "plural": "xdatabases"},
                "claimNames": {"kind": "Database", "plural": "databases"},
                "versions": [{"name": "v1", "referenceable": true}]}}),
        );
        let composites = Composites { chosen: Vec::new() };
        assert_eq!(composites.resources(&catalog, false)["example.org"], ["xdatabases"]);
        assert_eq!(composites.resources(&catalog, true)["example.org"], ["databases", "xdatabases"]);
    }

    #[test]
    fn rejects_patches_of_changed_configurations() {
        let resources = BTreeMap::from([("example.org".to_owned(), vec!["xdatabases".to_owned()])]);
        let patch = patch(&configuration(json!([])), &resources).unwrap();
        let mut changed = configuration(json!([]));
        changed["metadata"]["resourceVersion"] = json!("8");
        assert!(json_patch::patch(&mut changed, &patch).is_err());
    }
}
