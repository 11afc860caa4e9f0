//! The syntax tree of a JSONPath.

/// A node of the syntax tree of a JSONPath: a syntax element, and its byte offset in the path.
#[derive(Debug, Clone)]
pub(super) struct Node {
    pub(super) at: usize,
    pub(super) part: Part,
}

/// A syntax element of a JSONPath: a field, an index, a filter or another element.
#[derive(Debug, Clone)]
pub(super) enum Part {
    /// Text outside of `{` and `}`, or a quoted string inside them.
    Text(String),
    /// A template group of a JSONPath: the parts between `{` and `}`.
    List(Vec<Node>),
    Field(String),
    Array(Slice),
    Filter(Box<Filter>),
    Int(i64),
    Float(f64),
    Bool(bool),
    Wildcard,
    Recursive,
    Union(Vec<Vec<Node>>),
    Identifier(String),
}

/// An index or slice `[from:to:step]` of a JSONPath, such as `[0]` or `[1:3]`. Omitted numbers are `None`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Slice {
    pub(super) from: Option<i64>,
    pub(super) to: Option<i64>,
    pub(super) step: Option<i64>,
    /// Whether the syntax is an index, such as `[0]`, and not a slice. The index `[from]` is evaluated as the slice
    /// `[from:from + 1]`.
    pub(super) is_index: bool,
}

/// A filter `[?(left operator right)]` of a JSONPath. A filter without an operator selects the elements in which `left`
/// finds a value.
#[derive(Debug, Clone)]
pub(super) struct Filter {
    pub(super) left: Vec<Node>,
    pub(super) comparison: Option<(String, Vec<Node>)>,
}

impl Part {
    /// Returns the name of this kind of syntax element for messages, such as `a field`.
    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::Text(_) => "text",
            Self::List(_) => "a template group",
            Self::Field(_) => "a field",
            Self::Array(_) => "an index",
            Self::Filter(_) => "a filter",
            Self::Int(_) | Self::Float(_) => "a number",
            Self::Bool(_) => "a boolean",
            Self::Wildcard => "*",
            Self::Recursive => "..",
            Self::Union(_) => "a union",
            Self::Identifier(_) => "a word",
        }
    }
}
