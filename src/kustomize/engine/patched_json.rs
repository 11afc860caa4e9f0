//! A JSON document to which the operations of a JSON patch are applied. Scalars keep their original text, because
//! kustomize's library compares texts. For example, `1` is not equal to `1.0`.
//!
//! Source: `lazyNode` in version 4 of the library json-patch.

use std::collections::BTreeMap;
use std::iter;

use serde_json::Value;
use serde_json::value::RawValue;

use super::budget::{Budget, Exceeded};
use crate::go;

const NULL: &str = "null";
/// Characters that Go's JSON encoder escapes, each with its escape sequence. The encoder also escapes them in JSON that
/// is already encoded (`json.RawMessage`).
const ESCAPED: [(char, &str); 5] =
    [('<', "\\u003c"), ('>', "\\u003e"), ('&', "\\u0026"), ('\u{2028}', "\\u2028"), ('\u{2029}', "\\u2029")];

/// A JSON value that stores strings, numbers and booleans as JSON text. kustomize's library for JSON patches compares
/// these texts, so it treats `1` and `1.0` as different values.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) enum Tree {
    /// `null` in the document, or a missing value.
    #[default]
    Null,
    /// A `null` that is the `value` of a JSON patch operation, such as `add`. The library json-patch does not treat it
    /// like a `null` of the document, which is [`Tree::Null`]. For example, the operation `copy` turns it into a scalar
    /// with the text `null`.
    WrittenNull,
    /// The JSON text of a string, number or boolean, such as `"a"` or `1.0`. The text can also be `null`. This is the
    /// case if one operation of a JSON patch has added a null, and another operation has copied it.
    Scalar(Box<str>),
    Object(BTreeMap<String, Tree>),
    Array(Vec<Tree>),
    /// A part of the document that no operation has read so far. [`Tree::read`] replaces it with another variant.
    Unread(Value),
}

impl Tree {
    /// Replaces [`Tree::Unread`] with the variant for its value. The items of an array and the members of an object
    /// become [`Tree::Unread`]. Strings, numbers and booleans become the texts that Go's JSON encoder writes for them.
    /// Does nothing for other variants.
    pub(super) fn read(&mut self) {
        let Self::Unread(value) = self else { return };
        *self = match value.take() {
            Value::Null => Self::Null,
            Value::Array(items) => Self::Array(items.into_iter().map(Self::Unread).collect()),
            Value::Object(members) => {
                Self::Object(members.into_iter().map(|(key, value)| (key, Self::Unread(value))).collect())
            }
            scalar => Self::Scalar(go::json::marshal(&scalar).into()),
        };
    }

    /// Reads every part of this value that is still [`Tree::Unread`], at any depth. Parts that have been read stay
    /// unchanged.
    pub(super) fn read_all(&mut self) {
        self.read();
        match self {
            Self::Object(members) => members.values_mut().for_each(Self::read_all),
            Self::Array(items) => items.iter_mut().for_each(Self::read_all),
            _ => {}
        }
    }

    fn as_read(&self) -> Self {
        let mut read = self.clone();
        read.read_all();
        read
    }

    /// Creates a [`Tree`] from the member `value` of a JSON patch operation. `text` is the JSON text of this member;
    /// `None` if the member is `null`.
    pub(super) fn of_operation(text: Option<&RawValue>) -> Self {
        text.map_or(Self::WrittenNull, |text| Self::of_text(Some(text)))
    }

    fn of_text(text: Option<&RawValue>) -> Self {
        let Some(text) = text else { return Self::Null };
        if let Ok(items) = serde_json::from_str::<Vec<Option<&RawValue>>>(text.get()) {
            return Self::Array(items.into_iter().map(Self::of_text).collect());
        }
        match serde_json::from_str::<BTreeMap<String, Option<&RawValue>>>(text.get()) {
            Ok(members) => Self::Object(members.into_iter().map(|(key, text)| (key, Self::of_text(text))).collect()),
            Err(_) => Self::Scalar(text.get().into()),
        }
    }

    /// Returns whether this value is missing or null: [`Tree::Null`] or [`Tree::WrittenNull`].
    pub(super) fn is_null(&self) -> bool {
        matches!(self, Self::Null | Self::WrittenNull)
    }

    /// Returns whether the key occurs in this JSON value, or in a value nested in it.
    pub(super) fn has_key(&self, key: &str) -> bool {
        match self {
            Self::Object(members) => members.contains_key(key) || members.values().any(|value| value.has_key(key)),
            Self::Array(items) => items.iter().any(|item| item.has_key(key)),
            Self::Unread(_) => self.as_read().has_key(key),
            Self::Null | Self::WrittenNull | Self::Scalar(_) => false,
        }
    }

    /// Returns the value that the JSON patch operation `copy` creates from this value. The operation encodes the value
    /// as JSON, so characters such as `<` in strings are escaped.
    ///
    /// A null that an operation has written changes when it is copied:
    /// - If this value is [`Tree::WrittenNull`], the result is a scalar with the text `null`.
    /// - If an object or array contains [`Tree::WrittenNull`] or such a scalar, the copy contains [`Tree::Null`]
    ///   instead.
    pub(super) fn copied(&self) -> Self {
        match self {
            Self::Null => Self::Null,
            Self::WrittenNull => Self::Scalar(NULL.into()),
            Self::Scalar(text) => Self::Scalar(escaped(text).into()),
            Self::Object(members) => {
                Self::Object(members.iter().map(|(key, value)| (key.clone(), value.copied_inside())).collect())
            }
            Self::Array(items) => Self::Array(items.iter().map(Self::copied_inside).collect()),
            Self::Unread(_) => self.as_read().copied(),
        }
    }

    fn copied_inside(&self) -> Self {
        match self.copied() {
            Self::Scalar(text) if &*text == NULL => Self::Null,
            copied => copied,
        }
    }

    /// Returns whether the JSON patch operation `test` treats the two values as equal. This value must not be
    /// [`Tree::Null`].
    pub(super) fn equals(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Unread(_), other) => self.as_read().equals(other),
            (_, Self::Unread(_)) => self.equals(&other.as_read()),
            (Self::WrittenNull, other) => *other == Self::WrittenNull,
            (Self::Scalar(text), Self::Object(members)) if &**text == NULL => members.is_empty(),
            (Self::Object(members), Self::Scalar(text)) if &**text == NULL => members.is_empty(),
            // this includes two copied nulls, which the library parses as empty objects
            (Self::Scalar(text), Self::Scalar(other)) => text == other,
            (Self::Object(members), Self::Object(others)) => {
                members.len() == others.len()
                    && iter::zip(members, others).all(|((key, value), (other_key, other))| {
                        key == other_key
                            && (value == &Self::Null) == (other == &Self::Null)
                            && (value == &Self::Null || value.equals(other))
                    })
            }
            // arrays with null are unequal here; kustomize panics on them
            (Self::Array(items), Self::Array(others)) => {
                let is_equal =
                    |(item, other): (&Self, &Self)| *item != Self::Null && *other != Self::Null && item.equals(other);
                items.len() == others.len() && iter::zip(items, others).all(is_equal)
            }
            _ => false,
        }
    }

    /// Parses the texts of all scalars, and returns the document as JSON.
    ///
    /// # Errors
    ///
    /// If Go cannot parse a text as JSON, for example because a number is too large.
    pub(super) fn into_value(self) -> Result<Value, String> {
        Ok(match self {
            Self::Null | Self::WrittenNull => Value::Null,
            Self::Scalar(text) => go::json::parse(&text).map_err(|error| error.to_string())?,
            Self::Object(members) => {
                let member = |(key, value): (String, Self)| Ok((key, value.into_value()?));
                Value::Object(members.into_iter().map(member).collect::<Result<_, String>>()?)
            }
            Self::Array(items) => Value::Array(items.into_iter().map(Self::into_value).collect::<Result<_, _>>()?),
            Self::Unread(value) => value,
        })
    }

    /// Returns the JSON text of this value, without white space between tokens.
    pub(super) fn text(&self) -> String {
        match self {
            Self::Null | Self::WrittenNull => NULL.to_owned(),
            Self::Scalar(text) => text.to_string(),
            Self::Object(members) => {
                let member = |(key, value): (&String, &Self)| format!("{}:{}", Value::from(key.as_str()), value.text());
                format!("{{{}}}", members.iter().map(member).collect::<Vec<_>>().join(","))
            }
            Self::Array(items) => format!("[{}]", items.iter().map(Self::text).collect::<Vec<_>>().join(",")),
            Self::Unread(_) => self.as_read().text(),
        }
    }

    /// Counts the size of this JSON value against the memory limit of the build.
    ///
    /// # Errors
    ///
    /// If the limit is exceeded. The rest of the value is then not counted.
    pub(super) fn charge(&self, budget: &Budget) -> Result<(), Exceeded> {
        match self {
            Self::Null | Self::WrittenNull => budget.text(""),
            Self::Scalar(text) => budget.text(text),
            Self::Object(members) => {
                budget.text("")?;
                members.iter().try_for_each(|(key, value)| budget.text(key).and_then(|()| value.charge(budget)))
            }
            Self::Array(items) => {
                budget.text("")?;
                items.iter().try_for_each(|item| item.charge(budget))
            }
            Self::Unread(_) => self.as_read().charge(budget),
        }
    }
}

fn escaped(text: &str) -> String {
    ESCAPED.iter().fold(text.to_owned(), |text, (character, escape)| text.replace(*character, escape))
}
