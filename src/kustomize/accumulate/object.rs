//! An object on its way through a build: its identity, past and present, and its content as far as it is known.

use std::fmt;
use std::sync::Arc;

use serde_json::{Map, Value};

use super::keys::{KeyFault, Unwritable};
use super::scope;
use crate::kustomize::finding::Site;
use crate::yaml;

/// The namespace that kustomize gives to what has none of its own (`TotallyNotANamespace`).
const NOT_A_NAMESPACE: &str = "_non_namespaceable_";
/// The namespace of what says nothing.
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
    /// The identity that an object's content gives it.
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

    /// Group and version as they are written.
    pub fn api_version(&self) -> String {
        if self.group.is_empty() { self.version.clone() } else { format!("{}/{}", self.group, self.version) }
    }

    /// Whether it is in no namespace.
    pub fn is_cluster_scoped(&self) -> bool {
        scope::cluster_scoped(&self.kind).any(|api_version| api_version == self.api_version())
    }

    /// The namespace it counts as being in (`EffectiveNamespace`).
    pub fn effective_namespace(&self) -> &str {
        if self.is_cluster_scoped() {
            return NOT_A_NAMESPACE;
        }
        if self.namespace.is_empty() { DEFAULT_NAMESPACE } else { &self.namespace }
    }

    /// The same identity with the namespace it counts as being in: equal for what kustomize takes for equal.
    #[must_use]
    pub fn effective(&self) -> Self {
        Self { namespace: self.effective_namespace().to_owned(), ..self.clone() }
    }

    /// Kind and name, for people.
    pub fn words(&self) -> String {
        let namespace = if self.namespace.is_empty() { String::new() } else { format!(" in {}", self.namespace) };
        format!("{} {}{namespace}", self.kind, self.name)
    }
}

impl fmt::Display for Id {
    /// As kustomize prints it: `Deployment.v1.apps/web.[noNs]`.
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

/// What a generator wants done with an object that is there already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Behavior {
    /// It must not be there.
    Create,
    /// Its data is replaced.
    Replace,
    /// Data is added to it.
    Merge,
}

impl Behavior {
    /// What a word means; kustomize takes every unknown word for none.
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
struct Former {
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
    /// Whether a hash of its content is put behind its name when all else is done.
    pub hashed: bool,
    /// Where it comes from.
    pub site: Arc<Site>,
    former: Vec<Former>,
    content: Arc<Value>,
    /// JSON pointers below which the content is not known.
    fuzzy: Vec<String>,
    /// Keys with which it cannot be written, unless something takes them away.
    unwritable: Vec<Unwritable>,
}

impl Object {
    /// An object of this content.
    pub fn new(content: Value, site: Arc<Site>) -> Self {
        let id = Id::of(&content);
        Self {
            id,
            sure: true,
            hashed: false,
            site,
            former: Vec::new(),
            content: Arc::new(content),
            fuzzy: Vec::new(),
            unwritable: Vec::new(),
        }
    }

    /// The identity it had first.
    pub fn original(&self) -> Id {
        self.former.first().map_or_else(|| self.id.clone(), |former| self.with(former))
    }

    /// Every identity it has or had.
    pub fn ids(&self) -> impl Iterator<Item = Id> + '_ {
        let former = self.former.iter().map(|former| self.with(former));
        former.chain(std::iter::once(self.id.clone()))
    }

    /// Whether it has or had an identity, given as [`Id::effective`].
    pub fn is_or_was(&self, effective: &Id) -> bool {
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

    fn with(&self, former: &Former) -> Id {
        let Former { kind, name, namespace } = former.clone();
        Id { kind, name, namespace, ..self.id.clone() }
    }

    /// Whether it had another identity.
    pub fn has_former(&self) -> bool {
        !self.former.is_empty()
    }

    /// Keeps the identity it has before it gets another (`StorePreviousId`).
    pub fn remember(&mut self) {
        self.former.push(Former {
            kind: self.id.kind.clone(),
            name: self.id.name.clone(),
            namespace: self.id.effective_namespace().to_owned(),
        });
    }

    /// Takes the identity and past of `other`, as what a generator merges into it does.
    pub fn stand_for(&mut self, other: &Self) {
        self.id = other.id.clone();
        self.former.clone_from(&other.former);
        self.sure = other.sure;
        self.site = Arc::clone(&other.site);
        self.hashed &= other.hashed;
        for field in ["labels", "annotations"] {
            self.add_metadata(field, other);
            let field = format!("/metadata/{field}");
            other.fuzzy.iter().filter(|pointer| covers(&field, pointer)).for_each(|pointer| self.blur(pointer));
            // they are written anew, so that what else was wrong with them is so no more, nor what a tag made of them
            let is_text = |key: &&Unwritable| key.name().is_some_and(|name| yaml::is_text(&name) == Some(true));
            let is_one =
                |key: &&Unwritable| key.fault == KeyFault::NotText && is_member(&field, &key.pointer) && !is_text(key);
            self.unwritable.extend(other.unwritable.iter().filter(is_one).cloned());
        }
    }

    /// Puts the labels or annotations of `other` under its own; what is empty on both sides is left out.
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

    /// The content, with the identity written into it.
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
                // kustomize keeps former identities in annotations, so that there are some
                if !self.former.is_empty() {
                    metadata.entry("annotations").or_insert_with(|| Value::Object(Map::new()));
                }
            }
        }
        content
    }

    /// The content as it came, whose identity may be old.
    pub fn raw(&self) -> &Value {
        &self.content
    }

    /// The content, to be changed.
    pub fn raw_mut(&mut self) -> &mut Value {
        Arc::make_mut(&mut self.content)
    }

    /// Replaces the content, and the identity by the one in it.
    pub fn replace(&mut self, content: Value) {
        self.id = Id::of(&content);
        self.content = Arc::new(content);
    }

    /// The keys with which it cannot be written, if they are still there.
    pub fn unwritable(&self) -> &[Unwritable] {
        &self.unwritable
    }

    /// The keys with which it cannot be written, to be changed.
    pub fn unwritable_mut(&mut self) -> &mut Vec<Unwritable> {
        &mut self.unwritable
    }

    /// Marks what is at a JSON pointer as not known from here on.
    pub fn blur(&mut self, pointer: &str) {
        if !self.fuzzy.iter().any(|known| covers(known, pointer)) {
            self.fuzzy.push(pointer.to_owned());
        }
    }

    /// Takes over what is not known of `other`.
    pub fn blur_like(&mut self, other: &Self) {
        for pointer in &other.fuzzy {
            self.blur(pointer);
        }
    }

    /// Whether all is known that is at a JSON pointer, above and below it.
    pub fn is_clear(&self, pointer: &str) -> bool {
        !self.fuzzy.iter().any(|fuzzy| covers(fuzzy, pointer) || covers(pointer, fuzzy))
    }
}

fn is_member(mapping: &str, pointer: &str) -> bool {
    pointer.rsplit_once('/').is_some_and(|(parent, _)| parent == mapping)
}

fn covers(outer: &str, inner: &str) -> bool {
    inner.strip_prefix(outer).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}
