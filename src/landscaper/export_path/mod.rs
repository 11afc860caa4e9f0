//! Landscaper's dialect of Kubernetes JSONPath: how exports name a value in an object, and where it goes in the result.
//!
//! ```text
//! .data.token                       a field; the leading dot may be left out
//! .data.tls\.crt                    a dot that belongs to the name
//! .secrets[0]   .list[-1]   [1:3]   an element, the last one, a slice
//! .conditions[?(@.type=="Ready")]   the elements for which a comparison holds
//! .list[*]  .map.*  ..name  [0,1]   all of them, at any depth, several
//! ```
//!
//! Of several results the first counts; there is no way to ask for all. A missing field is an error, `null` is a value.
//!
//! Source: `GetValue` and `Construct` in Landscaper's `pkg/landscaper/dataobjects/jsonpath/jsonpath.go`, over the parser
//! and the evaluation of `k8s.io/client-go/util/jsonpath`. What they really answer is recorded in
//! `tests/vectors/landscaper/jsonpath.json` and `construct.json`. Where upstream panics, or picks at random among the
//! values of a map, there is an error here.

mod compare;
mod construct;
mod error;
mod evaluate;
mod item;
mod node;
mod parse;
mod quote;

use serde_json::Value;

pub use construct::{construct, key, merge};
pub use error::{Class, PathError, Problem};

/// The longest path that is read; an export's path is a line that a person wrote.
pub const MAX_BYTES: usize = 8192;
/// How many steps the evaluation of one path may take, so that `..` cannot be made to walk for ever.
pub const MAX_STEPS: usize = 200_000;

/// A path that was read.
#[derive(Debug, Clone)]
pub struct Path {
    text: String,
    groups: Vec<node::Node>,
}

impl Path {
    /// Reads a path.
    ///
    /// # Errors
    /// What is wrong with it, and where.
    pub fn parse(text: &str) -> Result<Self, PathError> {
        Ok(Self { text: text.to_owned(), groups: parse::groups(text).map_err(|error| error.of(text))? })
    }

    /// The path as it was written.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The value that Landscaper finds in an object.
    ///
    /// # Errors
    /// Why there is none, or why it is not certain which one it is.
    pub fn find(&self, object: &Value) -> Result<Value, PathError> {
        evaluate::find(&self.groups, object).map_err(|error| error.of(&self.text))
    }
}
