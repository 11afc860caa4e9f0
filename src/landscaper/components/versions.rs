//! Finds the existing versions closest to a version that does not exist.

use std::cmp::Ordering;

/// Maximum number of suggested versions: the next lower one, the next higher one, and the latest.
const NAMED: usize = 3;

/// Returns the versions in `existing` that are closest to `wanted`: the next lower one, the next higher one, and the
/// latest.
pub fn nearest(wanted: &str, existing: &[String]) -> Vec<String> {
    let mut sorted: Vec<&String> = existing.iter().filter(|version| *version != wanted).collect();
    sorted.sort_by(|a, b| compare(a, b));
    sorted.dedup();
    let at = sorted.partition_point(|version| compare(version, wanted) == Ordering::Less);
    let mut nearest: Vec<&String> = Vec::new();
    for place in [at.checked_sub(1), Some(at), sorted.len().checked_sub(1)].into_iter().flatten() {
        if let Some(version) = sorted.get(place).filter(|version| !nearest.contains(version)) {
            nearest.push(version);
        }
    }
    nearest.into_iter().take(NAMED).cloned().collect()
}

/// Compares two versions by the precedence of Semantic Versioning, with or without a leading `v`. Identifiers that are
/// not numbers compare alphabetically.
fn compare(a: &str, b: &str) -> Ordering {
    let parts = |version: &str| {
        let version = version.trim_start_matches('v').split('+').next().unwrap_or_default().to_owned();
        match version.split_once('-') {
            Some((numbers, pre)) => (identifiers(numbers), false, identifiers(pre)),
            None => (identifiers(&version), true, Vec::new()),
        }
    };
    parts(a).cmp(&parts(b)).then_with(|| a.cmp(b))
}

/// Splits a version at its dots into identifiers that compare as in Semantic Versioning: numbers by value, and numbers
/// before words. Each identifier is a tuple: whether it is a word, its value if it is a number, and its text if it is a
/// word.
fn identifiers(text: &str) -> Vec<(bool, u64, String)> {
    let identifier = |part: &str| match part.parse() {
        Ok(number) => (false, number, String::new()),
        Err(_) => (true, 0, part.to_owned()),
    };
    text.split('.').map(identifier).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn returns_the_neighbours_and_the_latest() {
        let existing = ["v1.10.0", "v1.2.0", "v1.9.0", "v2.0.0", "v2.0.0-rc.1"].map(str::to_owned);
        assert_eq!(nearest("v1.9.1", &existing), ["v1.9.0", "v1.10.0", "v2.0.0"]);
        assert_eq!(nearest("v2.0.1", &existing), ["v2.0.0"]);
        assert_eq!(nearest("v2.0.0-rc.2", &existing), ["v2.0.0-rc.1", "v2.0.0"]);
        assert_eq!(nearest("v0.1.0", &existing), ["v1.2.0", "v2.0.0"]);
        assert_eq!(nearest("main", &["v1".to_owned(), "latest".to_owned()]), ["latest"]);
        assert!(nearest("v1", &[]).is_empty());
    }
}
