//! Objects without what no rule reads.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::{Map, Value};

/// Written for every object by the API server, often half of its size, and made of hundreds of small maps: reading it
/// would cost more than all the rest.
const LEFT_OUT: &[&str] = &["metadata", "managedFields"];

/// Reads an object without `metadata.managedFields`.
///
/// # Errors
/// For whatever is not as usual: no JSON, no object, metadata that is none. [`super::json::parse`] says what it is.
pub(super) fn parse(text: &str) -> serde_json::Result<Value> {
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let object = Without(LEFT_OUT).deserialize(&mut deserializer)?;
    deserializer.end()?;
    Ok(object)
}

/// An object without the member at this path.
struct Without(&'static [&'static str]);

impl<'de> DeserializeSeed<'de> for Without {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Without {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let mut members = Map::new();
        while let Some(key) = map.next_key::<String>()? {
            match self.0 {
                [last] if key == *last => drop(map.next_value::<IgnoredAny>()?),
                [first, rest @ ..] if key == *first => drop(members.insert(key, map.next_value_seed(Without(rest))?)),
                _ => drop(members.insert(key, map.next_value()?)),
            }
        }
        Ok(Value::Object(members))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn managed_fields_are_left_out_and_nothing_else() {
        let text =
            r#"{"a":{"managedFields":1},"metadata":{"name":"n","managedFields":[{"f:a":{}}]},"managedFields":2}"#;
        let lean = json!({"a": {"managedFields": 1}, "metadata": {"name": "n"}, "managedFields": 2});
        assert_eq!(parse(text).unwrap(), lean);
    }

    #[test]
    fn what_is_not_as_usual_is_for_others() {
        for text in ["[]", "{", "{} {}", r#"{"metadata":null}"#, r#"{"metadata":{"managedFields":}}"#] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
