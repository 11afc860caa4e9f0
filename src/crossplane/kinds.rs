//! The kinds that Crossplane's rules look up.

use std::sync::Arc;

use serde_json::Value;

use crate::admission::Operation;
use crate::catalog::{Declaration, Declared, Index, Kind, Scope, Stored, View, WHOLE};
use crate::rule::{DECLARED, Match, Outage};

use super::composition::pipeline::Required;
use super::{composite, composition};

/// API group of Compositions, their definitions and EnvironmentConfigs.
pub const GROUP: &str = "apiextensions.crossplane.io";

/// `EnvironmentConfig`: data that Compositions select. Crossplane 1.18 and later serve this version.
pub static ENVIRONMENT_CONFIGS: Kind = environment_configs("v1beta1", &[&BY_LABEL, &BY_LABEL_KEY, &BY_BEGINNING]);
/// `EnvironmentConfig` as Crossplane 1.11 to 1.20 serves it.
pub static ALPHA_ENVIRONMENT_CONFIGS: Kind =
    environment_configs("v1alpha1", &[&BY_LABEL, &BY_LABEL_KEY, &BY_BEGINNING]);

const fn environment_configs(version: &'static str, indexes: &'static [&'static Index]) -> Kind {
    Kind {
        group: GROUP,
        version,
        kind: "EnvironmentConfig",
        plural: "environmentconfigs",
        scope: Scope::Cluster,
        indexes,
        // Selectors sort by any path.
        parts: WHOLE,
    }
}

/// The kind of EnvironmentConfigs that the cluster serves.
pub fn served(view: &View<'_>) -> &'static Kind {
    let is_old = !view.is_complete(&ENVIRONMENT_CONFIGS) && view.is_complete(&ALPHA_ENVIRONMENT_CONFIGS);
    if is_old { &ALPHA_ENVIRONMENT_CONFIGS } else { &ENVIRONMENT_CONFIGS }
}

/// Objects by each of their labels: `stage=prod`.
pub static BY_LABEL: Index = Index {
    name: "label",
    keys: |object| {
        let labels = object.get("metadata").and_then(|meta| meta.get("labels")?.as_object());
        let keys = labels.into_iter().flatten().map(|(key, value)| label_key(key, value.as_str().unwrap_or_default()));
        keys.collect()
    },
};

/// Objects by the keys of their labels.
pub static BY_LABEL_KEY: Index = Index {
    name: "label-key",
    keys: |object| {
        let labels = object.get("metadata").and_then(|meta| meta.get("labels")?.as_object());
        labels.into_iter().flat_map(|labels| labels.keys().cloned()).collect()
    },
};

/// Objects by how their name begins, to find those that somebody may have meant.
pub static BY_BEGINNING: Index = Index {
    name: "beginning",
    keys: |object| {
        let name = object.get("metadata").and_then(|meta| meta.get("name")?.as_str());
        name.map(beginning).into_iter().collect()
    },
};

/// The key of [`BY_BEGINNING`].
pub fn beginning(name: &str) -> String {
    /// Few typing errors are in the first letters.
    const LETTERS: usize = 3;
    name.chars().take(LETTERS).collect()
}

/// The key of [`BY_LABEL`].
pub fn label_key(key: &str, value: &str) -> String {
    format!("{key}={value}")
}

/// `Composition`: what a composite is made of.
pub static COMPOSITIONS: Kind = Kind {
    group: GROUP,
    version: "v1",
    kind: "Composition",
    plural: "compositions",
    scope: Scope::Cluster,
    indexes: &[&BY_COMPOSITE_TYPE, &BY_REFERRED_CONFIG, &BY_SELECTED_LABEL],
    parts: &[&["metadata"], &["spec"]],
};

/// `CompositionRevision`: the text of a Composition at some time, which composites may be pinned to.
pub static REVISIONS: Kind = Kind {
    group: GROUP,
    version: "v1",
    kind: "CompositionRevision",
    plural: "compositionrevisions",
    scope: Scope::Cluster,
    indexes: &[&BY_REVISED, &BY_REFERRED_CONFIG, &BY_SELECTED_LABEL],
    parts: &[&["metadata"], &["spec"]],
};

/// The label of a CompositionRevision that names its Composition.
pub const COMPOSITION_LABEL: &str = "crossplane.io/composition-name";

/// CompositionRevisions by the name of their Composition.
pub static BY_REVISED: Index =
    Index { name: "composition", keys: |object| revised(object).map(str::to_owned).into_iter().collect() };

/// Returns the name of the Composition that a CompositionRevision is of.
pub fn revised(revision: &Value) -> Option<&str> {
    revision.get("metadata")?.get("labels")?.get(COMPOSITION_LABEL)?.as_str()
}

/// Compositions by the type of the composites that they are for: `example.org/v1, Kind=XExample`.
pub static BY_COMPOSITE_TYPE: Index = Index {
    name: "composite-type",
    keys: |object| {
        let text = |pointer| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        vec![type_key(text("/spec/compositeTypeRef/apiVersion"), text("/spec/compositeTypeRef/kind"))]
    },
};

/// The key of [`BY_COMPOSITE_TYPE`].
pub fn type_key(api_version: &str, kind: &str) -> String {
    format!("{api_version}, Kind={kind}")
}

/// Compositions by the names of the EnvironmentConfigs that they refer to.
pub static BY_REFERRED_CONFIG: Index = Index {
    name: "environment-config",
    keys: |object| {
        let sources = composition::sources(object).into_iter().flat_map(|(_, selection)| selection.sources);
        let named = sources.flatten().filter_map(|source| Some(source.reference?.name));
        let required = composition::pipeline::required(object).into_iter();
        named
            .chain(required.filter_map(|one| if let Required::Named(name) = one { Some(name) } else { None }))
            .collect()
    },
};

/// Compositions by the keys of the labels that they select EnvironmentConfigs by.
pub static BY_SELECTED_LABEL: Index = Index {
    name: "selected-label",
    keys: |object| {
        let sources = composition::sources(object).into_iter().flat_map(|(_, selection)| selection.sources);
        let selectors = sources.flatten().filter_map(|source| source.selector);
        let keys = selectors.flat_map(|selector| selector.match_labels).map(|matcher| matcher.key);
        let required = composition::pipeline::required(object).into_iter();
        let labels = required.filter_map(|one| if let Required::Labelled(labels) = one { Some(labels) } else { None });
        keys.chain(labels.flatten().map(|(key, _)| key)).collect()
    },
};

/// `CompositeResourceDefinition`: declares a kind of composites. Its name is the plural name and the group of that kind.
pub static DEFINITIONS: Kind = Kind {
    group: GROUP,
    version: "v1",
    kind: "CompositeResourceDefinition",
    plural: "compositeresourcedefinitions",
    scope: Scope::Cluster,
    indexes: &[&BY_DECLARED_TYPE, &BY_CLAIM],
    parts: &[&["metadata"], &["spec"]],
};

/// CompositeResourceDefinitions by the group and kind of the composites that they declare.
pub static BY_DECLARED_TYPE: Index = Index {
    name: "declared-type",
    keys: |object| {
        let text = |pointer| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        vec![type_key(text("/spec/group"), text("/spec/names/kind"))]
    },
};

/// Returns the CompositeResourceDefinition of the composites that a Composition is for, and their version.
pub fn definition_of<'c>(composition: &'c Value, view: &View<'_>) -> Option<(Arc<Stored>, &'c str)> {
    let of = composition.get("spec")?.get("compositeTypeRef")?;
    let (group, version) = of.get("apiVersion")?.as_str()?.split_once('/')?;
    let key = type_key(group, of.get("kind")?.as_str()?);
    Some((view.indexed(&DEFINITIONS, &BY_DECLARED_TYPE, "", &key, 1).pop()?, version))
}

const COMPOSITES_NAME: &str = "composites";

/// Composites: the kinds that CompositeResourceDefinitions declare.
pub static COMPOSITES: Declaration = Declaration {
    name: COMPOSITES_NAME,
    by: &DEFINITIONS,
    declares,
    indexes: &[&BY_COMPOSITION, &BY_REFERENCE, &WITH_REFERENCES],
    // Patches read any path.
    parts: WHOLE,
    is_held: true,
};

const CLAIMS_NAME: &str = "claims";

/// Claims: the kinds that CompositeResourceDefinitions offer in namespaces. Crossplane makes a composite of each.
pub static CLAIMS: Declaration =
    Declaration { name: CLAIMS_NAME, by: &DEFINITIONS, declares: offers, indexes: &[], parts: &[], is_held: false };

/// What a definition offers in namespaces.
fn offers(definition: &Value) -> Option<Declared> {
    let composite = declares(definition)?;
    let text = |key| definition.get("spec")?.get("claimNames")?.get(key)?.as_str().map(str::to_owned);
    Some(Declared { kind: text("kind")?, plural: text("plural")?, scope: Scope::Namespaced, ..composite })
}

/// CompositeResourceDefinitions by the plural name and the group of the claims that they offer.
pub static BY_CLAIM: Index = Index {
    name: "claim",
    keys: |definition| offers(definition).map(|claim| claim_key(&claim.plural, &claim.group)).into_iter().collect(),
};

/// The key of [`BY_CLAIM`].
pub fn claim_key(plural: &str, group: &str) -> String {
    format!("{plural}.{group}")
}

/// What a definition declares, in the version that Compositions are written for.
fn declares(definition: &Value) -> Option<Declared> {
    let spec = definition.get("spec")?;
    let versions = spec.get("versions")?.as_array()?;
    let is_referenceable = |version: &&Value| version.get("referenceable").and_then(Value::as_bool) == Some(true);
    let version = versions.iter().find(is_referenceable)?;
    let text = |value: &Value, key: &str| value.get(key).and_then(Value::as_str).map(str::to_owned);
    // Crossplane 2 has composites in namespaces; the API server knows no others before.
    let is_namespaced = spec.get("scope").and_then(Value::as_str) == Some("Namespaced");
    Some(Declared {
        group: text(spec, "group")?,
        version: text(version, "name")?,
        kind: text(spec.get("names")?, "kind")?,
        plural: text(spec.get("names")?, "plural")?,
        scope: if is_namespaced { Scope::Namespaced } else { Scope::Cluster },
    })
}

/// Composites by the name of their Composition, where they name one.
pub static BY_COMPOSITION: Index = Index {
    name: "composition",
    keys: |object| composite::composition_name(object).map(str::to_owned).into_iter().collect(),
};

/// Composites by the names of the EnvironmentConfigs that they refer to.
pub static BY_REFERENCE: Index = Index {
    name: "environment-config",
    keys: |object| {
        let names = composite::references(object).into_iter().filter(|name| !name.is_empty());
        names.map(str::to_owned).collect()
    },
};

/// Composites that refer to EnvironmentConfigs at all, under one key.
pub static WITH_REFERENCES: Index = Index {
    name: "has-environment-configs",
    keys: |object| {
        let has = composite::references(object).iter().any(|name| !name.is_empty());
        has.then(|| WITH_REFERENCES_KEY.to_owned()).into_iter().collect()
    },
};

/// The key of [`WITH_REFERENCES`].
pub const WITH_REFERENCES_KEY: &str = "true";

/// Composites, for a rule's scope.
pub(super) const fn composites(operations: &'static [Operation], outage: Outage) -> Match {
    let plural = COMPOSITES_NAME;
    Match { group: DECLARED, versions: &["*"], plural, kind: plural, subresource: "", operations, outage, reads: None }
}

/// Claims, for a rule's scope.
pub(super) const fn claims(operations: &'static [Operation], outage: Outage) -> Match {
    let plural = CLAIMS_NAME;
    Match { group: DECLARED, versions: &["*"], plural, kind: plural, subresource: "", operations, outage, reads: None }
}

/// The main resource of a kind, for a rule's scope.
pub(super) const fn matches(
    kind: &'static Kind,
    versions: &'static [&'static str],
    operations: &'static [Operation],
    outage: Outage,
) -> Match {
    let Kind { group, plural, kind, .. } = kind;
    Match { group, versions, plural, kind, subresource: "", operations, outage, reads: None }
}
