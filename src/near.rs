//! "Did you mean": the nearest of some names.

/// More changes than a third of the letters make another word.
const SHARE: usize = 3;
/// Longer names are not compared: the time grows with the square.
const LONGEST: usize = 100;

/// The name that differs least from `from`, if the difference can be a slip.
pub fn nearest<'a>(from: &str, among: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    if from.len() > LONGEST {
        return None;
    }
    let wanted = from.to_lowercase();
    let scored = among.filter(|name| name.len() <= LONGEST).map(|name| (distance(&wanted, &name.to_lowercase()), name));
    let (changes, name) = scored.min_by_key(|(changes, _)| *changes)?;
    (changes <= (wanted.chars().count() / SHARE).max(1)).then_some(name)
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
}
