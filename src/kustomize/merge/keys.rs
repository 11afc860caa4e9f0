//! The values of merge keys. Elements of two lists are merged if their merge keys have the same values.
//!
//! Source: `mergeValues`, `match` and `validateKeys` in `kyaml/yaml/walk/associative_sequence.go`.

/// The merge key values of one list element, in the order of the merge keys. An empty text means that the element lacks
/// the key.
pub(super) type Values = Vec<String>;

/// Fills in missing merge key values of list elements. Each element of `all` contains the values of one list element,
/// and an empty string is a missing value.
///
/// A missing value is copied from a matching list element. For example, `["80", ""]` becomes `["80", "TCP"]` if there
/// is also `["80", "TCP"]`. Two list elements match if they meet both of these conditions:
///
/// - For at least one merge key, both elements have the same value, or both lack the key.
/// - There is no merge key for which both elements have a value and the values differ.
pub(super) fn unite(all: &mut [Values]) {
    for first in 0..all.len() {
        let own = all[first].clone();
        for second in 0..all.len() {
            if let Some(united) = united(&own, &all[second]) {
                all[first].clone_from(&united);
                all[second] = united;
            }
        }
    }
}

fn united(left: &Values, right: &Values) -> Option<Values> {
    let is_compatible = |(left, right): (&String, &String)| left == right || left.is_empty() || right.is_empty();
    let mut pairs = left.iter().zip(right);
    if left.len() != right.len() || !pairs.clone().all(is_compatible) || !pairs.any(|(left, right)| left == right) {
        return None;
    }
    Some(left.iter().zip(right).map(|(left, right)| if left.is_empty() { right } else { left }.clone()).collect())
}

/// Returns the merge keys that have a value in at least one list element, and the values of these keys in one element.
/// `keys` contains all merge keys. `all` contains the values of every list element, and `values` those of this one
/// element. If no list element has a value for any key, returns `keys` and `values` unchanged.
pub(super) fn valid<'k, 'v>(all: &[Values], values: &'v Values, keys: &[&'k str]) -> (Vec<&'k str>, Vec<&'v str>) {
    let is_valid = |at: usize| all.iter().any(|values| values.get(at).is_some_and(|value| !value.is_empty()));
    let none = !(0..keys.len()).any(is_valid);
    let valid_keys = keys.iter().enumerate().filter(|(at, _)| none || is_valid(*at)).map(|(_, key)| *key);
    let valid_values = values.iter().enumerate().filter(|(at, _)| none || is_valid(*at));
    (valid_keys.collect(), valid_values.map(|(_, value)| value.as_str()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(texts: &[[&str; 2]]) -> Vec<Values> {
        texts.iter().map(|pair| pair.map(str::to_owned).to_vec()).collect()
    }

    #[test]
    fn absent_values_are_taken_from_others() {
        let mut all = values(&[["80", "TCP"], ["80", ""], ["81", ""]]);
        unite(&mut all);
        assert_eq!(all, values(&[["80", "TCP"], ["80", "TCP"], ["81", ""]]));
    }

    #[test]
    fn equal_absence_counts_as_agreement() {
        let mut all = values(&[["80", ""], ["", ""]]);
        unite(&mut all);
        assert_eq!(all, values(&[["80", ""], ["80", ""]]));
    }

    #[test]
    fn keys_without_values_are_left_out() {
        let all = values(&[["80", ""], ["81", ""]]);
        assert_eq!(valid(&all, &all[0], &["port", "protocol"]), (vec!["port"], vec!["80"]));
        let none = values(&[["", ""]]);
        assert_eq!(valid(&none, &none[0], &["port", "protocol"]), (vec!["port", "protocol"], vec!["", ""]));
    }
}
