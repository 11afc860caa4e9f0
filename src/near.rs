//! "Did you mean": the nearest of some names, and those that are near.

use std::collections::BTreeSet;

/// More changes than a third of the letters make another word.
const SHARE: usize = 3;
/// Longer names are not compared: the time grows with the square.
const LONGEST: usize = 100;

/// Returns the name that differs least from `from`, if the difference can be a slip.
pub fn nearest<'a>(from: &str, among: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    if from.len() > LONGEST {
        return None;
    }
    let wanted = from.to_lowercase();
    let scored = among.filter(|name| name.len() <= LONGEST).map(|name| (distance(&wanted, &name.to_lowercase()), name));
    let (changes, name) = scored.min_by_key(|(changes, _)| *changes)?;
    (changes <= (wanted.chars().count() / SHARE).max(1)).then_some(name)
}

/// At most `most` of the names, each once: the one that differs least first, equally near ones in their order.
pub fn nearest_first<'a>(to: &str, names: impl Iterator<Item = &'a str>, most: usize) -> Vec<&'a str> {
    let far = |name: &str| if name.len().max(to.len()) > LONGEST { usize::MAX } else { distance(to, name) };
    let sorted: BTreeSet<_> = names.map(|name| (far(name), name)).collect();
    sorted.into_iter().map(|(_, name)| name).take(most).collect()
}

/// How many letters must be added, left out or changed.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (at, letter) in a.chars().enumerate() {
        let mut above_left = std::mem::replace(&mut row[0], at + 1);
        for (column, other) in b.iter().enumerate() {
            let changed = above_left + usize::from(letter != *other);
            above_left = row[column + 1];
            row[column + 1] = changed.min(above_left + 1).min(row[column] + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_is_recognised_and_another_word_is_not() {
        let fields = ["resources", "components", "crds"];
        assert_eq!(nearest("resource", fields.into_iter()), Some("resources"));
        assert_eq!(nearest("Component", fields.into_iter()), Some("components"));
        assert_eq!(nearest("spec", fields.into_iter()), None);
    }

    #[test]
    fn the_nearest_comes_first_and_long_names_last() {
        let long = "zone".repeat(LONGEST);
        let names = ["region", "zones", &long, "done", "bone", "zones"];
        assert_eq!(nearest_first("zone", names.into_iter(), 5), ["bone", "done", "zones", "region", &long]);
        assert_eq!(nearest_first("zone", names.into_iter(), 1), ["bone"]);
    }
}
