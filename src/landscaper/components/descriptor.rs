//! Component descriptors: schema v2 and OCM's v3, as far as references need them.
//!
//! Source: `apis/v2` in `gardener/component-spec` and `ocm.software/v3alpha1` in the specification of the Open Component
//! Model. Everything else in a descriptor is left unread.

use serde_json::Value;

use crate::admission::{FieldPath, json as wire};
use crate::landscaper::repository_context::RepositoryContext;

/// The label that says, in a patched descriptor, which repository context a reference has: descriptors have no field for
/// it, and labels hold any value.
pub const REPOSITORY_LABEL: &str = "portcullis.dev/repository-context";
/// The label in which Landscaper looks for a nested inline descriptor.
pub const INLINE_LABEL: &str = "landscaper.gardener.cloud/component-descriptor";

/// The two ways in which descriptors are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Schema {
    /// `meta.schemaVersion: v2`
    V2,
    /// `apiVersion: ocm.software/v3alpha1`
    V3,
}

/// A component version and what it refers to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Descriptor {
    /// How it is written.
    pub schema: Schema,
    /// The component's name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// Where it was published, the newest last.
    pub repository_contexts: Vec<RepositoryContext>,
    /// What it refers to, in order.
    pub references: Vec<Reference>,
    /// The names of its resources.
    pub resources: Vec<String>,
    /// The digest of the artifact that it came in, where it came from a registry.
    pub digest: Option<String>,
}

/// A reference to another component version. It is looked up where the root of the tree comes from.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reference {
    /// Its name among the references of the descriptor.
    pub name: String,
    /// The component.
    pub component_name: String,
    /// Its version.
    pub version: String,
    /// The digest of what it refers to, where it was signed.
    pub digest: Option<Value>,
    /// How many labels it has; `None` where it has no list of them.
    pub labels: Option<usize>,
    /// What [`REPOSITORY_LABEL`] says, and the place of that label; only in descriptors that were patched.
    pub repository_context: Option<(usize, RepositoryContext)>,
}

/// Why a descriptor cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {what}")]
pub struct DescriptorError {
    /// Where.
    pub field: FieldPath,
    /// What is wrong there.
    pub what: String,
}

impl Descriptor {
    /// Reads a descriptor of either schema.
    ///
    /// # Errors
    /// The first thing that cannot be read, with its place.
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

    /// Reads a descriptor of schema v2, whether it says so or not: Landscaper knows no other for inline descriptors.
    ///
    /// # Errors
    /// As for [`Descriptor::read`].
    pub fn read_v2(value: &Value) -> Result<Self, DescriptorError> {
        let component = (member(value, &FieldPath::root(), "component")?, FieldPath::of(["component"]));
        let parts = Parts { identity: component.clone(), body: component.clone() };
        parts.read(Schema::V2, "componentReferences", component)
    }

    /// The JSON pointer of one of its references.
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
            what: "no component descriptor: it has neither meta.schemaVersion nor apiVersion".to_owned(),
        }),
    }
}

type Placed<'v> = (&'v Value, FieldPath);

/// Where a schema keeps the parts of a descriptor.
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
                what: format!("{} where {} is needed", problem.is, problem.wanted),
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
        other => Err(wrong(field.key(key), other.unwrap_or(&Value::Null), "a text")),
    }
}

/// In a reference, Go reads what is missing as empty; the look-up then says that there is no such component.
fn text_or_empty(value: &Value, field: &FieldPath, key: &str) -> Result<String, DescriptorError> {
    match value.get(key) {
        None | Some(Value::Null) => Ok(String::new()),
        Some(Value::String(text)) => Ok(text.clone()),
        Some(other) => Err(wrong(field.key(key), other, "a text")),
    }
}

/// The elements of a list that may be missing.
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
    DescriptorError { field, what: format!("{found} where {wanted} is needed") }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn both_schemas_say_the_same() {
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
    fn what_is_wrong_is_told_with_its_place() {
        let error = |value: Value| Descriptor::read(&value).unwrap_err().to_string();
        assert!(error(json!({"kind": "ConfigMap"})).contains("neither meta.schemaVersion nor apiVersion"));
        assert_eq!(
            error(json!({"meta": {"schemaVersion": "v1"}})),
            "meta.schemaVersion: \"v1\" where \"v2\" is needed"
        );
        let references = json!([{"name": "a", "componentName": "b", "version": 1}]);
        let broken = json!({"meta": {"schemaVersion": "v2"},
                            "component": {"name": "a", "version": "v1", "componentReferences": references}});
        assert_eq!(error(broken), "component.componentReferences[0].version: 1 where a text is needed");
    }
}
