//! Conditions that decide which parts of the manifests are generated. A condition depends on the enabled rule families,
//! such as `OW`. For example, a rule of a webhook configuration is generated only if a family needs it.
//!
//! `portcullis manifests` evaluates the conditions itself. The Helm chart contains the same conditions as template
//! expressions. With the same enabled families, the chart therefore renders exactly what `manifests` writes.

use std::collections::BTreeSet;

/// A set of rule families. A family contains all rules with the same prefix in their ids, such as `OW`.
pub(super) type Families = BTreeSet<&'static str>;

/// The rule families that are enabled in generated manifests: a fixed list, or the list in the values of the Helm
/// chart. A family contains all rules with the same prefix in their ids, such as `OW`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Choice {
    /// A fixed list of enabled rule families, such as `OW`. The values of the Helm chart cannot change the list.
    These(Vec<&'static str>),
    /// The list in the value `families` of the Helm chart. Each release can set a different list.
    Values,
}

/// A condition on the enabled rule families. It consists of cases, and holds if at least one case holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct When(Vec<Case>);

/// A case of a [`When`] condition. It holds if at least one family in `any` is enabled, and all families in `none` are
/// disabled.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Case {
    /// Rule families, such as `OW`. At least one of them must be enabled.
    any: Families,
    /// Rule families, such as `OW`. All of them must be disabled.
    none: Families,
}

impl When {
    /// Returns a condition that holds if at least one of the rule families in `any`, such as `OW`, is enabled.
    pub(super) fn any(any: Families) -> Self {
        Self::any_but(any, Families::new())
    }

    /// Returns a condition on the enabled rule families, such as `OW`. It holds if at least one family in `any` is
    /// enabled, and all families in `none` are disabled.
    pub(super) fn any_but(any: Families, none: Families) -> Self {
        Self(vec![Case { any, none }])
    }

    /// Returns a condition that holds if at least one of the conditions in `several` holds.
    pub(super) fn either<'w>(several: impl IntoIterator<Item = &'w Self>) -> Self {
        let mut plain = Families::new();
        let mut others: Vec<Case> = Vec::new();
        for case in several.into_iter().flat_map(|when| &when.0) {
            if case.none.is_empty() {
                plain.extend(&case.any);
            } else if !others.contains(case) {
                others.push(case.clone());
            }
        }
        others.retain(|case| !case.any.is_subset(&plain));
        let plain = Some(Case { any: plain, none: Families::new() }).filter(|case| !case.any.is_empty());
        Self(plain.into_iter().chain(others).collect())
    }

    fn holds(&self, on: &[&str]) -> bool {
        let is_on = |family: &&str| on.contains(family);
        self.0.iter().any(|case| case.any.iter().any(is_on) && !case.none.iter().any(is_on))
    }

    /// Returns the condition as an argument of Helm's `if`.
    fn template(&self) -> String {
        let cases: Vec<_> = self.0.iter().map(Case::template).collect();
        joined("or", &cases)
    }
}

impl Case {
    fn template(&self) -> String {
        let any = either_value(&self.any);
        if self.none.is_empty() {
            any
        } else {
            format!("and {} (not {})", bracketed(&any), bracketed(&either_value(&self.none)))
        }
    }
}

fn either_value(families: &Families) -> String {
    let values: Vec<_> = families.iter().map(|family| format!(".Values.families.{family}")).collect();
    joined("or", &values)
}

fn joined(function: &str, arguments: &[String]) -> String {
    match arguments {
        [only] => only.clone(),
        several => format!("{function} {}", several.iter().map(|one| bracketed(one)).collect::<Vec<_>>().join(" ")),
    }
}

fn bracketed(argument: &str) -> String {
    if argument.contains(' ') { format!("({argument})") } else { argument.to_owned() }
}

impl Choice {
    /// Returns `text` if the condition `when` holds, and an empty string otherwise. `text` contains lines of a
    /// manifest. `when` says which rule families, such as `OW`, must be enabled.
    ///
    /// For the Helm chart, returns `text` between a template `if` and `end`, so that Helm evaluates the condition.
    /// `around` is the condition of the template `if` in which the caller puts the result; `None` if there is no such
    /// `if`. If `around` equals `when`, returns `text` unchanged, because a second `if` is not necessary.
    pub(super) fn lines(&self, when: &When, around: Option<&When>, text: String) -> String {
        match self {
            Self::These(on) if !when.holds(on) => String::new(),
            Self::Values if around != Some(when) => {
                format!("{{{{- if {} }}}}\n{text}{{{{- end }}}}\n", when.template())
            }
            Self::These(_) | Self::Values => text,
        }
    }

    /// Returns `text` if at least one of the rule families in `families`, such as `OW`, is enabled, and an empty string
    /// otherwise. `text` contains lines of a manifest. For the Helm chart, returns `text` between a template `if` and
    /// `end`, so that Helm evaluates the condition.
    pub fn lines_for(&self, families: &[&'static str], text: String) -> String {
        self.lines(&When::any(families.iter().copied().collect()), None, text)
    }

    /// Returns `text` if the condition `when` holds, and an empty string otherwise. `text` is a part of a line in a
    /// manifest. `when` says which rule families, such as `OW`, must be enabled. For the Helm chart, returns `text`
    /// between a template `if` and `end`, so that Helm evaluates the condition.
    pub(super) fn words(&self, when: &When, text: &str) -> String {
        match self {
            _ if when.0.is_empty() => String::new(),
            Self::These(on) if !when.holds(on) => String::new(),
            Self::These(_) => text.to_owned(),
            Self::Values => format!("{{{{ if {} }}}}{text}{{{{ end }}}}", when.template()),
        }
    }

    /// Returns whether a rule family is enabled, or users can still enable it. `family` is the id prefix of its rules,
    /// such as `KZ`. When templates of the Helm chart are generated, the result is always true, because users choose
    /// the families when they install the chart.
    pub fn may_have(&self, family: &str) -> bool {
        match self {
            Self::These(on) => on.contains(&family),
            Self::Values => true,
        }
    }

    /// Returns whether the condition `when` on the enabled rule families can hold:
    ///
    /// - For a fixed list of families, returns whether `when` holds.
    /// - For the Helm chart, returns true unless `when` has no cases. Each release can enable other families.
    pub(super) fn may(&self, when: &When) -> bool {
        match self {
            Self::These(on) => when.holds(on),
            Self::Values => !when.0.is_empty(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn when(any: &[&'static str], none: &[&'static str]) -> When {
        When::any_but(any.iter().copied().collect(), none.iter().copied().collect())
    }

    #[test]
    fn writes_helm_conditions() {
        assert_eq!(when(&["OW"], &[]).template(), ".Values.families.OW");
        assert_eq!(when(&["OW", "DR"], &[]).template(), "or .Values.families.DR .Values.families.OW");
        let but = when(&["OW"], &["DR", "KZ"]);
        assert_eq!(but.template(), "and .Values.families.OW (not (or .Values.families.DR .Values.families.KZ))");
        let either = When::either([&but, &when(&["EN"], &[])]);
        assert_eq!(either.template(), format!("or .Values.families.EN ({})", but.template()));
    }

    #[test]
    fn merges_equal_cases() {
        let both = When::either([&when(&["OW"], &["DR"]), &when(&["OW"], &[]), &when(&["KZ"], &[])]);
        assert_eq!(both, when(&["KZ", "OW"], &[]));
        assert!(both.holds(&["OW", "DR"]) && !both.holds(&["DR"]));
        assert!(!when(&["OW"], &["DR"]).holds(&["OW", "DR"]));
    }

    #[test]
    fn an_empty_condition_never_holds() {
        let nothing = When::either([]);
        assert_eq!(Choice::Values.words(&nothing, "text"), "");
        assert!(!Choice::Values.may(&nothing) && !Choice::These(vec!["OW"]).may(&nothing));
    }
}
