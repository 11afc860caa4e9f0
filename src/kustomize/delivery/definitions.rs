//! The optional CustomResourceDefinitions of kustomize's kinds Kustomization and Component. With these definitions, the
//! API server can store such objects.

use crate::rule::Definition;

/// The CustomResourceDefinitions of Kustomization and Component. They preserve unknown fields. Only fields that rules
/// check have a type.
pub(super) static DEFINITIONS: [&Definition; 2] = [&KUSTOMIZATIONS, &COMPONENTS];

static KUSTOMIZATIONS: Definition = Definition {
    family: super::FAMILY,
    file: "crds/kustomize/kustomizations.yaml",
    text: "\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: kustomizations.kustomize.config.k8s.io
  labels:
    app.kubernetes.io/name: portcullis
  annotations:
    helm.sh/resource-policy: keep
    api-approved.kubernetes.io: unapproved, kustomize has no kinds of its own
spec:
  group: kustomize.config.k8s.io
  scope: Namespaced
  names:
    kind: Kustomization
    listKind: KustomizationList
    plural: kustomizations
    singular: kustomization
  versions:
    - name: v1beta1
      served: true
      storage: true
      additionalPrinterColumns:
        - {name: Path, type: string, jsonPath: '.metadata.annotations.portcullis\\.dev/path'}
        - {name: Age, type: date, jsonPath: .metadata.creationTimestamp}
      schema:
        openAPIV3Schema:
          description: A kustomization file, stored as an object.
          type: object
          x-kubernetes-preserve-unknown-fields: true
          properties:
            apiVersion: {type: string}
            kind: {type: string}
            metadata: {type: object}
            resources:
              type: array
              items: {type: string}
            components:
              type: array
              items: {type: string}
",
};

static COMPONENTS: Definition = Definition {
    family: super::FAMILY,
    file: "crds/kustomize/components.yaml",
    text: "\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: components.kustomize.config.k8s.io
  labels:
    app.kubernetes.io/name: portcullis
  annotations:
    helm.sh/resource-policy: keep
    api-approved.kubernetes.io: unapproved, kustomize has no kinds of its own
spec:
  group: kustomize.config.k8s.io
  scope: Namespaced
  names:
    kind: Component
    listKind: ComponentList
    plural: components
    singular: component
  versions:
    - name: v1alpha1
      served: true
      storage: true
      additionalPrinterColumns:
        - {name: Path, type: string, jsonPath: '.metadata.annotations.portcullis\\.dev/path'}
        - {name: Age, type: date, jsonPath: .metadata.creationTimestamp}
      schema:
        openAPIV3Schema:
          description: A kustomization file of a Component, stored as an object.
          type: object
          x-kubernetes-preserve-unknown-fields: true
          properties:
            apiVersion: {type: string}
            kind: {type: string}
            metadata: {type: object}
            resources:
              type: array
              items: {type: string}
            components:
              type: array
              items: {type: string}
",
};
