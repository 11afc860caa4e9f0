//! Computes suggestions ("did you mean"): names that are similar to a wrong name, by edit distance.

use std::collections::BTreeSet;

use strsim::levenshtein;

/// Maximum share of characters that may differ between similar names, as a divisor: 3 means a third of the characters.
/// One character may always differ.
const FRACTION: usize = 3;
/// Maximum length of names that are compared, because the time grows with the square of the length.
const MAX_LENGTH: usize = 100;

/// Returns the name that is most similar to `to`. Ignores case. `None` if no name is similar enough: at most a third of
/// the characters may differ, but one character may always differ.
pub fn most_similar<'a>(to: &str, among: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    if to.len() > MAX_LENGTH {
        return None;
    }
    let wanted = to.to_lowercase();
    let scored =
        among.filter(|name| name.len() <= MAX_LENGTH).map(|name| (levenshtein(&wanted, &name.to_lowercase()), name));
    let (distance, name) = scored.min_by_key(|(distance, _)| *distance)?;
    (distance <= (wanted.chars().count() / FRACTION).max(1)).then_some(name)
}

/// Returns at most `max` of the names, without duplicates. The names most similar to `to` come first. Equally similar
/// names are in alphabetical order.
pub fn by_similarity<'a>(to: &str, names: impl Iterator<Item = &'a str>, max: usize) -> Vec<&'a str> {
    let distance = |name: &str| if name.len().max(to.len()) > MAX_LENGTH { usize::MAX } else { levenshtein(to, name) };
    let sorted: BTreeSet<_> = names.map(|name| (distance(name), name)).collect();
    sorted.into_iter().map(|(_, name)| name).take(max).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suggests_names_with_typos_but_no_other_words() {
        let fields = ["resources", "components", "crds"];
        assert_eq!(most_similar("resource", fields.into_iter()), Some("resources"));
        assert_eq!(most_similar("Component", fields.into_iter()), Some("components"));
        assert_eq!(most_similar("spec", fields.into_iter()), None);
    }

    #[test]
    fn sorts_by_similarity_with_long_names_last() {
        let long = "zone".repeat(MAX_LENGTH);
        let names = ["region", "zones", &long, "done", "bone", "zones"];
        assert_eq!(by_similarity("zone", names.into_iter(), 5), ["bone", "done", "zones", "region", &long]);
        assert_eq!(by_similarity("zone", names.into_iter(), 1), ["bone"]);
    }
}
