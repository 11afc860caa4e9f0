//! Computes an upper limit for the size of a printed value, without printing the value.

use super::Value;
use super::error::MAX_KEY;

/// Maximum number of spaces that one level of nesting adds to the indentation of a line.
const INDENT: usize = 2;
/// Upper limit for the number of bytes that are printed for one byte of ASCII text. The longest output has four bytes:
/// an escape such as `\x01`. The value 6 leaves a reserve of two bytes. Indentation is counted separately.
const ESCAPE: usize = 6;
/// Maximum number of bytes around a value or a key: quotes, `- `, `? `, `: `, the header of a block such as `|2-`, and
/// a line break. Indentation is counted separately.
const AROUND: usize = 16;
/// Maximum length of a printed number or word, such as `-1.7976931348623157e+308` or `false`.
const WORD: usize = 32;
/// Maximum number of bytes that Go's JSON encoder writes for one byte of a key. For `<`, it writes `\u003c`.
const JSON_ESCAPE: usize = 6;

/// Returns an upper limit for the size of the printed value, in bytes. Returns `None` if printing the value may fail:
/// if it contains a text that is not ASCII, a long key, or a number that is not finite.
pub fn max_size(value: &Value<'_>) -> Option<usize> {
    nested(value, 1)
}

/// Returns an upper limit for the size of a printed value, in bytes. `None` if printing the value may
/// fail. `depth` is the number of lists and mappings around the value, plus 1.
fn nested(value: &Value<'_>, depth: usize) -> Option<usize> {
    let around = AROUND + 2 * INDENT * depth;
    let size = match value {
        Value::Null | Value::Bool(_) | Value::Int(_) | Value::Uint(_) => WORD,
        Value::Float(float) => float.is_finite().then_some(WORD)?,
        Value::Text(value) => text(value, depth)?,
        Value::List(items) => items.iter().try_fold(0, |size, item| Some(size + nested(item, depth + 1)?))?,
        Value::Map(entries) => entries.iter().try_fold(0, |size, (name, value)| {
            let key = text(name, depth).filter(|_| name.len() * JSON_ESCAPE + 2 <= MAX_KEY)?;
            Some(size + key + around + nested(value, depth + 1)?)
        })?,
    };
    Some(size + around)
}

fn text(text: &str, depth: usize) -> Option<usize> {
    let is_plain = text.bytes().all(|byte| byte < 0x7f);
    is_plain.then(|| text.len() * (ESCAPE + INDENT * (depth + 1)))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::Value as Json;

    use super::*;
    use crate::kustomize::emit::document;

    fn values() -> impl Strategy<Value = Json> {
        let text = prop_oneof!["[ -~\n\t\u{1}]{0,12}", "[a \n']{0,200}", "[\u{7f}-\u{9f}é😀]{1,3}"];
        let leaf = prop_oneof![
            Just(Json::Null),
            any::<bool>().prop_map(Json::from),
            any::<i64>().prop_map(Json::from),
            any::<f64>().prop_map(Json::from),
            text.clone().prop_map(Json::from),
        ];
        leaf.prop_recursive(12, 64, 4, move |inner| {
            let members = proptest::collection::btree_map(text.clone(), inner.clone(), 0..4);
            prop_oneof![
                proptest::collection::vec(inner, 0..4).prop_map(Json::from),
                members.prop_map(|members| Json::Object(members.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn a_value_with_a_known_size_can_be_printed(json in values()) {
            let (value, mut out) = (Value::from(&json), String::new());
            if let Some(size) = max_size(&value) {
                prop_assert_eq!(document(&value, &mut out), Ok(()));
                prop_assert!(out.len() <= size, "{} > {size}:\n{out}", out.len());
            }
        }
    }

    #[test]
    fn ordinary_objects_have_a_known_size() {
        let object =
            serde_json::json!({"kind": "ConfigMap", "data": {"a": "b\n", "c": ""}, "list": [1, 1.5, null, true]});
        assert!(max_size(&Value::from(&object)).is_some());
        for odd in ["\u{7f}", "é"] {
            assert_eq!(max_size(&Value::Text(odd.into())), None);
        }
        assert_eq!(max_size(&Value::Float(f64::NAN)), None);
        assert_eq!(max_size(&Value::Map(vec![("a".repeat(MAX_KEY).into(), Value::Null)])), None);
    }
}
