//! A YAML node as in go-yaml v3. It contains the text, tag and style of every scalar, and mappings in the order of the
//! text.
//!
//! kustomize edits such nodes, and resolves the types of scalars only when it serializes them. Cloning a node is cheap,
//! because the copies share mappings, sequences and texts until one of the copies is changed.

use std::sync::Arc;

use super::core;
pub use super::tag::Tag;

/// The style in which a node is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Style {
    /// The style of a plain scalar, and of a mapping or sequence in block form.
    #[default]
    Plain,
    /// A scalar in single quotes: `'text'`.
    SingleQuoted,
    /// A scalar in double quotes: `"text"`.
    DoubleQuoted,
    /// A literal block scalar, after `|`.
    Literal,
    /// A folded block scalar, after `>`.
    Folded,
    /// A mapping or sequence in brackets: `{…}` or `[…]`.
    Flow,
}

impl Style {
    /// Returns whether a scalar of this style is a string even without a tag.
    pub fn is_quoted(self) -> bool {
        matches!(self, Self::SingleQuoted | Self::DoubleQuoted | Self::Literal | Self::Folded)
    }
}

/// The file and line from which a node comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Origin {
    /// The number of the file. The caller of the parser chooses the number. 0 for a node that does not come from a
    /// file.
    pub source: u32,
    /// The line number, starting at one. 0 for a node that does not come from a file.
    pub line: u32,
}

/// A YAML node: a scalar, mapping or sequence, with its tag, style and origin.
#[derive(Debug, Clone)]
pub struct Node {
    /// The type of the node, such as `!!str`.
    pub tag: Tag,
    /// Whether the YAML text states the tag explicitly. Such a tag is also written when the node is serialized.
    pub tagged: bool,
    /// The style in which the node is serialized.
    pub style: Style,
    /// Whether a transformer or generator of kustomize created the node. Such a node has no position in a file, so its
    /// origin is the origin of the transformer or generator.
    pub made: bool,
    /// The ID of a group of scalars that always have the same value; 0 if this scalar is in no group. In kustomize,
    /// such scalars are one YAML node that several fields refer to, for example the fields to which kustomize adds a
    /// label. A change of one field changes all of them. [`Node::assign`] keeps the ID.
    pub shared: u32,
    /// The file and line of the node.
    pub origin: Origin,
    /// The comment on the same line as the key or value, if the comment begins with `{`. kyaml, the YAML library of
    /// kustomize, may use such a comment (`# {"$ref": …}`) as the schema of the field.
    pub comment: Option<Arc<String>>,
    /// The content of the node: the text of a scalar, the entries of a mapping, or the elements of a sequence.
    pub kind: Kind,
}

/// The content of a YAML node.
#[derive(Debug, Clone)]
pub enum Kind {
    /// A scalar, such as a string or a number, represented by its text.
    Scalar(Arc<str>),
    /// A mapping, in the order of the text. It may contain duplicate keys.
    Map(Arc<Vec<Entry>>),
    /// A sequence.
    Seq(Arc<Vec<Node>>),
}

/// An entry of a mapping.
#[derive(Debug, Clone)]
pub struct Entry {
    /// The text of the key. Empty if the key is a mapping or sequence.
    pub key: Arc<str>,
    /// The type of the key. Below the top level of a document, only keys that are strings or merge keys can be
    /// serialized.
    pub key_tag: Tag,
    /// The value of the entry.
    pub value: Node,
}

impl Entry {
    /// Creates an entry with a plain key without a tag. The text determines the type of the key, so `1` is a number.
    pub fn new(key: impl Into<Arc<str>>, value: Node) -> Self {
        Self { key: key.into(), key_tag: Tag::None, value }
    }

    /// Returns `a mapping` or `a list` if the key of the entry is a mapping or a sequence. Returns `None` if the key is
    /// a scalar.
    pub fn collection_key(&self) -> Option<&'static str> {
        match self.key_tag {
            Tag::Map => Some("a mapping"),
            Tag::Seq => Some("a list"),
            _ => None,
        }
    }

    /// Creates an entry whose key is always a string, even a key such as `1`.
    pub fn quoted(key: impl Into<Arc<str>>, value: Node) -> Self {
        Self { key: key.into(), key_tag: Tag::Str, value }
    }
}

impl Node {
    /// Creates a node without a position, in the plain style.
    pub fn new(kind: Kind, tag: Tag) -> Self {
        Self {
            tag,
            tagged: false,
            style: Style::Plain,
            made: false,
            shared: 0,
            origin: Origin::default(),
            comment: None,
            kind,
        }
    }

    /// Returns whether two nodes share their content in memory. This is the case if one was cloned from the other, and
    /// neither has changed since.
    pub fn shares_content(&self, other: &Self) -> bool {
        match (&self.kind, &other.kind) {
            (Kind::Scalar(one), Kind::Scalar(other)) => Arc::ptr_eq(one, other),
            (Kind::Map(one), Kind::Map(other)) => Arc::ptr_eq(one, other),
            (Kind::Seq(one), Kind::Seq(other)) => Arc::ptr_eq(one, other),
            _ => false,
        }
    }

    /// Creates a scalar without a tag. Its text determines its type when it is serialized.
    pub fn scalar(text: impl Into<Arc<str>>) -> Self {
        Self::new(Kind::Scalar(text.into()), Tag::None)
    }

    /// Creates a scalar with the tag `!!str`. It is a string even if its text is, for example, `1`.
    pub fn string(text: impl Into<Arc<str>>) -> Self {
        Self::new(Kind::Scalar(text.into()), Tag::Str)
    }

    /// Creates a plain scalar. Its tag is the type that YAML gives to this text, for example integer for `80`.
    pub fn resolved(text: impl Into<Arc<str>>) -> Self {
        let text = text.into();
        let tag = core::tag_of(&text);
        Self::new(Kind::Scalar(text), tag)
    }

    /// Creates a null scalar.
    pub fn null() -> Self {
        Self::new(Kind::Scalar("null".into()), Tag::Null)
    }

    /// Creates a mapping.
    pub fn map(entries: Vec<Entry>) -> Self {
        Self::new(Kind::Map(Arc::new(entries)), Tag::Map)
    }

    /// Creates a sequence.
    pub fn seq(items: Vec<Self>) -> Self {
        Self::new(Kind::Seq(Arc::new(items)), Tag::Seq)
    }

    /// Returns the node with another origin, which is its file and line. The children of the node keep their origins.
    #[must_use]
    pub fn at(mut self, origin: Origin) -> Self {
        self.origin = origin;
        self
    }

    /// Sets [`Node::made`], which records that a transformer created the node. Also sets the origin of the node to the
    /// origin of the transformer.
    #[must_use]
    pub fn made_at(self, origin: Origin) -> Self {
        Self { made: true, ..self.at(origin) }
    }

    /// Replaces the node with `other`, but keeps the node's own ID in [`Node::shared`]. In kustomize, scalars with the
    /// same ID are one YAML node. So a later change of one of them must still change all of them.
    pub fn assign(&mut self, other: Self) {
        *self = Self { shared: self.shared, ..other };
    }

    /// Returns whether the tag of the node is `!!null`.
    pub fn is_null(&self) -> bool {
        self.tag == Tag::Null
    }

    /// Returns whether the node is null, an empty mapping or an empty sequence.
    pub fn is_null_or_empty(&self) -> bool {
        self.is_null()
            || match &self.kind {
                Kind::Scalar(_) => false,
                Kind::Map(entries) => entries.is_empty(),
                Kind::Seq(items) => items.is_empty(),
            }
    }

    /// Returns whether the node is a scalar.
    pub fn is_scalar(&self) -> bool {
        matches!(self.kind, Kind::Scalar(_))
    }

    /// Returns whether the node is a mapping.
    pub fn is_map(&self) -> bool {
        matches!(self.kind, Kind::Map(_))
    }

    /// Returns whether the node is a sequence.
    pub fn is_seq(&self) -> bool {
        matches!(self.kind, Kind::Seq(_))
    }

    /// Returns whether the node is a scalar with the tag `!!str`, or without a tag.
    pub fn is_string(&self) -> bool {
        self.is_scalar() && matches!(self.tag, Tag::Str | Tag::None)
    }

    /// Returns the text of a scalar, without quotes; `None` for other nodes.
    pub fn text(&self) -> Option<&str> {
        match &self.kind {
            Kind::Scalar(text) => Some(text),
            _ => None,
        }
    }

    /// Returns the text of a scalar without copying it; `None` for other nodes.
    pub fn shared_text(&self) -> Option<Arc<str>> {
        match &self.kind {
            Kind::Scalar(text) => Some(Arc::clone(text)),
            _ => None,
        }
    }

    /// Replaces the content of the node with a scalar that has this text, and keeps style and tag.
    pub fn set_text(&mut self, text: impl Into<Arc<str>>) {
        self.kind = Kind::Scalar(text.into());
    }

    /// Returns the entries of a mapping. Empty for other nodes.
    pub fn entries(&self) -> &[Entry] {
        match &self.kind {
            Kind::Map(entries) => entries,
            _ => &[],
        }
    }

    /// Returns a mutable reference to the entries of a mapping. `None` for other nodes. Copies the entries first if
    /// other nodes share them.
    pub fn entries_mut(&mut self) -> Option<&mut Vec<Entry>> {
        match &mut self.kind {
            Kind::Map(entries) => Some(Arc::make_mut(entries)),
            _ => None,
        }
    }

    /// Returns the elements of a sequence. Empty for other nodes.
    pub fn items(&self) -> &[Self] {
        match &self.kind {
            Kind::Seq(items) => items,
            _ => &[],
        }
    }

    /// Returns a mutable reference to the elements of a sequence. `None` for other nodes. Copies the elements first if
    /// other nodes share them.
    pub fn items_mut(&mut self) -> Option<&mut Vec<Self>> {
        match &mut self.kind {
            Kind::Seq(items) => Some(Arc::make_mut(items)),
            _ => None,
        }
    }

    /// Returns the value of the first entry with this key.
    pub fn get(&self, key: &str) -> Option<&Self> {
        self.entries().iter().find(|entry| &*entry.key == key).map(|entry| &entry.value)
    }

    /// Returns a mutable reference to the value of the first entry with this key. Copies a shared mapping only if the
    /// key exists.
    pub fn get_mut(&mut self, key: &str) -> Option<&mut Self> {
        let at = self.position(key)?;
        Some(&mut self.entries_mut()?.get_mut(at)?.value)
    }

    /// Returns the index of the first entry with this key.
    pub fn position(&self, key: &str) -> Option<usize> {
        self.entries().iter().position(|entry| &*entry.key == key)
    }

    /// Returns the value at a path of mapping keys; `None` if there is none.
    pub fn at_path(&self, path: &[&str]) -> Option<&Self> {
        path.iter().try_fold(self, |node, key| node.get(key))
    }

    /// Sets the value of the first entry with this key. If there is no such entry, appends one. Does nothing if this
    /// node is not a mapping.
    pub fn set(&mut self, key: &str, value: Self) {
        let at = self.position(key);
        let Some(entries) = self.entries_mut() else { return };
        match at.and_then(|at| entries.get_mut(at)) {
            Some(entry) => entry.value = value,
            None => entries.push(Entry::new(key, value)),
        }
    }

    /// Removes the first entry with this key and returns its value.
    pub fn remove(&mut self, key: &str) -> Option<Self> {
        let at = self.position(key)?;
        Some(self.entries_mut()?.remove(at).value)
    }
}
