//! Parses and evaluates label selectors. kustomize uses the syntax of label selectors also for selectors of
//! annotations.
//!
//! Source: `Parse` and `Requirement.Matches` in `k8s.io/apimachinery/pkg/labels`, which kyaml copies. A key or value
//! that is not a valid label makes the whole selector invalid.

use crate::names::{is_label_key, is_label_value};

/// A parsed label selector, such as `app=web,tier notin (db)`.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Labels(Vec<Requirement>);

/// A requirement of a selector on one label, such as `app=web`.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Requirement {
    /// The key of the label.
    pub(super) key: String,
    test: Test,
}

#[derive(Debug, PartialEq, Eq)]
enum Test {
    Exists,
    IsAbsent,
    In(Vec<String>),
    NotIn(Vec<String>),
    Greater(i64),
    Less(i64),
}

/// The operators and separators of label selectors. The tokenizer uses the first entry of this list with which the rest
/// of the text begins. Therefore `==` is before `=`, and `!=` is before `!`.
const SYMBOLS: [&str; 9] = ["==", "!=", "=", "!", "(", ")", ",", ">", "<"];

impl Labels {
    /// Parses a selector; `None` if its syntax is invalid in Kubernetes.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let tokens = tokens(text);
        let (mut rest, mut requirements) = (tokens.as_slice(), Vec::new());
        while !rest.is_empty() {
            let (requirement, behind) = requirement(rest)?;
            requirements.push(requirement);
            rest = match behind {
                [] => behind,
                [",", more @ ..] if more.first().is_some_and(|next| *next == "!" || !is_symbol(next)) => more,
                _ => return None,
            };
        }
        Some(Self(requirements))
    }

    pub(super) fn requirements(&self) -> &[Requirement] {
        &self.0
    }
}

impl Requirement {
    fn new(key: &str, test: Test) -> Option<Self> {
        let values: &[String] = match &test {
            Test::In(values) | Test::NotIn(values) => values,
            _ => &[],
        };
        let fits = is_label_key(key) && values.iter().all(|value| is_label_value(value));
        fits.then(|| Self { key: key.to_owned(), test })
    }

    /// Returns whether the value of a label meets the requirement; `label` is `None` if the label is missing.
    pub(super) fn holds(&self, label: Option<&str>) -> bool {
        let is_one_of = |values: &[String]| label.is_some_and(|label| values.iter().any(|value| value == label));
        let number = || label.and_then(|label| label.parse::<i64>().ok());
        match &self.test {
            Test::Exists => label.is_some(),
            Test::IsAbsent => label.is_none(),
            Test::In(values) => is_one_of(values),
            Test::NotIn(values) => !is_one_of(values),
            Test::Greater(bound) => number().is_some_and(|number| number > *bound),
            Test::Less(bound) => number().is_some_and(|number| number < *bound),
        }
    }
}

fn is_symbol(token: &str) -> bool {
    SYMBOLS.contains(&token)
}

/// Parses the requirement at the start of `tokens`, such as `app=web`. Returns the requirement and the remaining
/// tokens. `None` if the syntax is invalid.
fn requirement<'r, 't>(tokens: &'r [&'t str]) -> Option<(Requirement, &'r [&'t str])> {
    let (is_negated, tokens) = match tokens {
        ["!", rest @ ..] => (true, rest),
        _ => (false, tokens),
    };
    let (key, rest) = tokens.split_first().filter(|(key, _)| !is_symbol(key))?;
    let (test, rest) = match rest {
        [] | [",", ..] => (if is_negated { Test::IsAbsent } else { Test::Exists }, rest),
        // A `!` before a key with an operator is ignored.
        [operator, rest @ ..] => test(operator, rest)?,
    };
    Some((Requirement::new(key, test)?, rest))
}

/// Parses the values after an operator of a label selector, such as `(a, b)` after `in`. Returns the test that the
/// operator and its values define, and the remaining tokens. `None` if the syntax is invalid.
fn test<'r, 't>(operator: &str, rest: &'r [&'t str]) -> Option<(Test, &'r [&'t str])> {
    if matches!(operator, "in" | "notin") {
        let (values, rest) = list(rest)?;
        return Some((if operator == "in" { Test::In(values) } else { Test::NotIn(values) }, rest));
    }
    let (value, rest) = match rest {
        [] | [",", ..] => ("", rest),
        [value, rest @ ..] if !is_symbol(value) => (*value, rest),
        _ => return None,
    };
    let bound = || value.parse().ok().filter(|_| is_label_value(value));
    let test = match operator {
        "=" | "==" => Test::In(vec![value.to_owned()]),
        "!=" => Test::NotIn(vec![value.to_owned()]),
        ">" => Test::Greater(bound()?),
        "<" => Test::Less(bound()?),
        _ => return None,
    };
    Some((test, rest))
}

/// Parses a list of values in parentheses. Returns the values and the remaining tokens. A value may be empty. `None` if
/// the syntax is invalid.
///
/// Source: `parseIdentifiersList`.
fn list<'r, 't>(tokens: &'r [&'t str]) -> Option<(Vec<String>, &'r [&'t str])> {
    let ["(", rest @ ..] = tokens else { return None };
    if let [")", rest @ ..] = rest {
        return Some((vec![String::new()], rest));
    }
    let (mut values, mut rest) = (Vec::new(), rest);
    loop {
        let (first, behind) = rest.split_first()?;
        match (*first, behind.first().copied()) {
            (",", Some(")")) => {
                values.push(String::new());
                return Some((values, behind.get(1..)?));
            }
            (",", Some(",")) => {
                values.push(String::new());
                rest = behind.get(1..)?;
            }
            (",", _) => {
                // a comma directly after `(` follows an empty value
                values.extend(values.is_empty().then(String::new));
                rest = behind;
            }
            (value, Some(end @ (")" | ","))) if !is_symbol(value) => {
                values.push(value.to_owned());
                if end == ")" {
                    return Some((values, behind.get(1..)?));
                }
                rest = behind;
            }
            _ => return None,
        }
    }
}

/// Splits a label selector into words and symbols, such as `app`, `!=` and `web`.
fn tokens(text: &str) -> Vec<&str> {
    let is_blank = |c: char| matches!(c, ' ' | '\t' | '\r' | '\n');
    let (mut rest, mut tokens) = (text.trim_start_matches(is_blank), Vec::new());
    while !rest.is_empty() {
        let symbol = SYMBOLS.into_iter().find(|symbol| rest.starts_with(symbol));
        let ends = |c: char| is_blank(c) || "=!(),<>".contains(c);
        let length = symbol.map_or_else(|| rest.find(ends).unwrap_or(rest.len()), str::len);
        let (token, behind) = rest.split_at(length);
        tokens.push(token);
        rest = behind.trim_start_matches(is_blank);
    }
    tokens
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns whether a selector matches an object whose only label is `app: web`; `None` if the selector is invalid.
    fn selects(text: &str) -> Option<bool> {
        let labels = Labels::parse(text)?;
        let value = |key: &str| (key == "app").then_some("web");
        Some(labels.requirements().iter().all(|requirement| requirement.holds(value(&requirement.key))))
    }

    #[test]
    fn every_kind_of_requirement_is_known() {
        for text in [
            "app",
            "app=web",
            "app == web",
            "app in (web, db)",
            "app in(web)",
            "tier!=db",
            "tier notin (a,b)",
            "!tier",
            " ",
        ] {
            assert_eq!(selects(text), Some(true), "{text}");
        }
        for text in
            ["tier", "app=db", "app=", "app in (db)", "app!=web", "app notin (a, web)", "!app", "app,tier", "tier="]
        {
            assert_eq!(selects(text), Some(false), "{text}");
        }
        assert_eq!(selects("app>1"), Some(false));
        assert_eq!(selects("app in ()"), Some(false));
        assert_eq!(selects("app in (a,,web)"), Some(true));
        assert_eq!(selects("!app=web"), Some(true));
        assert_eq!(selects("app=web,!tier , example.org/a notin (x),app"), Some(true));
    }

    #[test]
    fn refuses_what_kubernetes_refuses() {
        for text in [
            ",",
            "app,",
            ",app",
            "app=a/b",
            "-app",
            "app-=x",
            "app>x",
            "app in web",
            "a b",
            "app in (a",
            "app)",
            "app!web",
            "A.b/c=d",
            "app='web'",
            "ä",
            "!",
            "app==!x",
        ] {
            assert_eq!(selects(text), None, "{text}");
        }
    }
}
