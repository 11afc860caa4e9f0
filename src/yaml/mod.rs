//! Parses YAML and JSON documents exactly as kubectl does, and records the position of every value.
//!
//! Kubernetes parses YAML with [sigs.k8s.io/yaml], which is based on go-yaml v2. go-yaml v2 implements YAML 1.1, so
//! `yes` is true, `0644` is 420, and the key `n` is `"false"`. With another parser, the checked objects would differ
//! from those in the cluster. So this module behaves as the following sources say. Earlier sources take precedence:
//!
//! 1. the observed behavior of `kubectl` (the cases are in `tests/vectors/yaml`)
//! 2. the source of go-yaml v2
//! 3. the YAML specification
//!
//! ```
//! use portcullis::admission::field::FieldPath;
//! use portcullis::yaml;
//!
//! let text = "kind: ConfigMap\ndata:\n  enabled: on\n";
//! let documents = yaml::read(text, &yaml::Limits::default())?;
//! assert_eq!(documents[0].value["data"]["enabled"], true);
//! let place = documents[0].nearest(&FieldPath::of(["data", "enabled"]));
//! assert_eq!((place.line, place.column), (3, 12));
//! # Ok::<(), yaml::YamlError>(())
//! ```
//!
//! # Behavior of kubectl
//!
//! * A text is split at every line that begins with `---`, before anything is parsed. Only a comment may follow `---`.
//!   Documents that are empty, null or only comments are skipped.
//! * Text after `...` is ignored. In manifests that kustomize reads, the first tokens of this text must be valid,
//!   because go-yaml scans them.
//! * If a mapping has duplicate keys, the last one is used. [`Document::duplicates`] returns the duplicates.
//! * `<<` merges at its position. Its entries override keys before it, and keys after it override its entries. In a
//!   list of mappings, the first mapping takes precedence.
//! * Keys that are not strings are converted to strings. For example, `1.50` becomes `"1.5"`. Null cannot be a key.
//! * A scalar with a tag that go-yaml does not know is a string. For example, `!port 80` is `"80"`.
//! * A float without a fraction is an integer after the conversion to JSON. For example, `1.0` is `1`.
//! * A document that is JSON is parsed as JSON. It may consist of several JSON objects. If other text follows the first
//!   object, this text is YAML; if it follows several objects, it is an error.
//!
//! # Differences from kubectl
//!
//! Our parser is the crate granit-parser, which implements YAML 1.2. This module also rejects the texts that go-yaml
//! rejects and our parser accepts. But our parser rejects some texts that kubectl accepts, for example:
//!
//! * a comment without a space before it (`"a"#c`)
//! * a quoted scalar that continues in the first column
//! * a single `-` in brackets
//!
//! Two kinds of text are parsed differently. `[a:]` contains a mapping here, but the string `a:` in go-yaml. U+0085,
//! U+2028 and U+2029 break lines only in go-yaml. `DIFFERENCES` in `tests/yaml_kubectl.rs` is the complete list.
//!
//! The functions [`first`] and [`nodes()`] parse files of kustomize. For them, lines break as in go-yaml. Where our
//! parser may differ from go-yaml in another way, they return an error that says that kustomize's result is
//! [unknown](Problem::is_open). Portcullis does not deny a kustomization because of such an error.
//!
//! # Cost
//!
//! Parsing takes one pass over the text. [`Limits`] bound the work for a malicious text. Each alias copies a value, and
//! the copied values are counted before they are copied.
//!
//! [sigs.k8s.io/yaml]: https://github.com/kubernetes-sigs/yaml

mod block;
mod breaks;
pub mod core;
mod dialect;
mod end;
mod error;
mod json;
mod limits;
mod mapping;
pub mod node;
mod nodes;
mod number;
mod place;
mod quotes;
mod reader;
mod scalar;
mod scalar_value;
mod stream;
mod strict;
mod tag;
mod time;

use serde_json::Value;

use crate::admission::field::FieldPath;

pub use error::{Problem, YamlError};
pub use limits::Limits;
pub use place::{Duplicate, Place};

use dialect::As;
use place::Spot;
use stream::{Chunk, Chunks};

/// A parsed document: its root value, and the positions of all values in it.
#[derive(Debug, Clone)]
pub struct Document {
    /// The root value as JSON. The positions are stored separately, so they stay the same if the caller changes or
    /// moves this value.
    pub value: Value,
    /// Number of values that were copied because of aliases, as in [`Limits::aliased`].
    pub aliased: usize,
    spot: Spot,
    /// Whether a mapping of the document may have duplicate keys. Keys that are merged with `<<` count too. If `false`,
    /// [`Document::duplicates`] skips the search.
    has_duplicates: bool,
}

impl Document {
    /// Returns the position of the value at `path`; `None` if there is none.
    ///
    /// The value of an alias has the position of the alias. A block scalar has the position of its text, below `|` or
    /// `>`.
    pub fn place(&self, path: &FieldPath) -> Option<Place> {
        let reached = self.spot.reach(path);
        reached.whole.then_some(reached.spot.place)
    }

    /// Returns the position of the key of the mapping entry at `path`; `None` if there is none.
    pub fn key_place(&self, path: &FieldPath) -> Option<Place> {
        let reached = self.spot.reach(path);
        reached.entry.filter(|_| reached.whole).map(|entry| entry.key_place)
    }

    /// Returns the position of the value at `path`. If the path does not exist, returns the position of its deepest
    /// existing parent.
    pub fn nearest(&self, path: &FieldPath) -> Place {
        self.spot.reach(path).spot.place
    }

    /// Returns the position of the document's root value.
    pub fn start(&self) -> Place {
        self.spot.place
    }

    /// Returns the duplicate keys of all mappings. kubectl accepts duplicate keys.
    pub fn duplicates(&self) -> Vec<Duplicate> {
        let mut found = Vec::new();
        if self.has_duplicates {
            self.spot.duplicates(&FieldPath::root(), &mut found);
        }
        found
    }
}

/// Returns whether YAML 1.1 parses an unquoted text as a string, and not as a number, boolean, null or timestamp.
pub fn is_plain_string(text: &str) -> bool {
    scalar::is_string(text) && time::Timestamp::read(text).is_none()
}

/// Returns whether YAML 1.1 parses a text of one line as something other than a string. `false` if the text is empty,
/// has several lines, or is not YAML.
pub fn is_not_string_in_1_1(text: &str) -> bool {
    if text.is_empty() || text.contains('\n') {
        return false;
    }
    let has_marks = text.starts_with(|c: char| !c.is_ascii_alphanumeric()) || text.ends_with([':', ' ', '\t']);
    if !has_marks && !text.contains(": ") && !text.contains(" #") {
        return !scalar::is_string(text);
    }
    let document = first(text, &Limits::default());
    document.is_ok_and(|document| document.is_none_or(|document| !document.value.is_string()))
}

/// Parses all documents of a text, as kubectl does.
///
/// # Errors
///
/// If a document is not YAML, cannot be converted to JSON, or exceeds `limits`.
pub fn read(text: &str, limits: &Limits) -> Result<Vec<Document>, YamlError> {
    documents(text, limits).collect()
}

/// Parses the documents of a text up to the first invalid document. Returns the valid documents, and the error of the
/// invalid document, if there is one.
pub fn read_all(text: &str, limits: &Limits) -> (Vec<Document>, Option<YamlError>) {
    let (mut good, mut bad) = (Vec::new(), None);
    for document in documents(text, limits) {
        match document {
            Ok(document) => good.push(document),
            Err(error) => {
                bad = Some(error);
                break;
            }
        }
    }
    (good, bad)
}

/// Parses the documents of a text one by one. An invalid document does not affect the others, but an invalid separator
/// ends the iteration.
pub fn documents<'t>(text: &'t str, limits: &'t Limits) -> impl Iterator<Item = Result<Document, YamlError>> + 't {
    Chunks::new(text).flat_map(move |chunk| match chunk {
        Ok(chunk) => {
            let separator = separator_after_json(chunk, text).map(Err);
            objects(chunk, limits).into_iter().chain(separator).collect()
        }
        Err(error) => vec![Err(error)],
    })
}

/// Returns an error if `chunk` is the start of `text`, consists of several JSON values, and is followed by a separator.
/// kubectl expects another JSON value instead of the separator.
fn separator_after_json(chunk: Chunk<'_>, text: &str) -> Option<YamlError> {
    let end = chunk.text.len();
    if chunk.lines > 0 || chunk.byte + end >= text.len() {
        return None;
    }
    let json::Start { ends, error } = json::start(chunk);
    let problem = || Problem::AfterJson("found the separator `---`".to_owned());
    (ends.len() > 1 && error.is_none()).then(|| YamlError { place: chunk.place(end), problem: problem() })
}

/// Parses the objects of a chunk. kubectl reads JSON values one after the other. If other text follows the first value,
/// kubectl reads this text as YAML. If it follows several values, it is an error, also if it is a separator.
///
/// Source: `YAMLOrJSONDecoder.Decode` of k8s.io/apimachinery.
fn objects(chunk: Chunk<'_>, limits: &Limits) -> Vec<Result<Document, YamlError>> {
    if let Some(documents) = json::read(chunk, limits) {
        return documents.into_iter().map(Ok).collect();
    }
    let json::Start { ends, error } = json::start(chunk);
    let (mut found, mut rest) = (Vec::new(), chunk);
    for end in &ends {
        let (value, behind) = rest.split(end - (chunk.text.len() - rest.text.len()));
        found.extend(parse(value, limits, As::Object).transpose());
        rest = behind;
    }
    match error {
        Some(error) if ends.len() > 1 || error.problem == Problem::OutOfRange => found.push(Err(error)),
        _ if ends.is_empty() => found.extend(parse(chunk, limits, As::Object).transpose()),
        _ => found.extend(parse(rest.after_blank(), limits, As::Object).transpose()),
    }
    found
}

/// Parses a text as kustomize parses a `kustomization.yaml`. Only the first YAML document is parsed, and later
/// documents are ignored. Returns `None` if the document is empty or null.
///
/// # Errors
///
/// If the document is not YAML, cannot be converted to JSON, or exceeds `limits`.
pub fn first(text: &str, limits: &Limits) -> Result<Option<Document>, YamlError> {
    parse(Chunk::whole(text), limits, As::Kustomization)
}

/// Parses the documents of a text into nodes, as kustomize parses manifests and patches. The nodes preserve styles and
/// tags. Aliases and merge keys (`<<`) are expanded. `source` is a number that the caller chooses for the file. It is
/// stored in the [origin](node::Origin) of each node.
///
/// The text is split at lines that begin with `---`. There are two exceptions: the first line of the text, and a last
/// line without a line feed. Only the first YAML document of each part is parsed.
///
/// The first key `<<` of each mapping is removed after the merge. A quoted `"<<"` is not a merge key, so its value is
/// not merged, but it is removed too. A mapping with two merge keys is an error.
///
/// Source: `ByteReader.Read` of kyaml, which decodes into nodes of go-yaml v3, and `RNode.DeAnchor`.
pub fn nodes<'t>(
    text: &'t str,
    source: u32,
    limits: &'t Limits,
) -> impl Iterator<Item = Result<node::Node, YamlError>> + 't {
    Chunks::of_manifests(text)
        .filter_map(move |chunk| chunk.and_then(|chunk| nodes::read(chunk, source, limits, true)).transpose())
        .filter(|read| !read.as_ref().is_ok_and(node::Node::is_null))
}

/// Parses the first YAML document of `text` as a node, and ignores later documents. Returns `None` if `text` contains
/// no document, for example only comments. `source` is a number that the caller chooses for the file.
///
/// # Errors
///
/// If the document is not YAML or exceeds `limits`.
pub fn node(text: &str, source: u32, limits: &Limits) -> Result<Option<node::Node>, YamlError> {
    nodes::read(Chunk::whole(text), source, limits, false)
}

/// Returns whether `text`, the content of a manifest file, is a single document. The result is false if a line `---`
/// separates several documents. A `---` in the first line is not a separator.
pub fn is_one_manifest(text: &str) -> bool {
    Chunks::of_manifests(text).count() == 1
}

/// Parses the first document of a chunk. Returns `None` if the document is empty or null.
fn parse(chunk: Chunk<'_>, limits: &Limits, what: As) -> Result<Option<Document>, YamlError> {
    match json::read(chunk, limits) {
        Some(documents) => Ok(documents.into_iter().next()),
        None => reader::read(chunk, limits, what),
    }
}
