//! The functions of Flux's substitution language. For example, `${name^^}` converts a value to upper case.

use super::Failure;

/// Returns whether an operator provides a default for an unset variable.
pub(super) fn is_default(operator: &str) -> bool {
    matches!(operator, "=" | ":=" | ":-" | ":?" | ":+")
}

/// Applies the function of an operator, such as `^^` for upper case, to the value of a variable. Returns an error if
/// the function fails in Flux, or if Portcullis does not implement it for these arguments.
pub(super) fn call(operator: &str, value: &str, arguments: &[String]) -> Result<String, Failure> {
    let first = || arguments.first().map(String::as_str).unwrap_or_default();
    let second = || arguments.get(1).map(String::as_str).unwrap_or_default();
    Ok(match operator {
        "," => first_letter(value, |letter| letter.to_lowercase().collect()),
        ",," => value.to_lowercase(),
        "^" => first_letter(value, |letter| letter.to_uppercase().collect()),
        "^^" => value.to_uppercase(),
        "#" if arguments.is_empty() => value.len().to_string(),
        "#" => trimmed(value, first(), false, false)?,
        "##" => trimmed(value, first(), false, true)?,
        "%" => trimmed(value, first(), true, false)?,
        "%%" => trimmed(value, first(), true, true)?,
        ":" => part(value, arguments)?,
        "/" => value.replacen(first(), second(), 1),
        "//" => value.replace(first(), second()),
        "/#" if arguments.len() == 2 && value.starts_with(first()) => value.replacen(first(), second(), 1),
        "/%" if arguments.len() == 2 => {
            value.strip_suffix(first()).map_or_else(|| value.to_owned(), |kept| format!("{kept}{}", second()))
        }
        "/#" | "/%" => value.to_owned(),
        _ if value.is_empty() => arguments.concat(),
        _ => value.to_owned(),
    })
}

fn first_letter(value: &str, change: impl Fn(char) -> String) -> String {
    let mut letters = value.chars();
    letters.next().map(|letter| change(letter) + letters.as_str()).unwrap_or_default()
}

/// Evaluates `${name:offset:length}`, where offset and length are numbers of bytes. Returns the whole value if an
/// argument is not a number.
fn part(value: &str, arguments: &[String]) -> Result<String, Failure> {
    let number = |at: usize| arguments.get(at).map(|text| text.parse::<i64>().ok());
    let Some(Some(offset)) = number(0) else { return Ok(value.to_owned()) };
    let all = i64::try_from(value.len()).unwrap_or(i64::MAX);
    let from = if offset < 0 { (all + offset).max(0) } else { offset };
    let to = match number(1) {
        None => all,
        Some(None) => return Ok(value.to_owned()),
        Some(Some(length)) if from.saturating_add(length) >= all => all,
        Some(Some(length)) if length < 0 => {
            return Err(Failure::Function("a substring of negative length crashes Flux"));
        }
        Some(Some(length)) => from + length,
    };
    let place = |at: i64| usize::try_from(at).unwrap_or(usize::MAX).min(value.len());
    let cut = value.get(place(from)..place(to).max(place(from)));
    cut.map(str::to_owned).ok_or(Failure::Unclear("a substring splits a multibyte character"))
}

/// Removes the longest or shortest prefix or suffix that matches a pattern. `at_end` selects the suffix, and `longest`
/// selects the longest match. Returns an error for patterns and values that Portcullis does not support, such as
/// non-ASCII text.
fn trimmed(value: &str, pattern: &str, at_end: bool, longest: bool) -> Result<String, Failure> {
    if pattern.contains(['[', '\\'])
        || pattern.contains('?') && value.contains('/')
        || !value.is_ascii()
        || !pattern.is_ascii()
    {
        return Err(Failure::Unclear("this pattern is not evaluated here"));
    }
    let turned = |text: &str| if at_end { text.chars().rev().collect() } else { text.to_owned() };
    let (value, pattern) = (turned(value), turned(pattern));
    let mut ends: Vec<usize> = (1..=value.len()).collect();
    if longest {
        ends.reverse();
    }
    let end = ends.into_iter().find(|end| matches(&pattern, &value[..*end])).unwrap_or_default();
    Ok(turned(&value[end..]))
}

/// Returns whether a wildcard pattern matches all of `text`, from beginning to end. In the pattern, `*` stands for any
/// number of characters, and `?` for one character.
fn matches(pattern: &str, text: &str) -> bool {
    let (pattern, text) = (pattern.as_bytes(), text.as_bytes());
    let (mut at, mut seen, mut star) = (0, 0, None);
    while seen < text.len() {
        match pattern.get(at) {
            Some(b'*') => {
                star = Some((at, seen));
                at += 1;
            }
            Some(one) if *one == b'?' || *one == text[seen] => {
                at += 1;
                seen += 1;
            }
            _ => match star {
                Some((back, from)) => {
                    star = Some((back, from + 1));
                    at = back + 1;
                    seen = from + 1;
                }
                None => return false,
            },
        }
    }
    pattern[at..].iter().all(|letter| *letter == b'*')
}
