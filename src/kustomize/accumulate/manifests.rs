//! The objects of a manifest or a patch.
//!
//! Source: `Factory.RNodesFromBytes` in kustomize's `api/resource/factory.go`, `ByteReader.Read` and
//! `GetValidatedMetadata` in kyaml.

use serde_json::Value;

use super::keys::{self, BadKey, KeyFault};
use crate::admission::FieldPath;
use crate::yaml::{self, Document, Limits, Place, Problem, YamlError};

/// An object of a text.
#[derive(Debug, Clone)]
pub struct Manifest {
    /// Its content; scalars are the text they are.
    pub value: Value,
    /// Its position.
    pub place: Place,
    /// Keys with which kustomize cannot write it.
    pub keys: Vec<BadKey>,
}

/// The objects in a text.
#[derive(Debug, Default)]
pub struct Manifests {
    /// The objects up to the first fault.
    pub objects: Vec<Manifest>,
    /// The error of kustomize.
    pub fault: Option<(Place, ManifestFault)>,
    /// The reason why the content is unknown.
    pub uncertainty: Option<(Place, String)>,
    /// Number of values that were copied because of aliases.
    pub aliased: usize,
}

/// The error of a text that is not a list of objects, as the end of a sentence.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ManifestFault {
    /// It is not YAML.
    #[error("cannot be read: {0}")]
    Malformed(String),
    /// A document is not a mapping with apiVersion, kind or metadata.
    #[error("holds something that is no Kubernetes object")]
    NotAnObject,
    /// An object has no kind.
    #[error("holds an object without a kind")]
    NoKind,
    /// An object of this kind has no name.
    #[error("holds an object of kind {0} without metadata.name")]
    NoName(String),
    /// `items` of a list of this kind is not a list.
    #[error("holds a {0} whose items are not a list")]
    NoItems(String),
    /// A list of objects cannot be opened because of a key.
    #[error("holds a list that cannot be opened: its key {0} {1}")]
    Key(String, KeyFault),
}

/// Maximum number of objects in nested lists; kustomize has no limit.
const MOST_OBJECTS: usize = 100_000;

/// Reads the objects of a text; lists of objects count as the objects in them.
pub fn read(text: &str) -> Manifests {
    let mut manifests = Manifests::default();
    let limits = Limits::default();
    let mut queue = Vec::new();
    for document in yaml::manifests(text, &limits) {
        match document {
            Ok(document) => {
                manifests.aliased += document.aliased;
                if manifests.aliased > limits.aliased {
                    let problem = Problem::TooManyAliased(limits.aliased).to_string();
                    manifests.uncertainty = Some((document.start(), problem));
                    return manifests;
                }
                queue.push(document);
            }
            Err(error) => {
                manifests.unread(&error, may_be_opened(text));
                return manifests;
            }
        }
    }
    let alone = queue.len() == 1 && yaml::is_one_manifest(text);
    for document in queue {
        manifests.add(document, alone);
        if manifests.fault.is_some() {
            break;
        }
    }
    manifests
}

/// Returns whether a text may be a list that is alone in its file. Such a list is expanded before merge keys are
/// processed.
fn may_be_opened(text: &str) -> bool {
    yaml::is_one_manifest(text) && text.contains("List")
}

impl Manifests {
    /// Notes why nothing more was read.
    fn unread(&mut self, error: &YamlError, may_be_opened: bool) {
        let text = error.problem.to_string();
        match error.problem {
            Problem::Syntax(_) | Problem::Separator(_) => {}
            Problem::Merge | Problem::MergedTwice if !may_be_opened => {}
            _ => {
                self.uncertainty = Some((error.place, text));
                return;
            }
        }
        self.fault = Some((error.place, ManifestFault::Malformed(text)));
    }

    /// Adds the objects of a document. A `List` that is alone in its file is expanded first.
    fn add(&mut self, document: Document, alone: bool) {
        let place = document.start();
        let keys = keys::of(&document);
        if let Some(key) = keys.iter().find(|key| key.decides()) {
            self.uncertainty.get_or_insert((key.place, format!("the key {} is there twice", key.path)));
            return;
        }
        let is_open = alone && matches!(document.value["kind"].as_str(), Some("List" | "ResourceList"));
        let keys = if is_open { keys::opened(keys) } else { keys };
        if !is_open && is_list(&document.value) {
            self.open(&document.value, &keys);
        }
        let wraps = |key| document.value.get(key).is_some();
        match &document.value["items"] {
            Value::Array(items) if is_list(&document.value) => {
                for (at, item) in items.iter().enumerate() {
                    let place = document.nearest(&FieldPath::of(["items"]).index(at));
                    let keys: Vec<_> = keys.iter().filter_map(|key| key.within_item(at)).collect();
                    if let Some(key) = keys.iter().find(|key| key.decides()) {
                        self.uncertainty.get_or_insert((key.place, format!("the key {} is there twice", key.path)));
                        return;
                    }
                    self.add_value(Manifest { value: item.clone(), place, keys });
                }
            }
            // kyaml requests the elements of any value here: of a mapping, its keys and values.
            Value::Object(members) if is_open && !members.is_empty() => {
                self.fault = Some((place, ManifestFault::NotAnObject));
            }
            _ if is_open && (wraps("items") || wraps("functionConfig")) => {}
            _ => self.add_value(Manifest { value: document.value, place, keys }),
        }
    }

    /// Expands a list of objects, which converts it to JSON and back.
    fn open(&mut self, list: &Value, keys: &[BadKey]) {
        let has_items = list.get("items").is_some();
        let fatal = |key: &&BadKey| key.fault == KeyFault::Twice || (has_items && key.starts_with("items"));
        if let Some(key) = keys.iter().find(fatal) {
            self.fault.get_or_insert((key.place, ManifestFault::Key(key.path.to_string(), key.fault)));
        }
    }

    fn add_value(&mut self, manifest: Manifest) {
        let place = manifest.place;
        let mut queue = vec![manifest];
        while let Some(manifest) = queue.pop() {
            let Manifest { value, keys, .. } = &manifest;
            if self.fault.is_some() || is_nothing(value) {
                continue;
            }
            if self.objects.len() >= MOST_OBJECTS {
                self.uncertainty.get_or_insert((place, format!("there are more than {MOST_OBJECTS} objects")));
                return;
            }
            if let Some(uncertainty) = uncertainty(value) {
                self.uncertainty.get_or_insert((place, uncertainty.to_owned()));
                return;
            }
            if let Some(fault) = fault(value) {
                self.fault = Some((place, fault));
                return;
            }
            if is_list(value) {
                self.open(value, keys);
            }
            match (is_list(value), value.get("items")) {
                (true, Some(Value::Array(items))) => {
                    let items = items.iter().rev().cloned();
                    queue.extend(items.map(|value| Manifest { value, place, keys: Vec::new() }));
                }
                (true, Some(Value::Null)) => {}
                (true, Some(_)) => {
                    let kind = value["kind"].as_str().unwrap_or_default().to_owned();
                    self.fault = Some((place, ManifestFault::NoItems(kind)));
                }
                _ => self.objects.push(manifest),
            }
        }
    }
}

fn is_list(value: &Value) -> bool {
    value["kind"].as_str().is_some_and(|kind| kind.ends_with("List"))
}

/// Returns whether a document is skipped (`IsNilOrEmpty`). An empty string is not.
fn is_nothing(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => members.is_empty(),
        _ => false,
    }
}

/// Returns why kustomize's reading of an object is not deterministic, if so.
fn uncertainty(value: &Value) -> Option<&'static str> {
    let names = [&value["kind"], &value["metadata"]["name"], &value["metadata"]["namespace"]];
    if names.into_iter().any(|name| name.as_str().is_some_and(|name| name.contains(','))) {
        // former names are kept in a list with commas
        return Some("a name has a comma in it");
    }
    if value.get("apiVersion") == Some(&Value::Null) {
        // it is the text of the null, or nothing
        return Some("apiVersion is null");
    }
    // The items are treated as keys and values; kustomize panics on a missing value.
    let is_list = value["metadata"]["annotations"].as_array().is_some_and(|list| !list.is_empty());
    is_list.then_some("annotations are a list")
}

fn fault(value: &Value) -> Option<ManifestFault> {
    let is_there = |key| value.get(key).is_some_and(|value| !is_nothing(value) && value != "");
    if !["apiVersion", "kind", "metadata"].into_iter().any(is_there) {
        return Some(ManifestFault::NotAnObject);
    }
    let kind = value["kind"].as_str().unwrap_or_default();
    if kind.is_empty() {
        return Some(ManifestFault::NoKind);
    }
    let name = value["metadata"]["name"].as_str().unwrap_or_default();
    (name.is_empty() && !kind.ends_with("List")).then(|| ManifestFault::NoName(kind.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(text: &str) -> Vec<String> {
        let named = |object: &Manifest| object.value["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        read(text).objects.iter().map(named).collect()
    }

    #[test]
    fn names_are_text_whatever_they_look_like() {
        let text = "kind: A\nmetadata: {name: yes}\n---\nkind: A\nmetadata: {name: 1.0}\n---\n# nothing\n";
        assert_eq!(names(text), ["yes", "1.0"]);
    }

    #[test]
    fn lists_are_opened() {
        let text = "kind: List\nitems:\n- {kind: A, metadata: {name: a}}\n- {kind: BList, items: [{kind: B, metadata: {name: b}}]}\n";
        assert_eq!(names(text), ["a", "b"]);
        assert_eq!(
            read("kind: AList\nitems: {}\n").fault.map(|(_, fault)| fault),
            Some(ManifestFault::NoItems("AList".into()))
        );
    }

    #[test]
    fn a_list_is_opened_only_if_its_keys_allow() {
        let item = "- {kind: A, metadata: {name: a}, data: {1: b}}\n";
        assert_eq!(read(&format!("kind: List\nitems:\n{item}")).objects[0].keys.len(), 1);
        for text in [format!("kind: List\nitems:\n{item}---\n"), format!("kind: AList\nitems:\n{item}")] {
            assert!(matches!(read(&text).fault, Some((_, ManifestFault::Key(_, KeyFault::NotText)))), "{text}");
        }
    }

    #[test]
    fn an_object_needs_kind_and_name() {
        let fault = |text| read(text).fault.map(|(_, fault)| fault);
        assert_eq!(fault("kind: A\nmetadata: {generateName: a-}\n"), Some(ManifestFault::NoName("A".into())));
        assert_eq!(fault("metadata: {name: a}\n"), Some(ManifestFault::NoKind));
        assert_eq!(fault("foo.yaml"), Some(ManifestFault::NotAnObject));
        assert_eq!(fault("- op: add\n"), Some(ManifestFault::NotAnObject));
        assert!(matches!(fault("a: [\n"), Some(ManifestFault::Malformed(_))));
        assert_eq!(fault(""), None);
    }
}
