//! A typed view of `metadata` of a Kubernetes object: name, namespace, labels, owner references and so on.

use serde_json::{Map, Value};

/// A view of the `metadata` of an object. A field that is missing, `null` or of the wrong type counts as absent.
#[derive(Debug, Clone, Copy)]
pub struct Metadata<'v>(&'v Value);

impl<'v> Metadata<'v> {
    /// Returns a view of the metadata of an object. All fields are absent if the object has no metadata.
    pub fn of(object: &'v Value) -> Self {
        Self(object.get("metadata").unwrap_or(&Value::Null))
    }

    fn text(self, key: &str) -> Option<&'v str> {
        self.0.get(key)?.as_str()
    }

    fn list(self, key: &str) -> impl Iterator<Item = &'v Value> {
        self.0.get(key).and_then(Value::as_array).into_iter().flatten()
    }

    /// Returns the name; empty if it is absent.
    pub fn name(self) -> &'v str {
        self.text("name").unwrap_or_default()
    }

    /// Returns `metadata.generateName`, the prefix from which the API server generates a name.
    pub fn generate_name(self) -> Option<&'v str> {
        self.text("generateName")
    }

    /// Returns the namespace; empty if it is absent.
    pub fn namespace(self) -> &'v str {
        self.text("namespace").unwrap_or_default()
    }

    /// Returns `metadata.uid`.
    pub fn uid(self) -> Option<&'v str> {
        self.text("uid")
    }

    /// Returns `metadata.resourceVersion`.
    pub fn resource_version(self) -> Option<&'v str> {
        self.text("resourceVersion")
    }

    /// Returns `metadata.generation`.
    pub fn generation(self) -> Option<i64> {
        self.0.get("generation")?.as_i64()
    }

    /// Returns all labels; `None` if there is no map of labels.
    pub fn labels(self) -> Option<&'v Map<String, Value>> {
        self.0.get("labels")?.as_object()
    }

    /// Returns the value of the label `key`.
    pub fn label(self, key: &str) -> Option<&'v str> {
        self.labels()?.get(key)?.as_str()
    }

    /// Returns all annotations; `None` if there is no map of annotations.
    pub fn annotations(self) -> Option<&'v Map<String, Value>> {
        self.0.get("annotations")?.as_object()
    }

    /// Returns the value of the annotation `key`.
    pub fn annotation(self, key: &str) -> Option<&'v str> {
        self.annotations()?.get(key)?.as_str()
    }

    /// Returns the owner references.
    pub fn owner_references(self) -> impl Iterator<Item = &'v Value> {
        self.list("ownerReferences")
    }

    /// Returns whether one of the object's owner references has this uid.
    pub fn is_owned_by(self, uid: &str) -> bool {
        self.owner_references().any(|owner| owner.get("uid").is_some_and(|own| own == uid))
    }

    /// Returns the finalizers.
    pub fn finalizers(self) -> impl Iterator<Item = &'v str> {
        self.list("finalizers").filter_map(Value::as_str)
    }

    /// Returns the entries of `managedFields`.
    pub fn managed_fields(self) -> impl Iterator<Item = &'v Value> {
        self.list("managedFields")
    }

    /// Returns `metadata.deletionTimestamp`. This is the time at which the deletion was requested, as RFC 3339 text.
    pub fn deletion_timestamp(self) -> Option<&'v str> {
        self.text("deletionTimestamp")
    }

    /// Returns whether the object is being deleted. This is the case if `metadata.deletionTimestamp` is set.
    pub fn is_deleting(self) -> bool {
        self.0.get("deletionTimestamp").is_some_and(|time| !time.is_null())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn reads_the_fields_of_an_object() {
        let object = json!({"metadata": {
            "name": "a", "namespace": "b", "uid": "u", "generation": 3, "labels": {"l": "1"}, "annotations": {"n": "2", "m": 3},
            "ownerReferences": [{"uid": "o"}], "finalizers": ["f"], "deletionTimestamp": "2026-01-01T00:00:00Z",
        }});
        let metadata = Metadata::of(&object);
        assert_eq!((metadata.name(), metadata.namespace(), metadata.uid()), ("a", "b", Some("u")));
        assert_eq!(
            (metadata.generation(), metadata.label("l"), metadata.annotation("n")),
            (Some(3), Some("1"), Some("2"))
        );
        assert_eq!(
            (metadata.annotation("m"), metadata.annotation("x"), metadata.resource_version()),
            (None, None, None)
        );
        assert!(metadata.is_owned_by("o") && !metadata.is_owned_by("u") && metadata.is_deleting());
        assert_eq!(metadata.finalizers().collect::<Vec<_>>(), ["f"]);
    }

    #[test]
    fn null_is_absent() {
        for object in
            [json!({}), json!({"metadata": null}), json!({"metadata": {"deletionTimestamp": null, "labels": null}})]
        {
            let metadata = Metadata::of(&object);
            assert!(!metadata.is_deleting() && metadata.labels().is_none() && metadata.name().is_empty(), "{object}");
        }
    }
}
