//! Sorts the keys of a mapping in go-yaml v2's natural order, such as `a2` before `a10`.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::sync::LazyLock;

use regex::Regex;

use super::Value;

/// Returns the entries of a mapping in the order in which kustomize prints them.
///
/// The order is not transitive, so the sort of the standard library may panic. This function uses its own merge sort,
/// which always terminates.
pub(in crate::kustomize) fn sorted<'v, 'a>(
    entries: &'v [(Cow<'a, str>, Value<'a>)],
) -> Vec<&'v (Cow<'a, str>, Value<'a>)> {
    let mut sorted: Vec<_> = entries.iter().collect();
    if !sorted.is_sorted_by(|left, right| precedes(&left.0, &right.0)) {
        merge_sort(&mut sorted);
    }
    sorted
}

fn merge_sort<'a>(entries: &mut Vec<&(Cow<'a, str>, Value<'a>)>) {
    if entries.len() < 2 {
        return;
    }
    let mut right = entries.split_off(entries.len() / 2);
    merge_sort(entries);
    merge_sort(&mut right);
    let (left, right) = (std::mem::take(entries), right);
    let (mut left, mut right) = (left.into_iter().peekable(), right.into_iter().peekable());
    while let (Some(first), Some(second)) = (left.peek(), right.peek()) {
        let taken = if precedes(&second.0, &first.0) { right.next() } else { left.next() };
        entries.extend(taken);
    }
    entries.extend(left.chain(right));
}

/// Returns whether the key `left` is printed before the key `right`.
///
/// Source: `keyList.Less` in go-yaml v2.
fn precedes(left: &str, right: &str) -> bool {
    let common = common_prefix(left, right);
    let (Some(first), Some(second)) = (left[common..].chars().next(), right[common..].chars().next()) else {
        return left.len() < right.len();
    };
    match (is_letter(first), is_letter(second)) {
        (true, true) => first < second,
        (false, false) => numbers(left, right, common).unwrap_or_else(|| first.cmp(&second)).is_lt(),
        (_, second_is_letter) => second_is_letter,
    }
}

/// Returns the length of the common prefix of two texts, in bytes. The prefix contains only whole characters.
fn common_prefix(left: &str, right: &str) -> usize {
    left.char_indices()
        .zip(right.chars())
        .find(|((_, first), second)| first != second)
        .map_or_else(|| left.len().min(right.len()), |((at, _), _)| at)
}

/// Compares the numbers that begin at byte `at` in both texts: first by value, then by number of digits. Returns `None`
/// if the values and the numbers of digits are equal.
fn numbers(left: &str, right: &str, at: usize) -> Option<Ordering> {
    let (left_tail, right_tail) = (&left[at..], &right[at..]);
    let zero = left_tail.starts_with('0') || right_tail.starts_with('0');
    // a zero after a nonzero digit is not a leading zero: with 1 as the start, the zero changes the number
    let start = i64::from(zero && continues_number(&left[..at]));
    let (left, left_length) = number(left_tail, start);
    let (right, right_length) = number(right_tail, start);
    Some(left.cmp(&right).then(left_length.cmp(&right_length))).filter(|order| order.is_ne())
}

fn continues_number(before: &str) -> bool {
    before.chars().rev().take_while(|char| is_digit(*char)).any(|char| char != '0')
}

/// Parses the decimal digits at the start of `text` as a number. Returns the number and the count of digits. Overflow
/// wraps around, as in Go.
///
/// The digits are appended to the number `start`. For example, `05` results in 5 if `start` is 0, and in 105 if `start`
/// is 1. So leading zeros change the number only if `start` is 1.
fn number(text: &str, start: i64) -> (i64, usize) {
    text.chars().take_while(|char| is_digit(*char)).fold((start, 0), |(number, length), digit| {
        let value = i64::from(u32::from(digit)) - i64::from(u32::from('0'));
        (number.wrapping_mul(10).wrapping_add(value), length + 1)
    })
}

/// Returns whether a character is a letter, as Go's `unicode.IsLetter` does.
fn is_letter(char: char) -> bool {
    if char.is_ascii() { char.is_ascii_alphabetic() } else { in_category(&LETTER, char) }
}

/// Returns whether a character is a decimal digit, as Go's `unicode.IsDigit` does.
fn is_digit(char: char) -> bool {
    if char.is_ascii() { char.is_ascii_digit() } else { in_category(&DIGIT, char) }
}

static LETTER: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"^\p{L}").ok());
static DIGIT: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"^\p{Nd}").ok());

fn in_category(category: &Option<Regex>, char: char) -> bool {
    category.as_ref().is_some_and(|category| category.is_match(char.encode_utf8(&mut [0; 4])))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sorted_keys(keys: &[&'static str]) -> Vec<String> {
        let entries: Vec<_> = keys.iter().map(|key| (Cow::Borrowed(*key), Value::Null)).collect();
        sorted(&entries).into_iter().map(|(key, _)| key.to_string()).collect()
    }

    #[test]
    fn sorts_numbers_within_keys_by_value() {
        assert_eq!(sorted_keys(&["data10", "data9", "data09"]), ["data9", "data09", "data10"]);
        assert_eq!(sorted_keys(&["2", "01", "1", "100", "10"]), ["1", "01", "2", "10", "100"]);
    }

    #[test]
    fn sorts_other_characters_before_letters() {
        assert_eq!(sorted_keys(&["ab", "a-b", "a", "_x", "A"]), ["_x", "A", "a", "a-b", "ab"]);
        assert_eq!(sorted_keys(&["é", "z", "5"]), ["5", "z", "é"]);
    }

    #[test]
    fn sorting_ends_for_keys_whose_order_has_a_cycle() {
        assert!(precedes("a2", "a10") && precedes("a10", "a1b") && precedes("a1b", "a2"));
        assert_eq!(sorted_keys(&["a2", "a10", "a1b", "a3", "a11", "a1c"]).len(), 6);
    }
}
