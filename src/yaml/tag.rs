//! The tags of YAML nodes, such as `!!str`.

/// The type of a node, as the short tag of go-yaml v3.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Tag {
    /// No tag. When a plain scalar without a tag is serialized, its text determines its type. For example, `1` is a
    /// number.
    None,
    /// `!!null`
    Null,
    /// `!!bool`
    Bool,
    /// `!!int`
    Int,
    /// `!!float`
    Float,
    /// `!!str`
    Str,
    /// `!!timestamp`
    Timestamp,
    /// `!!binary`
    Binary,
    /// `!!merge`, the tag of the merge key `<<`
    Merge,
    /// `!!map`
    Map,
    /// `!!seq`
    Seq,
    /// A tag that go-yaml does not know.
    Other,
}
