//! What is printed: a JSON value whose strings are borrowed from the nodes where possible.

use std::borrow::Cow;

/// A value to print.
#[derive(Debug, Clone, PartialEq)]
pub enum Value<'n> {
    /// `null`
    Null,
    /// A truth value.
    Bool(bool),
    /// An integer.
    Int(i64),
    /// An integer greater than any `Int`.
    Uint(u64),
    /// A float; finite.
    Float(f64),
    /// A string.
    Text(Cow<'n, str>),
    /// A list.
    List(Vec<Value<'n>>),
    /// A mapping. Keys are distinct, and in any order.
    Map(Vec<(Cow<'n, str>, Value<'n>)>),
}
