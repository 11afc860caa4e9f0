//! The parts of a path.

/// A part, and the byte of the path at which it begins.
#[derive(Debug, Clone)]
pub(super) struct Node {
    pub(super) at: usize,
    pub(super) part: Part,
}

#[derive(Debug, Clone)]
pub(super) enum Part {
    /// Text between template groups, or a quoted string in one.
    Text(String),
    /// A template group.
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

/// `[from:to:step]`; what is not said is `None`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Slice {
    pub(super) from: Option<i64>,
    pub(super) to: Option<i64>,
    pub(super) step: Option<i64>,
    /// `[from]`: there was no `to`, and it is one more than `from`.
    pub(super) is_index: bool,
}

/// `[?(left operator right)]`; without an operator, whether there is anything on the left.
#[derive(Debug, Clone)]
pub(super) struct Filter {
    pub(super) left: Vec<Node>,
    pub(super) comparison: Option<(String, Vec<Node>)>,
}

impl Part {
    /// The name for people.
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
