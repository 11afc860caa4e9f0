//! What is wrong with a name.
//!
//! Source: `k8s.io/apimachinery/pkg/util/validation`.

use crate::names;

/// What is wrong with a DNS label: at most 63 small letters, digits and dashes, none of these at the ends.
pub(super) fn label(text: &str) -> Vec<String> {
    let mut problems = Vec::new();
    if text.len() > 63 {
        problems.push(format!("it has {} characters, and may have 63", text.len()));
    }
    if text.contains('.') {
        problems.push("it may not contain dots".to_owned());
    } else if !names::is_dns_word(text) {
        problems.push("it may have small letters, digits and dashes, and no dash at its ends".to_owned());
    }
    problems
}

/// What is wrong with the key of a label or an annotation: a name, with a DNS name and a slash before it if wanted.
pub(super) fn key(text: &str) -> Option<&'static str> {
    let (prefix, name) = match text.split_once('/') {
        Some((_, name)) if name.contains('/') => return Some("it may have one slash"),
        Some((prefix, name)) => (Some(prefix), name),
        None => (None, text),
    };
    if prefix.is_some_and(|prefix| !names::is_subdomain(prefix)) {
        return Some("before its slash there is no DNS name");
    }
    if name.is_empty() || name.len() > 63 {
        return Some("its name must have 1 to 63 characters");
    }
    (!names::is_qualified(name))
        .then_some("its name may have letters, digits, '-', '_' and '.', and begins and ends with the first two")
}

/// What is wrong with the value of a label.
pub(super) fn label_value(text: &str) -> Option<&'static str> {
    (!names::is_label_value(text))
        .then_some("it may have 63 letters, digits, '-', '_' and '.', and begins and ends with the first two")
}
