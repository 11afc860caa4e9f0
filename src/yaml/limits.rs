//! Limits on the size of a document.

/// Maximum number of values in a document. A document with this many values has some 20 MB of text. etcd stores objects
/// of at most 1.5 MB.
const NODES: usize = 1_000_000;
/// Maximum number of values from aliases. A "billion laughs" attack of nine levels expands to 10^9 values. go-yaml
/// stops at about 400 000 values. Real files have a few hundred values from aliases.
const ALIASED: usize = 100_000;
/// Maximum nesting depth of a document. `serde_json`, which parses AdmissionReviews, has almost the same limit.
const DEPTH: usize = 128;

/// Limits on the size of a YAML or JSON document.
#[derive(Debug, Clone)]
pub struct Limits {
    /// Maximum number of values in a document, including keys.
    pub nodes: usize,
    /// Maximum number of values that are copied because of aliases in a document. A long text counts as several values.
    pub aliased: usize,
    /// Maximum depth of nested mappings and lists.
    pub depth: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { nodes: NODES, aliased: ALIASED, depth: DEPTH }
    }
}
