//! Limits on the size of a document.

/// A document of this many values is some 20 MB of text; etcd takes objects of 1.5 MB.
const NODES: usize = 1_000_000;
/// A "billion laughs" attack of nine levels expands to 10^9 values. go-yaml stops at about 400 000 values; real files
/// have a few hundred.
const ALIASED: usize = 100_000;
/// `serde_json` reads no deeper, and so neither does what reads our values after us.
const DEPTH: usize = 128;

/// Limits on the size of a document.
#[derive(Debug, Clone)]
pub struct Limits {
    /// The most values, keys included, in a document.
    pub nodes: usize,
    /// Maximum number of values that are copied because of aliases in a document; a long text counts as several.
    pub aliased: usize,
    /// Maximum depth of nested mappings and lists.
    pub depth: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { nodes: NODES, aliased: ALIASED, depth: DEPTH }
    }
}
