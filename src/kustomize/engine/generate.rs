//! Generates ConfigMaps and Secrets from literals, files and environment files.
//!
//! Source: kustomize's `api/kv` and `api/internal/generators`.

use std::collections::{BTreeMap, HashSet};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::resource::{Behavior, Resource};
use super::setters::with_style;
use crate::kustomize::file::{Generator, GeneratorOptions};
use crate::kustomize::node::{Entry, Kind, Node, Origin, Style, Tag};

/// Length in bytes at which a line of an environment file is too long. Go's line scanner stops at a line that is too
/// long, without an error. So kustomize ignores this line and the rest of the file.
const MAX_LINE_BYTES: usize = 64 << 10;
/// Number of characters in a line of base64 text. kustomize splits longer texts into several lines.
const BASE64_LINE: usize = 70;

/// The kind of object that a generator creates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Made {
    /// A ConfigMap.
    ConfigMap,
    Secret,
}

impl Made {
    /// Returns the Kubernetes kind of the generated object: `ConfigMap` or `Secret`.
    pub(super) fn kind(self) -> &'static str {
        match self {
            Self::ConfigMap => "ConfigMap",
            Self::Secret => "Secret",
        }
    }

    /// Returns the name of the generator in kustomize, such as `ConfigMapGenerator`.
    pub(super) fn generator(self) -> &'static str {
        match self {
            Self::ConfigMap => "ConfigMapGenerator",
            Self::Secret => "SecretGenerator",
        }
    }
}

/// The reason why a literal, file or environment file of a generator is invalid.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum BadPair {
    /// A key that occurs twice in the generator.
    Repeated(String),
    /// A literal that is not `key=value`.
    Literal(String),
    /// An invalid entry of `files`. A valid entry has the form `path` or `key=path`.
    Source(String),
    /// A line of an environment file is not UTF-8. Contains the number of the line.
    Encoding(usize),
}

/// A key in the data of the generated object, and its value.
type Pair = (String, Vec<u8>);

/// The keys and values that a generator writes into its object.
#[derive(Debug, Default)]
pub(super) struct Pairs {
    pairs: Vec<Pair>,
    keys: HashSet<String>,
}

impl Pairs {
    fn add(&mut self, (key, value): Pair) -> Result<(), BadPair> {
        if !self.keys.insert(key.clone()) {
            return Err(BadPair::Repeated(key));
        }
        self.pairs.push((key, value));
        Ok(())
    }

    /// Adds the variables of an environment file. Each line has the form `key=value`. Empty lines and comments are
    /// skipped. Like kustomize, stops without an error at a line of [`MAX_LINE_BYTES`] or more.
    ///
    /// # Errors
    ///
    /// If a line is not UTF-8, or if a key already exists.
    pub(super) fn env_file(&mut self, content: &[u8]) -> Result<(), BadPair> {
        for (number, line) in content.split_inclusive(|byte| *byte == b'\n').enumerate() {
            let line = line.strip_suffix(b"\n").unwrap_or(line);
            if line.len() >= MAX_LINE_BYTES {
                return Ok(());
            }
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            let text = std::str::from_utf8(line).map_err(|_| BadPair::Encoding(number + 1))?;
            let text = if number == 0 { text.strip_prefix('\u{feff}').unwrap_or(text) } else { text };
            let text = text.trim_start();
            if !text.is_empty() && !text.starts_with('#') {
                let (key, value) = text.split_once('=').unwrap_or((text, ""));
                if !key.is_empty() {
                    self.add((key.to_owned(), value.into()))?;
                }
            }
        }
        Ok(())
    }

    /// Adds a literal, `key=value`.
    ///
    /// # Errors
    ///
    /// If the literal has no key or no `=`, or the key already exists.
    pub(super) fn literal(&mut self, literal: &str) -> Result<(), BadPair> {
        let pair = literal.split_once('=').filter(|(key, _)| !key.is_empty());
        let (key, value) = pair.ok_or_else(|| BadPair::Literal(literal.to_owned()))?;
        self.add((key.to_owned(), unquoted(value).into()))
    }

    /// Adds the content of a file as the value of `key`.
    ///
    /// # Errors
    ///
    /// If the key already exists.
    pub(super) fn file(&mut self, key: &str, content: &[u8]) -> Result<(), BadPair> {
        self.add((key.to_owned(), content.to_vec()))
    }
}

/// Splits an entry of `files` into key and path. The entry has the form `key=path` or `path`. In the second form, the
/// key is the file name.
///
/// # Errors
///
/// If the key or the path is missing, or if the entry contains several `=`.
pub(super) fn file_source(source: &str) -> Result<(&str, &str), BadPair> {
    let parts: Vec<&str> = source.split('=').collect();
    match parts.as_slice() {
        [path] => Ok((base_name(path), path)),
        [key, path] if !key.is_empty() && !path.is_empty() => Ok((key, path)),
        _ => Err(BadPair::Source(source.to_owned())),
    }
}

fn base_name(path: &str) -> &str {
    let trimmed = path.trim_end_matches('/');
    match trimmed.rsplit('/').next() {
        Some("") | None if path.is_empty() => ".",
        Some("") | None => "/",
        Some(name) => name,
    }
}

fn unquoted(value: &str) -> &str {
    let is_quoted = |quote| value.len() >= 2 && value.starts_with(quote) && value.ends_with(quote);
    if is_quoted('"') || is_quoted('\'') { &value[1..value.len() - 1] } else { value }
}

/// Merges the options of a generator (`own`) with `generatorOptions` (`all`). Labels and annotations of the generator
/// take precedence. A boolean option is true if it is true in `own` or in `all`.
pub(super) fn merged_options(own: Option<&GeneratorOptions>, all: Option<&GeneratorOptions>) -> GeneratorOptions {
    let mut options = own.cloned().unwrap_or_default();
    if let Some(all) = all {
        let fill = |own: &mut BTreeMap<String, String>, all: &BTreeMap<String, String>| {
            for (key, value) in all {
                own.entry(key.clone()).or_insert_with(|| value.clone());
            }
        };
        fill(&mut options.labels, &all.labels);
        fill(&mut options.annotations, &all.annotations);
        options.disable_name_suffix_hash |= all.disable_name_suffix_hash;
        options.immutable |= all.immutable;
    }
    options
}

/// Creates the ConfigMap or Secret of a generator. `pairs` contains the data of the object. `options` contains its
/// labels and annotations, and settings such as `immutable`.
pub(super) fn object(
    made: Made,
    generator: &Generator,
    options: &GeneratorOptions,
    pairs: Pairs,
    origin: Origin,
) -> Resource {
    let string = |text: &str| with_style(Node::string(text).made_at(origin));
    let mut metadata = vec![Entry::new("name", with_style(Node::scalar(generator.name.as_str()).at(origin)))];
    if !generator.namespace.is_empty() {
        let namespace = with_style(Node::scalar(generator.namespace.as_str()).made_at(origin));
        metadata.push(Entry::new("namespace", namespace));
    }
    for (field, map) in [("labels", &options.labels), ("annotations", &options.annotations)] {
        if map.contains_key("") {
            // kustomize fails at the empty key, which comes first, and ignores the error for a Secret
            metadata.push(Entry::new(field, Node::map(Vec::new()).at(origin)));
            break;
        }
        if !map.is_empty() {
            // kustomize writes the labels of a generator in quotes, which a patch keeps
            let quoted = |value: &str| Node { style: Style::SingleQuoted, ..string(value) };
            let entries = map.iter().map(|(key, value)| Entry::new(key.as_str(), quoted(value)));
            metadata.push(Entry::new(field, Node::map(entries.collect()).at(origin)));
        }
    }
    let kind = made.kind();
    let mut entries = vec![Entry::new("apiVersion", string("v1")), Entry::new("kind", string(kind))];
    entries.push(Entry::new("metadata", Node::map(metadata).at(origin)));
    entries.extend(data(made, generator, pairs, origin));
    if options.immutable {
        entries.push(Entry::new("immutable", Node::new(Kind::Scalar("true".into()), Tag::Bool).at(origin)));
    }
    let mut resource = Resource::new(Node::map(entries).at(origin));
    resource.needs_hash = !options.disable_name_suffix_hash;
    resource.behavior = match generator.behavior.as_str() {
        "merge" => Behavior::Merge,
        "replace" => Behavior::Replace,
        _ => Behavior::Create,
    };
    resource
}

fn data(made: Made, generator: &Generator, pairs: Pairs, origin: Origin) -> Vec<Entry> {
    let mut pairs = pairs.pairs;
    pairs.sort();
    let (mut text, mut binary) = (Vec::new(), Vec::new());
    for (key, value) in pairs {
        let (list, value) = match (made, String::from_utf8(value)) {
            (Made::Secret, Ok(value)) => (&mut text, base64(value.as_bytes())),
            (Made::Secret, Err(error)) => (&mut text, base64(error.as_bytes())),
            (Made::ConfigMap, Ok(value)) => (&mut text, value),
            (Made::ConfigMap, Err(error)) => (&mut binary, base64(error.as_bytes())),
        };
        list.push(Entry::new(key, value_node(value, origin)));
    }
    let map = |field: &str, entries: Vec<Entry>| Entry::new(field, Node::map(entries).at(origin));
    let mut entries = Vec::new();
    if made == Made::Secret {
        let kind = if generator.secret_type.is_empty() { "Opaque" } else { &generator.secret_type };
        entries.push(Entry::new("type", with_style(Node::string(kind).made_at(origin))));
    }
    if made == Made::Secret || !text.is_empty() {
        entries.push(map("data", text));
    }
    if !binary.is_empty() {
        entries.push(map("binaryData", binary));
    }
    entries
}

/// Returns the node for a value of `data`. If the value has several lines, the node is a block scalar. A patch that
/// changes the value keeps this style.
pub(super) fn value_node(value: String, origin: Origin) -> Node {
    let style = if value.contains('\n') { Style::Literal } else { Style::Plain };
    with_style(Node { style, ..Node::string(value).made_at(origin) })
}

fn base64(bytes: &[u8]) -> String {
    let text = STANDARD.encode(bytes);
    if text.len() < BASE64_LINE {
        return text;
    }
    let mut lines = String::with_capacity(text.len() + text.len() / BASE64_LINE + 1);
    for line in text.as_bytes().chunks(BASE64_LINE) {
        lines.push_str(&String::from_utf8_lossy(line));
        lines.push('\n');
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_literal_loses_one_pair_of_quotes() {
        let mut pairs = Pairs::default();
        for literal in ["a=\"1\"", "b='", "c=x=y", "d="] {
            pairs.literal(literal).unwrap();
        }
        let values: Vec<_> = pairs.pairs.iter().map(|(_, value)| String::from_utf8_lossy(value)).collect();
        assert_eq!(values, ["1", "'", "x=y", ""]);
        assert!(pairs.literal("=x").is_err());
        assert!(pairs.literal("a=2").is_err());
    }

    #[test]
    fn a_file_has_a_key_and_a_path() {
        assert_eq!(file_source("a/b.txt"), Ok(("b.txt", "a/b.txt")));
        assert_eq!(file_source("k=a/b.txt"), Ok(("k", "a/b.txt")));
        assert!(file_source("=a").is_err() && file_source("a=").is_err() && file_source("a=b=c").is_err());
    }

    #[test]
    fn a_long_line_ends_an_environment_file() {
        let mut pairs = Pairs::default();
        let content = format!("a=1\nb={}\nc=3\n", "x".repeat(MAX_LINE_BYTES));
        pairs.env_file(content.as_bytes()).unwrap();
        assert_eq!(pairs.pairs.len(), 1);
    }
}
