//! Chooses the style of a string: plain, quoted or block.

use crate::yaml;

/// The style in which a string is printed: plain, quoted or block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Style {
    /// A plain scalar, without quotes.
    Plain,
    /// A scalar in single quotes.
    Single,
    /// A scalar in double quotes, with escapes.
    Double,
    /// A block scalar after `|`.
    Literal,
}

impl Style {
    /// Returns the style in which go-yaml v2 prints a string value.
    pub fn of(text: &str) -> Self {
        select(text, analyse(text), Position::Other)
    }
}

/// The position of a string in a document. The allowed styles depend on this position.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Position {
    /// A key on the same line as its value.
    SimpleKey,
    /// A value, a list element, or a long key, which YAML writes after `?` on a separate line. The string may be
    /// printed on several lines.
    Other,
}

/// The properties of a string that determine in which styles it can be printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Shape {
    /// Whether the string contains a line break. This can be `\n` or another line break character.
    pub(super) multiline: bool,
    plain: bool,
    single: bool,
    literal: bool,
}

/// The properties of a string without line breaks that can be printed in every style: plain, quoted or block.
const SIMPLE: Shape = Shape { multiline: false, plain: true, single: true, literal: true };

/// Selects the style of a string from the styles that `shape` allows.
///
/// Source: `stringv` and `yaml_emitter_select_scalar_style` in go-yaml v2.
pub(super) fn select(text: &str, shape: Shape, position: Position) -> Style {
    let is_key = position == Position::SimpleKey;
    if text.contains('\n') {
        return if shape.literal && !is_key { Style::Literal } else { Style::Double };
    }
    match reads_as_string(text) {
        _ if is_key && shape.multiline => Style::Double,
        false => Style::Double,
        true if shape.plain => Style::Plain,
        true if shape.single => Style::Single,
        true => Style::Double,
    }
}

fn reads_as_string(text: &str) -> bool {
    yaml::is_plain_string(text) && !is_base_60(text)
}

/// Returns whether YAML 1.1 parses the text as a base-60 number, `^[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+(?:\.[0-9_]*)?$`.
fn is_base_60(text: &str) -> bool {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    if !unsigned.starts_with(|first: char| first.is_ascii_digit()) {
        return false;
    }
    let Some((first, rest)) = unsigned.split_once(':') else { return false };
    let (digits, fraction) = rest.split_once('.').unwrap_or((rest, ""));
    let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'_');
    is_number(first) && is_number(fraction) && digits.split(':').all(is_base_60_digit)
}

fn is_base_60_digit(text: &str) -> bool {
    matches!(text.as_bytes(), [b'0'..=b'9'] | [b'0'..=b'5', b'0'..=b'9'])
}

/// Determines in which styles a string can be printed.
///
/// Source: `yaml_emitter_analyze_scalar` in go-yaml v2.
pub(super) fn analyse(text: &str) -> Shape {
    if is_simple(text) {
        return SIMPLE;
    }
    let mut seen = Seen { indicator: text.starts_with("---") || text.starts_with("..."), ..Seen::default() };
    let mut before = None;
    let mut chars = text.chars().peekable();
    while let Some(char) = chars.next() {
        seen.take(before, char, chars.peek().copied());
        before = Some(char);
    }
    seen.shape()
}

/// Returns whether a text begins with a letter or digit, and contains only letters, digits and `-./_=+`. Most texts are
/// of this form, so they need no style analysis.
fn is_simple(text: &str) -> bool {
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'/' | b'_' | b'=' | b'+');
    text.as_bytes().first().is_some_and(u8::is_ascii_alphanumeric) && text.bytes().all(is_word)
}

/// The properties of a string that the style analysis has found so far.
#[derive(Debug, Default)]
struct Seen {
    /// Whether the string contains a character that has a special meaning in plain scalars.
    indicator: bool,
    line_break: bool,
    unprintable: bool,
    /// Whether the first or last character of the string is a space or a line break.
    blank_end: bool,
    space_at_end: bool,
    break_then_space: bool,
    space_then_break: bool,
}

impl Seen {
    fn take(&mut self, before: Option<char>, char: char, after: Option<char>) {
        self.indicator |= is_indicator(before, char, after);
        self.unprintable |= !is_printable(char);
        self.line_break |= is_break(char);
        if char == ' ' || is_break(char) {
            self.blank_end |= before.is_none() || after.is_none();
        }
        self.space_at_end |= char == ' ' && after.is_none();
        self.break_then_space |= char == ' ' && before.is_some_and(is_break);
        self.space_then_break |= is_break(char) && before == Some(' ');
    }

    fn shape(&self) -> Shape {
        let special = self.space_then_break || self.unprintable;
        Shape {
            multiline: self.line_break,
            plain: !(self.blank_end || self.break_then_space || special || self.line_break || self.indicator),
            single: !(self.break_then_space || special),
            literal: !(self.space_at_end || special),
        }
    }
}

/// Returns whether a character has a special meaning in a plain scalar. `before` and `after` are the neighboring
/// characters, or `None` at the start or end of the text.
fn is_indicator(before: Option<char>, char: char, after: Option<char>) -> bool {
    let ends_word = after.is_none_or(|after| matches!(after, ' ' | '\t'));
    match (before, char) {
        (None, '#' | ',' | '[' | ']' | '{' | '}' | '&' | '*' | '!' | '|' | '>' | '\'' | '"' | '%' | '@' | '`') => true,
        (None, '?' | '-') | (_, ':') => ends_word,
        (Some(before), '#') => matches!(before, ' ' | '\t' | '\0') || is_break(before),
        _ => false,
    }
}

/// Returns whether a character is a line break in YAML 1.1.
pub(super) fn is_break(char: char) -> bool {
    matches!(char, '\r' | '\n' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

/// Returns whether go-yaml v2 prints a character without an escape. go-yaml v2 escapes every character beyond the basic
/// multilingual plane.
pub(super) fn is_printable(char: char) -> bool {
    matches!(char, '\n' | ' '..='~' | '\u{a0}'..='\u{d7ff}' | '\u{e000}'..='\u{fffd}') && char != '\u{feff}'
}
