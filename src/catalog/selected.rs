//! Parses selected fields of an object that is already decoded. The other fields are skipped, without checking that
//! they are valid JSON.

use serde_json::{Map, Value};

use super::parts::Part;
use crate::admission::json;
use crate::admission::scan::{Scanner, Unread};

/// Parses the fields of an object that `part` selects.
///
/// If a selected string contains half of a surrogate pair, the result contains all fields of the object, because
/// [`json::parse`] decodes such strings.
///
/// # Errors
///
/// If the text is not JSON, or if it is nested too deep.
pub(super) fn parse(part: &Part, text: &str) -> Result<Value, json::JsonError> {
    select(part, &mut Scanner::new(text)).or_else(|_| json::parse(text))
}

/// Parses the selected parts of the value at the position of the scanner.
fn select(part: &Part, scanner: &mut Scanner<'_>) -> Result<Value, Unread> {
    match part {
        Part::Members(_) if scanner.is_at_object() => members(part, scanner),
        Part::Members(_) if scanner.is_at_list() => items(part.item(), scanner),
        _ => scanner.parse(),
    }
}

fn members(part: &Part, scanner: &mut Scanner<'_>) -> Result<Value, Unread> {
    let mut members = Map::new();
    scanner.open()?;
    while let Some(key) = scanner.key()? {
        match part.member(&key) {
            Some(part) => drop(members.insert(key.into_owned(), select(part, scanner)?)),
            None => drop(scanner.value()?),
        }
    }
    Ok(Value::Object(members))
}

fn items(part: &Part, scanner: &mut Scanner<'_>) -> Result<Value, Unread> {
    let mut items = Vec::new();
    scanner.open_list()?;
    while scanner.item()? {
        items.push(select(part, scanner)?);
    }
    Ok(Value::Array(items))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::parts::EVERYTHING;
    use super::*;
    use crate::admission::Path;

    const TEXT: &str = r#"{"spec":{"a":[{"b":1,"c":-2},null],"d":{"e":1.5,"f":{}}},"status":"ready"}"#;

    fn selected(paths: &[Path], text: &str) -> Value {
        parse(&Part::of(paths), text).unwrap()
    }

    #[test]
    fn parses_only_selected_fields() {
        assert_eq!(selected(&[], TEXT), json!({}));
        assert_eq!(selected(&[&["spec", "d", "e"]], TEXT), json!({"spec": {"d": {"e": 1.5}}}));
        let found = json!({"spec": {"a": [{"b": 1}, null]}, "status": "ready"});
        assert_eq!(selected(&[&["spec", "a", "*", "b"], &["status", "phase"]], TEXT), found);
        let found = json!({"spec": {"a": [{"b": 1, "c": -2}, null]}});
        assert_eq!(selected(&[&["spec", "a", "b"]], TEXT), found, "no path expects a list here");
        assert_eq!(selected(EVERYTHING, TEXT), serde_json::from_str::<Value>(TEXT).unwrap());
    }

    #[test]
    fn half_of_a_surrogate_pair_is_replaced() {
        let text = r#"{"spec":{"a":"\ud800"},"status":1}"#;
        assert_eq!(selected(&[&["spec"]], text), json!({"spec": {"a": "\u{fffd}"}, "status": 1}));
    }

    #[test]
    fn invalid_texts_are_errors() {
        for text in ["", "{", r#"{"spec":}"#, r#"{"spec":01}"#, r#"{"spec":[1,]}"#, r#"{"spec":[1 2]}"#] {
            assert!(parse(&Part::of(&[&["spec"]]), text).is_err(), "{text}");
        }
    }
}
