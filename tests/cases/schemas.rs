//! The structural schemas of the kinds for which mutators exist. Tests use them for pruning and defaulting.

use std::sync::LazyLock;

use serde_json::{Value, json};

use super::objects;

static LANDSCAPER_SCHEMAS: LazyLock<Value> = LazyLock::new(|| objects(LANDSCAPER).remove(0));
static COMPOSITE_SCHEMA: LazyLock<Value> = LazyLock::new(|| objects(COMPOSITE).remove(0));

/// The fields in `spec` of Landscaper's kinds, as of Landscaper 0.152. An end-to-end test compares them with the real
/// CRDs.
const LANDSCAPER: &str = "
Installation:
  automaticReconcile:
    properties:
      failedReconcile: {properties: {cronSpec: {}, interval: {}, numberOfReconciles: {}}}
      succeededReconcile: {properties: {cronSpec: {}, interval: {}}}
  blueprint:
    properties:
      inline: {properties: {filesystem: {x-kubernetes-preserve-unknown-fields: true}}}
      ref: {properties: {resourceName: {}}}
  componentDescriptor:
    properties:
      inline: {x-kubernetes-preserve-unknown-fields: true}
      ref:
        properties:
          componentName: {}
          repositoryContext: {x-kubernetes-preserve-unknown-fields: true}
          version: {}
  context: {}
  exportDataMappings: {x-kubernetes-preserve-unknown-fields: true}
  exports:
    properties:
      data: {items: {properties: {dataRef: {}, name: {}}}}
      targets: {items: {properties: {name: {}, target: {}}}}
  importDataMappings: {x-kubernetes-preserve-unknown-fields: true}
  imports:
    properties:
      data:
        items:
          properties:
            configMapRef: {properties: {key: {}, name: {}}}
            dataRef: {}
            name: {}
            secretRef: {properties: {key: {}, name: {}}}
            version: {}
      targets:
        items:
          properties:
            name: {}
            target: {}
            targetListRef: {}
            targetMap: {additionalProperties: {}}
            targetMapRef: {}
            targets: {items: {}}
  optimization: {properties: {hasNoSiblingExports: {}, hasNoSiblingImports: {}}}
  verification: {properties: {signatureName: {}}}
Execution:
  context: {}
  deployItems:
    items:
      properties:
        config: {x-kubernetes-embedded-resource: true, x-kubernetes-preserve-unknown-fields: true}
        dependsOn: {items: {}}
        labels: {additionalProperties: {}}
        name: {}
        onDelete: {properties: {skipUninstallIfClusterRemoved: {}}}
        target: {properties: {name: {}, namespace: {}}}
        timeout: {}
        type: {}
        updateOnChangeOnly: {}
  deployItemsCompressed: {}
DeployItem:
  config: {x-kubernetes-embedded-resource: true, x-kubernetes-preserve-unknown-fields: true}
  context: {}
  onDelete: {properties: {skipUninstallIfClusterRemoved: {}}}
  target: {properties: {name: {}, namespace: {}}}
  timeout: {}
  type: {}
  updateOnChangeOnly: {}
";

/// The fields that Crossplane up to 1.17 adds to the `spec` of every composite. Crossplane 2 adds most of them to
/// `spec.crossplane` instead.
const COMPOSITE: &str = "
compositionRef: {properties: {name: {}}}
compositionSelector: {properties: {matchLabels: {additionalProperties: {}}}}
compositionRevisionRef: {properties: {name: {}}}
compositionRevisionSelector: {properties: {matchLabels: {additionalProperties: {}}}}
compositionUpdatePolicy: {default: Automatic}
claimRef: {properties: {apiVersion: {}, kind: {}, name: {}, namespace: {}}}
environmentConfigRefs: {items: {properties: {apiVersion: {}, kind: {}, name: {}}}}
resourceRefs: {items: {properties: {apiVersion: {}, kind: {}, name: {}}}}
publishConnectionDetailsTo: {x-kubernetes-preserve-unknown-fields: true}
writeConnectionSecretToRef: {properties: {name: {}, namespace: {}}}
";

/// The Landscaper kinds for which mutators exist.
pub const LANDSCAPER_KINDS: [&str; 3] = ["Installation", "Execution", "DeployItem"];

/// Returns the structural schema of a Landscaper kind. `None` if there is no mutator for the kind.
pub fn landscaper(kind: &str) -> Option<Value> {
    let spec = LANDSCAPER_SCHEMAS.get(kind)?;
    let open = json!({"x-kubernetes-preserve-unknown-fields": true});
    Some(json!({"properties": {"spec": {"properties": spec}, "status": open}}))
}

/// Returns the structural schema of a composite: the schema in its CompositeResourceDefinition, and the fields that
/// Crossplane adds to `spec`. `None` if `definitions` does not define the kind and version.
pub fn composite(object: &Value, definitions: &[Value]) -> Option<Value> {
    let api_version = object["apiVersion"].as_str()?;
    let (group, version) = api_version.split_once('/')?;
    let declares = |definition: &&Value| {
        definition["kind"] == "CompositeResourceDefinition"
            && definition["spec"]["group"] == group
            && definition["spec"]["names"]["kind"] == object["kind"]
    };
    let definition = definitions.iter().find(declares)?;
    let versions = definition["spec"]["versions"].as_array()?;
    let version = versions.iter().find(|declared| declared["name"] == version)?;
    let mut schema = version.pointer("/schema/openAPIV3Schema").cloned().unwrap_or_else(|| json!({}));
    let mut fields = COMPOSITE_SCHEMA.clone();
    if definition["apiVersion"] == "apiextensions.crossplane.io/v2" {
        fields.as_object_mut()?.remove("environmentConfigRefs");
        fields = json!({"crossplane": {"properties": fields}});
    }
    let spec = schema.as_object_mut()?.entry("properties").or_insert_with(|| json!({}));
    let spec = spec.as_object_mut()?.entry("spec").or_insert_with(|| json!({}));
    let spec = spec.as_object_mut()?.entry("properties").or_insert_with(|| json!({}));
    spec.as_object_mut()?.extend(fields.as_object()?.clone());
    Some(schema)
}
