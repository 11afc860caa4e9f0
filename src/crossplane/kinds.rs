//! Defines the Kubernetes kinds that Crossplane rules look up in the catalog, such as Compositions. Also defines the
//! indexes by which the rules find objects of these kinds, and matchers for admission requests.

use std::sync::Arc;

use serde_json::Value;

use crate::admission::{Metadata, Operation, Path};
use crate::catalog::{Declaration, Declared, EVERY, Index, Kind, Scope, Storage, Stored, View};
use crate::rule::{DECLARED, FailurePolicy, Match};

pub use super::api::GROUP;
use super::composite_references::{composition_name, references};
use super::composition;
use super::composition::required::{Required, required};

/// `EnvironmentConfig` in version `v1beta1`: data that Compositions select. Crossplane 1.18 and later serve this
/// version.
pub static ENVIRONMENT_CONFIGS: Kind = environment_configs("v1beta1", &[&BY_LABEL, &BY_LABEL_KEY, &BY_NAME_PREFIX]);
/// `EnvironmentConfig` in version `v1alpha1`, which Crossplane 1.11 to 1.20 serves.
pub static ALPHA_ENVIRONMENT_CONFIGS: Kind =
    environment_configs("v1alpha1", &[&BY_LABEL, &BY_LABEL_KEY, &BY_NAME_PREFIX]);

const fn environment_configs(version: &'static str, indexes: &'static [&'static Index]) -> Kind {
    Kind {
        group: GROUP,
        version,
        kind: "EnvironmentConfig",
        plural: "environmentconfigs",
        scope: Scope::Cluster,
        indexes,
        // Whole objects are stored, because selectors may sort by any path.
        storage: Storage::Whole,
    }
}

/// Returns the kind of EnvironmentConfigs in the version that the cluster serves. This is `v1beta1`, unless the catalog
/// has listed EnvironmentConfigs only in version `v1alpha1`.
pub fn served(view: &View<'_>) -> &'static Kind {
    let is_old = !view.is_complete(&ENVIRONMENT_CONFIGS) && view.is_complete(&ALPHA_ENVIRONMENT_CONFIGS);
    if is_old { &ALPHA_ENVIRONMENT_CONFIGS } else { &ENVIRONMENT_CONFIGS }
}

/// The paths of the labels of an object.
const LABELS: &[Path] = &[&["metadata", "labels"]];

/// Index of objects by each of their labels, with keys such as `stage=prod`.
pub static BY_LABEL: Index = Index {
    name: "label",
    parts: LABELS,
    keys: |object| {
        let labels = Metadata::of(object).labels();
        let keys = labels.into_iter().flatten().map(|(key, value)| label_key(key, value.as_str().unwrap_or_default()));
        keys.collect()
    },
};

/// Index of objects by the keys of their labels.
pub static BY_LABEL_KEY: Index = Index {
    name: "label-key",
    parts: LABELS,
    keys: |object| {
        let labels = Metadata::of(object).labels();
        labels.into_iter().flat_map(|labels| labels.keys().cloned()).collect()
    },
};

/// Index of objects by the first three letters of their name, used for suggestions.
pub static BY_NAME_PREFIX: Index = Index {
    name: "beginning",
    parts: &[&["metadata", "name"]],
    keys: |object| {
        let name = Some(Metadata::of(object).name()).filter(|name| !name.is_empty());
        name.map(name_prefix).into_iter().collect()
    },
};

/// Returns the key under which [`BY_NAME_PREFIX`] lists the objects with this name: the first three letters of the
/// name.
pub fn name_prefix(name: &str) -> String {
    /// Number of letters at the start of a name that form the index key. To suggest a name for a mistyped one,
    /// Portcullis compares only names with the same first letters. The number is small, so that these letters rarely
    /// contain the typing error.
    const LETTERS: usize = 3;
    name.chars().take(LETTERS).collect()
}

/// Returns the key under which [`BY_LABEL`] lists the objects with this label, such as `stage=prod`.
pub fn label_key(key: &str, value: &str) -> String {
    format!("{key}={value}")
}

/// `Composition`: defines the resources that a composite is composed of.
pub static COMPOSITIONS: Kind = Kind {
    group: GROUP,
    version: "v1",
    kind: "Composition",
    plural: "compositions",
    scope: Scope::Cluster,
    indexes: &[&BY_COMPOSITE_TYPE, &BY_REFERRED_CONFIG, &BY_SELECTED_LABEL],
    storage: Storage::Parts(&[&["metadata"], &["spec"]]),
};

/// `CompositionRevision`: an immutable snapshot of a Composition. A composite can be pinned to a revision.
pub static REVISIONS: Kind = Kind {
    group: GROUP,
    version: "v1",
    kind: "CompositionRevision",
    plural: "compositionrevisions",
    scope: Scope::Cluster,
    indexes: &[&BY_REVISED, &BY_REFERRED_CONFIG, &BY_SELECTED_LABEL],
    storage: Storage::Parts(&[&["metadata"], &["spec"]]),
};

/// The label of a CompositionRevision that names its Composition.
pub const COMPOSITION_LABEL: &str = "crossplane.io/composition-name";

/// Index of CompositionRevisions by the name of their Composition.
pub static BY_REVISED: Index = Index {
    name: "composition",
    parts: LABELS,
    keys: |object| revised(object).map(str::to_owned).into_iter().collect(),
};

/// Returns the name of the Composition to which a CompositionRevision belongs; `None` if the revision does not have the
/// label [`COMPOSITION_LABEL`].
pub fn revised(revision: &Value) -> Option<&str> {
    Metadata::of(revision).label(COMPOSITION_LABEL)
}

/// Index of Compositions by the type of their composites, with keys such as `example.org/v1, Kind=XExample`.
pub static BY_COMPOSITE_TYPE: Index = Index {
    name: "composite-type",
    parts: &[&["spec", "compositeTypeRef"]],
    keys: |object| {
        let text = |pointer| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        vec![type_key(text("/spec/compositeTypeRef/apiVersion"), text("/spec/compositeTypeRef/kind"))]
    },
};

/// Returns the key under which [`BY_COMPOSITE_TYPE`] lists the Compositions for a type of composites, such as
/// `example.org/v1, Kind=XExample`.
pub fn type_key(api_version: &str, kind: &str) -> String {
    format!("{api_version}, Kind={kind}")
}

/// Index of Compositions by the names of the EnvironmentConfigs that they reference.
pub static BY_REFERRED_CONFIG: Index = Index {
    name: "environment-config",
    parts: &[&["spec"]],
    keys: |object| {
        let sources = composition::sources(object).into_iter().flat_map(|(_, selection)| selection.sources);
        let named = sources.flatten().filter_map(|source| Some(source.reference?.name));
        let required = required(object).into_iter();
        named
            .chain(required.filter_map(|one| if let Required::Named(name) = one { Some(name) } else { None }))
            .collect()
    },
};

/// Index of Compositions by the label keys of their EnvironmentConfig selectors.
pub static BY_SELECTED_LABEL: Index = Index {
    name: "selected-label",
    parts: &[&["spec"]],
    keys: |object| {
        let sources = composition::sources(object).into_iter().flat_map(|(_, selection)| selection.sources);
        let selectors = sources.flatten().filter_map(|source| source.selector);
        let keys = selectors.flat_map(|selector| selector.match_labels).map(|matcher| matcher.key);
        let required = required(object).into_iter();
        let labels = required.filter_map(|one| if let Required::Labelled(labels) = one { Some(labels) } else { None });
        keys.chain(labels.flatten().map(|(key, _)| key)).collect()
    },
};

/// `CompositeResourceDefinition`: defines a kind of composites. Its name is `<plural>.<group>` of that kind.
pub static DEFINITIONS: Kind = Kind {
    group: GROUP,
    version: "v1",
    kind: "CompositeResourceDefinition",
    plural: "compositeresourcedefinitions",
    scope: Scope::Cluster,
    indexes: &[&BY_DECLARED_TYPE, &BY_CLAIM],
    storage: Storage::Parts(&[&["metadata"], &["spec"]]),
};

/// Index of CompositeResourceDefinitions by the group and kind of their composites.
pub static BY_DECLARED_TYPE: Index = Index {
    name: "declared-type",
    parts: &[&["spec", "group"], &["spec", "names"]],
    keys: |object| {
        let text = |pointer| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        vec![type_key(text("/spec/group"), text("/spec/names/kind"))]
    },
};

/// Returns the CompositeResourceDefinition that defines the type in a Composition's `compositeTypeRef`, and the version
/// of this type. `None` if `compositeTypeRef` is invalid, or if the catalog does not contain the definition.
pub fn definition_of<'c>(composition: &'c Value, view: &View<'_>) -> Option<(Arc<Stored>, &'c str)> {
    let of = composition.get("spec")?.get("compositeTypeRef")?;
    let (group, version) = of.get("apiVersion")?.as_str()?.split_once('/')?;
    let key = type_key(group, of.get("kind")?.as_str()?);
    Some((view.indexed(&DEFINITIONS, &BY_DECLARED_TYPE, "", &key, 1).pop()?, version))
}

const COMPOSITES_NAME: &str = "composites";

/// The declaration of the composite kinds. Each CompositeResourceDefinition defines one composite kind.
pub static COMPOSITES: Declaration = Declaration {
    name: COMPOSITES_NAME,
    by: &DEFINITIONS,
    declares,
    indexes: &[&BY_COMPOSITION, &BY_REFERENCE, &WITH_REFERENCES],
    // Whole objects are stored, because patches may read any path.
    storage: Storage::Whole,
};

const CLAIMS_NAME: &str = "claims";

/// Claims: the namespaced kinds that CompositeResourceDefinitions offer. Crossplane creates a composite for each claim.
pub static CLAIMS: Declaration =
    Declaration { name: CLAIMS_NAME, by: &DEFINITIONS, declares: offers, indexes: &[], storage: Storage::ByName(&[]) };

/// Returns the kind of claims that a CompositeResourceDefinition offers. `None` if it offers no claims.
fn offers(definition: &Value) -> Option<Declared> {
    let composite = declares(definition)?;
    let text = |key| definition.get("spec")?.get("claimNames")?.get(key)?.as_str().map(str::to_owned);
    Some(Declared { kind: text("kind")?, plural: text("plural")?, scope: Scope::Namespaced, ..composite })
}

/// The paths in a CompositeResourceDefinition that [`offers`] reads to determine the kind of the claims. The schemas of
/// the versions are not included, because [`offers`] does not need them.
const DEFINING: &[Path] = &[
    &["spec", "claimNames"],
    &["spec", "group"],
    &["spec", "names"],
    &["spec", "scope"],
    &["spec", "versions", EVERY, "name"],
    &["spec", "versions", EVERY, "referenceable"],
];

/// Index of CompositeResourceDefinitions by the plural name and the group of their claims.
pub static BY_CLAIM: Index = Index {
    name: "claim",
    parts: DEFINING,
    keys: |definition| offers(definition).map(|claim| claim_key(&claim.plural, &claim.group)).into_iter().collect(),
};

/// Returns the key of a claim type in the index [`BY_CLAIM`], such as `databases.example.org`. Under this key, the
/// index finds the CompositeResourceDefinition that defines the claim type. `plural` is the plural name of the claim
/// type, and `group` is its API group.
pub fn claim_key(plural: &str, group: &str) -> String {
    format!("{plural}.{group}")
}

/// Returns the kind of composites that a CompositeResourceDefinition defines, in its referenceable version. `None` if
/// the definition is incomplete.
fn declares(definition: &Value) -> Option<Declared> {
    let spec = definition.get("spec")?;
    let versions = spec.get("versions")?.as_array()?;
    let is_referenceable = |version: &&Value| version.get("referenceable").and_then(Value::as_bool) == Some(true);
    let version = versions.iter().find(is_referenceable)?;
    let text = |value: &Value, key: &str| value.get(key).and_then(Value::as_str).map(str::to_owned);
    // Only Crossplane 2 has namespaced composites.
    let is_namespaced = spec.get("scope").and_then(Value::as_str) == Some("Namespaced");
    Some(Declared {
        group: text(spec, "group")?,
        version: text(version, "name")?,
        kind: text(spec.get("names")?, "kind")?,
        plural: text(spec.get("names")?, "plural")?,
        scope: if is_namespaced { Scope::Namespaced } else { Scope::Cluster },
    })
}

/// Index of composites by the name in their `compositionRef`.
pub static BY_COMPOSITION: Index = Index {
    name: "composition",
    parts: &[&["spec", "compositionRef"], &["spec", "crossplane"]],
    keys: |object| composition_name(object).map(str::to_owned).into_iter().collect(),
};

/// Index of composites by the names of the EnvironmentConfigs that they reference.
pub static BY_REFERENCE: Index = Index {
    name: "environment-config",
    parts: &[&["spec", "environmentConfigRefs"]],
    keys: |object| {
        let names = references(object).into_iter().filter(|name| !name.is_empty());
        names.map(str::to_owned).collect()
    },
};

/// Index of composites that reference at least one EnvironmentConfig. Its only key is `WITH_REFERENCES_KEY`, because
/// the index serves only to count these composites.
pub static WITH_REFERENCES: Index = Index {
    name: "has-environment-configs",
    parts: &[&["spec", "environmentConfigRefs"]],
    keys: |object| {
        let has = references(object).iter().any(|name| !name.is_empty());
        has.then(|| WITH_REFERENCES_KEY.to_owned()).into_iter().collect()
    },
};

/// The only key of the index [`WITH_REFERENCES`]. Under this key, the index finds all composites that reference at
/// least one EnvironmentConfig.
pub const WITH_REFERENCES_KEY: &str = "true";

/// Returns a matcher for admission requests. It matches requests with one of `operations` on a composite of any kind.
/// `failure_policy` decides about these requests while Portcullis does not answer.
pub(super) const fn composites(operations: &'static [Operation], failure_policy: FailurePolicy) -> Match {
    let plural = COMPOSITES_NAME;
    Match {
        group: DECLARED,
        versions: &["*"],
        plural,
        kind: plural,
        subresource: "",
        operations,
        failure_policy,
        reads: None,
    }
}

/// Returns a matcher for admission requests. It matches requests with one of `operations` on a claim of any kind.
/// `failure_policy` decides about these requests while Portcullis does not answer.
pub(super) const fn claims(operations: &'static [Operation], failure_policy: FailurePolicy) -> Match {
    let plural = CLAIMS_NAME;
    Match {
        group: DECLARED,
        versions: &["*"],
        plural,
        kind: plural,
        subresource: "",
        operations,
        failure_policy,
        reads: None,
    }
}

/// Returns a matcher for admission requests. It matches requests with one of `operations` on objects of `kind` in one
/// of `versions`. It does not match requests for subresources. `failure_policy` decides about these requests while
/// Portcullis does not answer.
pub(super) const fn matches(
    kind: &'static Kind,
    versions: &'static [&'static str],
    operations: &'static [Operation],
    failure_policy: FailurePolicy,
) -> Match {
    let Kind { group, plural, kind, .. } = kind;
    Match { group, versions, plural, kind, subresource: "", operations, failure_policy, reads: None }
}
