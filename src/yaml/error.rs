//! Errors of YAML and JSON texts.

use super::Place;

/// The error of a YAML or JSON text that cannot be parsed, with its position.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{problem}")]
pub struct YamlError {
    /// The position of the error.
    pub place: Place,
    /// The reason why the text cannot be parsed.
    pub problem: Problem,
}

/// The reason why a YAML or JSON text is invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Problem {
    /// The text is not valid YAML.
    #[error("{0}")]
    Syntax(String),
    /// The text after several JSON objects is not JSON. After a single JSON object, kubectl reads the text as YAML.
    #[error("invalid JSON after other JSON objects: {0}")]
    AfterJson(String),
    /// A line begins with `---`, followed by text other than a comment. kubectl rejects such a line, although YAML
    /// allows it.
    #[error("invalid document separator: only a comment may follow `---`, not `{0}`")]
    Separator(String),
    /// A scalar does not have the type of its tag, such as `!!int abc`.
    #[error("`{text}` is not a valid `!!{tag}`")]
    Tag {
        /// The tag, without `!!`.
        tag: String,
        /// The text of the scalar.
        text: String,
    },
    /// Our parser rejects the text after a document end marker (`...`). kustomize reads only the beginning of this
    /// text, so it may accept the file.
    #[error("invalid YAML follows the `...` that ends the document; kustomize reads only the beginning of it")]
    BehindEnd,
    /// A directive, such as `%YAML 1.1`, follows a document without a document end marker (`...`). Our parser rejects
    /// such a directive. go-yaml ends the document at the directive, if it can parse the directive.
    #[error("a directive follows a document that does not end with `...`")]
    Directive,
    /// Our parser and go-yaml may parse the text differently. Only reported for files that kustomize reads.
    #[error("{0}")]
    Dialect(String),
    /// A number is infinite or NaN. JSON, and therefore Kubernetes, cannot represent such numbers.
    #[error("infinity and NaN cannot be written as JSON")]
    NotFinite,
    /// A number in a JSON text exceeds the range of a 64-bit float, such as `1e999`.
    #[error("a number is beyond the range of a 64-bit float, so that Kubernetes cannot decode the object")]
    OutOfRange,
    /// A quoted key contains a character that go-yaml treats as a line break, such as U+2028. go-yaml requires that the
    /// key is on one line.
    #[error("a key must be on one line, but go-yaml reads a character in it as a line break")]
    BrokenKey,
    /// A mapping key cannot be converted to a string. The string in the variant describes the key, such as `a list`.
    #[error("{0} cannot be the key of a mapping")]
    Key(&'static str),
    /// The value of `<<` is neither a mapping nor a list of mappings.
    #[error("`<<` needs a mapping or a list of mappings")]
    Merge,
    /// A mapping with two keys `<<`. kyaml rejects such a mapping.
    #[error("duplicate key `<<`: merge a list, as in `<<: [*one, *other]`")]
    MergedTwice,
    /// An invalid merge key (`<<`) that kustomize may ignore. For example, kustomize does not always process a merge
    /// key within the value of another merge key. So it is unknown whether kustomize rejects the text.
    #[error("an invalid `<<` within the value of another `<<`")]
    WithinMerged,
    /// An anchor that is used within its own value.
    #[error("an alias is within the value of its own anchor")]
    Recursion,
    /// A document with more values than [`Limits`](super::Limits) allow.
    #[error("the document has more than {0} values")]
    TooManyNodes(usize),
    /// Aliases that expand to more values than [`Limits`](super::Limits) allow.
    #[error("the aliases of the document expand to more than {0} values")]
    TooManyAliased(usize),
    /// A document that is nested deeper than [`Limits`](super::Limits) allow.
    #[error("the document is nested more than {0} levels deep")]
    TooDeep(usize),
}

/// A part of our parser's error message about a line in a multi-line quoted string that is not indented enough.
const INDENTATION: &str = "invalid indentation in multiline quoted scalar";

impl YamlError {
    /// Returns whether our parser rejected the indentation of a line in a multi-line quoted string. Our parser requires
    /// a minimum indentation of such lines, but go-yaml does not.
    pub(super) fn is_indentation(&self) -> bool {
        matches!(&self.problem, Problem::Syntax(text) | Problem::Dialect(text) if text.contains(INDENTATION))
    }
}

impl Problem {
    /// Returns whether kustomize's result is unknown. This is the case if a limit of Portcullis is exceeded, or if our
    /// parser and go-yaml may differ.
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
