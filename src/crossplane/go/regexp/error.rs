//! What is wrong with a pattern.

use std::fmt;

/// What is wrong with a pattern, in the words of Go's `regexp/syntax`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Code {
    /// A range that ends before it begins, or a class that does not exist.
    CharRange,
    /// An escape that does not exist.
    Escape,
    /// A name of a group that is none, or that is not closed.
    NamedCapture,
    /// Something after `(?` that is not supported.
    PerlOperator,
    /// A repetition of a repetition.
    RepeatOperator,
    /// A repetition that is too large, or ends before it begins.
    RepeatSize,
    /// A class that is not closed.
    MissingBracket,
    /// A group that is not closed.
    MissingParenthesis,
    /// A repetition of nothing.
    MissingRepeatArgument,
    /// A backslash at the end.
    TrailingBackslash,
    /// A group that is closed but never opened.
    UnexpectedParenthesis,
    /// Groups nested deeper than [`super::MAX_NESTING`].
    NestingDepth,
    /// It would take too much memory.
    Large,
}

/// What is wrong with a pattern, and the part of it that is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SyntaxError {
    /// What is wrong.
    pub code: Code,
    /// The part.
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
