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
/// How many compiled patterns are kept, and how large each of them may be: 32 MiB together.
const MAX_KEPT: usize = 128;
const MAX_KEPT_SIZE: usize = 256 << 10;
/// A longer pattern is compiled each time.
const MAX_KEPT_TEXT: usize = 1024;
/// How large a compiled pattern may be at all.
const MAX_SIZE: usize = 10 << 20;

type Compiled = Result<Arc<Regex>, SyntaxError>;

static KEPT: LazyLock<RwLock<std::collections::HashMap<String, Compiled>>> = LazyLock::new(RwLock::default);

/// Compiles a pattern, or finds it compiled.
///
/// # Errors
/// What Go says is wrong with it.
pub fn compile(pattern: &str) -> Result<Arc<Regex>, SyntaxError> {
    if pattern.len() > MAX_KEPT_TEXT {
        return build(pattern, MAX_SIZE).map(Arc::new);
    }
    let read = || KEPT.read().unwrap_or_else(std::sync::PoisonError::into_inner);
    if let Some(kept) = read().get(pattern) {
        return kept.clone();
    }
    let compiled = match build(pattern, MAX_KEPT_SIZE) {
        Err(error) if error.code == Code::Large => return build(pattern, MAX_SIZE).map(Arc::new),
        compiled => compiled.map(Arc::new),
    };
    let mut kept = KEPT.write().unwrap_or_else(std::sync::PoisonError::into_inner);
    if kept.len() >= MAX_KEPT {
        kept.clear();
    }
    kept.insert(pattern.to_owned(), compiled.clone());
    compiled
}

fn build(pattern: &str, size: usize) -> Result<Regex, SyntaxError> {
    let translated = translate::translate(pattern)?;
    let built = RegexBuilder::new(&translated).nest_limit(MAX_NESTING).size_limit(size).build();
    built.map_err(|error| match error {
        regex::Error::CompiledTooBig(_) => SyntaxError::new(Code::Large, pattern),
        _ => SyntaxError::new(Code::NestingDepth, pattern),
    })
}
