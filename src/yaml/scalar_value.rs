//! The typed value of a scalar.

use std::borrow::Cow;

/// The value of a scalar with its resolved type.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Scalar<'a> {
    Null,
    Bool(bool),
    Int(i64),
    /// An integer that is too large for an `i64`.
    Uint(u64),
    Float(f64),
    Text(Cow<'a, str>),
}
