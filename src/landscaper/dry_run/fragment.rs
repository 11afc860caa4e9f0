//! Reads the fragments in a DryRunConfiguration. A fragment is a part of an object, such as a Secret. In a dry run,
//! exports read their values from fragments instead of from the objects on the target cluster.

use std::fmt;

use serde_json::{Value, json};

use crate::admission::{FieldPath, Metadata};

/// The identity of an object on a target: apiVersion, kind, namespace and name.
///
/// Source: `ObjectFromTypedObjectReference` in Landscaper's `controller-utils/pkg/kubernetes/kubernetes.go`, which uses
/// these four fields unchanged.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Identity {
    /// The `apiVersion` of the object.
    pub api_version: String,
    /// The `kind` of the object.
    pub kind: String,
    /// The `metadata.namespace` of the object; empty for cluster-scoped objects.
    pub namespace: String,
    /// The `metadata.name` of the object.
    pub name: String,
}

impl Identity {
    /// Returns the identity of an object: its apiVersion, kind, namespace and name.
    pub fn of(object: &Value) -> Self {
        let text = |key| object.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
        let metadata = Metadata::of(object);
        Self {
            api_version: text("apiVersion"),
            kind: text("kind"),
            namespace: metadata.namespace().to_owned(),
            name: metadata.name().to_owned(),
        }
    }

    /// Returns a partial Kubernetes object that contains only this apiVersion, kind, namespace and name. Error messages
    /// about a fragment that is missing in a DryRunConfiguration show this object, so that the user can add it to
    /// `spec.exports`.
    pub fn to_fragment(&self) -> Value {
        let mut metadata = json!({"name": self.name});
        if !self.namespace.is_empty() {
            metadata["namespace"] = self.namespace.as_str().into();
        }
        json!({"apiVersion": self.api_version, "kind": self.kind, "metadata": metadata})
    }
}

impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { api_version, kind, namespace, name } = self;
        match namespace.as_str() {
            "" => write!(f, "{kind} {name} ({api_version})"),
            namespace => write!(f, "{kind} {namespace}/{name} ({api_version})"),
        }
    }
}

/// A fragment in a DryRunConfiguration. It is an entry of `spec.exports`, and contains a part of an object on the
/// target cluster.
#[derive(Debug, Clone, Copy)]
pub struct Fragment<'v> {
    /// The index of the entry in `spec.exports` of the DryRunConfiguration.
    pub index: usize,
    /// The entry of `spec.exports`: a partial object with its apiVersion, kind, name and some of its fields.
    pub object: &'v Value,
}

impl Fragment<'_> {
    /// Returns the field path of this fragment in the DryRunConfiguration, such as `spec.exports[0]`.
    pub fn field(&self) -> FieldPath {
        FieldPath::of(["spec", "exports"]).index(self.index)
    }

    /// Returns the apiVersion, kind, namespace and name of this fragment, which is a part of an object on the target
    /// cluster. The complete object has the same identity.
    pub fn identity(&self) -> Identity {
        Identity::of(self.object)
    }
}

/// Returns the fragments of a DryRunConfiguration in order. A fragment is an entry of `spec.exports`.
pub fn fragments(configuration: &Value) -> impl Iterator<Item = Fragment<'_>> {
    let list = configuration.pointer("/spec/exports").and_then(Value::as_array);
    list.into_iter().flatten().enumerate().map(|(index, object)| Fragment { index, object })
}

/// Returns the first fragment in `spec.exports` of a DryRunConfiguration that has this identity; `None` if there is
/// none.
pub fn find<'v>(configuration: &'v Value, identity: &Identity) -> Option<Fragment<'v>> {
    fragments(configuration).find(|fragment| fragment.identity() == *identity)
}
