//! Resolves scalars by the rules of go-yaml v2 (`resolve.go`). These are the rules of YAML 1.1 with Go's number
//! formats.

use std::borrow::Cow;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use granit_parser::Tag;
use serde_json::{Number, Value};

use super::error::Problem;
use super::number;
pub(super) use super::scalar_value::Scalar;

/// The prefix of the tags `!!str`, `!!int`, ….
pub(super) const NAMESPACE: &str = "tag:yaml.org,2002:";

/// Resolves the type of a scalar with the text `text`. `plain` says whether the text is written without quotes. A
/// scalar with a tag that go-yaml does not know is a string.
pub(super) fn resolve<'a>(text: Cow<'a, str>, plain: bool, tag: Option<&Tag>) -> Result<Scalar<'a>, Problem> {
    let Some(tag) = tag else {
        return Ok(special(&text).filter(|_| plain).unwrap_or(Scalar::Text(text)));
    };
    match tag.suffix_in_namespace(NAMESPACE).as_deref() {
        Some("binary") => binary(&text),
        Some(kind @ ("null" | "bool" | "int" | "float" | "timestamp")) => {
            of_kind(kind, &text).ok_or_else(|| wrong_tag(kind, &text))
        }
        _ => Ok(Scalar::Text(text)),
    }
}

/// Returns whether a tag is the non-specific tag `!`.
pub(super) fn is_bare_tag(tag: &Tag) -> bool {
    tag.handle().is_empty() && tag.suffix() == "!"
}

/// The text of the merge key. A quoted or tagged `<<` may be an ordinary key; see [`is_merge`].
pub(super) const MERGE: &str = "<<";

/// Returns whether the key `text` is the merge key `<<`. Returns `false` for a quoted `<<` without a tag, and for a
/// `<<` with a tag other than `!` and `!!merge`. `plain` says whether the key is written without quotes.
pub(super) fn is_merge(text: &str, plain: bool, tag: Option<&Tag>) -> bool {
    text == MERGE
        && match tag {
            None => plain,
            Some(tag) => is_bare_tag(tag) || tag.suffix_in_namespace(NAMESPACE).as_deref() == Some("merge"),
        }
}

fn wrong_tag(tag: &str, text: &str) -> Problem {
    Problem::Tag { tag: tag.to_owned(), text: text.to_owned() }
}

/// Returns whether go-yaml v2 reads a plain scalar as a string. Timestamps count as strings.
pub(super) fn is_string(text: &str) -> bool {
    special(text).is_none()
}

/// Resolves the type of a plain scalar; `None` for a string.
fn special(text: &str) -> Option<Scalar<'static>> {
    match text.as_bytes().first() {
        None => Some(Scalar::Null),
        Some(b'0'..=b'9' | b'+' | b'-' | b'.') => number::read(text),
        Some(b'y' | b'Y' | b'n' | b'N' | b't' | b'T' | b'f' | b'F' | b'o' | b'O' | b'~') => word(text),
        Some(_) => None,
    }
}

fn word(text: &str) -> Option<Scalar<'static>> {
    match text {
        "~" | "null" | "Null" | "NULL" => Some(Scalar::Null),
        "y" | "Y" | "yes" | "Yes" | "YES" | "on" | "On" | "ON" | "true" | "True" | "TRUE" => Some(Scalar::Bool(true)),
        "n" | "N" | "no" | "No" | "NO" | "off" | "Off" | "OFF" | "false" | "False" | "FALSE" => {
            Some(Scalar::Bool(false))
        }
        _ => None,
    }
}

/// Resolves `text` to the type `kind`, such as `int` for the tag `!!int`. `None` if the text is not a value of this
/// type.
fn of_kind<'a>(kind: &str, text: &str) -> Option<Scalar<'a>> {
    match (kind, special(text)) {
        ("timestamp", None) => number::is_date(text).then(|| Scalar::Text(Cow::Owned(text.to_owned()))),
        ("float", Some(Scalar::Int(int))) => Some(Scalar::Float(int as f64)),
        ("null", Some(scalar @ Scalar::Null))
        | ("bool", Some(scalar @ Scalar::Bool(_)))
        | ("int", Some(scalar @ (Scalar::Int(_) | Scalar::Uint(_))))
        | ("float", Some(scalar @ Scalar::Float(_))) => Some(scalar),
        _ => None,
    }
}

/// Decodes the base64 text of a `!!binary` scalar to a string. Bytes that are not valid UTF-8 become U+FFFD, as in Go's
/// JSON.
fn binary<'a>(text: &str) -> Result<Scalar<'a>, Problem> {
    let packed = text.replace(['\r', '\n'], "");
    let bytes = STANDARD.decode(packed).map_err(|_| wrong_tag("binary", text))?;
    Ok(Scalar::Text(Cow::Owned(String::from_utf8_lossy(&bytes).into_owned())))
}

impl Scalar<'_> {
    /// Converts the scalar to a JSON value. A float without a fraction becomes an integer, as in Go's JSON.
    pub(super) fn into_value(self) -> Result<Value, Problem> {
        Ok(match self {
            Scalar::Null => Value::Null,
            Scalar::Bool(value) => Value::Bool(value),
            Scalar::Int(int) => Value::from(int),
            Scalar::Uint(int) => Value::from(int),
            Scalar::Float(float) => match number::as_integer(float) {
                Some(int) => Value::from(int),
                None => Value::Number(Number::from_f64(float).ok_or(Problem::NotFinite)?),
            },
            Scalar::Text(text) => Value::String(text.into_owned()),
        })
    }

    /// Converts the scalar to the key of a mapping. The key is always a string, as in sigs.k8s.io/yaml.
    pub(super) fn into_key(self) -> Result<String, Problem> {
        match self {
            Scalar::Null => Err(Problem::Key("null")),
            Scalar::Bool(value) => Ok(value.to_string()),
            Scalar::Int(int) => Ok(int.to_string()),
            Scalar::Uint(_) => Err(Problem::Key("an integer beyond the signed 64-bit range")),
            Scalar::Float(float) => Ok(number::float_key(float)),
            Scalar::Text(text) => Ok(text.into_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(text: &str) -> Scalar<'_> {
        special(text).unwrap_or(Scalar::Text(Cow::Borrowed(text)))
    }

    #[test]
    fn plain_scalars_are_read_as_go_yaml_does() {
        assert_eq!(plain("0644"), Scalar::Int(420));
        assert_eq!(plain("08"), Scalar::Float(8.0));
        assert_eq!(plain("1_000"), Scalar::Int(1000));
        assert_eq!(plain("-0x1F"), Scalar::Int(-31));
        assert_eq!(plain("18446744073709551615"), Scalar::Uint(u64::MAX));
        assert_eq!(plain("+18446744073709551615"), Scalar::Float(u64::MAX as f64));
        assert_eq!(plain("0b-1"), Scalar::Int(-1));
        assert_eq!(plain("1e999"), Scalar::Text("1e999".into()));
        assert_eq!(plain("yEs"), Scalar::Text("yEs".into()));
        assert_eq!(plain("2001-01-01"), Scalar::Text("2001-01-01".into()));
        assert_eq!(plain(""), Scalar::Null);
    }

    #[test]
    fn keys_become_strings_as_in_go() {
        let key = |text| plain(text).into_key().ok();
        assert_eq!(key("yes").as_deref(), Some("true"));
        assert_eq!(key("0x10").as_deref(), Some("16"));
        assert_eq!(key("1.10").as_deref(), Some("1.1"));
        assert_eq!(key("1000000.0").as_deref(), Some("1e+06"));
        assert_eq!(key("0.00001").as_deref(), Some("1e-05"));
        assert_eq!(key("-.inf").as_deref(), Some("-.inf"));
        assert_eq!(key("~"), None);
    }
}
