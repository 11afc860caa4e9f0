//! The parser for JSONPaths of exports.
//!
//! Source: `parser.go` of `k8s.io/client-go/util/jsonpath`. This parser has the same functions, but calls them in a
//! loop, whereas client-go's functions call each other. Like Landscaper, this module first adds braces around the path,
//! and a leading dot if the path has none.
//!
//! Rust's Unicode tables decide which characters beyond ASCII are letters and digits. Go's tables differ only for some
//! combining marks and numerals.

use super::MAX_BYTES;
use super::error::{PathError, Problem};
use super::node::{Filter, Node, Part, Slice};
use super::quote::unquote;

/// The maximum nesting depth of filters. The limit is needed because each level is a recursive call. Valid paths have
/// at most three levels, because each level must use different quotes from the levels around it.
const MAX_DEPTH: usize = 16;

/// Parses the JSONPath of an export. Returns a node for each expression in braces, such as `{.name}`, and for each text
/// outside of braces. Fails if the path is invalid or too long.
pub(super) fn groups(path: &str) -> Result<Vec<Node>, PathError> {
    if path.len() > MAX_BYTES {
        return Err(PathError::new(Problem::TooLong, MAX_BYTES));
    }
    let before = if path.starts_with('.') { "{" } else { "{." };
    Parser::new(&format!("{before}{path}}}"), before.len(), 0, MAX_DEPTH).groups()
}

struct Parser<'t> {
    input: &'t str,
    pos: usize,
    start: usize,
    /// Number of bytes at the start of `input` that are not part of the path, such as an added opening brace.
    before: usize,
    /// The byte offset of the parsed text in the whole path. It is 0 if the whole path is parsed. It can be greater
    /// than 0 if only a part of the path is parsed, such as a filter.
    offset: usize,
    depth: usize,
}

impl<'t> Parser<'t> {
    fn new(input: &'t str, before: usize, offset: usize, depth: usize) -> Self {
        Self { input, pos: 0, start: 0, before, offset, depth }
    }

    fn groups(&mut self) -> Result<Vec<Node>, PathError> {
        let mut groups = Vec::new();
        loop {
            let found = self.rest().find('{');
            self.pos += found.unwrap_or(self.rest().len());
            if self.pos > self.start {
                let at = self.place(self.start);
                groups.push(Node { at, part: Part::Text(self.consume().to_owned()) });
            }
            if found.is_none() {
                return Ok(groups);
            }
            let at = self.place(self.pos);
            self.pos += 1;
            self.consume();
            groups.push(Node { at, part: Part::List(self.group()?) });
        }
    }

    /// Parses the rest of an expression in braces, such as `{.name}`, up to the closing brace. Returns its syntax
    /// elements, such as fields and indexes.
    fn group(&mut self) -> Result<Vec<Node>, PathError> {
        let mut nodes = Vec::new();
        loop {
            let rest = self.rest();
            if rest.starts_with('}') {
                self.pos += 1;
                self.consume();
                return Ok(nodes);
            }
            if rest.starts_with("[?(") {
                self.filter(&mut nodes)?;
            } else if rest.starts_with("..") {
                self.recursive(&mut nodes)?;
            } else {
                self.part(&mut nodes)?;
            }
        }
    }

    fn part(&mut self, nodes: &mut Vec<Node>) -> Result<(), PathError> {
        match self.peek() {
            None | Some('\n' | '\r') => self.fail(self.pos, "unclosed action"),
            Some(' ' | '@' | '$') => {
                self.pos += 1;
                self.consume();
                Ok(())
            }
            Some('[') => self.array(nodes),
            Some(quote @ ('"' | '\'')) => self.quote(nodes, quote),
            Some('.') => {
                self.pos += 1;
                self.field(nodes);
                Ok(())
            }
            Some(c) if ['+', '-'].contains(&c) || c.is_numeric() => self.number(nodes),
            Some(c) if is_alphanumeric(c) => {
                self.identifier(nodes);
                Ok(())
            }
            Some(c) => self.fail(self.pos, format!("unrecognized character in action: {}", unicode(c))),
        }
    }

    fn identifier(&mut self, nodes: &mut Vec<Node>) {
        let at = self.place(self.pos);
        self.pos += self.rest().find(is_terminator).unwrap_or(self.rest().len());
        let part = match self.consume() {
            "true" => Part::Bool(true),
            "false" => Part::Bool(false),
            word => Part::Identifier(word.to_owned()),
        };
        nodes.push(Node { at, part });
    }

    fn recursive(&mut self, nodes: &mut Vec<Node>) -> Result<(), PathError> {
        if nodes.last().is_some_and(|last| matches!(last.part, Part::Recursive)) {
            return self.fail(self.pos, "invalid multiple recursive descent");
        }
        nodes.push(Node { at: self.place(self.pos), part: Part::Recursive });
        self.pos += 2;
        self.consume();
        if self.peek().is_some_and(is_alphanumeric) {
            self.field(nodes);
        }
        Ok(())
    }

    fn number(&mut self, nodes: &mut Vec<Node>) -> Result<(), PathError> {
        let at = self.pos;
        self.pos += usize::from(self.rest().starts_with(['+', '-']));
        self.pos += self.rest().find(|c: char| c != '.' && !c.is_numeric()).unwrap_or(self.rest().len());
        let text = self.consume();
        let int = text.parse().map(Part::Int).ok();
        let float = || text.parse::<f64>().ok().filter(|float| float.is_finite()).map(Part::Float);
        match int.or_else(float) {
            Some(part) => nodes.push(Node { at: self.place(at), part }),
            None => return self.fail(at, format!("cannot parse number {text}")),
        }
        Ok(())
    }

    /// Parses `[…]` up to the first closing bracket: an index, a slice, a union or a quoted key.
    fn array(&mut self, nodes: &mut Vec<Node>) -> Result<(), PathError> {
        let from = self.pos;
        let Some(length) = self.rest().find([']', '\n']).filter(|end| self.rest()[*end..].starts_with(']')) else {
            return self.fail(from, "unterminated array");
        };
        self.pos += length + 1;
        let text = self.consume();
        let text = match &text[1..text.len() - 1] {
            "*" => ":",
            text => text,
        };
        if text.contains(',') {
            return self.union(text, from, nodes);
        }
        if let Some(key) = dict_key(text) {
            nodes.append(&mut self.nested(".", key, "", from + 2)?);
            return Ok(());
        }
        let part = Part::Array(self.slice(text, from)?);
        nodes.push(Node { at: self.place(from), part });
        Ok(())
    }

    fn union(&self, text: &str, from: usize, nodes: &mut Vec<Node>) -> Result<(), PathError> {
        let mut members = Vec::new();
        let mut at = from + 1;
        for member in text.split(',') {
            members.push(self.nested("[", member.trim_matches(' '), "]", at)?);
            at += member.len() + 1;
        }
        nodes.push(Node { at: self.place(from), part: Part::Union(members) });
        Ok(())
    }

    /// Parses an index or a slice, such as `0` or `1:3`. `text` must match `^(-?[\d]*)(:-?[\d]*)?(:-?[\d]*)?$`. `from`
    /// is the position at which errors are reported.
    fn slice(&self, text: &str, from: usize) -> Result<Slice, PathError> {
        let parts: Vec<&str> = text.split(':').collect();
        let digits = |part: &&str| part.strip_prefix('-').unwrap_or(part).bytes().all(|byte| byte.is_ascii_digit());
        if parts.len() > 3 || !parts.iter().all(digits) {
            return self.fail(from, format!("invalid array index {text}"));
        }
        let bound = |at: usize| match parts.get(at).copied().unwrap_or_default() {
            "" => Ok(None),
            text => match text.parse() {
                Ok(number) => Ok(Some(number)),
                Err(_) => self.fail(from, format!("array index {text} is not a number")),
            },
        };
        let (from, to, step) = (bound(0)?, bound(1)?, bound(2)?);
        Ok(Slice { from, to, step, is_index: parts.len() == 1 })
    }

    fn filter(&mut self, nodes: &mut Vec<Node>) -> Result<(), PathError> {
        let from = self.pos;
        self.pos += "[?(".len();
        self.consume();
        self.filter_end(from)?;
        let (at, text) = (self.start, self.consume());
        let text = &text[..text.len() - 2];
        let filter = match comparison(text) {
            None => Filter { left: self.nested("", text, "", at)?, comparison: None },
            Some((left, operator, right)) => {
                let right_at = at + left.len() + operator.len();
                let right = self.nested("", right, "", right_at)?;
                Filter { left: self.nested("", left, "", at)?, comparison: Some((operator.to_owned(), right)) }
            }
        };
        nodes.push(Node { at: self.place(from), part: Part::Filter(Box::new(filter)) });
        Ok(())
    }

    /// Moves the position past the `)]` that ends a filter. A `)` in the first quoted string of the filter does not end
    /// it. A `)` in a later quoted string does, as in client-go. `from` is the position at which errors are reported.
    fn filter_end(&mut self, from: usize) -> Result<(), PathError> {
        let (mut quote, mut closed) = (None, false);
        loop {
            let Some(c) = self.next().filter(|c| *c != '\n') else { return self.fail(from, "unterminated filter") };
            match c {
                '"' | '\'' if quote.is_none() => quote = Some(c),
                '"' | '\'' => closed |= quote == Some(c) && !self.was_escaped(),
                ')' if quote.is_some() == closed => break,
                _ => {}
            }
        }
        if self.next() == Some(']') { Ok(()) } else { self.fail(from, "unclosed array expect ]") }
    }

    fn quote(&mut self, nodes: &mut Vec<Node>, quote: char) -> Result<(), PathError> {
        let from = self.pos;
        self.pos += 1;
        loop {
            match self.next() {
                None | Some('\n') => return self.fail(from, "unterminated quoted string"),
                Some(c) if c == quote && !self.was_escaped() => break,
                Some(_) => {}
            }
        }
        let text = self.consume();
        let Some(inner) = unquote(text) else {
            return self.fail(from, format!("unquote string {text} error invalid syntax"));
        };
        nodes.push(Node { at: self.place(from), part: Part::Text(inner) });
        Ok(())
    }

    fn field(&mut self, nodes: &mut Vec<Node>) {
        self.consume();
        let at = self.place(self.pos);
        while let Some(c) = self.peek() {
            if c != '\\' && is_terminator(c) {
                break;
            }
            self.pos += c.len_utf8();
            if c == '\\' {
                self.next();
            }
        }
        let part = match self.consume() {
            "*" => Part::Wildcard,
            name => Part::Field(name.replace('\\', "")),
        };
        nodes.push(Node { at, part });
    }

    /// Parses `text`, a part of a JSONPath, as a separate JSONPath of the form `{<open><text><close>}`. For example,
    /// the part `0` of `[0,1]` is parsed as `{[0]}`, with the brackets as `open` and `close`. Returns the syntax
    /// elements between the first pair of braces. `at` is the byte offset of `text` in the input of this parser.
    fn nested(&self, open: &str, text: &str, close: &str, at: usize) -> Result<Vec<Node>, PathError> {
        let Some(depth) = self.depth.checked_sub(1) else {
            return Err(PathError::new(Problem::TooComplex, self.place(at)));
        };
        let input = format!("{{{open}{text}{close}}}");
        let groups = Parser::new(&input, 1 + open.len(), self.place(at), depth).groups()?;
        match groups.into_iter().next() {
            Some(Node { part: Part::List(nodes), .. }) => Ok(nodes),
            _ => Ok(Vec::new()),
        }
    }

    fn rest(&self) -> &'t str {
        &self.input[self.pos..]
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn next(&mut self) -> Option<char> {
        let c = self.peek()?;
        self.pos += c.len_utf8();
        Some(c)
    }

    /// Reports whether a backslash precedes the quote character that the parser has just read.
    fn was_escaped(&self) -> bool {
        self.pos.checked_sub(2).and_then(|at| self.input.as_bytes().get(at)) == Some(&b'\\')
    }

    fn consume(&mut self) -> &'t str {
        let text = &self.input[self.start..self.pos];
        self.start = self.pos;
        text
    }

    /// Converts a byte offset in `input` to the byte offset in the whole path.
    fn place(&self, pos: usize) -> usize {
        self.offset + pos.saturating_sub(self.before)
    }

    fn fail<T>(&self, pos: usize, text: impl Into<String>) -> Result<T, PathError> {
        Err(PathError::new(Problem::Syntax(text.into()), self.place(pos)))
    }
}

/// Returns the field name in a quoted key such as `'name'`; `None` if the text does not match `^'([^']*)'$`.
fn dict_key(text: &str) -> Option<&str> {
    text.strip_prefix('\'')?.strip_suffix('\'').filter(|key| !key.contains('\''))
}

/// Splits the comparison of a filter into left side, operator and right side; `None` if the text does not match
/// `^([^!<>=]+)([!<>=]+)(.+?)$`. If no text follows the operator, the last character of the operator becomes the right
/// side.
fn comparison(text: &str) -> Option<(&str, &str, &str)> {
    let is_operator = |c: char| "!<>=".contains(c);
    let from = text.find(is_operator).filter(|from| *from > 0)?;
    let length = text[from..].find(|c| !is_operator(c)).unwrap_or(text.len() - from - 1);
    let (operator, right) = text[from..].split_at(length);
    (!operator.is_empty()).then_some((&text[..from], operator, right))
}

fn is_terminator(c: char) -> bool {
    " \t\r\n.,[]$@{}".contains(c)
}

fn is_alphanumeric(c: char) -> bool {
    c == '_' || c.is_alphanumeric()
}

/// Formats a character as Go's `%#U` does, such as `U+0024 '$'`.
fn unicode(c: char) -> String {
    let printable = !c.is_control() && (c == ' ' || !c.is_whitespace());
    if printable { format!("U+{:04X} '{c}'", c as u32) } else { format!("U+{:04X}", c as u32) }
}
