//! Parses YAML mappings into nodes, including their keys and merge keys.
//!
//! Source: `RNode.DeAnchor` of kyaml, `parser.mapping` and `yaml_parser_parse_block_mapping_key` of go-yaml v3.

use std::collections::HashSet;
use std::mem;
use std::sync::Arc;

use granit_parser::{Event, ScalarStyle, Span};

use super::{Built, NodeReader};
use crate::yaml::dialect::{self, MAX_KEY_LENGTH};
use crate::yaml::error::{Problem, YamlError};
use crate::yaml::node::{Entry, Kind, Node, Origin, Tag};
use crate::yaml::reader::content;
use crate::yaml::scalar;

const NO_KEY: &str = "there is no key before this `:`";
const PAIR: &str = "a `?` has no key in a list within brackets";

/// A key of a YAML mapping. `text` is empty if the key is a list or mapping, as in kyaml.
///
/// `size` is the cost of the key when a YAML alias copies the mapping. The total cost of all copies is limited. If the
/// key is a list or mapping, it costs 1, plus the cost of all keys and values in it. If the key is a scalar, it costs 1
/// for each full 128 bytes. So a short key costs nothing: only the value of its entry is counted.
struct Key {
    text: Arc<str>,
    tag: Tag,
    size: usize,
}

/// Converts an error about an invalid merge key (`<<`) to [`Problem::WithinMerged`], which means that kustomize may
/// ignore the merge key. Returns other errors unchanged.
///
/// Callers use this function at the top level of a document that may be a Kubernetes `List`. kustomize keeps only the
/// items of a `List`.
fn open(error: YamlError) -> YamlError {
    match error.problem {
        Problem::Merge => YamlError { problem: Problem::WithinMerged, ..error },
        _ => error,
    }
}

/// The entries of a mapping that were parsed so far.
#[derive(Default)]
struct Fields {
    own: Vec<Entry>,
    /// The mappings that the merge key (`<<`) merges into this mapping. Later mappings take precedence.
    merged: Vec<Node>,
    size: usize,
    height: usize,
    merges: bool,
    /// Whether the mapping has a key `<<`, quoted or not.
    has_merge: bool,
    /// A merge key (`<<`) that stays in the mapping; usually `None`. kyaml removes only the first key `<<` of a
    /// mapping. If the first one is the quoted string `"<<"`, kyaml removes this string, and the merge key after it
    /// stays.
    kept_merge: Option<Entry>,
}

impl<'t> NodeReader<'t, '_> {
    pub(super) fn mapping(&mut self, start: Span, depth: usize) -> Result<Built, YamlError> {
        let mut fields = Fields { size: 1, ..Fields::default() };
        loop {
            let (event, span) = self.event()?;
            if matches!(event, Event::MappingEnd) {
                return Ok(fields.finish(self.origin(start), self.with_anchors));
            }
            self.events.count(span, depth)?;
            match self.key(event, span, start, depth + 1)? {
                Key { tag: Tag::Merge, .. } => {
                    let merged = self.merge(&mut fields, span, depth + 1);
                    merged.map_err(|error| if depth == 0 && self.may_be_list { open(error) } else { error })?;
                }
                key => self.entry(&mut fields, key, span, depth + 1)?,
            }
        }
    }

    /// Parses the value of `key`, which is not a merge key, and adds the entry to `fields`. A quoted `"<<"` is not a
    /// merge key. But kyaml removes the first `<<` of a mapping even if it is quoted, so this method does not add such
    /// an entry.
    fn entry(&mut self, fields: &mut Fields, key: Key, span: Span, depth: usize) -> Result<(), YamlError> {
        let comment = self.comment(span);
        let is_lost = &*key.text == scalar::MERGE && !mem::replace(&mut fields.has_merge, true);
        let (event, value_span) = self.event()?;
        self.merging += usize::from(is_lost);
        let value = self.node(event, value_span, depth);
        self.merging -= usize::from(is_lost);
        let mut value = value?;
        fields.height = fields.height.max(value.height);
        if is_lost {
            return Ok(());
        }
        fields.size += key.size + value.size;
        if comment.is_some() {
            value.node.comment = comment;
        }
        fields.own.push(Entry { key: key.text, key_tag: key.tag, value: value.node });
        Ok(())
    }

    /// Parses a mapping key from `event` at `span`. `start` is the start of the mapping.
    fn key(&mut self, event: Event<'t>, span: Span, start: Span, depth: usize) -> Result<Key, YamlError> {
        self.events.tag(&event, span)?;
        match event {
            Event::Scalar(text, style, anchor, tag) => {
                let text = content(text, span);
                let is_absent = text.is_empty() && style == ScalarStyle::Plain && anchor == 0 && tag.is_none();
                let absent = || self.absent_key(span, start).filter(|_| is_absent);
                if let Some(problem) = self.events.other_key(&text, span).or_else(absent) {
                    return Err(self.events.error(span, problem));
                }
                let built = self.scalar(text, style, tag.as_deref(), span)?;
                let key = Key::of(&built);
                if anchor > 0 {
                    self.anchors.insert(anchor, Some(built));
                }
                Ok(key)
            }
            Event::Alias(anchor) => {
                self.events.alias_key(span)?;
                match self.anchors.get(&anchor) {
                    Some(Some(built)) => Ok(Key::of(built)),
                    _ => Err(self.events.error(span, Problem::Recursion)),
                }
            }
            event => {
                let is_explicit = self.is_explicit(span);
                let built = self.node(event, span, depth)?;
                self.check_length(span).filter(|_| !is_explicit).map_or_else(|| Ok(Key::of(&built)), Err)
            }
        }
    }

    /// Returns the error of a mapping entry that has a value but no key, such as `: a`; `None` if go-yaml accepts it.
    /// go-yaml accepts such an entry only after `?`. Within a flow sequence (`[…]`), go-yaml may reject it even after
    /// `?`.
    fn absent_key(&self, span: Span, start: Span) -> Option<Problem> {
        if !self.is_explicit(span) {
            return Some(Problem::Syntax(NO_KEY.to_owned()));
        }
        let is_pair = self.events.strict.flow > 0 && !self.behind(start).starts_with('{');
        is_pair.then(|| Problem::Dialect(PAIR.to_owned()))
    }

    /// Returns whether a `?` precedes a key. go-yaml accepts an absent key, or a key of several lines, only after `?`.
    fn is_explicit(&self, span: Span) -> bool {
        let before = self.events.around(span).map(|(before, _)| before).unwrap_or_default();
        let gap = before.get(self.last..).unwrap_or_default();
        gap.lines().any(|line| line.split('#').next().unwrap_or_default().contains('?'))
    }

    /// Returns an error if go-yaml may reject a list or mapping as a key, because the key is long or has several lines.
    /// Call this function directly after parsing the key.
    fn check_length(&self, start: Span) -> Option<YamlError> {
        let length = self.end.checked_sub(self.events.span(start).start)?;
        let what = match self.behind(start).get(..length)? {
            text if text.contains('\n') => dialect::KEY,
            text if text.len() > MAX_KEY_LENGTH => dialect::LONG,
            _ => return None,
        };
        Some(self.events.error(start, Problem::Dialect(what.to_owned())))
    }

    /// Returns the text from the start of the span `start` to the end of the document.
    fn behind(&self, start: Span) -> &str {
        self.events.around(Span::empty(start.start)).map(|(_, behind)| behind).unwrap_or_default()
    }

    /// Parses the value of a merge key, and adds the mappings to merge to `fields`. Fails if the value is neither a
    /// mapping nor a list of mappings, or if the mapping already has a merge key.
    fn merge(&mut self, fields: &mut Fields, key: Span, depth: usize) -> Result<(), YamlError> {
        let is_kept = mem::replace(&mut fields.has_merge, true);
        if mem::replace(&mut fields.merges, true) {
            return Err(self.merge_error(key, Problem::MergedTwice));
        }
        let (event, span) = self.event()?;
        self.merging += 1;
        let value = self.node(event, span, depth);
        self.merging -= 1;
        let value = value?;
        (fields.size, fields.height) = (fields.size + value.size, fields.height.max(value.height));
        if is_kept {
            let value = value.node.clone();
            fields.kept_merge = Some(Entry { key: scalar::MERGE.into(), key_tag: Tag::Merge, value });
        }
        let mappings = match value.node.kind {
            Kind::Map(_) => vec![value.node],
            // The first mapping of a sequence takes precedence.
            Kind::Seq(items) => items.iter().rev().cloned().collect(),
            Kind::Scalar(_) => return Err(self.merge_error(span, Problem::Merge)),
        };
        if !mappings.iter().all(Node::is_map) {
            return Err(self.merge_error(span, Problem::Merge));
        }
        fields.merged = mappings;
        Ok(())
    }

    /// Returns the error for an invalid merge key (`<<`). The error contains `problem`, unless the merge key is within
    /// the value of another merge key. It then contains [`Problem::WithinMerged`], because kustomize may ignore such a
    /// merge key.
    fn merge_error(&self, span: Span, problem: Problem) -> YamlError {
        self.events.error(span, if self.merging == 0 { problem } else { Problem::WithinMerged })
    }
}

impl Key {
    fn of(Built { node, size, .. }: &Built) -> Self {
        let (tag, size) = match node.kind {
            Kind::Scalar(_) => (node.tag, *size - 1),
            Kind::Map(_) => (Tag::Map, *size),
            Kind::Seq(_) => (Tag::Seq, *size),
        };
        Self { text: node.shared_text().unwrap_or_default(), tag, size }
    }
}

impl Fields {
    /// Builds the mapping. The entries that are written in the mapping come first. Entries that `<<` merges into it
    /// follow, unless their key already occurs. If `with_anchors` is true, each entry with a null key, such as `~`, is
    /// added twice. kyaml also duplicates such entries when it expands anchors.
    fn finish(self, origin: Origin, with_anchors: bool) -> Built {
        let Self { mut own, merged, size, height, kept_merge, .. } = self;
        let is_null = |entry: &&Entry| entry.key_tag == Tag::Null && !entry.key.is_empty();
        let nulls: Vec<Entry> = own.iter().filter(|_| with_anchors).filter(is_null).cloned().collect();
        if !merged.is_empty() {
            merge_into(&mut own, &merged);
        }
        own.extend(nulls);
        // Without another `<<`, the kept merge key would merge the same entries again, which changes nothing.
        own.extend(kept_merge.filter(|kept| own.iter().any(|entry| entry.key == kept.key)));
        Built { node: Node::map(own).at(origin), size, height: height + 1 }
    }
}

/// Adds the entries of the mappings in `merged` to `entries`, except entries whose key is already in `entries`. If
/// several mappings have the same key, the last mapping takes precedence. If one mapping has the same key several
/// times, the first entry takes precedence.
fn merge_into(entries: &mut Vec<Entry>, merged: &[Node]) {
    let own: HashSet<Arc<str>> = entries.iter().map(|entry| Arc::clone(&entry.key)).collect();
    for mapping in merged {
        let mut seen = HashSet::new();
        for entry in mapping.entries().iter().filter(|entry| !own.contains(&entry.key) && seen.insert(&*entry.key)) {
            match entries.iter_mut().find(|other| other.key == entry.key) {
                Some(other) => other.clone_from(entry),
                None => entries.push(entry.clone()),
            }
        }
    }
}
