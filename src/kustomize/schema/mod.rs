//! The OpenAPI schemas that kustomize uses to merge lists and to recognize cluster-scoped kinds.
//!
//! When kustomize applies a strategic merge patch, it merges a list only if the schema of the object allows this.
//! Otherwise, or if the kind has no schema, the list in the patch replaces the list in the object. By default,
//! kustomize uses its built-in schemas, those of Kubernetes 1.21.2. The field `openapi.path` of a kustomization names a
//! file with other schemas.
//!
//! ```
//! use portcullis::kustomize::schema::Schema;
//!
//! let schema = Schema::built_in();
//! let containers = schema
//!     .of_kind("apps/v1", "Deployment")
//!     .and_then(|deployment| deployment.field("spec")?.field("template")?.field("spec")?.field("containers"))
//!     .unwrap();
//! assert!(containers.merges());
//! assert_eq!(containers.keys().collect::<Vec<_>>(), ["name"]);
//! assert!(schema.of_kind("example.com/v1", "Deployment").is_none());
//! ```
//!
//! # Differences from kustomize
//!
//! Portcullis stores only a part of the built-in schemas: the lists that patches merge, and the fields that contain
//! such lists. `make schema` writes this part to `built_in.txt`. If a field that is not stored contains an object with
//! its own `apiVersion` and `kind`, Portcullis does not use the schema of this kind. It then assumes that patches
//! replace all lists in this object.
//!
//! Source: `kyaml/openapi/openapi.go` of kustomize.

mod built_in;
mod custom;
mod definitions;
mod unique;

use std::collections::BTreeSet;
use std::sync::{Arc, LazyLock};

use definitions::{Definitions, Shape, ShapeId};

pub use custom::BadSchema;

static BUILT_IN_ONLY: LazyLock<Arc<Schema>> =
    LazyLock::new(|| Arc::new(Schema { own: None, cluster_scoped: None, beside: Some(Preferred::BuiltIn) }));

/// The OpenAPI definitions that a build uses: those of the file in `openapi.path`, the built-in ones, or both.
#[derive(Debug)]
pub struct Schema {
    /// The definitions from the file in `openapi.path`, or from a YAML comment that contains the schema of a field.
    /// `None` if the schema consists of the built-in definitions only.
    own: Option<Definitions>,
    /// The cluster-scoped kinds in the file of `openapi.path`, each with its apiVersion and kind. `None` if the schema
    /// does not come from this file.
    cluster_scoped: Option<Arc<BTreeSet<(String, String)>>>,
    /// The precedence if kustomize's built-in schema and the file in `openapi.path` define the same type or kind.
    /// `None` if the built-in schema is not used at all.
    beside: Option<Preferred>,
}

/// The precedence of definitions with the same name in the built-in schema and in the file of `openapi.path`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Preferred {
    /// The built-in definition takes precedence, because kustomize loads the built-in schema after the file of
    /// `openapi.path`.
    BuiltIn,
    /// The definition in the file of `openapi.path` takes precedence, because kustomize loads the file after the
    /// built-in schema.
    Custom,
}

impl Schema {
    /// Returns kustomize's built-in schema.
    pub fn built_in() -> Arc<Self> {
        Arc::clone(&BUILT_IN_ONLY)
    }

    /// Parses `text`, the content of the file in `openapi.path`. A text that begins with `{` is parsed as JSON, any
    /// other text as YAML.
    ///
    /// # Errors
    ///
    /// If the text is empty, or is not a valid OpenAPI document, so that kustomize returns an error or panics. Also
    /// returns an error if it is unknown whether kustomize accepts the text.
    pub fn read(text: &str) -> Result<Arc<Self>, BadSchema> {
        Self::read_beside(text, None)
    }

    /// Parses `text`, the content of the file in `openapi.path`, in the same way as [`Schema::read`]. If `beside` is
    /// set, the built-in definitions are also used, and `beside` determines which definitions take precedence.
    ///
    /// # Errors
    ///
    /// If the text is empty or is not a valid OpenAPI document, and in the other cases of [`Schema::read`].
    pub fn read_beside(text: &str, beside: Option<Preferred>) -> Result<Arc<Self>, BadSchema> {
        let document = custom::document(text)?;
        let cluster_scoped = Some(Arc::new(custom::cluster_scoped(&document)?));
        Ok(Arc::new(Self { own: Some(custom::definitions(&document)?), cluster_scoped, beside }))
    }

    /// Parses a schema from a YAML comment. The comment is beside a field and contains the schema of the field as JSON.
    /// `text` is the comment without `#`. Pass the result to [`Schema::of_comment`].
    ///
    /// Returns `None` if the text is not a schema, or if the schema is empty.
    pub fn fragment(text: &str) -> Option<Self> {
        Some(Self { own: Some(custom::fragment(text)?), cluster_scoped: None, beside: None })
    }

    /// Returns the schema of a field whose YAML comment contains a schema. `fragment` is the parsed comment, a result
    /// of [`Schema::fragment`]. References (`$ref`) are resolved with the definitions in `self`. `None` if `fragment`
    /// is a reference to a definition that does not exist.
    pub fn of_comment<'s>(&'s self, fragment: &'s Self) -> Option<FieldSchema<'s>> {
        let definitions = fragment.own.as_ref()?;
        FieldSchema { global: self, definitions, shape: definitions.first()? }.resolved()
    }

    /// Returns the schema of the objects of a kind; `None` if the definitions do not contain the kind.
    pub fn of_kind(&self, api_version: &str, kind: &str) -> Option<FieldSchema<'_>> {
        self.all().find_map(|definitions| {
            let shape = definitions.of_kind(api_version, kind)?;
            Some(FieldSchema { global: self, definitions, shape })
        })
    }

    /// Returns the definitions that this schema uses: those in `own`, and the built-in ones. The definitions with
    /// higher precedence come first.
    fn all(&self) -> impl Iterator<Item = &Definitions> {
        let built_in = self.beside.map(|_| &built_in::DEFINITIONS);
        let (first, second) = match self.beside {
            Some(Preferred::BuiltIn) => (built_in, self.own.as_ref()),
            _ => (self.own.as_ref(), built_in),
        };
        first.into_iter().chain(second)
    }

    /// Returns the number of schemas in all definitions.
    fn len(&self) -> usize {
        self.all().map(Definitions::len).sum()
    }

    /// Returns the apiVersion and kind of each cluster-scoped kind in the file of `openapi.path`. `None` if the schema
    /// does not come from a file.
    pub fn cluster_scoped(&self) -> Option<Arc<BTreeSet<(String, String)>>> {
        self.cluster_scoped.clone()
    }
}

/// The schema of one field, element or object.
#[derive(Debug, Clone, Copy)]
pub struct FieldSchema<'s> {
    /// The schema whose definitions resolve references (`$ref`).
    global: &'s Schema,
    definitions: &'s Definitions,
    shape: ShapeId,
}

impl<'s> FieldSchema<'s> {
    /// Returns the schema of the field `name` of this mapping. If the definitions do not contain the field, returns an
    /// empty schema for the built-in definitions of kustomize, and `None` for other definitions.
    pub fn field(self, name: &str) -> Option<Self> {
        let shape = self.shape()?;
        match shape.field(name) {
            Some(shape) => Self { shape, ..self }.resolved(),
            None => self.of_unknown(),
        }
    }

    /// Returns the schema of the elements of this list. If the definitions do not contain this schema, returns an empty
    /// schema for the built-in definitions of kustomize, and `None` for other definitions.
    pub fn elements(self) -> Option<Self> {
        let shape = self.shape()?;
        match shape.items.filter(|_| shape.is_array) {
            Some(shape) => Self { shape, ..self }.resolved(),
            None => self.of_unknown(),
        }
    }

    /// Returns whether patches merge this list instead of replacing it.
    pub fn merges(self) -> bool {
        self.shape().is_some_and(|shape| shape.merges)
    }

    /// Returns the keys by which the elements of this list are merged. Empty if kustomize compares whole elements
    /// instead.
    pub fn keys(self) -> impl Iterator<Item = &'s str> {
        self.shape().into_iter().flat_map(|shape| shape.keys.iter().map(|key| &**key))
    }

    fn shape(self) -> Option<&'s Shape> {
        self.definitions.shape(self.shape)
    }

    /// Returns the schema to use for a field or list element that the definitions do not contain. For the built-in
    /// definitions of kustomize, this is an empty schema, because Portcullis stores only some of their fields. For all
    /// other definitions, returns `None`.
    fn of_unknown(self) -> Option<Self> {
        let shape = self.definitions.opaque()?;
        Some(Self { shape, ..self })
    }

    /// Follows references (`$ref`) to a definition; `None` if the definition is missing.
    fn resolved(self) -> Option<Self> {
        let mut found = self;
        // kustomize never returns from a cycle of references; Portcullis treats it as a reference to a missing
        // definition
        for _ in 0..=self.global.len() {
            let Some(name) = &found.shape()?.reference else { return Some(found) };
            let mut all = self.global.all();
            let (definitions, shape) = all.find_map(|all| Some((all, all.named(name)?)))?;
            found = Self { definitions, shape, global: self.global };
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(schema: FieldSchema<'_>) -> Vec<&str> {
        schema.keys().collect()
    }

    #[test]
    fn ports_are_merged_by_two_keys_and_finalizers_by_their_values() {
        let schema = Schema::built_in();
        let service = schema.of_kind("v1", "Service").unwrap();
        let ports = service.field("spec").unwrap().field("ports").unwrap();
        assert!(ports.merges());
        assert_eq!(keys(ports), ["port", "protocol"]);
        let finalizers = service.field("metadata").unwrap().field("finalizers").unwrap();
        assert!(finalizers.merges() && keys(finalizers).is_empty());
    }

    #[test]
    fn kinds_without_merged_lists_are_known() {
        let schema = Schema::built_in();
        let values = schema.of_kind("v1", "WatchEvent").unwrap();
        assert!(values.field("object").is_some_and(|object| !object.merges()));
        assert!(schema.of_kind("v1", "Nonsense").is_none());
    }

    #[test]
    fn custom_schemas_replace_the_built_in_one() {
        let text = r##"{"definitions": {"v1.Team": {"type": "object", "x-kubernetes-group-version-kind": [
            {"group": "example.com", "version": "v1", "kind": "Team"}],
            "properties": {"spec": {"$ref": "#/definitions/Spec"}}},
            "Spec": {"properties": {"members": {"type": "array", "items": {"type": "object"},
            "x-kubernetes-patch-strategy": "merge", "x-kubernetes-patch-merge-key": "id"}}}},
            "paths": {"/apis/example.com/v1/teams": {"get": {"x-kubernetes-group-version-kind":
            {"group": "example.com", "version": "v1", "kind": "Team"}}}}}"##;
        let schema = Schema::read(text).unwrap();
        let members =
            schema.of_kind("example.com/v1", "Team").unwrap().field("spec").unwrap().field("members").unwrap();
        assert!(members.merges());
        assert_eq!(keys(members), ["id"]);
        assert!(members.elements().unwrap().field("unknown").is_none());
        assert!(schema.of_kind("v1", "Service").is_none());
        let scoped = schema.cluster_scoped().unwrap();
        assert!(scoped.contains(&("example.com/v1".to_owned(), "Team".to_owned())));
    }

    #[test]
    fn references_of_comments_lead_to_the_definitions_in_force() {
        let schema = Schema::built_in();
        let fragment = Schema::fragment(r##"{"$ref": "#/definitions/io.k8s.api.core.v1.PodSpec"}"##).unwrap();
        let containers = schema.of_comment(&fragment).unwrap().field("containers").unwrap();
        assert!(containers.merges());
        assert!(Schema::fragment("{}").is_none() && Schema::fragment("{x").is_none());
    }

    #[test]
    fn circles_of_references_end() {
        let schema = Schema::read(
            r##"{"definitions": {"A": {"$ref": "#/definitions/B"}, "B": {"$ref": "#/definitions/A"},
            "C": {"x-kubernetes-group-version-kind": [{"group": "", "version": "v1", "kind": "C"}],
            "properties": {"a": {"$ref": "#/definitions/A"}}}}}"##,
        )
        .unwrap();
        assert!(schema.of_kind("v1", "C").unwrap().field("a").is_none());
    }
}
