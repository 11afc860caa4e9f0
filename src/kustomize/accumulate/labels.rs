//! Label selectors, as far as they are surely read as Kubernetes reads them.
//!
//! Source: `Parse` and `Requirement.Matches` in `k8s.io/apimachinery/pkg/labels`, of which kyaml has a copy. It refuses a
//! selector as a whole for a key or a value that no label could have.

use crate::names::{is_label_key, is_label_value};

/// What labels must be like.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::kustomize) struct Labels(Vec<Requirement>);

/// What one label must be like.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::kustomize) struct Requirement {
    /// The label.
    pub(in crate::kustomize) key: String,
    /// What it may be; anything where nothing is said.
    values: Option<Vec<String>>,
    /// Whether there must be such a label, or must not.
    wanted: bool,
}

/// What is not part of a word, the longer ones first.
const SYMBOLS: [&str; 7] = ["==", "!=", "=", "!", "(", ")", ","];

impl Labels {
    /// Reads a selector; `None` for one that Kubernetes may refuse, or read in another way.
    pub(in crate::kustomize) fn parse(text: &str) -> Option<Self> {
        let tokens = tokens(text)?;
        let (mut rest, mut requirements) = (tokens.as_slice(), Vec::new());
        while !rest.is_empty() {
            let (requirement, behind) = requirement(rest)?;
            requirements.push(requirement);
            rest = match behind {
                [] => behind,
                [",", more @ ..] if !more.is_empty() => more,
                _ => return None,
            };
        }
        Some(Self(requirements))
    }

    /// What must hold of each label.
    pub(in crate::kustomize) fn requirements(&self) -> &[Requirement] {
        &self.0
    }
}

impl Requirement {
    fn new(key: &str, values: Option<Vec<&str>>, wanted: bool) -> Option<Self> {
        let is_free = !matches!(key, "in" | "notin");
        let fits = is_free && is_label_key(key) && values.iter().flatten().all(|value| is_label_value(value));
        let values = values.map(|values| values.into_iter().map(str::to_owned).collect());
        fits.then(|| Self { key: key.to_owned(), values, wanted })
    }

    /// Whether it holds where the label has this value, or is not there.
    pub(in crate::kustomize) fn holds(&self, label: Option<&str>) -> bool {
        let is_such = |label: &str| self.values.as_ref().is_none_or(|values| values.iter().any(|value| value == label));
        label.is_some_and(is_such) == self.wanted
    }
}

/// The requirement that begins here, and what comes behind it.
fn requirement<'r, 't>(tokens: &'r [&'t str]) -> Option<(Requirement, &'r [&'t str])> {
    let (key, wanted, values, behind) = match tokens {
        ["!", key, behind @ ..] => (key, false, None, behind),
        [key, sign @ ("=" | "==" | "!="), behind @ ..] => {
            let (value, behind) = match behind {
                [] | [",", ..] => ("", behind),
                [value, behind @ ..] => (*value, behind),
            };
            (key, *sign != "!=", Some(vec![value]), behind)
        }
        [key, word @ ("in" | "notin"), "(", list @ ..] => {
            let end = list.iter().position(|token| *token == ")")?;
            let (list, behind) = list.split_at(end);
            let values =
                list.split(|token| *token == ",").map(|value| <[&str; 1]>::try_from(value).ok().map(|[one]| one));
            (key, *word == "in", Some(values.collect::<Option<_>>()?), behind.get(1..)?)
        }
        [key, behind @ ..] => (key, true, None, behind),
        [] => return None,
    };
    Some((Requirement::new(key, values, wanted)?, behind))
}

/// The words and symbols of a selector; `None` where it has signs of which we know nothing.
fn tokens(text: &str) -> Option<Vec<&str>> {
    let (mut rest, mut tokens) = (text.trim_ascii_start(), Vec::new());
    while !rest.is_empty() {
        let symbol = SYMBOLS.into_iter().find(|symbol| rest.starts_with(symbol));
        let is_within = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '/');
        let length = symbol.map_or_else(|| rest.find(|c| !is_within(c)).unwrap_or(rest.len()), str::len);
        let (token, behind) = rest.split_at(length);
        if token.is_empty() {
            return None;
        }
        tokens.push(token);
        rest = behind.trim_ascii_start();
    }
    Some(tokens)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether a selector selects what has just the label `app: web`.
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
        assert_eq!(selects("app=web,!tier , example.org/a notin (x),app"), Some(true));
    }

    #[test]
    fn what_may_be_refused_is_left_open() {
        for text in [
            ",",
            "app,",
            ",app",
            "app=a/b",
            "-app",
            "app-=x",
            "app>1",
            "app in ()",
            "app in (a,)",
            "app in web",
            "in",
            "a b",
            "app in (a",
            "app)",
            "!app=web",
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
