//! Formats a node as go-yaml v3 does.
//!
//! Source: `emitterc.go` of go-yaml v3, and kyaml's encoder: an indentation of two, and sequences indented like their
//! key.

use std::fmt::Write as _;

use super::{Entry, Kind, Node, Style, Tag};
use crate::yaml::core;

/// Returns a node as YAML text, without comments.
pub fn text_of(node: &Node) -> String {
    let mut writer = Writer { out: String::new(), comments: Vec::new(), next: 0 };
    writer.node(node, 0, false);
    writer.out
}

/// Returns a node as YAML text with comments. The comments come from `text`, the YAML text from which the node was
/// parsed. Returns `None` if the positions of the comments are uncertain, or if a key is a mapping or sequence.
pub fn commented_text(node: &Node, text: &str) -> Option<String> {
    if has_collection_key(node) {
        return None;
    }
    let comments = comments(text)?;
    let mut writer = Writer { out: String::new(), comments, next: 0 };
    writer.node(node, 0, false);
    (writer.next == writer.comments.len()).then_some(writer.out)
}

fn has_collection_key(node: &Node) -> bool {
    let has_one = |entry: &Entry| entry.collection_key().is_some() || has_collection_key(&entry.value);
    node.entries().iter().any(has_one) || node.items().iter().any(has_collection_key)
}

/// A comment in a YAML text. `is_tail` is true if other text precedes the comment on its line.
struct Comment {
    line: u32,
    text: String,
    is_tail: bool,
}

/// Returns the comments in a YAML text. Returns `None` if their positions are uncertain: if a comment may be part of a
/// value, if an empty line follows a comment, or if a comment on its own line is the last line of the text.
fn comments(text: &str) -> Option<Vec<Comment>> {
    let mut found = Vec::new();
    let mut after_head = false;
    for (number, line) in text.lines().enumerate() {
        if after_head && line.trim().is_empty() {
            return None;
        }
        let Some(at) = line.find('#').filter(|at| *at == 0 || line[..*at].ends_with([' ', '\t'])) else {
            after_head = false;
            continue;
        };
        let before = &line[..at];
        if before.contains(['"', '\'', '{', '[']) || text.contains(['|', '>']) {
            return None;
        }
        let is_tail = !before.trim().is_empty();
        after_head = !is_tail;
        found.push(Comment { line: number as u32 + 1, text: line[at..].trim_end().to_owned(), is_tail });
    }
    (!after_head).then_some(found)
}

struct Writer {
    out: String,
    comments: Vec<Comment>,
    next: usize,
}

impl Writer {
    fn node(&mut self, node: &Node, indent: usize, in_flow: bool) {
        let in_flow = in_flow || node.style == Style::Flow;
        match &node.kind {
            Kind::Scalar(text) => {
                let scalar = scalar(node, text, indent, in_flow);
                self.out.push_str(&scalar);
                self.tail(node.origin.line);
                if !in_flow {
                    self.out.push('\n');
                }
            }
            Kind::Map(entries) if entries.is_empty() => self.flow("{", "}", in_flow, indent),
            Kind::Seq(items) if items.is_empty() => self.flow("[", "]", in_flow, indent),
            _ if in_flow => {
                let text = flow(node);
                self.out.push_str(&text);
                if indent == 0 || !self.out.ends_with('\n') {
                    self.out.push('\n');
                }
            }
            Kind::Map(entries) => self.map(entries, indent),
            Kind::Seq(items) => self.seq(items, indent),
        }
    }

    fn flow(&mut self, open: &str, close: &str, in_flow: bool, _indent: usize) {
        self.out.push_str(open);
        self.out.push_str(close);
        if !in_flow || !self.out.ends_with('\n') {
            self.out.push('\n');
        }
    }

    fn map(&mut self, entries: &[Entry], indent: usize) {
        for (at, entry) in entries.iter().enumerate() {
            self.heads(first_line(&entry.value), indent, at > 0 || indent == 0);
            if at > 0 {
                self.pad(indent);
            }
            let key = key(entry);
            let _ = write!(self.out, "{key}:");
            self.value(&entry.value, indent);
        }
    }

    fn value(&mut self, value: &Node, indent: usize) {
        let is_block = value.style != Style::Flow;
        match &value.kind {
            Kind::Map(entries) if is_block && !entries.is_empty() => {
                self.out.push('\n');
                self.pad(indent + 2);
                self.map(entries, indent + 2);
            }
            Kind::Seq(items) if is_block && !items.is_empty() => {
                self.out.push('\n');
                self.pad(indent);
                self.seq(items, indent);
            }
            Kind::Scalar(text) if text.is_empty() && value.tag == Tag::Null => {
                self.tail(value.origin.line);
                self.out.push('\n');
            }
            _ => {
                self.out.push(' ');
                self.node(value, indent + 2, false);
            }
        }
    }

    fn seq(&mut self, items: &[Node], indent: usize) {
        for (at, item) in items.iter().enumerate() {
            self.heads(first_line(item), indent, at > 0);
            if at > 0 {
                self.pad(indent);
            }
            self.out.push_str("- ");
            self.node(item, indent + 2, false);
        }
    }

    fn pad(&mut self, indent: usize) {
        let _ = write!(self.out, "{:indent$}", "");
    }

    /// Writes the comments that are above the line `line` in the original text, each on its own line. The comments are
    /// indented by `indent` spaces.
    ///
    /// - If `at_start` is true, the output is at the start of a line. This function then indents each comment.
    /// - If `at_start` is false, the current line of the output is already indented. This function then indents the
    ///   line after each comment.
    fn heads(&mut self, line: u32, indent: usize, at_start: bool) {
        while let Some(comment) = self.comments.get(self.next).filter(|comment| !comment.is_tail && comment.line < line)
        {
            if at_start && self.out.ends_with('\n') {
                let _ = write!(self.out, "{:indent$}", "");
            }
            self.out.push_str(&comment.text);
            self.out.push('\n');
            if !at_start {
                let _ = write!(self.out, "{:indent$}", "");
            }
            self.next += 1;
        }
    }

    /// Writes the comment that is at the end of the line `line` in the original text, if there is one.
    fn tail(&mut self, line: u32) {
        if let Some(comment) = self.comments.get(self.next).filter(|comment| comment.is_tail && comment.line == line) {
            let _ = write!(self.out, " {}", comment.text);
            self.next += 1;
        }
    }
}

/// Returns the line number of the first scalar in a node.
fn first_line(node: &Node) -> u32 {
    match &node.kind {
        Kind::Scalar(_) => node.origin.line,
        Kind::Map(entries) => entries.first().map_or(node.origin.line, |entry| first_line(&entry.value)),
        Kind::Seq(items) => items.first().map_or(node.origin.line, first_line),
    }
}

fn key(entry: &Entry) -> String {
    let style = if entry.key_tag == Tag::Str && core::tag_of(&entry.key) != Tag::Str {
        Style::DoubleQuoted
    } else {
        Style::Plain
    };
    let node = Node { style, ..Node::new(Kind::Scalar(entry.key.clone()), entry.key_tag) };
    scalar(&node, &entry.key, 0, true)
}

fn flow(node: &Node) -> String {
    let all = |parts: Vec<String>| parts.join(", ");
    match &node.kind {
        Kind::Scalar(text) => scalar(node, text, 0, true),
        Kind::Seq(items) => format!("[{}]", all(items.iter().map(flow).collect())),
        Kind::Map(entries) => {
            format!(
                "{{{}}}",
                all(entries.iter().map(|entry| format!("{}: {}", key(entry), flow(&entry.value))).collect())
            )
        }
    }
}

fn scalar(node: &Node, text: &str, indent: usize, in_flow: bool) -> String {
    let resolved = core::tag_of(text);
    let is_other = !matches!(node.tag, Tag::None | Tag::Str) && resolved != node.tag;
    let tag = if is_other && !node.style.is_quoted() { short(node.tag) } else { "" };
    let needs_quotes = node.tag == Tag::Str && resolved != Tag::Str;
    let written = match node.style {
        Style::DoubleQuoted => double_quoted(text),
        Style::SingleQuoted => single_quoted(text),
        Style::Literal | Style::Folded if !in_flow => block(text, indent),
        _ if text.contains('\n') && !in_flow => block(text, indent),
        _ if needs_quotes || text.contains('\n') => double_quoted(text),
        _ if !is_plain(text, in_flow) || (text.is_empty() && in_flow) => single_quoted(text),
        _ => text.to_owned(),
    };
    [tag, &written].concat()
}

fn short(tag: Tag) -> &'static str {
    match tag {
        Tag::Int => "!!int ",
        Tag::Float => "!!float ",
        Tag::Bool => "!!bool ",
        Tag::Null => "!!null ",
        Tag::Timestamp => "!!timestamp ",
        _ => "",
    }
}

fn block(text: &str, indent: usize) -> String {
    let chomp = match (text.ends_with("\n\n") || text == "\n", text.ends_with('\n')) {
        (true, _) => "+",
        (false, true) => "",
        (false, false) => "-",
    };
    let hint = if text.starts_with([' ', '\n']) { "2" } else { "" };
    let mut out = format!("|{hint}{chomp}");
    let indent = indent.max(2);
    for line in text.strip_suffix('\n').unwrap_or(text).split('\n') {
        out.push('\n');
        if !line.is_empty() {
            let _ = write!(out, "{:indent$}{line}", "");
        }
    }
    out
}

fn single_quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

fn double_quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            '\r' => out.push_str("\\r"),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

/// Returns whether a scalar with this text may be written without quotes. `in_flow` states whether the scalar is in a
/// flow collection, such as `[a, b]`.
fn is_plain(text: &str, in_flow: bool) -> bool {
    let starts =
        text.starts_with(['#', ',', '[', ']', '{', '}', '&', '*', '!', '|', '>', '\'', '"', '%', '@', '`', ' ']);
    let marks = ["-", "?", ":"].iter().any(|mark| text == *mark || text.starts_with(&format!("{mark} ")));
    let inner = text.contains(": ") || text.contains(" #") || text.ends_with([':', ' ']);
    let flow = in_flow && (text.contains([',', '[', ']', '{', '}', '?']) || text.contains(':'));
    !starts && !marks && !inner && !flow && !text.starts_with("---") && !text.starts_with("...")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::yaml::{self, Limits};

    fn again(text: &str) -> Option<String> {
        commented_text(&yaml::node(text, 0, &Limits::default()).unwrap().unwrap(), text)
    }

    #[test]
    fn comments_and_styles_stay_and_sequences_stand_level_with_their_key() {
        let text = "# head\na:\n    b: c   # tail\n    l:\n      - name: \"x\"\n        v: 1\n";
        assert_eq!(again(text).as_deref(), Some("# head\na:\n  b: c # tail\n  l:\n  - name: \"x\"\n    v: 1\n"));
    }

    #[test]
    fn flow_collections_stay_in_one_line() {
        let text = "labels: {\n  app: \"a\",\n  n: 3,\n}\nl: [x, 'y']\n";
        assert_eq!(again(text).as_deref(), Some("labels: {app: \"a\", n: 3}\nl: [x, 'y']\n"));
    }

    #[test]
    fn a_scalar_that_is_not_of_its_type_gets_its_tag() {
        let node = Node::new(Kind::Scalar("hello".into()), Tag::Int);
        assert_eq!(text_of(&node), "!!int hello\n");
    }
}
