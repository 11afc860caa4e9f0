//! Validates Kubernetes names: label keys, label values and object names.
//!
//! Source: `k8s.io/apimachinery/pkg/util/validation`.

/// Maximum length of a label name and of a label value, in bytes.
const MAX_LABEL_LENGTH: usize = 63;
/// Maximum length of a DNS subdomain, in bytes. Object names and the prefixes of label keys are DNS subdomains.
const MAX_SUBDOMAIN_LENGTH: usize = 253;

/// Returns whether a text is a valid label key: a name, optionally after a DNS subdomain and a slash.
pub fn is_label_key(text: &str) -> bool {
    text.split_once('/').map_or(is_qualified(text), |(prefix, name)| is_subdomain(prefix) && is_qualified(name))
}

/// Returns whether a text is a valid label value.
pub fn is_label_value(text: &str) -> bool {
    text.is_empty() || is_qualified(text)
}

/// Returns whether a text is a valid label name: letters and digits, with `-`, `_` and `.` between them.
pub fn is_qualified(text: &str) -> bool {
    text.len() <= MAX_LABEL_LENGTH && is_word(text, |byte| byte.is_ascii_alphanumeric(), |byte| b"-_.".contains(&byte))
}

/// Returns whether a text is a DNS subdomain: DNS labels separated by dots.
pub fn is_subdomain(text: &str) -> bool {
    text.len() <= MAX_SUBDOMAIN_LENGTH && text.split('.').all(is_dns_word)
}

/// Returns whether a text consists of lower-case letters and digits with dashes between them. It may have any length.
pub fn is_dns_word(text: &str) -> bool {
    is_word(text, |byte| byte.is_ascii_lowercase() || byte.is_ascii_digit(), |byte| byte == b'-')
}

/// Returns whether the first and the last byte of a text satisfy `is_letter`, and every other byte satisfies
/// `is_letter` or `is_inner`. Returns `false` for an empty text.
fn is_word(text: &str, is_letter: impl Fn(u8) -> bool, is_inner: impl Fn(u8) -> bool) -> bool {
    let is_end = |byte: Option<u8>| byte.is_some_and(&is_letter);
    is_end(text.bytes().next())
        && is_end(text.bytes().next_back())
        && text.bytes().all(|byte| is_letter(byte) || is_inner(byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accepts_exactly_the_names_that_kubernetes_accepts() {
        for key in ["app", "example.org/a_B.c-1", "a-b.c/x", &"x".repeat(63)] {
            assert!(is_label_key(key), "{key}");
        }
        for key in ["", "-a", "a-", "a/", "/a", "a/b/c", "A.b/c", "a..b/c", "a b", "ä", &"x".repeat(64)] {
            assert!(!is_label_key(key), "{key}");
        }
        assert!(is_label_value("") && is_label_value("x_y") && !is_label_value("a/b"));
        assert!(is_subdomain("a.b-c.1") && !is_subdomain("a.-b") && !is_subdomain(&"a".repeat(254)));
    }
}
