//! Items: the intermediate results in the evaluation of a JSONPath.

use serde_json::{Number, Value};

/// An intermediate result in the evaluation of a JSONPath: a value, and the iterations over maps that led to the value.
/// The iterations are recorded because Go iterates over maps in random order.
#[derive(Debug, Clone)]
pub(super) struct Item<'a> {
    pub(super) datum: Datum<'a>,
    /// The ids of the iterations over maps that led to this value. Go iterates over a map in random order. If two
    /// values have an id in common, either of them may come first. An iteration over a map with only one member has no
    /// id.
    pub(super) shuffles: Vec<u32>,
}

/// An intermediate value in the evaluation of a JSONPath: a part of the object, or a literal in the path.
#[derive(Debug, Clone, Copy)]
pub(super) enum Datum<'a> {
    Value(&'a Value),
    Text(&'a str),
    Int(i64),
    Float(f64),
    Bool(bool),
    /// One byte of a string. As in client-go, the JSONPath operators `*` and `..` split a string into its bytes.
    Byte(u8),
    /// No value. It represents a `null` element of a `range` loop.
    ///
    /// It is also the current item when the body of a `range` loop over an empty list is evaluated. The body is
    /// evaluated once, only to find the keyword `end` of the loop. The results are discarded.
    Nothing,
}

impl<'a> Item<'a> {
    pub(super) fn new(datum: Datum<'a>) -> Self {
        Self { datum, shuffles: Vec::new() }
    }

    /// Returns an item with the value `datum`, which is inside the value of this item. The new item gets a copy of
    /// [`Item::shuffles`], because the same iterations over maps led to it.
    pub(super) fn with(&self, datum: Datum<'a>) -> Self {
        Self { datum, shuffles: self.shuffles.clone() }
    }

    pub(super) fn is_null(&self) -> bool {
        matches!(self.datum, Datum::Value(Value::Null))
    }

    /// Reports whether the order of two items depends on the random order in which Go iterates over a map.
    pub(super) fn is_shuffled_with(&self, other: &Self) -> bool {
        self.shuffles.iter().any(|shuffle| other.shuffles.contains(shuffle))
    }

    /// Returns the values inside this item: the members of a map, the elements of a list or the bytes of a string.
    ///
    /// `shuffle` returns a new id for an iteration over a map. If this item is a map with several members, this
    /// function calls `shuffle` once, and adds the id to [`Item::shuffles`] of each member. The id shows that the
    /// members have no fixed order, because Go iterates over a map in random order.
    pub(super) fn inside(&self, mut shuffle: impl FnMut() -> u32) -> Vec<Self> {
        match self.datum {
            Datum::Value(Value::Object(members)) => {
                let number = (members.len() > 1).then(&mut shuffle);
                let member = |value| {
                    let mut item = self.with(Datum::Value(value));
                    item.shuffles.extend(number);
                    item
                };
                members.values().map(member).collect()
            }
            Datum::Value(Value::Array(items)) => items.iter().map(|item| self.with(Datum::Value(item))).collect(),
            Datum::Value(Value::String(text)) => text.bytes().map(|byte| self.with(Datum::Byte(byte))).collect(),
            Datum::Text(text) => text.bytes().map(|byte| self.with(Datum::Byte(byte))).collect(),
            _ => Vec::new(),
        }
    }

    pub(super) fn to_value(&self) -> Value {
        match self.datum {
            Datum::Value(value) => value.clone(),
            Datum::Text(text) => text.into(),
            Datum::Int(int) => int.into(),
            Datum::Float(float) => Number::from_f64(float).map_or(Value::Null, Value::Number),
            Datum::Bool(bool) => bool.into(),
            Datum::Byte(byte) => byte.into(),
            Datum::Nothing => Value::Null,
        }
    }

    /// Returns the Go type of the value, such as `int64`, for messages.
    pub(super) fn type_name(&self) -> &'static str {
        match self.datum {
            Datum::Value(Value::Object(_)) => "map[string]interface {}",
            Datum::Value(Value::Array(_)) => "[]interface {}",
            Datum::Value(Value::String(_)) | Datum::Text(_) => "string",
            Datum::Value(Value::Bool(_)) | Datum::Bool(_) => "bool",
            Datum::Value(Value::Number(number)) if number.is_i64() => "int64",
            Datum::Value(Value::Number(_)) | Datum::Float(_) => "float64",
            Datum::Int(_) => "int",
            Datum::Byte(_) => "uint8",
            Datum::Value(Value::Null) | Datum::Nothing => "<nil>",
        }
    }
}
