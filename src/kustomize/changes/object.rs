//! The objects that are compared.

use std::fmt;

use crate::kustomize::build::{Built, Resource, Step};
use crate::kustomize::node::Node;

/// The identity of an object in a cluster, which does not include the API version.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Id {
    /// The API group; empty for the core group.
    pub group: String,
    /// The kind.
    pub kind: String,
    /// The namespace; empty if the object has none.
    pub namespace: String,
    /// The name.
    pub name: String,
}

impl Id {
    /// Returns namespace and name.
    pub fn place(&self) -> String {
        if self.namespace.is_empty() { self.name.clone() } else { format!("{}/{}", self.namespace, self.name) }
    }
}

impl fmt::Display for Id {
    /// Formats the identity, such as `Deployment.apps shop/web`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let dot = if self.group.is_empty() { "" } else { "." };
        write!(f, "{}{dot}{} {}", self.kind, self.group, self.place())
    }
}

/// An object that a root renders.
#[derive(Debug, Clone)]
pub struct Object {
    /// Its identity.
    pub id: Id,
    /// Its `apiVersion`.
    pub api_version: String,
    /// The name in its file or generator, without prefixes and hashes.
    pub original_name: String,
    /// Its content. The origins of nodes refer to the files of its build.
    pub node: Node,
    /// Its text, as kustomize prints it.
    pub text: String,
}

impl Object {
    /// Returns the objects of a build.
    ///
    /// # Errors
    ///
    /// If an object cannot be printed.
    pub(super) fn of_build(built: &Built<'_>) -> Step<Vec<Self>> {
        let object = |(resource, text)| Self::new(resource, text);
        Ok(built.resources().iter().zip(built.texts()?).map(object).collect())
    }

    fn new(resource: &Resource, text: String) -> Self {
        let api_version = resource.node.get("apiVersion").and_then(Node::text).unwrap_or_default().to_owned();
        let id = Id {
            group: api_version.rsplit_once('/').map(|(group, _)| group.to_owned()).unwrap_or_default(),
            kind: resource.kind().to_owned(),
            namespace: resource.namespace().to_owned(),
            name: resource.name().to_owned(),
        };
        let original_name = resource.original_name().to_owned();
        Self { id, api_version, original_name, node: resource.node.clone(), text }
    }

    /// Returns whether its values must not be shown.
    pub fn is_secret(&self) -> bool {
        self.id.group.is_empty() && self.id.kind == "Secret"
    }
}
