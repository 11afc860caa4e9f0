//! Landscaper's dialect of Kubernetes JSONPath. An export uses a path to select a value in an object, and a second path
//! to place the value in the result.
//!
//! Examples of paths, and what they select:
//!
//! ```text
//! .data.token                       a field; the leading dot may be left out
//! .data.tls\.crt                    a field with a dot in its name
//! .secrets[0]   .list[-1]   [1:3]   the first element, the last element, a slice
//! .conditions[?(@.type=="Ready")]   the elements for which the comparison is true
//! .list[*]  .map.*                  all elements or members
//! ..name                            the fields with this name at any depth
//! .list[0,1]                        several elements
//! ```
//!
//! If there are several results, Landscaper uses only the first. A missing field is an error, but a field with the
//! value `null` is not.
//!
//! Source: `GetValue` and `Construct` in Landscaper's `pkg/landscaper/dataobjects/jsonpath/jsonpath.go`. They use the
//! parser and the evaluation of `k8s.io/client-go/util/jsonpath`. The results of running this Go code on example paths
//! are recorded in `tests/vectors/landscaper/jsonpath.json` and `construct.json`. If Landscaper panics, or picks one of
//! several values at random, this module returns an error.

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

/// The maximum length of a path, in bytes. Paths that users write by hand on one line are much shorter.
pub const MAX_BYTES: usize = 8192;
/// Maximum number of steps to evaluate a path. The limit is needed because the operator `..` can visit many values.
pub const MAX_STEPS: usize = 200_000;

/// A parsed JSONPath of an export.
#[derive(Debug, Clone)]
pub struct Path {
    text: String,
    groups: Vec<node::Node>,
}

impl Path {
    /// Parses the JSONPath of an export.
    ///
    /// # Errors
    /// Returns the first error with its position.
    pub fn parse(text: &str) -> Result<Self, PathError> {
        Ok(Self { text: text.to_owned(), groups: parse::groups(text).map_err(|error| error.of(text))? })
    }

    /// Returns the text of the path as written.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns the value that Landscaper finds at this path in an object.
    ///
    /// # Errors
    /// Fails if the path cannot be evaluated on the object, finds no value, or needs more than [`MAX_STEPS`] steps.
    /// Also fails if Landscaper would choose one of several values at random.
    pub fn find(&self, object: &Value) -> Result<Value, PathError> {
        evaluate::find(&self.groups, object).map_err(|error| error.of(&self.text))
    }
}
