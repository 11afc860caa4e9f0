//! Validates names of objects, labels and annotations, and describes what is wrong with them.
//!
//! Source: `k8s.io/apimachinery/pkg/util/validation`.

use crate::names;

/// Describes the mistakes in a text that must be a DNS label: at most 63 lowercase letters, digits and dashes, with no
/// dash at either end. Returns an empty list if the text is valid.
pub(in crate::landscaper) fn label(text: &str) -> Vec<String> {
    let mut problems = Vec::new();
    if text.len() > 63 {
        problems.push(format!("it has {} characters; the maximum is 63", text.len()));
    }
    if text.contains('.') {
        problems.push("it cannot contain dots".to_owned());
    } else if !names::is_dns_word(text) {
        problems.push("use lowercase letters, digits and dashes, with no dash at the start or end".to_owned());
    }
    problems
}

/// Describes the mistake in the key of a label or an annotation; `None` if the key is valid. A valid key is a name with
/// an optional prefix, such as `example.org/name`.
pub(in crate::landscaper) fn key(text: &str) -> Option<&'static str> {
    let (prefix, name) = match text.split_once('/') {
        Some((_, name)) if name.contains('/') => return Some("it can contain only one slash"),
        Some((prefix, name)) => (Some(prefix), name),
        None => (None, text),
    };
    if prefix.is_some_and(|prefix| !names::is_subdomain(prefix)) {
        return Some("the part before the slash is not a DNS name");
    }
    if name.is_empty() || name.len() > 63 {
        return Some("its name must have 1 to 63 characters");
    }
    (!names::is_qualified(name)).then_some(
        "its name can contain letters, digits, '-', '_' and '.', and must start and end with a letter or digit",
    )
}

/// Describes the mistake in the value of a label; `None` if the value is valid.
pub(in crate::landscaper) fn label_value(text: &str) -> Option<&'static str> {
    (!names::is_label_value(text)).then_some(
        "it can have up to 63 letters, digits, '-', '_' and '.', and must start and end with a letter or digit",
    )
}
