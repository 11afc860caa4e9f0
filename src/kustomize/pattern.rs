//! Regular expressions of selectors. An expression matches only whole texts: `web` does not match `web-1`.
//!
//! Source: kustomize's `types.NewSelectorRegex`. Test cases with kustomize's results are in
//! `tests/vectors/kustomize/selectors.json`.

use std::sync::Arc;

use regex::Regex;

use crate::go::regexp::{self, SyntaxError};

/// A compiled regular expression of a selector.
#[derive(Debug)]
pub enum Pattern {
    /// An empty expression, which matches every text.
    Any,
    /// A text without special characters, which needs no compilation. Most selectors are names.
    Text(String),
    /// A regular expression in Go's syntax.
    Expression(Arc<Regex>),
}

impl Pattern {
    /// Compiles a regular expression in Go's syntax. An empty text matches everything.
    ///
    /// # Errors
    ///
    /// If the expression has a syntax error. The error message is the same as in Go.
    pub fn new(text: &str) -> Result<Self, SyntaxError> {
        if text.is_empty() {
            return Ok(Self::Any);
        }
        if text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_/".contains(&byte)) {
            return Ok(Self::Text(text.to_owned()));
        }
        regexp::compile(&format!("^(?:{text})$")).map(Self::Expression)
    }

    /// Returns whether the expression matches the whole text.
    pub fn matches(&self, text: &str) -> bool {
        match self {
            Self::Any => true,
            Self::Text(wanted) => wanted == text,
            Self::Expression(expression) => expression.is_match(text),
        }
    }

    /// Returns whether the pattern restricts which texts match. Returns `false` for [`Pattern::Any`].
    pub fn is_some(&self) -> bool {
        !matches!(self, Self::Any)
    }
}
