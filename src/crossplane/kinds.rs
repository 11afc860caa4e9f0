//! The kinds that Crossplane's rules look up.

use serde_json::Value;

use crate::admission::Operation;
use crate::catalog::{Index, Kind, Scope, View};
use crate::rule::{Match, Outage};

/// API group of Compositions, their definitions and EnvironmentConfigs.
pub const GROUP: &str = "apiextensions.crossplane.io";

/// `EnvironmentConfig`: data that Compositions select. Crossplane 1.18 and later serve this version.
pub static ENVIRONMENT_CONFIGS: Kind = environment_configs("v1beta1", &[&BY_LABEL]);
/// `EnvironmentConfig` as Crossplane 1.11 to 1.20 serves it.
pub static ALPHA_ENVIRONMENT_CONFIGS: Kind = environment_configs("v1alpha1", &[&BY_LABEL]);

const fn environment_configs(version: &'static str, indexes: &'static [&'static Index]) -> Kind {
    Kind {
        group: GROUP,
        version,
        kind: "EnvironmentConfig",
        plural: "environmentconfigs",
        scope: Scope::Cluster,
        indexes,
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
    indexes: &[&BY_COMPOSITE_TYPE],
};

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

/// `CompositeResourceDefinition`: declares a kind of composites. Its name is the plural name and the group of that kind.
pub static DEFINITIONS: Kind = Kind {
    group: GROUP,
    version: "v1",
    kind: "CompositeResourceDefinition",
    plural: "compositeresourcedefinitions",
    scope: Scope::Cluster,
    indexes: &[],
};

/// The main resource of a kind, for a rule's scope.
pub(super) const fn matches(
    kind: &'static Kind,
    versions: &'static [&'static str],
    operations: &'static [Operation],
    outage: Outage,
) -> Match {
    let Kind { group, plural, kind, .. } = kind;
    Match { group, versions, plural, kind, subresource: "", operations, outage }
}
