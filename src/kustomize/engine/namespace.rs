//! The transformer for the field `namespace` of a kustomization, which sets the namespace of objects.
//!
//! Source: kustomize's `NamespaceTransformer` and `api/filters/namespace`.

use super::field_spec::{Create, FieldError, FieldSpec, Text, kind_of};
use super::resource::Resource;
use super::setters::{map_at, overwrite, set_scalar};
use crate::kustomize::identity::Scope;
use crate::kustomize::node::{Node, Origin, Tag};

/// The annotation of objects that Helm rendered. Helm has already set the namespaces of these objects, so the namespace
/// transformer skips them.
pub(super) const HELM: &str = "internal.config.kubernetes.io/helm-generated";

/// The subjects of RoleBindings and ClusterRoleBindings whose namespace kustomize's namespace transformer sets.
/// Corresponds to the transformer's field `setRoleBindingSubjects`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Subjects {
    /// The namespace is set in the subjects with the name `default`.
    #[default]
    Default,
    /// The namespace is set in the subjects with the kind `ServiceAccount`.
    ServiceAccounts,
    /// The transformer does not set the namespace of any subject.
    None,
}

/// A transformer that sets the namespace of objects.
#[derive(Debug, Clone)]
pub(super) struct Namespace<'s> {
    pub namespace: &'s str,
    /// The fields to set in addition to `metadata.namespace`.
    pub specs: &'s [FieldSpec],
    /// Whether fields that already have a namespace stay unchanged.
    pub unset_only: bool,
    /// The subjects of role bindings in which the transformer sets the namespace.
    pub subjects: Subjects,
    /// File and line of the entry that configures the transformer. Nodes that the transformer changes get this origin.
    pub origin: Origin,
}

impl Namespace<'_> {
    /// Sets the namespace of an object: in `metadata.namespace`, and in other fields that contain a namespace.
    ///
    /// # Errors
    ///
    /// - If a field that contains the namespace is not a scalar, or if a parent of this field is a scalar.
    /// - If the subjects of a role binding are not a list of mappings.
    pub(super) fn apply(&self, resource: &mut Resource, scope: &Scope) -> Result<(), FieldError> {
        let gvk = resource.gvk();
        let is_role_binding = matches!(gvk.kind, "RoleBinding" | "ClusterRoleBinding");
        let is_core = gvk.group.is_empty() && gvk.version == "v1";
        if !scope.is_cluster(&gvk) {
            self.set_own(resource)?;
        }
        if is_role_binding {
            self.set_subjects(resource)?;
        }
        for spec in self.specs {
            let is_left_out = &*spec.path == "metadata/namespace"
                || (&*spec.path == "metadata/name" && !is_core)
                || (is_role_binding
                    && matches!(&*spec.kind, "RoleBinding" | "ClusterRoleBinding")
                    && &*spec.path == "subjects/namespace");
            if !is_left_out {
                self.set_spec(resource, spec)?;
            }
        }
        Ok(())
    }

    fn set_spec(&self, resource: &mut Resource, spec: &FieldSpec) -> Result<(), FieldError> {
        spec.apply(resource, Create::Scalar(Tag::Str), &mut |node| self.set(node, &spec.path))
    }

    fn set_own(&self, resource: &mut Resource) -> Result<(), FieldError> {
        self.set_spec(resource, &FieldSpec::of_all("metadata/namespace", true))
    }

    fn set(&self, node: &mut Node, path: &Text) -> Result<(), FieldError> {
        if !node.is_scalar() {
            let path = path.clone();
            return Err(FieldError::Kind { path, found: kind_of(node), expected: "a scalar" });
        }
        let has_value = !node.is_null() && node.text().is_some_and(|text| !text.is_empty());
        if !(self.unset_only && has_value) {
            overwrite(node, Node::string(self.namespace).made_at(self.origin));
        }
        Ok(())
    }

    fn set_subjects(&self, resource: &mut Resource) -> Result<(), FieldError> {
        let (field, value) = match self.subjects {
            Subjects::Default => ("name", "default"),
            Subjects::ServiceAccounts => ("kind", "ServiceAccount"),
            Subjects::None => return Ok(()),
        };
        let path = "subjects/namespace".into();
        let Some(subjects) = resource.node.get_mut("subjects").filter(|subjects| !subjects.is_null()) else {
            return Ok(());
        };
        let found = kind_of(subjects);
        let Some(items) = subjects.items_mut() else {
            return Err(FieldError::Kind { path: "subjects".into(), found, expected: "a sequence" });
        };
        for subject in items {
            if subject.is_scalar() && !subject.is_null() || subject.is_seq() {
                let found = kind_of(subject);
                return Err(FieldError::Kind { path: "subjects".into(), found, expected: "a sequence of mappings" });
            }
            if subject.get(field).and_then(Node::text) == Some(value) {
                if subject.get("namespace").is_none() {
                    subject.set("namespace", Node::scalar(""));
                }
                if let Some(namespace) = subject.get_mut("namespace") {
                    self.set(namespace, &path)?;
                }
            }
        }
        Ok(())
    }
}

/// Returns whether Helm rendered an object.
pub(super) fn is_from_helm(resource: &Resource) -> bool {
    resource.annotation(HELM) == Some("true")
}

/// Sets `metadata.namespace` of an object, without the special cases of the namespace transformer.
pub(super) fn set_plainly(resource: &mut Resource, namespace: &str) {
    if let Some(metadata) = map_at(&mut resource.node, "metadata") {
        set_scalar(metadata, "namespace", Node::string(namespace));
    }
}
