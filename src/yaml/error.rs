//! What a text can be refused for.

use super::Place;

/// Why a text cannot be read, and where.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{problem}")]
pub struct YamlError {
    /// Where the trouble is.
    pub place: Place,
    /// What the trouble is.
    pub problem: Problem,
}

/// What is wrong with a text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Problem {
    /// It is not YAML.
    #[error("{0}")]
    Syntax(String),
    /// A line begins with `---` and goes on, which kubectl refuses although YAML allows it.
    #[error("invalid document separator: only a comment may follow `---`, not `{0}`")]
    Separator(String),
    /// A scalar is not of the type that its tag names.
    #[error("`{text}` is no `!!{tag}`")]
    Tag {
        /// The tag, without `!!`.
        tag: String,
        /// The scalar.
        text: String,
    },
    /// More than comments stand behind the `...` that ends a document, where kustomize looks at some of it.
    #[error("something stands behind the `...` that ends the document; of that kustomize reads the beginning")]
    BehindEnd,
    /// A directive stands behind a document that no `...` ends. go-yaml takes it for the end, if it can read it.
    #[error("a directive stands behind a document that no `...` ends")]
    Directive,
    /// Our parser refuses it, or reads it in its own way, and go-yaml may read it otherwise. Only said of what kustomize reads.
    #[error("{0}")]
    Dialect(String),
    /// JSON, and so Kubernetes, has no such number.
    #[error("infinity and NaN cannot be written as JSON")]
    NotFinite,
    /// A number of a JSON text is beyond what a 64-bit float holds, such as `1e999`.
    #[error("a number is beyond the range of a 64-bit float, so that Kubernetes cannot decode the object")]
    OutOfRange,
    /// A key cannot be turned into a string.
    #[error("{0} cannot be the key of a mapping")]
    Key(&'static str),
    /// The value of `<<` is neither a mapping nor a list of mappings.
    #[error("`<<` needs a mapping or a list of mappings")]
    Merge,
    /// `<<` is in a mapping twice, which kyaml refuses.
    #[error("`<<` is in the mapping twice: merge a list, as in `<<: [*one, *other]`")]
    MergedTwice,
    /// A `<<` that kyaml would refuse is in what another one names, where it does not always look.
    #[error("a `<<` is in what another one names, and not as it should be")]
    WithinMerged,
    /// An anchor is used within its own value.
    #[error("an alias stands within the value of its own anchor")]
    Recursion,
    /// A document has more values than [`Limits`](super::Limits) allow.
    #[error("the document has more than {0} values")]
    TooManyNodes(usize),
    /// Aliases stand for more values than [`Limits`](super::Limits) allow.
    #[error("the aliases of the document stand for more than {0} values")]
    TooManyAliased(usize),
    /// A document is nested deeper than [`Limits`](super::Limits) allow.
    #[error("the document is nested more than {0} levels deep")]
    TooDeep(usize),
}

impl Problem {
    /// Returns whether it is open what kustomize makes of the text: a bound of ours is met, or parsers part ways.
    pub fn is_open(&self) -> bool {
        matches!(
            self,
            Self::BehindEnd
                | Self::Directive
                | Self::Dialect(_)
                | Self::WithinMerged
                | Self::TooManyNodes(_)
                | Self::TooManyAliased(_)
                | Self::TooDeep(_)
        )
    }
}
