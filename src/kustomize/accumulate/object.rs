//! An object during a build: its current and previous identities, and its content as far as known.

use std::fmt;
use std::sync::Arc;

use serde_json::{Map, Value};

use super::keys::{KeyFault, Unwritable};
use super::scope;
use crate::kustomize::finding::Site;
use crate::yaml;

/// The namespace that kustomize gives to what has none of its own (`TotallyNotANamespace`).
const NOT_A_NAMESPACE: &str = "_non_namespaceable_";
/// The default namespace.
const DEFAULT_NAMESPACE: &str = "default";

/// Group, version, kind, name and namespace: the identity of an object in kustomize (`resid.ResId`).
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Id {
    pub group: String,
    pub version: String,
    pub kind: String,
    pub name: String,
    pub namespace: String,
}

impl Id {
    /// Returns the identity that an object's content gives it.
    pub fn of(content: &Value) -> Self {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let (group, version) = split_version(content["apiVersion"].as_str().unwrap_or_default());
        Self {
            group: group.to_owned(),
            version: version.to_owned(),
            kind: text(&content["kind"]),
            name: text(&content["metadata"]["name"]),
            namespace: text(&content["metadata"]["namespace"]),
        }
    }

    /// Returns the apiVersion.
    pub fn api_version(&self) -> String {
        if self.group.is_empty() { self.version.clone() } else { format!("{}/{}", self.group, self.version) }
    }

    /// Returns whether it is in no namespace.
    pub fn is_cluster_scoped(&self) -> bool {
        scope::cluster_scoped(&self.kind).any(|api_version| api_version == self.api_version())
    }

    /// Returns the effective namespace (`EffectiveNamespace`).
    pub fn effective_namespace(&self) -> &str {
        if self.is_cluster_scoped() {
            return NOT_A_NAMESPACE;
        }
        if self.namespace.is_empty() { DEFAULT_NAMESPACE } else { &self.namespace }
    }

    /// Returns the identity with the effective namespace, by which kustomize compares.
    #[must_use]
    pub fn effective(&self) -> Self {
        Self { namespace: self.effective_namespace().to_owned(), ..self.clone() }
    }

    /// Returns kind and name, for messages.
    pub fn words(&self) -> String {
        let namespace = if self.namespace.is_empty() { String::new() } else { format!(" in {}", self.namespace) };
        format!("{} {}{namespace}", self.kind, self.name)
    }
}

impl fmt::Display for Id {
    /// Formats it like kustomize: `Deployment.v1.apps/web.[noNs]`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let or = |text: &str, none: &'static str| if text.is_empty() { none.to_owned() } else { text.to_owned() };
        write!(
            f,
            "{}.{}.{}/{}.{}",
            or(&self.kind, "[noKind]"),
            or(&self.version, "[noVer]"),
            or(&self.group, "[noGrp]"),
            or(&self.name, "[noName]"),
            or(&self.namespace, "[noNs]")
        )
    }
}

fn split_version(api_version: &str) -> (&str, &str) {
    api_version.split_once('/').unwrap_or(("", api_version))
}

/// How a generated object changes an existing one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Behavior {
    /// The object must not exist.
    Create,
    /// Its data is replaced.
    Replace,
    /// Data is added to it.
    Merge,
}

impl Behavior {
    /// Parses a behavior; kustomize treats every unknown word as unspecified.
    pub fn of(word: &str) -> Self {
        match word {
            "replace" => Self::Replace,
            "merge" => Self::Merge,
            _ => Self::Create,
        }
    }
}

/// An identity that an object had: kind, name, effective namespace.
#[derive(Debug, Clone, PartialEq, Eq)]
struct PreviousId {
    kind: String,
    name: String,
    namespace: String,
}

/// An object on its way through a build.
#[derive(Debug, Clone)]
pub struct Object {
    /// Its identity now.
    pub id: Id,
    /// Whether the identity is certain.
    pub sure: bool,
    /// Whether a hash of its content is appended to its name at the end.
    pub hashed: bool,
    /// Its position.
    pub site: Arc<Site>,
    former: Vec<PreviousId>,
    content: Arc<Value>,
    /// JSON pointers below which the content is not known.
    uncertain_values: Vec<String>,
    /// Keys with which it cannot be written, unless something takes them away.
    unwritable: Vec<Unwritable>,
}

impl Object {
    /// Creates an object of this content.
    pub fn new(content: Value, site: Arc<Site>) -> Self {
        let id = Id::of(&content);
        Self {
            id,
            sure: true,
            hashed: false,
            site,
            former: Vec::new(),
            content: Arc::new(content),
            uncertain_values: Vec::new(),
            unwritable: Vec::new(),
        }
    }

    /// Returns the identity it had first.
    pub fn original(&self) -> Id {
        self.former.first().map_or_else(|| self.id.clone(), |former| self.with(former))
    }

    /// Returns its current and previous identities.
    pub fn ids(&self) -> impl Iterator<Item = Id> + '_ {
        let former = self.former.iter().map(|former| self.with(former));
        former.chain(std::iter::once(self.id.clone()))
    }

    /// Returns whether it has or had an identity, given as [`Id::effective`].
    pub fn matches_current_or_previous(&self, effective: &Id) -> bool {
        let id = &self.id;
        if id.group != effective.group || id.version != effective.version {
            return false;
        }
        let now = id.name == effective.name && id.kind == effective.kind;
        (now && id.effective_namespace() == effective.namespace)
            || self.former.iter().any(|former| {
                former.kind == effective.kind
                    && former.name == effective.name
                    && former.namespace == effective.namespace
            })
    }

    fn with(&self, former: &PreviousId) -> Id {
        let PreviousId { kind, name, namespace } = former.clone();
        Id { kind, name, namespace, ..self.id.clone() }
    }

    /// Returns whether it had another identity.
    pub fn has_former(&self) -> bool {
        !self.former.is_empty()
    }

    /// Keeps the identity it has before it gets another (`StorePreviousId`).
    pub fn remember(&mut self) {
        self.former.push(PreviousId {
            kind: self.id.kind.clone(),
            name: self.id.name.clone(),
            namespace: self.id.effective_namespace().to_owned(),
        });
    }

    /// Takes the identities of `other`, for a generated object that is merged.
    pub fn stand_for(&mut self, other: &Self) {
        self.id = other.id.clone();
        self.former.clone_from(&other.former);
        self.sure = other.sure;
        self.site = Arc::clone(&other.site);
        self.hashed &= other.hashed;
        for field in ["labels", "annotations"] {
            self.add_metadata(field, other);
            let field = format!("/metadata/{field}");
            other
                .uncertain_values
                .iter()
                .filter(|pointer| covers(&field, pointer))
                .for_each(|pointer| self.invalidate(pointer));
            // The values are written anew, which removes other errors and tags from them.
            let is_text = |key: &&Unwritable| key.name().is_some_and(|name| yaml::is_text(&name) == Some(true));
            let is_one =
                |key: &&Unwritable| key.fault == KeyFault::NotText && is_member(&field, &key.pointer) && !is_text(key);
            self.unwritable.extend(other.unwritable.iter().filter(is_one).cloned());
        }
    }

    /// Adds the labels or annotations of `other`; its own take precedence. An empty result is omitted.
    fn add_metadata(&mut self, field: &str, other: &Self) {
        let mut texts = other.raw()["metadata"][field].as_object().cloned().unwrap_or_default();
        let there = other.raw()["metadata"].get(field).is_some();
        texts.extend(self.raw()["metadata"][field].as_object().cloned().unwrap_or_default());
        let Some(metadata) = self.raw_mut().get_mut("metadata").and_then(Value::as_object_mut) else { return };
        if texts.is_empty() && !there {
            metadata.remove(field);
        } else {
            metadata.insert(field.to_owned(), Value::Object(texts));
        }
    }

    /// Returns the content, with the identity written into it.
    pub fn content(&self) -> Value {
        let mut content = Value::clone(&self.content);
        let id = &self.id;
        if let Some(members) = content.as_object_mut() {
            members.insert("kind".to_owned(), id.kind.clone().into());
            let metadata = members.entry("metadata").or_insert_with(|| Value::Object(Map::new()));
            if let Some(metadata) = metadata.as_object_mut() {
                metadata.insert("name".to_owned(), id.name.clone().into());
                if !id.namespace.is_empty() {
                    metadata.insert("namespace".to_owned(), id.namespace.clone().into());
                }
                // kustomize stores previous identities in annotations, so the mapping exists.
                if !self.former.is_empty() {
                    metadata.entry("annotations").or_insert_with(|| Value::Object(Map::new()));
                }
            }
        }
        content
    }

    /// Returns the original content, whose identity may be outdated.
    pub fn raw(&self) -> &Value {
        &self.content
    }

    /// Returns the content, to be changed.
    pub fn raw_mut(&mut self) -> &mut Value {
        Arc::make_mut(&mut self.content)
    }

    /// Replaces the content, and takes the identity from it.
    pub fn replace(&mut self, content: Value) {
        self.id = Id::of(&content);
        self.content = Arc::new(content);
    }

    /// Returns the keys with which it cannot be written, if they are still there.
    pub fn unwritable(&self) -> &[Unwritable] {
        &self.unwritable
    }

    /// Returns the keys with which it cannot be written, to be changed.
    pub fn unwritable_mut(&mut self) -> &mut Vec<Unwritable> {
        &mut self.unwritable
    }

    /// Marks the value at a JSON pointer as unknown.
    pub fn invalidate(&mut self, pointer: &str) {
        if !self.uncertain_values.iter().any(|known| covers(known, pointer)) {
            self.uncertain_values.push(pointer.to_owned());
        }
    }

    /// Copies the unknown parts of `other`.
    pub fn invalidate_like(&mut self, other: &Self) {
        for pointer in &other.uncertain_values {
            self.invalidate(pointer);
        }
    }

    /// Returns whether all is known that is at a JSON pointer, above and below it.
    pub fn is_clear(&self, pointer: &str) -> bool {
        !self
            .uncertain_values
            .iter()
            .any(|uncertain_values| covers(uncertain_values, pointer) || covers(pointer, uncertain_values))
    }
}

fn is_member(mapping: &str, pointer: &str) -> bool {
    pointer.rsplit_once('/').is_some_and(|(parent, _)| parent == mapping)
}

fn covers(outer: &str, inner: &str) -> bool {
    inner.strip_prefix(outer).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}
