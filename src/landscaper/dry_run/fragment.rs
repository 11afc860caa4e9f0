//! The objects of a DryRunConfiguration: fragments of those on a target cluster.

use std::fmt;

use serde_json::{Value, json};

use crate::admission::FieldPath;

/// What names an object on a target. Landscaper looks it up by these four, literally
/// (`ObjectFromTypedObjectReference` in its `controller-utils/pkg/kubernetes/kubernetes.go`).
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Identity {
    /// `apiVersion`
    pub api_version: String,
    /// `kind`
    pub kind: String,
    /// Its namespace, empty for cluster-scoped objects.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

impl Identity {
    /// What names an object.
    pub fn of(object: &Value) -> Self {
        let text = |pointer| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
        Self {
            api_version: text("/apiVersion"),
            kind: text("/kind"),
            namespace: text("/metadata/namespace"),
            name: text("/metadata/name"),
        }
    }

    /// A fragment with nothing but the key fields, to begin one with.
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

/// An object of `spec.exports`.
#[derive(Debug, Clone, Copy)]
pub struct Fragment<'v> {
    /// Where it stands in the list.
    pub index: usize,
    /// The fragment.
    pub object: &'v Value,
}

impl Fragment<'_> {
    /// Its place in the DryRunConfiguration.
    pub fn field(&self) -> FieldPath {
        FieldPath::of(["spec", "exports"]).index(self.index)
    }

    /// What names it.
    pub fn identity(&self) -> Identity {
        Identity::of(self.object)
    }
}

/// The fragments of a DryRunConfiguration, in their order.
pub fn fragments(configuration: &Value) -> impl Iterator<Item = Fragment<'_>> {
    let list = configuration.pointer("/spec/exports").and_then(Value::as_array);
    list.into_iter().flatten().enumerate().map(|(index, object)| Fragment { index, object })
}

/// The fragment that stands in for an object: the first of its name.
pub fn find<'v>(configuration: &'v Value, identity: &Identity) -> Option<Fragment<'v>> {
    fragments(configuration).find(|fragment| fragment.identity() == *identity)
}
