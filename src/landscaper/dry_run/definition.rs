//! The manifest of the CustomResourceDefinition of DryRunConfiguration.

use crate::rule::Definition;

/// The CustomResourceDefinition of DryRunConfiguration. Its schema requires an apiVersion, a kind and a name in each
/// object of `spec.exports`, and keeps all other fields of these objects.
pub(super) static DRY_RUN_CONFIGURATIONS: Definition = Definition {
    family: "DR",
    file: "crds/dryrunconfigurations.yaml",
    text: "\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: dryrunconfigurations.landscaper.gardener.cloud
  labels:
    app.kubernetes.io/name: portcullis
  annotations:
    helm.sh/resource-policy: keep
spec:
  group: landscaper.gardener.cloud
  scope: Namespaced
  names:
    kind: DryRunConfiguration
    listKind: DryRunConfigurationList
    plural: dryrunconfigurations
    singular: dryrunconfiguration
    shortNames: [drc]
  versions:
    - name: v1alpha1
      served: true
      storage: true
      additionalPrinterColumns:
        - {name: First kind, type: string, jsonPath: '.spec.exports[0].kind'}
        - {name: First name, type: string, jsonPath: '.spec.exports[0].metadata.name'}
        - {name: Age, type: date, jsonPath: .metadata.creationTimestamp}
      schema:
        openAPIV3Schema:
          description: Fragments of objects on targets, from which the exports of a dry run read values.
          type: object
          required: [spec]
          properties:
            apiVersion: {type: string}
            kind: {type: string}
            metadata: {type: object}
            spec:
              type: object
              properties:
                exports:
                  description: >-
                    Fragments of objects: the identity of the object, and the fields that the jsonPath of an export reads.
                  type: array
                  items:
                    type: object
                    x-kubernetes-preserve-unknown-fields: true
                    required: [apiVersion, kind, metadata]
                    properties:
                      apiVersion: {type: string, minLength: 1}
                      kind: {type: string, minLength: 1}
                      metadata:
                        type: object
                        x-kubernetes-preserve-unknown-fields: true
                        required: [name]
                        properties:
                          name: {type: string, minLength: 1}
                          namespace: {type: string}
",
};
