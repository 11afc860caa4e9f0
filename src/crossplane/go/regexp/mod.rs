//! Regular expressions in Go's syntax.
//!
//! A pattern is read as Go's `regexp/syntax` reads it, refused in its words, and written out again in the syntax of the
//! crate regex, which finds the same matches: both are leftmost-first and take time linear in the text. What differs in
//! the syntax: `\d`, `\w`, `\s` and `\b` mean ASCII in Go, `\Q..\E` quotes, `[a&&b]` and `[a[b]]` are plain sets,
//! braces that are no repetition are literal, `a**` and more than 1000 repetitions are errors.

mod class;
mod error;
mod escape;
mod translate;

use std::sync::{Arc, LazyLock, RwLock};

use regex::{Regex, RegexBuilder};

pub use error::{Code, SyntaxError};

/// How deep groups may be nested, which bounds the recursion of the crate regex. Go allows 1000.
pub const MAX_NESTING: u32 = 250;
/// How many compiled patterns are kept. Patterns come from Compositions, of which a cluster has some hundred.
const MAX_KEPT: usize = 1024;

type Compiled = Result<Arc<Regex>, SyntaxError>;

static KEPT: LazyLock<RwLock<std::collections::HashMap<String, Compiled>>> = LazyLock::new(RwLock::default);

/// Compiles a pattern, or finds it compiled.
///
/// # Errors
/// What Go says is wrong with it.
pub fn compile(pattern: &str) -> Result<Arc<Regex>, SyntaxError> {
    let read = || KEPT.read().unwrap_or_else(std::sync::PoisonError::into_inner);
    if let Some(kept) = read().get(pattern) {
        return kept.clone();
    }
    let compiled = build(pattern).map(Arc::new);
    let mut kept = KEPT.write().unwrap_or_else(std::sync::PoisonError::into_inner);
    if kept.len() >= MAX_KEPT {
        kept.clear();
    }
    kept.insert(pattern.to_owned(), compiled.clone());
    compiled
}

fn build(pattern: &str) -> Result<Regex, SyntaxError> {
    let translated = translate::translate(pattern)?;
    let built = RegexBuilder::new(&translated).nest_limit(MAX_NESTING).build();
    built.map_err(|error| match error {
        regex::Error::CompiledTooBig(_) => SyntaxError::new(Code::Large, pattern),
        _ => SyntaxError::new(Code::NestingDepth, pattern),
    })
}
