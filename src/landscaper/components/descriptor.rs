//! Component descriptors in the schemas v2 and v3 (Open Component Model). Fields that Portcullis does not need are
//! ignored.
//!
//! Source: `apis/v2` in `gardener/component-spec` and `ocm.software/v3alpha1` in the specification of the Open
//! Component Model.

use serde_json::Value;

use crate::admission::{FieldPath, json as wire};
use crate::landscaper::repository_context::RepositoryContext;

/// Label of a component reference in a patched component descriptor. The label contains the repository context of the
/// reference, because a reference has no field for it.
pub const REPOSITORY_LABEL: &str = "portcullis.dev/repository-context";
/// The label that contains a nested inline descriptor. Landscaper reads this label of components and component
/// references.
pub const INLINE_LABEL: &str = "landscaper.gardener.cloud/component-descriptor";

/// The schema of a component descriptor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Schema {
    /// Schema v2, with `meta.schemaVersion: v2`.
    V2,
    /// Schema v3, with `apiVersion: ocm.software/v3alpha1`.
    V3,
}

/// A component descriptor: a component version and its references.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Descriptor {
    /// The schema of the document from which the descriptor was read.
    pub schema: Schema,
    /// The component's name.
    pub name: String,
    /// The component's version.
    pub version: String,
    /// The repositories to which the component version was published, in chronological order. The last one is the
    /// latest.
    pub repository_contexts: Vec<RepositoryContext>,
    /// The references to other components, in the order of the descriptor.
    pub references: Vec<Reference>,
    /// The names of the component's resources.
    pub resources: Vec<String>,
    /// The digest of the descriptor's OCI artifact; `None` if the descriptor was not read from a registry.
    pub digest: Option<String>,
}

/// A reference in a component descriptor to another component version. Landscaper looks for this version in the same
/// repository as the component of the Installation, unless a ComponentVersionOverwrites object changes the repository.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reference {
    /// The name of the reference, unique in the descriptor.
    pub name: String,
    /// The name of the component.
    pub component_name: String,
    /// The version of the component.
    pub version: String,
    /// The field `digest` of the reference: the digest of the referenced component; `None` if it is missing.
    pub digest: Option<Value>,
    /// The number of labels of the reference; `None` if the field `labels` is missing.
    pub labels: Option<usize>,
    /// The repository context in the label [`REPOSITORY_LABEL`] of this reference, and the index of this label.
    /// Portcullis adds the label when it patches a descriptor. `None` if the reference does not have the label.
    pub repository_context: Option<(usize, RepositoryContext)>,
}

/// The reason why a descriptor cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {what}")]
pub struct DescriptorError {
    /// The field path of the value that cannot be read.
    pub field: FieldPath,
    /// The description of the mistake, such as `expected a string, found 1`.
    pub what: String,
}

impl Descriptor {
    /// Reads a component descriptor of schema v2 or v3.
    ///
    /// # Errors
    /// Fails if the value has no known schema, or if a field is missing or has the wrong type. The error names the
    /// first such field.
    pub fn read(value: &Value) -> Result<Self, DescriptorError> {
        match schema(value)? {
            Schema::V2 => Self::read_v2(value),
            Schema::V3 => {
                let root = FieldPath::root();
                let metadata = (member(value, &root, "metadata")?, root.key("metadata"));
                let spec = (value.get("spec").unwrap_or(&Value::Null), root.key("spec"));
                Parts { identity: metadata, body: spec }.read(Schema::V3, "references", (value, root))
            }
        }
    }

    /// Reads a component descriptor as schema v2. Does not check the `meta` of the descriptor, because Landscaper
    /// supports only v2 for inline descriptors.
    ///
    /// # Errors
    /// Fails if a field is missing or has the wrong type. The error names the first such field.
    pub fn read_v2(value: &Value) -> Result<Self, DescriptorError> {
        let component = (member(value, &FieldPath::root(), "component")?, FieldPath::of(["component"]));
        let parts = Parts { identity: component.clone(), body: component.clone() };
        parts.read(Schema::V2, "componentReferences", component)
    }

    /// Returns the approximate size of the descriptor in memory, in bytes.
    pub fn weight(&self) -> usize {
        /// Estimated memory that a value needs in addition to its text, in bytes.
        const EACH: usize = 128;
        let reference = |reference: &Reference| {
            let digest = reference.digest.as_ref().map_or(0, |digest| digest.to_string().len());
            let context = reference.repository_context.as_ref().map_or(0, |(_, context)| context.raw().len());
            EACH * 2
                + reference.name.len()
                + reference.component_name.len()
                + reference.version.len()
                + digest
                + context
        };
        let contexts = self.repository_contexts.iter().map(|context| EACH + context.raw().len());
        let resources = self.resources.iter().map(|name| EACH + name.len());
        let all = self.references.iter().map(reference).chain(contexts).chain(resources);
        EACH * 2 + self.name.len() + self.version.len() + all.sum::<usize>()
    }

    /// Returns the JSON pointer to a reference in the descriptor. `reference` is the index of the reference.
    pub fn pointer(&self, reference: usize) -> String {
        match self.schema {
            Schema::V2 => format!("/component/componentReferences/{reference}"),
            Schema::V3 => format!("/spec/references/{reference}"),
        }
    }
}

fn schema(value: &Value) -> Result<Schema, DescriptorError> {
    let meta = value.pointer("/meta/schemaVersion");
    match (meta, value.get("apiVersion")) {
        (Some(Value::String(version)), _) if version == "v2" => Ok(Schema::V2),
        (None, Some(Value::String(version))) if version == "ocm.software/v3alpha1" => Ok(Schema::V3),
        (Some(other), _) => Err(wrong(FieldPath::of(["meta", "schemaVersion"]), other, "\"v2\"")),
        (None, Some(other)) => Err(wrong(FieldPath::of(["apiVersion"]), other, "\"ocm.software/v3alpha1\"")),
        (None, None) => Err(DescriptorError {
            field: FieldPath::root(),
            what: "not a component descriptor: it has neither meta.schemaVersion nor apiVersion".to_owned(),
        }),
    }
}

type Placed<'v> = (&'v Value, FieldPath);

/// The two objects that contain the fields of a component descriptor. `identity` contains the name and version, and
/// `body` contains the references and resources. The schema determines where these objects are in the descriptor.
struct Parts<'v> {
    identity: Placed<'v>,
    body: Placed<'v>,
}

impl Parts<'_> {
    fn read(self, schema: Schema, references: &str, contexts: Placed<'_>) -> Result<Descriptor, DescriptorError> {
        let (identity, place) = &self.identity;
        let name = text(identity, place, "name")?;
        let version = text(identity, place, "version")?;
        let repository_contexts = list(&contexts, "repositoryContexts", |value, field| {
            RepositoryContext::of(value, field).map_err(|problem| DescriptorError {
                field: problem.field,
                what: format!("expected {}, found {}", problem.wanted, problem.is),
            })
        })?;
        let references = list(&self.body, references, Reference::read)?;
        let resources = list(&self.body, "resources", |value, field| text(value, field, "name"))?;
        let repository_contexts = repository_contexts.into_iter().flatten().collect();
        Ok(Descriptor { schema, name, version, repository_contexts, references, resources, digest: None })
    }
}

impl Reference {
    fn read(value: &Value, field: &FieldPath) -> Result<Self, DescriptorError> {
        if !value.is_object() {
            return Err(wrong(field.clone(), value, "an object"));
        }
        let labels = list(&(value, field.clone()), "labels", |label, _| Ok(label.clone()))?;
        let own = labels.iter().position(|label| label.get("name").is_some_and(|name| name == REPOSITORY_LABEL));
        let context = own.and_then(|at| {
            let context = RepositoryContext::of(labels.get(at)?.get("value")?, field).ok()??;
            Some((at, context))
        });
        Ok(Self {
            name: text_or_empty(value, field, "name")?,
            component_name: text_or_empty(value, field, "componentName")?,
            version: text_or_empty(value, field, "version")?,
            digest: value.get("digest").filter(|digest| !digest.is_null()).cloned(),
            labels: value.get("labels").and_then(Value::as_array).map(Vec::len),
            repository_context: context,
        })
    }
}

fn member<'v>(value: &'v Value, field: &FieldPath, key: &str) -> Result<&'v Value, DescriptorError> {
    let found = value.get(key).filter(|member| member.is_object());
    found.ok_or_else(|| wrong(field.key(key), value.get(key).unwrap_or(&Value::Null), "an object"))
}

fn text(value: &Value, field: &FieldPath, key: &str) -> Result<String, DescriptorError> {
    match value.get(key) {
        Some(Value::String(text)) if !text.is_empty() => Ok(text.clone()),
        other => Err(wrong(field.key(key), other.unwrap_or(&Value::Null), "a string")),
    }
}

/// Reads the string field `key` of the component reference `value`. `field` is the path of the reference. A missing
/// field is read as an empty string, as in Go. The look-up of the component then reports that the component does not
/// exist.
fn text_or_empty(value: &Value, field: &FieldPath, key: &str) -> Result<String, DescriptorError> {
    match value.get(key) {
        None | Some(Value::Null) => Ok(String::new()),
        Some(Value::String(text)) => Ok(text.clone()),
        Some(other) => Err(wrong(field.key(key), other, "a string")),
    }
}

/// Reads the list in the field `key` of an object, and calls `read` for each element. A missing or `null` list counts
/// as empty.
fn list<T>(
    (value, field): &Placed<'_>,
    key: &str,
    mut read: impl FnMut(&Value, &FieldPath) -> Result<T, DescriptorError>,
) -> Result<Vec<T>, DescriptorError> {
    let field = field.key(key);
    match value.get(key) {
        None | Some(Value::Null) => Ok(Vec::new()),
        Some(Value::Array(items)) => items.iter().enumerate().map(|(at, item)| read(item, &field.index(at))).collect(),
        Some(other) => Err(wrong(field, other, "a list")),
    }
}

fn wrong(field: FieldPath, value: &Value, wanted: &str) -> DescriptorError {
    let found = if value.is_null() { "nothing".to_owned() } else { wire::brief(value) };
    DescriptorError { field, what: format!("expected {wanted}, found {found}") }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn reads_both_schemas_alike() {
        let reference = json!({"name": "db", "componentName": "example.org/db", "version": "v1"});
        let context = json!({"type": "ociRegistry", "baseUrl": "example.org"});
        let v2 = Descriptor::read(&json!({"meta": {"schemaVersion": "v2"}, "component": {
            "name": "example.org/root", "version": "v1", "repositoryContexts": [context],
            "componentReferences": [reference], "resources": [{"name": "blueprint"}]}}));
        let v3 = Descriptor::read(&json!({"apiVersion": "ocm.software/v3alpha1", "kind": "ComponentVersion",
            "metadata": {"name": "example.org/root", "version": "v1"}, "repositoryContexts": [context],
            "spec": {"references": [reference], "resources": [{"name": "blueprint"}]}}));
        let (v2, v3) = (v2.unwrap(), v3.unwrap());
        assert_eq!(v3, Descriptor { schema: Schema::V3, ..v2.clone() });
        assert_eq!(
            (v2.pointer(0), v3.pointer(0)),
            ("/component/componentReferences/0".into(), "/spec/references/0".into())
        );
    }

    #[test]
    fn reports_mistakes_with_their_field() {
        let error = |value: Value| Descriptor::read(&value).unwrap_err().to_string();
        assert!(error(json!({"kind": "ConfigMap"})).contains("neither meta.schemaVersion nor apiVersion"));
        assert_eq!(
            error(json!({"meta": {"schemaVersion": "v1"}})),
            "meta.schemaVersion: expected \"v2\", found \"v1\""
        );
        let references = json!([{"name": "a", "componentName": "b", "version": 1}]);
        let broken = json!({"meta": {"schemaVersion": "v2"},
                            "component": {"name": "a", "version": "v1", "componentReferences": references}});
        assert_eq!(error(broken), "component.componentReferences[0].version: expected a string, found 1");
    }
}
