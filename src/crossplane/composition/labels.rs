//! Checks of label keys and values, as in `k8s.io/apimachinery/pkg/util/validation`.

use super::problem::{Problem, Topic};
use super::reader::Reader;
use crate::admission::FieldPath;
use crate::names;

/// Reports an invalid label key.
pub(super) fn check_key(reader: &mut Reader, key: &str, at: FieldPath) {
    let (prefix, name) = key.split_once('/').map_or((None, key), |(prefix, name)| (Some(prefix), name));
    let detail = if name.contains('/') {
        "no label can have this key: at most one '/' parts a prefix from the name"
    } else if !names::is_qualified(name) {
        "no label can have this key: up to 63 letters, digits, '-', '_' and '.', a letter or digit first and last"
    } else if prefix.is_some_and(|prefix| !names::is_subdomain(prefix)) {
        "no label can have this key: what stands before '/' must be a DNS name in lower case"
    } else {
        return;
    };
    reader.report(Problem::invalid(Topic::Label, at, &key.into(), detail));
}

/// Reports an invalid label value.
pub(super) fn check_value(reader: &mut Reader, value: &str, at: FieldPath) {
    if names::is_label_value(value) {
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
