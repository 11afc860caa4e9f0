//! The fields of a kustomization file at all levels, with their types, as in kustomize's `api/types`.

/// The type of a field in a kustomization file.
#[derive(Debug)]
pub(super) enum Type {
    /// The field contains a string.
    Text,
    /// The field contains a boolean.
    Flag,
    /// The field contains a 64-bit integer.
    Integer,
    /// The field contains a mapping with any content.
    Anything,
    /// The field contains a mapping of strings.
    Texts,
    List(&'static Type),
    /// The field contains a mapping. Each key of the mapping must be the name of one of these fields. All these fields
    /// are optional.
    Fields(&'static Fields),
}

/// The fields of a Go struct of kustomize.
#[derive(Debug)]
pub(super) struct Fields {
    /// The name of the Go struct, such as `Kustomization`. Messages about unknown fields contain it.
    pub(super) name: &'static str,
    /// Whether the Go field is a pointer, so that an empty mapping differs from an absent one.
    pub(super) pointer: bool,
    /// The names and types of the fields.
    pub(super) fields: &'static [(&'static str, Type)],
}

use Type::{Anything, Flag, Integer, List, Text, Texts};

const fn texts() -> Type {
    List(&Text)
}

macro_rules! structs {
    ($($(#[$pointer:ident])? $id:ident = $name:literal { $($field:literal: $ty:expr),* $(,)? })*) => {
        $(pub(super) static $id: Fields = Fields {
            name: $name,
            pointer: structs!(@pointer $($pointer)?),
            fields: &[$(($field, $ty)),*],
        };)*
    };
    (@pointer) => { false };
    (@pointer pointer) => { true };
}

structs! {
    KUSTOMIZATION = "Kustomization" {
        "kind": Text,
        "apiVersion": Text,
        "metadata": Type::Fields(&METADATA),
        "openapi": Texts,
        "namePrefix": Text,
        "nameSuffix": Text,
        "namespace": Text,
        "commonLabels": Texts,
        "labels": List(&Type::Fields(&LABEL)),
        "commonAnnotations": Texts,
        "patchesStrategicMerge": texts(),
        "patchesJson6902": List(&Type::Fields(&PATCH)),
        "patches": List(&Type::Fields(&PATCH)),
        "images": List(&Type::Fields(&IMAGE)),
        "imageTags": List(&Type::Fields(&IMAGE)),
        "replacements": List(&Type::Fields(&REPLACEMENT)),
        "replicas": List(&Type::Fields(&REPLICA)),
        "vars": List(&Type::Fields(&VAR)),
        "sortOptions": Type::Fields(&SORT_OPTIONS),
        "resources": texts(),
        "components": texts(),
        "crds": texts(),
        "bases": texts(),
        "configMapGenerator": List(&Type::Fields(&CONFIG_MAP)),
        "secretGenerator": List(&Type::Fields(&SECRET)),
        "helmGlobals": Type::Fields(&HELM_GLOBALS),
        "helmCharts": List(&Type::Fields(&HELM_CHART)),
        "helmChartInflationGenerator": List(&Type::Fields(&HELM_CHART_ARGS)),
        "generatorOptions": Type::Fields(&GENERATOR_OPTIONS),
        "configurations": texts(),
        "generators": texts(),
        "transformers": texts(),
        "validators": texts(),
        "buildMetadata": texts(),
    }
    #[pointer] METADATA = "ObjectMeta" {
        "name": Text, "namespace": Text, "labels": Texts, "annotations": Texts,
    }
    LABEL = "Label" {
        "pairs": Texts, "includeSelectors": Flag, "includeTemplates": Flag,
        "fields": List(&Type::Fields(&FIELD_SPEC)),
    }
    FIELD_SPEC = "FieldSpec" {
        "group": Text, "version": Text, "kind": Text, "path": Text, "create": Flag,
    }
    PATCH = "Patch" {
        "path": Text, "patch": Text, "target": Type::Fields(&SELECTOR), "options": Type::Fields(&PATCH_OPTIONS),
    }
    #[pointer] SELECTOR = "Selector" {
        "group": Text, "version": Text, "kind": Text, "name": Text, "namespace": Text,
        "annotationSelector": Text, "labelSelector": Text,
    }
    #[pointer] PATCH_OPTIONS = "PatchArgs" { "allowNameChange": Flag, "allowKindChange": Flag }
    IMAGE = "Image" {
        "name": Text, "newName": Text, "tagSuffix": Text, "newTag": Text, "digest": Text,
    }
    REPLACEMENT = "ReplacementField" {
        "source": Type::Fields(&SOURCE), "targets": List(&Type::Fields(&TARGET)), "sourceValue": Text, "path": Text,
    }
    REPLACEMENT_IN_FILE = "Replacement" {
        "source": Type::Fields(&SOURCE), "targets": List(&Type::Fields(&TARGET)), "sourceValue": Text,
    }
    #[pointer] SOURCE = "SourceSelector" {
        "group": Text, "version": Text, "kind": Text, "name": Text, "namespace": Text,
        "fieldPath": Text, "options": Type::Fields(&FIELD_OPTIONS),
    }
    #[pointer] TARGET = "TargetSelector" {
        "select": Type::Fields(&SELECTOR), "reject": List(&Type::Fields(&SELECTOR)),
        "fieldPaths": texts(), "options": Type::Fields(&FIELD_OPTIONS),
    }
    #[pointer] FIELD_OPTIONS = "FieldOptions" {
        "delimiter": Text, "index": Integer, "encoding": Text, "create": Flag,
    }
    REPLICA = "Replica" { "name": Text, "count": Integer }
    VAR = "Var" {
        "name": Text, "objref": Type::Fields(&VAR_TARGET), "fieldref": Type::Fields(&VAR_FIELD),
    }
    VAR_TARGET = "Target" {
        "apiVersion": Text, "group": Text, "version": Text, "kind": Text, "name": Text, "namespace": Text,
    }
    VAR_FIELD = "FieldSelector" { "fieldPath": Text }
    #[pointer] SORT_OPTIONS = "SortOptions" {
        "order": Text, "legacySortOptions": Type::Fields(&LEGACY_SORT_OPTIONS),
    }
    #[pointer] LEGACY_SORT_OPTIONS = "LegacySortOptions" { "orderFirst": texts(), "orderLast": texts() }
    CONFIG_MAP = "ConfigMapArgs" {
        "namespace": Text, "name": Text, "behavior": Text, "literals": texts(), "files": texts(), "envs": texts(),
        "env": Text, "options": Type::Fields(&GENERATOR_OPTIONS),
    }
    SECRET = "SecretArgs" {
        "namespace": Text, "name": Text, "behavior": Text, "literals": texts(), "files": texts(), "envs": texts(),
        "env": Text, "options": Type::Fields(&GENERATOR_OPTIONS), "type": Text,
    }
    #[pointer] GENERATOR_OPTIONS = "GeneratorOptions" {
        "labels": Texts, "annotations": Texts, "disableNameSuffixHash": Flag, "immutable": Flag,
    }
    #[pointer] HELM_GLOBALS = "HelmGlobals" { "chartHome": Text, "configHome": Text }
    HELM_CHART = "HelmChart" {
        "name": Text, "version": Text, "repo": Text, "releaseName": Text, "namespace": Text,
        "additionalValuesFiles": texts(), "valuesFile": Text, "valuesInline": Anything, "valuesMerge": Text,
        "includeCRDs": Flag, "skipHooks": Flag, "apiVersions": texts(), "kubeVersion": Text, "nameTemplate": Text,
        "skipTests": Flag, "debug": Flag, "devel": Flag,
    }
    HELM_CHART_ARGS = "HelmChartArgs" {
        "chartName": Text, "chartVersion": Text, "chartRepoUrl": Text, "chartHome": Text, "chartRepoName": Text,
        "helmBin": Text, "helmHome": Text, "values": Text, "valuesLocal": Anything, "valuesMerge": Text,
        "releaseName": Text, "releaseNamespace": Text, "extraArgs": texts(),
    }
    // a file that is listed in `configurations`
    CONFIGURATION = "TransformerConfig" {
        "namePrefix": List(&Type::Fields(&FIELD_SPEC)), "nameSuffix": List(&Type::Fields(&FIELD_SPEC)),
        "namespace": List(&Type::Fields(&FIELD_SPEC)), "commonLabels": List(&Type::Fields(&FIELD_SPEC)),
        "labels": List(&Type::Fields(&FIELD_SPEC)), "templateLabels": List(&Type::Fields(&FIELD_SPEC)),
        "commonAnnotations": List(&Type::Fields(&FIELD_SPEC)),
        "nameReference": List(&Type::Fields(&NAME_REFERENCE)),
        "varReference": List(&Type::Fields(&FIELD_SPEC)), "images": List(&Type::Fields(&FIELD_SPEC)),
        "replicas": List(&Type::Fields(&FIELD_SPEC)),
    }
    NAME_REFERENCE = "NameBackReferences" {
        "group": Text, "version": Text, "kind": Text, "fieldSpecs": List(&Type::Fields(&FIELD_SPEC)),
    }
}

impl Type {
    /// Describes the type for messages, such as `a string`.
    pub(super) fn words(&self) -> &'static str {
        match self {
            Text => "a string",
            Flag => "true or false",
            Integer => "an integer",
            Anything | Texts | Type::Fields(_) => "a mapping",
            List(Text) => "a list of strings",
            List(_) => "a list",
        }
    }
}

impl Fields {
    /// Returns the name and type of the field into which Go decodes a key. Prefers a field with exactly this name to a
    /// field whose name differs only in case. `None` if there is no such field.
    pub(super) fn find(&self, key: &str) -> Option<&'static (&'static str, Type)> {
        let exact = self.fields.iter().find(|(name, _)| *name == key);
        exact.or_else(|| self.fields.iter().find(|(name, _)| folded(name) == folded(key)))
    }
}

/// Converts a name to lower case as Go's `encoding/json` does. Go also converts two letters that are not ASCII: `ſ`
/// (long s) to `s`, and the Kelvin sign to `k`.
fn folded(name: &str) -> String {
    let fold = |c: char| match c {
        'ſ' => 's',
        'K' => 'k',
        c => c.to_ascii_lowercase(),
    };
    name.chars().map(fold).collect()
}
