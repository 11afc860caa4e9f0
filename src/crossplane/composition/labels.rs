//! What labels and names of objects may be, as `k8s.io/apimachinery/pkg/util/validation` has it.

use super::problem::{Problem, Topic};
use super::reader::Reader;
use crate::admission::FieldPath;

/// The longest name in a key, and the longest value.
const LONGEST: usize = 63;
/// The longest DNS subdomain: the prefix of a key, the name of an object.
const LONGEST_SUBDOMAIN: usize = 253;

/// Says what is wrong with the key of a label.
pub(super) fn check_key(reader: &mut Reader, key: &str, at: FieldPath) {
    let (prefix, name) = key.split_once('/').map_or((None, key), |(prefix, name)| (Some(prefix), name));
    let detail = if name.contains('/') {
        "no label can have this key: at most one '/' parts a prefix from the name"
    } else if name.is_empty() || !is_qualified(name) {
        "no label can have this key: up to 63 letters, digits, '-', '_' and '.', a letter or digit first and last"
    } else if prefix.is_some_and(|prefix| !is_object_name(prefix)) {
        "no label can have this key: what stands before '/' must be a DNS name in lower case"
    } else {
        return;
    };
    reader.report(Problem::invalid(Topic::Label, at, &key.into(), detail));
}

/// Says what is wrong with the value of a label.
pub(super) fn check_value(reader: &mut Reader, value: &str, at: FieldPath) {
    if is_value(value) {
        return;
    }
    let detail =
        "no label can have this value: up to 63 letters, digits, '-', '_' and '.', a letter or digit first and last";
    let problem = Problem::invalid(Topic::Label, at, &value.into(), detail);
    reader.report(match value.contains(['.', '[']) {
        true => problem
            .help("to read the value from the composite, write type: FromCompositeFieldPath with valueFromFieldPath"),
        false => problem,
    });
}

/// Whether a label can have a value.
pub(crate) fn is_value(value: &str) -> bool {
    value.is_empty() || is_qualified(value)
}

fn is_qualified(text: &str) -> bool {
    let ends = [text.chars().next(), text.chars().last()];
    text.len() <= LONGEST
        && ends.iter().all(|end| end.is_some_and(|end| end.is_ascii_alphanumeric()))
        && text.chars().all(|c| c.is_ascii_alphanumeric() || ['-', '_', '.'].contains(&c))
}

/// Whether an object can have a name: a DNS subdomain.
pub(super) fn is_object_name(name: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    let is_part = |part: &str| {
        part.starts_with(is_plain) && part.ends_with(is_plain) && part.chars().all(|c| is_plain(c) || c == '-')
    };
    name.len() <= LONGEST_SUBDOMAIN && name.split('.').all(is_part)
}
