//! Formats counts for the texts of reports, with the singular or plural of a noun, such as `1 file` or `3 files`.

/// Returns a number with its noun in singular or plural, such as `3 files`.
pub(super) fn plural(count: usize, word: &str) -> String {
    match word.strip_suffix('y') {
        _ if count == 1 => format!("1 {word}"),
        Some(stem) => format!("{count} {stem}ies"),
        None => format!("{count} {word}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::plural;

    #[test]
    fn nouns_agree_with_their_numbers() {
        let words =
            [plural(1, "file"), plural(0, "file"), plural(1, "other repository"), plural(3, "other repository")];
        assert_eq!(words, ["1 file", "0 files", "1 other repository", "3 other repositories"]);
    }
}
