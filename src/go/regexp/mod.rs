//! Regular expressions in Go's syntax.
//!
//! A pattern is parsed as in Go's `regexp/syntax`, with the same error messages. Then it is translated to the syntax of
//! the `regex` crate. Go and the `regex` crate find the same matches, because both use leftmost-first matching. Both
//! take linear time. Only the syntax differs. In Go:
//!
//! - `\d`, `\w`, `\s` and `\b` consider only ASCII characters.
//! - `\Q..\E` quotes a literal text.
//! - `[a&&b]` and `[a[b]]` are character classes without special syntax: `&&` and the inner `[` are literal.
//! - Braces that are not a repetition are literal.
//! - `a**` and more than 1000 repetitions are errors.

mod class;
mod error;
mod escape;
mod translate;

use std::sync::{Arc, LazyLock, RwLock};

use regex::{Regex, RegexBuilder};

pub use error::{Code, SyntaxError};

/// Maximum nesting of groups. It limits the recursion of the `regex` crate. Go allows 1000 levels.
pub const MAX_NESTING: u32 = 250;
/// Maximum number of cached patterns. With at most `MAX_CACHED_SIZE` bytes each, they need up to 32 MiB. When the cache
/// is full, it is emptied.
const MAX_CACHED: usize = 128;
const MAX_CACHED_SIZE: usize = 256 << 10;
/// Maximum length of a cached pattern in bytes. Longer patterns are compiled at each use.
const MAX_CACHED_LENGTH: usize = 1024;
/// Maximum size of a compiled pattern in bytes. The limit bounds the memory for a pattern, which may come from a user.
const MAX_SIZE: usize = 10 << 20;

type Compiled = Result<Arc<Regex>, SyntaxError>;

static CACHE: LazyLock<RwLock<std::collections::HashMap<String, Compiled>>> = LazyLock::new(RwLock::default);

/// Compiles a regular expression in Go's syntax, or returns it from the cache.
///
/// # Errors
/// If the pattern is invalid, too large, or nested deeper than [`MAX_NESTING`]. The message is that of Go.
pub fn compile(pattern: &str) -> Result<Arc<Regex>, SyntaxError> {
    if pattern.len() > MAX_CACHED_LENGTH {
        return build(pattern, MAX_SIZE).map(Arc::new);
    }
    let read = || CACHE.read().unwrap_or_else(std::sync::PoisonError::into_inner);
    if let Some(kept) = read().get(pattern) {
        return kept.clone();
    }
    let compiled = match build(pattern, MAX_CACHED_SIZE) {
        Err(error) if error.code == Code::Large => return build(pattern, MAX_SIZE).map(Arc::new),
        compiled => compiled.map(Arc::new),
    };
    let mut kept = CACHE.write().unwrap_or_else(std::sync::PoisonError::into_inner);
    if kept.len() >= MAX_CACHED {
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
