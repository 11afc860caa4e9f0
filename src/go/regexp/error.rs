//! Syntax errors of regular expressions, with the messages of Go.

use std::fmt;

/// The kind of a syntax error, with the message of Go's `regexp/syntax`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Code {
    /// A reversed range such as `z-a`, or an unknown class.
    CharRange,
    /// An unknown escape sequence, such as `\y`.
    Escape,
    /// A named group such as `(?P<a>x)` whose name is invalid, or lacks the closing `>`.
    NamedCapture,
    /// Unsupported syntax after `(?`.
    PerlOperator,
    /// A repetition of a repetition, such as `a**`.
    RepeatOperator,
    /// A repetition whose count is too large, or whose minimum exceeds its maximum.
    RepeatSize,
    /// A character class without its closing bracket, such as `[a-z`.
    MissingBracket,
    /// A group without its closing parenthesis.
    MissingParenthesis,
    /// A repetition without an operand, such as `*` at the start.
    MissingRepeatArgument,
    /// A backslash at the end of the pattern.
    TrailingBackslash,
    /// A closing parenthesis without an opening one.
    UnexpectedParenthesis,
    /// Groups nested deeper than [`super::MAX_NESTING`].
    NestingDepth,
    /// The compiled pattern would need too much memory.
    Large,
}

/// A syntax error in a regular expression, and the invalid part of the pattern.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SyntaxError {
    /// The kind of syntax error, such as a missing bracket.
    pub code: Code,
    /// The invalid part of the pattern.
    pub part: String,
}

impl SyntaxError {
    pub(super) fn new(code: Code, part: &str) -> Self {
        Self { code, part: part.to_owned() }
    }
}

impl std::error::Error for SyntaxError {}

impl fmt::Display for SyntaxError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let code = match self.code {
            Code::CharRange => "invalid character class range",
            Code::Escape => "invalid escape sequence",
            Code::NamedCapture => "invalid named capture",
            Code::PerlOperator => "invalid or unsupported Perl syntax",
            Code::RepeatOperator => "invalid nested repetition operator",
            Code::RepeatSize => "invalid repeat count",
            Code::MissingBracket => "missing closing ]",
            Code::MissingParenthesis => "missing closing )",
            Code::MissingRepeatArgument => "missing argument to repetition operator",
            Code::TrailingBackslash => "trailing backslash at end of expression",
            Code::UnexpectedParenthesis => "unexpected )",
            Code::NestingDepth => "expression nests too deeply",
            Code::Large => "expression too large",
        };
        write!(f, "error parsing regexp: {code}: `{}`", self.part)
    }
}
