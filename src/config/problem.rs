//! Collects all problems of a configuration file, each with its position and a suggestion.

use std::fmt;

use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_saphyr::{Error, Location};

use crate::admission::field::FieldPath;
use crate::suggestion;
use crate::yaml::{self, Document, Place};

/// Maximum number of unknown keys and values that are reported for a file. The limit exists because the file is parsed
/// again after each unknown key or value.
const MAX_PROBLEMS: usize = 100;

/// A problem of a configuration file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The line of the problem in the configuration file, counted from 1.
    pub line: u64,
    /// The column of the problem in its line, counted from 1.
    pub column: u64,
    /// The error message. If a fix is known, the message suggests it, for example the most similar valid key.
    pub text: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.line, self.column, self.text)
    }
}

impl Problem {
    pub(super) fn at(location: &Location, text: String) -> Self {
        Self { line: location.line(), column: location.column(), text }
    }

    fn of(error: &Error) -> Self {
        let location = error.location().unwrap_or(Location::UNKNOWN);
        let text = match error {
            Error::SerdeUnknownField { field, expected, .. } => unknown("key", field, expected),
            Error::SerdeUnknownVariant { variant, expected, .. } => unknown("value", variant, expected),
            _ => without_location(&error.to_string()),
        };
        Self::at(&location, text)
    }
}

/// Returns the message for an unknown name, with a suggestion from `known`. `what` says what the name stands for, such
/// as `rule`.
pub(super) fn unknown(what: &str, name: &str, known: &[&str]) -> String {
    let advice = match suggestion::most_similar(name, known.iter().copied()) {
        Some(near) => format!("did you mean {near:?}?"),
        None if known.is_empty() => format!("no {what} is valid here"),
        None => format!("use one of: {}", known.join(", ")),
    };
    format!("unknown {what} {name:?}; {advice}")
}

/// Removes the location from the end of a parser's message, because [`Problem`] shows the location at the start.
fn without_location(message: &str) -> String {
    let first = message.lines().next().unwrap_or_default();
    first.rsplit_once(" at line ").map_or(first, |(text, _)| text).to_owned()
}

/// Parses a configuration file. Reports unknown keys and values and skips them, so that one call reports all problems.
/// For any other error, returns `None` instead of the file.
pub(super) fn read<T: DeserializeOwned>(text: &str) -> (Option<T>, Vec<Problem>) {
    let (mut text, mut problems) = (text.to_owned(), Vec::new());
    for _ in 0..MAX_PROBLEMS {
        let error = match serde_saphyr::from_str(&text) {
            Ok(file) => return (Some(file), problems),
            Err(error) => error,
        };
        let error = error.without_snippet();
        problems.push(Problem::of(error));
        match without(&text, error) {
            Some(rest) => text = rest,
            None => break,
        }
    }
    (None, problems)
}

/// Returns the configuration text without the mistake that `error` reports, so that the next parse finds other
/// mistakes. Removes an unknown key with its value, or replaces an unknown value with a valid one. Line numbers do not
/// change. Returns `None` for other mistakes.
fn without(text: &str, error: &Error) -> Option<String> {
    match error {
        Error::SerdeUnknownField { location, .. } => without_entry(text, location),
        Error::SerdeUnknownVariant { location, expected, .. } => with_value(text, location, expected.first()?),
        _ => None,
    }
}

fn without_entry(text: &str, location: &Location) -> Option<String> {
    let document = yaml::first(text, &yaml::Limits::default()).ok()??;
    let (path, is_only) = entry_at(&document, &document.value, &FieldPath::root(), location)?;
    let (key, value) = (document.key_place(&path)?, document.place(&path)?);
    let colon = text.get(key.end..)?.find(':').map_or(key.end, |at| key.end + at + 1);
    let mut end = value.end.max(colon);
    let rest = text.get(end..)?;
    if rest.trim_start_matches([' ', '\t']).starts_with(',') {
        end += rest.find(',')? + 1;
    }
    let blank: String = text.get(key.start..end)?.chars().map(|c| if c == '\n' { c } else { ' ' }).collect();
    // A mapping that becomes empty is written as `{}`, so that it is still a mapping.
    let blank = if is_only && blank.starts_with("  ") { format!("{{}}{}", &blank[2..]) } else { blank };
    Some([text.get(..key.start)?, &blank, text.get(end..)?].concat())
}

/// Finds the entry of a YAML mapping whose key is at the text position `location`. Returns the path of the entry, and
/// whether it is the only entry of its mapping. Returns `None` if no key is at this position. Searches only in `value`.
/// `at` is the path of `value` in `document`.
fn entry_at(document: &Document, value: &Value, at: &FieldPath, location: &Location) -> Option<(FieldPath, bool)> {
    match value {
        Value::Object(entries) => entries.iter().find_map(|(key, value)| {
            let path = at.key(key);
            let is_it = document.key_place(&path).is_some_and(|place| is_at(&place, location));
            if is_it { Some((path, entries.len() == 1)) } else { entry_at(document, value, &path, location) }
        }),
        Value::Array(items) => {
            items.iter().enumerate().find_map(|(index, item)| entry_at(document, item, &at.index(index), location))
        }
        _ => None,
    }
}

fn is_at(place: &Place, location: &Location) -> bool {
    (u64::from(place.line), u64::from(place.column)) == (location.line(), location.column())
}

/// Returns the configuration text with `value` instead of the unknown value at `location`. `None` if `location` is not
/// in the text.
fn with_value(text: &str, location: &Location, value: &str) -> Option<String> {
    let line = usize::try_from(location.line()).ok()?.checked_sub(1)?;
    let line_start: usize = text.split_inclusive('\n').take(line).map(str::len).sum();
    let column = usize::try_from(location.column()).ok()?.checked_sub(1)?;
    let start = line_start + text.get(line_start..)?.chars().take(column).map(char::len_utf8).sum::<usize>();
    let rest = text.get(start..)?;
    let end = match rest.chars().next()? {
        quote @ ('"' | '\'') => rest.get(1..)?.find(quote)? + 2,
        _ => rest.find([',', '}', ']', '\n', '#']).unwrap_or(rest.len()),
    };
    Some([text.get(..start)?, value, rest.get(end..)?].concat())
}
