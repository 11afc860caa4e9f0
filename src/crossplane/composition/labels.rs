//! Checks of label keys and values, as in `k8s.io/apimachinery/pkg/util/validation`.

use super::problem::{Problem, Topic};
use super::reader::Reader;
use crate::admission::FieldPath;
use crate::names;

/// Reports an invalid label key. `at` is the path of the field that contains the key.
pub(super) fn check_key(reader: &mut Reader, key: &str, at: FieldPath) {
    let (prefix, name) = key.split_once('/').map_or((None, key), |(prefix, name)| (Some(prefix), name));
    let detail = if name.contains('/') {
        "not a valid label key: at most one '/' separates the prefix from the name"
    } else if !names::is_qualified(name) {
        "not a valid label key: use up to 63 letters, digits, '-', '_' and '.', with a letter or digit at both ends"
    } else if prefix.is_some_and(|prefix| !names::is_subdomain(prefix)) {
        "not a valid label key: the prefix before '/' must be a DNS name in lower case"
    } else {
        return;
    };
    reader.report(Problem::invalid(Topic::Label, at, &key.into(), detail));
}

/// Reports an invalid label value. `at` is the path of the field that contains the value.
pub(super) fn check_value(reader: &mut Reader, value: &str, at: FieldPath) {
    if names::is_label_value(value) {
        return;
    }
    let detail =
        "not a valid label value: use up to 63 letters, digits, '-', '_' and '.', with a letter or digit at both ends";
    let problem = Problem::invalid(Topic::Label, at, &value.into(), detail);
    reader.report(match value.contains(['.', '[']) {
        true => problem
            .help("to read the value from the composite, use type: FromCompositeFieldPath with valueFromFieldPath"),
        false => problem,
    });
}
