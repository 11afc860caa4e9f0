//! The types of JSON values, with their names in JSON Schema.

use std::fmt;

use serde_json::Value;

/// A set of JSON types, such as string and integer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Types(u8);

const NAMES: [&str; 7] = ["null", "boolean", "integer", "number", "string", "array", "object"];

impl Types {
    /// The set of all types.
    pub const ALL: Self = Self(0x7f);
    /// The empty set of types.
    pub(super) const NONE: Self = Self(0);

    /// Returns the set of types for a type name of JSON Schema; `None` if the name is unknown. The set for `number`
    /// also contains integers.
    pub fn named(name: &str) -> Option<Self> {
        let at = NAMES.iter().position(|known| *known == name)?;
        Some(Self(if name == "number" { 0b1100 } else { 1 << at }))
    }

    /// Returns the type of a value, as a set with one type.
    pub fn of(value: &Value) -> Self {
        Self(match value {
            Value::Null => 1,
            Value::Bool(_) => 2,
            // Merging turns every number into a float64, so 1.0 is an integer like 1.
            Value::Number(number) if number.as_f64().is_some_and(|number| number.fract() == 0.0) => 4,
            Value::Number(_) => 8,
            Value::String(_) => 16,
            Value::Array(_) => 32,
            Value::Object(_) => 64,
        })
    }

    /// Returns the union of two sets of types.
    #[must_use]
    pub(super) fn or(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Returns whether two sets of types have a common type.
    pub fn meets(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// Returns the names of the types. If `number` is in the set, `integer` is left out.
    pub fn names(self) -> Vec<&'static str> {
        let is_in = |at: &usize| self.0 & (1 << at) != 0;
        let all: Vec<_> = (0..NAMES.len()).filter(is_in).map(|at| NAMES[at]).collect();
        let is_number = all.contains(&"number");
        all.into_iter().filter(|name| !(is_number && *name == "integer")).collect()
    }
}

impl fmt::Display for Types {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.names().join(" or "))
    }
}
