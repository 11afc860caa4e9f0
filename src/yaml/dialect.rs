//! Detects texts that our YAML 1.2 parser and go-yaml may parse differently. kustomize's result is unknown for such
//! texts.
//!
//! A kustomize tree is denied only if kustomize rejects it too. So an error of our parser is reported only if go-yaml
//! certainly rejects the text too. All other differences make the result unknown.
//!
//! Source: go-yaml v3's `scannerc.go`, and a comparison with `kubectl kustomize` over thousands of damaged manifests.

use granit_parser::{ErrorKind, Event};

use super::breaks;
use super::error::Problem;
use super::scalar;

/// The type of file that a text comes from. It determines which parser's behavior is reproduced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum As {
    /// The text of a Kubernetes object, which is parsed as kubectl parses it. The types of scalars follow go-yaml v2,
    /// so an unquoted `yes` is a boolean.
    Object,
    /// A kustomization file. It is parsed like an object. In addition, a text is reported if go-yaml and our parser may
    /// parse it differently.
    Kustomization,
    /// A manifest or patch, which is parsed as kustomize parses it. The text of each scalar is preserved, as in nodes
    /// of go-yaml v3. A text is reported if go-yaml and our parser may parse it differently.
    Manifest,
}

const VERSION: &str = "kustomize supports only YAML 1.1: remove the line";
const DIRECTIVE: &str = "unknown YAML directive";
const MARK: &str = "the text contains a byte order mark";
pub(super) const COLON: &str = "go-yaml reads a `:` right before a bracket or comma as part of the word before it";
pub(super) const KEY: &str = "a key within brackets has to be on one line";
pub(super) const MORE: &str = "text follows the closing bracket of the document";

const TAG: &str = "a tag is empty or contains an unusual character";
const MERGE: &str = "a value other than `<<` has the tag `!!merge`";
const NULL: &str = "a mapping or a list has the tag `!!null`";

/// Maximum length of a key, in bytes. go-yaml certainly parses keys of this length. It cannot parse a key of 1023
/// letters, although it can write such a key.
pub(super) const MAX_KEY_LENGTH: usize = 1_000;
pub(super) const LONG: &str = "a key has more than a thousand bytes";

/// Returns the offset and the problem of the first directive that go-yaml v2 rejects. go-yaml v2 supports only `%TAG`
/// and `%YAML 1.1`.
pub(super) fn directive(text: &str) -> Option<(usize, Problem)> {
    let mut at = 0;
    for line in text.trim_start_matches('\u{feff}').split_inclusive('\n') {
        let what = match line.split_whitespace().next() {
            None | Some("%TAG") => None,
            Some("%YAML") if is_version(line) => None,
            Some("%YAML") => Some(VERSION),
            Some(word) if word.starts_with('#') => None,
            Some(_) if line.starts_with('%') => Some(DIRECTIVE),
            Some(_) => return None,
        };
        if let Some(what) = what {
            return Some((at, Problem::Syntax(what.to_owned())));
        }
        at += line.len();
    }
    None
}

/// Returns whether go-yaml v2 accepts the version in a `%YAML` directive. It accepts only version 1.1. Also returns
/// true if the version has no valid syntax, because our parser reports such a directive.
fn is_version(line: &str) -> bool {
    let version = line.split_whitespace().nth(1).and_then(|version| version.split_once('.'));
    let number = |text: &str| text.parse::<u32>().ok();
    version.is_none_or(|(major, minor)| {
        matches!((number(major), number(minor)), (Some(1), Some(1)) | (None, _) | (_, None))
    })
}

/// Finds the first byte order mark (U+FEFF) whose effect in go-yaml is unknown. Returns its byte offset and the problem
/// to report. Does not report a mark at the start of `text`. The effect of any other mark is unknown in these cases:
///
/// * The mark is at the start of a line.
/// * The line of the mark contains `&`, `*`, `!` or `%`. Names of anchors, aliases, tags and directives begin with such
///   a character, and the mark may end the name.
/// * `text` contains U+F8FF. Marks are replaced with U+F8FF before parsing, so the two could not be distinguished.
pub(super) fn mark(text: &str) -> Option<(usize, Problem)> {
    let at = text.match_indices(breaks::MARK).map(|(at, _)| at).find(|at| *at > 0 && !is_in_line(text, *at))?;
    Some((at, Problem::Dialect(MARK.to_owned())))
}

fn is_in_line(text: &str, at: usize) -> bool {
    let (before, behind) = text.split_at(at);
    let line = [before.rsplit(breaks::is_break).next(), behind.split(breaks::is_break).next()];
    let has_name = line.into_iter().flatten().any(|part| part.contains(['&', '*', '!', '%']));
    !before.ends_with(breaks::is_break) && !has_name && !text.contains(breaks::SUBSTITUTE)
}

/// Classifies an error of our parser at byte `at`. Returns [`Problem::Syntax`] if go-yaml certainly rejects the text
/// too. Otherwise returns [`Problem::Dialect`].
pub(super) fn problem(kind: &ErrorKind, message: String, text: &str, at: usize) -> Problem {
    let at = (0..=at.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or_default();
    let is_open = match kind {
        // For go-yaml, the name of an anchor may end elsewhere.
        ErrorKind::SimpleKeyExpected | ErrorKind::MisplacedFlowCollectionEnd => {
            lines(text, at).contains(['&', '*', '!'])
        }
        ErrorKind::UnknownAnchor => text[at..].split_whitespace().next().is_some_and(|word| word.contains(':')),
        _ => !is_shared(kind),
    };
    let is_open = is_open || has_colons(lines(text, at)) || is_behind(&text[..at]) || has_bare_block(text);
    if is_open { Problem::Dialect(message) } else { Problem::Syntax(message) }
}

/// Returns whether go-yaml certainly reports the same error as our parser.
fn is_shared(kind: &ErrorKind) -> bool {
    use ErrorKind as Kind;
    matches!(
        kind,
        Kind::BlockEntryInFlowCollection
            | Kind::BlockSequenceEntryNotAllowed
            | Kind::CommentInterceptedScalar
            | Kind::ExpectedBlockMappingKey
            | Kind::ExpectedBlockSequenceEntry
            | Kind::ExpectedDocumentStart
            | Kind::ExpectedFlowMappingSeparator
            | Kind::ExpectedFlowSequenceSeparator
            | Kind::ExpectedNodeContent
            | Kind::FlowMappingValueAdjacentCollection
            | Kind::InvalidBlockScalarHeader
            | Kind::InvalidBlockScalarIndent
            | Kind::InvalidColonPlacement
            | Kind::InvalidQuotedScalarHexEscape
            | Kind::InvalidTagEscape
            | Kind::InvalidTrailingDoubleQuotedScalar
            | Kind::InvalidTrailingSingleQuotedScalar
            | Kind::MappingKeyNotAllowed
            | Kind::MappingValueNotAllowed
            | Kind::MismatchedFlowCollectionEnd { .. }
            | Kind::MissingAnchorOrAliasName
            | Kind::MissingLowSurrogate
            | Kind::MissingYamlVersion
            | Kind::MissingYamlVersionSeparator
            | Kind::TabInBlockIndentation
            | Kind::TabInPlainScalar
            | Kind::UnclosedFlowCollection { .. }
            | Kind::UnclosedQuotedScalar
            | Kind::UnclosedVerbatimTag
            | Kind::UndeclaredTagHandle
            | Kind::UnexpectedCharacter { .. }
            | Kind::UnexpectedEofBlockMapping
            | Kind::UnexpectedEofBlockSequence
            | Kind::UnexpectedEofImplicitFlowMapping
            | Kind::UnknownQuotedScalarEscape
            | Kind::UnsupportedYamlMajorVersion
            | Kind::ZeroBlockScalarIndent
    )
}

/// Checks the tag of a value, such as `!!str`. Returns a problem if it is unknown which type go-yaml gives to a value
/// with this tag. The type is unknown in these cases:
///
/// * The tag has no name after `!`.
/// * The tag does not fit the value, such as `!!null` on a mapping.
/// * `has_odd` returns true: the text may contain a tag with unusual characters. Our parser and go-yaml may end such a
///   tag at different characters.
pub(super) fn tag(event: &Event<'_>, has_odd: impl FnOnce() -> bool) -> Option<Problem> {
    let (tag, is_scalar) = match event {
        Event::Scalar(_, _, _, tag) => (tag, true),
        Event::MappingStart(_, _, tag) | Event::SequenceStart(_, _, tag) => (tag, false),
        _ => return None,
    };
    let suffix = tag.as_deref()?.suffix();
    let what = match suffix {
        "null" if !is_scalar => NULL,
        "merge" if !matches!(event, Event::Scalar(text, ..) if *text == scalar::MERGE) => MERGE,
        _ if suffix.is_empty() || has_odd() => TAG,
        _ => return None,
    };
    Some(Problem::Dialect(what.to_owned()))
}

/// Returns whether a text may contain a tag with unusual characters. Our parser and go-yaml may end such a tag at
/// different characters.
pub(super) fn has_odd_tag(text: &str) -> bool {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-_./:!<>".contains(letter);
    // Within a word, a tag follows a bracket or an indicator such as `-`. So `#!/bin/sh` in quotes contains no tag.
    let begins =
        |word: &str, at: usize| word[..at].chars().next_back().is_none_or(|before| "[]{},:?-&*".contains(before));
    let tag = |word: &'_ str| word.match_indices('!').map(|(at, _)| at).find(|at| begins(word, *at));
    let tags = text.split_whitespace().filter_map(|word| tag(word).map(|at| &word[at..]));
    tags.into_iter().any(|tag| !tag.chars().all(is_plain))
}

/// Returns whether byte `at` of the text is a `:` that is directly followed by a bracket or comma. Our parser ends a
/// plain scalar at such a `:`. For go-yaml, the `:` is a part of the scalar, because no space follows it.
pub(super) fn has_colon(text: &str, at: usize) -> bool {
    let rest = text.get(at..).unwrap_or_default();
    rest.strip_prefix(':').is_some_and(|rest| rest.starts_with([',', '[', ']', '{', '}']))
}

/// Returns a part of `text`: the line that contains the byte offset `at`, and the line before it.
fn lines(text: &str, at: usize) -> &str {
    let before = |to: usize| text[..to].rfind('\n').unwrap_or_default();
    let end = text[at..].find('\n').map_or(text.len(), |after| at + after);
    &text[before(before(at))..end]
}

fn has_colons(lines: &str) -> bool {
    lines.match_indices(':').any(|(at, _)| has_colon(lines, at))
}

/// Returns whether a line of the text begins, after any indentation, with `|` or `>`. A block scalar may begin on such
/// a line, and go-yaml does not require that the scalar is indented.
fn has_bare_block(text: &str) -> bool {
    text.contains(['|', '>']) && text.lines().any(|line| line.trim_start().starts_with(['|', '>']))
}

/// Returns whether `text` may contain a complete flow collection such as `{…}`. `text` is the part of the document
/// before a syntax error. go-yaml stops reading after a flow collection, so it may not detect the error.
fn is_behind(text: &str) -> bool {
    let is_flow = text.trim_start().starts_with(['[', '{']);
    is_flow && text.matches(['[', '{']).count() <= text.matches([']', '}']).count()
}

/// Returns whether a document is a flow collection, such as `{…}`, and more text follows it. go-yaml scans the start of
/// this text as another document. Comments do not count. Text after a line `---` does not count either. `begin` and
/// `end` are the byte offsets of the document in `text`.
pub(super) fn has_more(text: &str, begin: usize, end: usize) -> bool {
    let is_flow = text.get(begin..).is_some_and(|text| text.starts_with(['[', '{']));
    let rest = text.get(end..).filter(|_| is_flow).unwrap_or_default();
    let mut lines = rest.lines().filter(|line| !line.trim().is_empty() && !line.trim_start().starts_with('#'));
    // A `---` ends the document, and go-yaml scans nothing after it.
    lines.next().is_some_and(|line| line.trim_end() != "---")
}
