//! A decoded kustomization file: the fields that the analysis uses.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

/// The content of a kustomization file (`types.Kustomization`).
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[allow(missing_docs, reason = "the names and meanings are kustomize's own")]
pub struct Kustomization {
    pub kind: String,
    pub api_version: String,
    pub openapi: BTreeMap<String, String>,
    pub name_prefix: String,
    pub name_suffix: String,
    pub namespace: String,
    pub common_labels: BTreeMap<String, String>,
    pub labels: Vec<Label>,
    pub common_annotations: BTreeMap<String, String>,
    pub patches_strategic_merge: Vec<String>,
    pub patches_json6902: Vec<Patch>,
    pub patches: Vec<Patch>,
    pub replacements: Vec<Replacement>,
    pub replicas: Vec<Replica>,
    pub vars: Vec<Var>,
    pub sort_options: Option<SortOptions>,
    pub resources: Vec<String>,
    pub bases: Vec<String>,
    pub components: Vec<String>,
    pub crds: Vec<String>,
    pub config_map_generator: Vec<Generator>,
    pub secret_generator: Vec<Generator>,
    pub generator_options: Option<GeneratorOptions>,
    pub images: Vec<Image>,
    pub image_tags: Vec<Image>,
    pub helm_charts: Vec<Value>,
    pub helm_chart_inflation_generator: Vec<Value>,
    pub configurations: Vec<String>,
    pub generators: Vec<String>,
    pub transformers: Vec<String>,
    pub validators: Vec<String>,
    pub build_metadata: Vec<String>,
}

/// An entry of `labels`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[allow(missing_docs, reason = "the names and meanings are kustomize's own")]
pub struct Label {
    pub pairs: BTreeMap<String, String>,
    pub include_selectors: bool,
    pub include_templates: bool,
    pub fields: Vec<Value>,
}

/// An entry of `patches` or `patchesJson6902`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[allow(missing_docs, reason = "the names and meanings are kustomize's own")]
pub struct Patch {
    pub path: String,
    pub patch: String,
    pub target: Option<Selector>,
    pub options: Option<PatchOptions>,
}

/// The field `options` of a patch.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[allow(missing_docs, reason = "the names and meanings are kustomize's own")]
pub struct PatchOptions {
    pub allow_name_change: bool,
    pub allow_kind_change: bool,
}

/// A selector of the objects that a patch or replacement changes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[allow(missing_docs, reason = "the names and meanings are kustomize's own")]
pub struct Selector {
    pub group: String,
    pub version: String,
    pub kind: String,
    pub name: String,
    pub namespace: String,
    pub annotation_selector: String,
    pub label_selector: String,
}

/// An entry of `replacements`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[allow(missing_docs, reason = "the names and meanings are kustomize's own")]
pub struct Replacement {
    pub path: String,
    pub source: Option<Source>,
    pub source_value: Option<String>,
    pub targets: Option<Vec<Target>>,
}

/// The field `source` of a replacement, which selects the value to copy.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[allow(missing_docs, reason = "the names and meanings are kustomize's own")]
pub struct Source {
    pub group: String,
    pub version: String,
    pub kind: String,
    pub name: String,
    pub namespace: String,
    pub field_path: String,
    pub options: Option<Value>,
}

/// An entry of `targets` of a replacement.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[allow(missing_docs, reason = "the names and meanings are kustomize's own")]
pub struct Target {
    pub select: Option<Selector>,
    pub reject: Vec<Selector>,
    pub field_paths: Vec<String>,
    pub options: Option<Value>,
}

/// An entry of `replicas`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[allow(missing_docs, reason = "the names and meanings are kustomize's own")]
pub struct Replica {
    pub name: String,
    pub count: i64,
}

/// An entry of `images`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[allow(missing_docs, reason = "the names and meanings are kustomize's own")]
pub struct Image {
    pub name: String,
    pub new_name: String,
    pub tag_suffix: String,
    pub new_tag: String,
    pub digest: String,
}

/// An entry of `vars`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[allow(missing_docs, reason = "the names and meanings are kustomize's own")]
pub struct Var {
    pub name: String,
    pub objref: VarTarget,
    pub fieldref: VarField,
}

/// The field `objref` of a var, which names an object.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[allow(missing_docs, reason = "the names and meanings are kustomize's own")]
pub struct VarTarget {
    pub api_version: String,
    pub group: String,
    pub version: String,
    pub kind: String,
    pub name: String,
    pub namespace: String,
}

/// The field `fieldref` of a var. It names the field of the object from which the var gets its value.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[allow(missing_docs, reason = "the names and meanings are kustomize's own")]
pub struct VarField {
    pub field_path: String,
}

/// The field `sortOptions`, which sets the order of the printed objects.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[allow(missing_docs, reason = "the names and meanings are kustomize's own")]
pub struct SortOptions {
    pub order: String,
    pub legacy_sort_options: Option<Value>,
}

/// An entry of `configMapGenerator` or `secretGenerator`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[allow(missing_docs, reason = "the names and meanings are kustomize's own")]
pub struct Generator {
    pub namespace: String,
    pub name: String,
    pub behavior: String,
    pub literals: Vec<String>,
    pub files: Vec<String>,
    pub envs: Vec<String>,
    pub env: String,
    pub options: Option<GeneratorOptions>,
    #[serde(rename = "type")]
    pub secret_type: String,
}

/// The field `options` of a generator, or the field `generatorOptions` of the file. `generatorOptions` applies to all
/// generators.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[allow(missing_docs, reason = "the names and meanings are kustomize's own")]
pub struct GeneratorOptions {
    pub labels: BTreeMap<String, String>,
    pub annotations: BTreeMap<String, String>,
    pub disable_name_suffix_hash: bool,
    pub immutable: bool,
}

/// The kind of a kustomization that other kustomizations list under `components`.
pub const COMPONENT: &str = "Component";
/// The kind of a kustomization that is built on its own, or that other kustomizations list under `resources`.
pub(super) const KUSTOMIZATION: &str = "Kustomization";
/// The apiVersion of a Component.
pub(super) const COMPONENT_VERSION: &str = "kustomize.config.k8s.io/v1alpha1";
/// The apiVersion of a Kustomization.
pub const KUSTOMIZATION_VERSION: &str = "kustomize.config.k8s.io/v1beta1";

impl Kustomization {
    /// Returns the kind; `Kustomization` if the file does not set it.
    pub fn kind(&self) -> &str {
        if self.kind.is_empty() { KUSTOMIZATION } else { &self.kind }
    }

    /// Returns whether the kind is Component.
    pub fn is_component(&self) -> bool {
        self.kind == COMPONENT
    }

    /// Returns the apiVersion that the kind of the file requires.
    pub fn required_version(&self) -> &'static str {
        if self.is_component() { COMPONENT_VERSION } else { KUSTOMIZATION_VERSION }
    }
}
