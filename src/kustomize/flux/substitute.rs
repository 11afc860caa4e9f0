//! The substitution language of `spec.postBuild`: `${name}`, defaults, and functions of variables.
//!
//! The syntax resembles that of the shell, with these differences:
//!
//! - `${a-b}` is an error.
//! - `${a:+b}` sets a default, like `${a:-b}`.
//! - `$$` is always `$`.
//! - An invalid name in braces makes the substitution of the whole object fail.
//!
//! Test cases with the results of Flux are in `tests/vectors/kustomize/flux-substitute.json`.

mod functions;

use std::fmt;

/// Maximum depth of nested braces. The parser is recursive, so the limit prevents a stack overflow. Flux has no such
/// limit.
const MAX_DEPTH: usize = 64;

/// The state of a variable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::kustomize) enum Variable<'a> {
    /// The variable is set. Contains its value.
    Known(&'a str),
    /// The variable is not set.
    Unset,
    /// The value of the variable is unknown. The variable may also be unset.
    Unknown,
}

/// The reason why the variables in a text, such as `${name}`, cannot be substituted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::kustomize) enum Failure {
    /// The text has a syntax error. Contains a message about the error.
    Syntax(&'static str),
    /// The text contains a `${` without a closing `}`. Flux substitutes variables in the YAML text of the whole object,
    /// so the closing `}` may be in a later field.
    Unclosed,
    /// A variable without a default is not set; contains its name.
    NotSet(String),
    /// An operation on a variable fails, such as `${name:0:-1}`, a substring with a negative length. Contains an error
    /// message.
    Function(&'static str),
    /// The text uses a part of Flux's substitution that Portcullis does not implement. Contains the reason.
    Unclear(&'static str),
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Syntax(why) | Self::Function(why) | Self::Unclear(why) => f.write_str(why),
            Self::Unclosed => f.write_str("a `${` is not closed"),
            Self::NotSet(name) => write!(f, "the variable {name} is not set, and there is no default"),
        }
    }
}

/// A part of a template: plain text, or `${…}`.
#[derive(Debug)]
enum Node {
    Text(String),
    Call(Call),
}

/// The content of `${…}`: a variable, an operator and its arguments.
#[derive(Debug)]
struct Call {
    variable: String,
    /// The operator, such as `:=`; empty if there is none.
    operator: String,
    arguments: Vec<Node>,
}

/// A parsed text with variables.
#[derive(Debug)]
pub(in crate::kustomize) struct Template {
    nodes: Vec<Node>,
}

impl Template {
    /// Parses a text with variables, such as `a-${name}`.
    ///
    /// # Errors
    ///
    /// If Flux cannot parse the text, or if its braces are nested more than `MAX_DEPTH` levels deep.
    pub(in crate::kustomize) fn read(text: &str) -> Result<Self, Failure> {
        let mut reader = Reader { rest: text, depth: 0 };
        let mut nodes = Vec::new();
        while !reader.rest.is_empty() {
            nodes.push(if reader.takes("${") { reader.call()? } else { Node::Text(reader.plain()) });
        }
        Ok(Self { nodes })
    }

    /// Substitutes the variables. `variables` returns the state of a variable by its name. Returns `None` if the result
    /// depends on a variable with an unknown value.
    ///
    /// # Errors
    ///
    /// If a variable without a default is not set, if an operation on a variable fails in Flux, or if Portcullis does
    /// not implement an operation in the text.
    pub(in crate::kustomize) fn evaluate<'v>(
        &self,
        variables: &dyn Fn(&str) -> Variable<'v>,
    ) -> Result<Option<String>, Failure> {
        let mut text = Some(String::new());
        for node in &self.nodes {
            let part = node.evaluate(variables)?;
            text = text.zip(part).map(|(text, part)| text + &part);
        }
        Ok(text)
    }
}

impl Node {
    fn evaluate<'v>(&self, variables: &dyn Fn(&str) -> Variable<'v>) -> Result<Option<String>, Failure> {
        let call = match self {
            Self::Text(text) => return Ok(Some(text.clone())),
            Self::Call(call) => call,
        };
        let mut arguments = Some(Vec::new());
        for argument in &call.arguments {
            let argument = argument.evaluate(variables)?;
            arguments = arguments.zip(argument).map(|(mut all, one)| {
                all.push(one);
                all
            });
        }
        let value = match variables(&call.variable) {
            Variable::Known(value) => value,
            Variable::Unset if functions::is_default(&call.operator) => "",
            Variable::Unset => return Err(Failure::NotSet(call.variable.clone())),
            Variable::Unknown => return Ok(None),
        };
        match arguments {
            Some(arguments) => functions::call(&call.operator, value, &arguments).map(Some),
            // the unknown argument is a default that is not used
            None if functions::is_default(&call.operator) && !value.is_empty() => Ok(Some(value.to_owned())),
            None => Ok(None),
        }
    }
}

struct Reader<'t> {
    rest: &'t str,
    depth: usize,
}

/// Returns whether a character is allowed in the name of a variable. Letters of any script are allowed.
fn is_name(letter: char) -> bool {
    letter.is_alphabetic() || letter.is_numeric() || letter == '_'
}

impl Reader<'_> {
    fn takes(&mut self, text: &str) -> bool {
        let rest = self.rest.strip_prefix(text);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    fn peek(&self) -> Option<char> {
        self.rest.chars().next()
    }

    fn take(&mut self, is_part: impl Fn(char) -> bool) -> String {
        let end = self.rest.find(|letter| !is_part(letter)).unwrap_or(self.rest.len());
        let (taken, rest) = self.rest.split_at(end);
        self.rest = rest;
        taken.to_owned()
    }

    /// Parses text outside of `${…}`. Replaces `$$` with `$`.
    fn plain(&mut self) -> String {
        let mut text = String::new();
        while !self.rest.is_empty() && !self.rest.starts_with("${") {
            if self.takes("$$") {
                text.push('$');
            } else if let Some(letter) = self.next() {
                text.push(letter);
            }
        }
        text
    }

    fn next(&mut self) -> Option<char> {
        let letter = self.peek()?;
        self.rest = self.rest.get(letter.len_utf8()..).unwrap_or_default();
        Some(letter)
    }

    /// Parses the rest of `${…}` after `${`.
    fn call(&mut self) -> Result<Node, Failure> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(Failure::Unclear("too many nested braces"));
        }
        let call = if self.takes("#") { self.length() } else { self.function() };
        self.depth -= 1;
        call.map(Node::Call)
    }

    fn length(&mut self) -> Result<Call, Failure> {
        let variable = self.take(is_name);
        if variable.is_empty() {
            return Err(self.wrong("`${#` must be followed by the name of a variable"));
        }
        self.closed(Call { variable, operator: "#".to_owned(), arguments: Vec::new() })
    }

    fn function(&mut self) -> Result<Call, Failure> {
        let variable = self.take(is_name);
        if variable.is_empty() {
            return Err(self.wrong("`${` must be followed by the name of a variable; write `$${` for a literal `${`"));
        }
        let call = Call { variable, operator: String::new(), arguments: Vec::new() };
        match self.peek() {
            Some(':') => match self.rest.chars().nth(1) {
                Some('=' | '-' | '?' | '+') => self.default(call, 2),
                // Flux moves back by the width of the wrong character, and fails.
                Some(letter) if !letter.is_ascii() => {
                    Err(Failure::Syntax("no character outside ASCII may follow the colon"))
                }
                _ => self.part(call),
            },
            Some('=') => self.default(call, 1),
            Some(',' | '^') => {
                let operator = self.operator(|letter| letter == ',' || letter == '^');
                self.closed(Call { operator, ..call })
            }
            Some('/') => self.replacement(call),
            Some(letter @ ('#' | '%')) => {
                let operator = self.operator(|other| other == letter);
                let arguments = vec![self.argument(|letter| letter != '}', false)?];
                self.closed(Call { operator, arguments, ..call })
            }
            _ => self.closed(call),
        }
    }

    /// Parses an operator: at most two characters for which `is_part` returns true.
    fn operator(&mut self, is_part: impl Fn(char) -> bool) -> String {
        let end = self.rest.char_indices().take(2).take_while(|(_, letter)| is_part(*letter)).count();
        let (taken, rest) = self.rest.split_at(end);
        self.rest = rest;
        taken.to_owned()
    }

    fn default(&mut self, call: Call, length: usize) -> Result<Call, Failure> {
        let (operator, rest) = self.rest.split_at(length);
        let (operator, mut arguments) = (operator.to_owned(), Vec::new());
        self.rest = rest;
        while self.peek() != Some('}') {
            arguments.push(self.argument(|letter| letter != '}', false)?);
        }
        self.closed(Call { operator, arguments, ..call })
    }

    /// Parses the rest of `${name:offset:length}` after the name. `call` contains the name. Returns it with the offset
    /// and the length, which is optional.
    fn part(&mut self, call: Call) -> Result<Call, Failure> {
        self.next();
        let mut arguments = vec![self.argument(|letter| letter != ':' && letter != '}', false)?];
        if !self.take(|letter| letter == ':').is_empty() {
            arguments.push(self.argument(|letter| letter != '}', false)?);
        }
        self.closed(Call { operator: ":".to_owned(), arguments, ..call })
    }

    /// Parses the rest of `${name/old/new}` after the name.
    fn replacement(&mut self, call: Call) -> Result<Call, Failure> {
        self.next();
        let kind = self.peek().filter(|letter| ['/', '#', '%'].contains(letter));
        let operator = kind.map_or_else(|| "/".to_owned(), |kind| format!("/{kind}"));
        if kind.is_some() {
            self.next();
        }
        let mut arguments = vec![self.argument(|letter| letter != '/', true)?];
        if self.take(|letter| letter == '/').is_empty() {
            return Err(self.wrong("a replacement has two parts with a / between them"));
        }
        if self.peek() != Some('}') {
            arguments.push(self.argument(|letter| letter != '}', true)?);
        }
        self.closed(Call { operator, arguments, ..call })
    }

    /// Parses an argument of an operator, such as `x` in `${name:-x}`. The argument is a nested `${…}`, or text in
    /// which `is_part` returns true for each character. If `escapes` is true, replaces `$$`, `\/` and `\\` in the text
    /// with `$`, `/` and `\`.
    fn argument(&mut self, is_part: impl Fn(char) -> bool, escapes: bool) -> Result<Node, Failure> {
        if self.takes("${") {
            return self.call();
        }
        let (mut text, mut any) = (String::new(), false);
        while !self.rest.is_empty() && !self.rest.starts_with("${") {
            let escaped = ["$$", "\\/", "\\\\"].into_iter().find(|pair| escapes && self.rest.starts_with(pair));
            match escaped {
                Some(pair) => {
                    self.rest = self.rest.strip_prefix(pair).unwrap_or_default();
                    text.extend(pair.chars().skip(1));
                }
                None => match self.peek().filter(|letter| is_part(*letter)) {
                    Some(letter) => {
                        self.next();
                        text.push(letter);
                    }
                    None => break,
                },
            }
            any = true;
        }
        if any { Ok(Node::Text(text)) } else { Err(self.wrong("something is missing after an operator")) }
    }

    fn closed(&mut self, call: Call) -> Result<Call, Failure> {
        if self.takes("}") {
            return Ok(call);
        }
        Err(self.wrong("the name of a variable must be followed by an operator or a closing brace"))
    }

    /// Returns a syntax error with the message `why`. Returns [`Failure::Unclosed`] instead if the parser is at the end
    /// of the text.
    fn wrong(&self, why: &'static str) -> Failure {
        if self.rest.is_empty() { Failure::Unclosed } else { Failure::Syntax(why) }
    }
}
