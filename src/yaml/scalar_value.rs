//! The typed value of a scalar.

use std::borrow::Cow;

/// A scalar with its type.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Scalar<'a> {
    Null,
    Bool(bool),
    Int(i64),
    /// An integer that is too large for `Int`.
    Uint(u64),
    Float(f64),
    Text(Cow<'a, str>),
}
