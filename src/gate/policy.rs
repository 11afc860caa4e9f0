//! Levels and exemptions: what the configuration says of the rules.

use std::collections::HashMap;

use serde_json::Value;

use crate::admission::{Level, Request};
use crate::rule::{Mode, Mutator, Rule};

/// An object with this label, at `"true"`, is left alone where the configuration honours it.
pub const SKIP_LABEL: &str = "portcullis.dev/skip";

/// What the configuration says of the rules. The default is every rule at its own level, no exemption.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Policy {
    /// Levels by rule id or family; a rule's own entry goes before its family's.
    pub levels: HashMap<String, Level>,
    /// Levels in some namespaces; they go before the general ones, and of several that apply the strictest holds.
    pub namespaces: Vec<NamespaceLevels>,
    /// What is let through.
    pub exemptions: Vec<Exemption>,
    /// Whether [`SKIP_LABEL`] is honoured.
    pub honour_skip_label: bool,
    /// Modes of mutators, by name.
    pub modes: HashMap<String, Mode>,
}

/// Levels in some namespaces.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NamespaceLevels {
    /// Names of namespaces; a `*` at the end stands for anything.
    pub namespaces: Vec<String>,
    /// Levels by rule id or family.
    pub levels: HashMap<String, Level>,
}

/// Lets through what a rule would refuse; it is still recorded, at level `audit`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Exemption {
    /// A rule id or family.
    pub rule: String,
    /// Names of namespaces; a `*` at the end stands for anything.
    pub namespaces: Vec<String>,
    /// Names of users; all where there is none.
    pub users: Vec<String>,
}

impl Policy {
    /// The level of a rule in a namespace.
    pub fn level(&self, rule: &Rule, namespace: &str) -> Level {
        if self.levels.is_empty() && self.namespaces.is_empty() {
            return rule.level;
        }
        let own = self.namespace_levels(rule, namespace).max();
        own.or_else(|| entry(&self.levels, rule)).unwrap_or(rule.level)
    }

    fn namespace_levels<'a>(&'a self, rule: &'a Rule, namespace: &'a str) -> impl Iterator<Item = Level> + 'a {
        let applying = self.namespaces.iter().filter(move |levels| names(&levels.namespaces, namespace));
        applying.filter_map(move |levels| entry(&levels.levels, rule))
    }

    /// What a mutator does.
    pub fn mode(&self, mutator: &Mutator) -> Mode {
        self.modes.get(mutator.name).copied().unwrap_or(mutator.mode)
    }

    /// Whether an exemption lets a request through. A `deny` for its namespace goes before any exemption.
    pub fn exempts(&self, rule: &Rule, request: &Request<'_>) -> bool {
        let exempt = |exemption: &Exemption| {
            [rule.id, rule.family()].contains(&exemption.rule.as_str())
                && names(&exemption.namespaces, &request.namespace)
                && (exemption.users.is_empty() || exemption.users.iter().any(|user| *user == request.user.name))
        };
        self.exemptions.iter().any(exempt)
            && !self.namespace_levels(rule, &request.namespace).any(|level| level == Level::Deny)
    }

    /// Whether the object asks to be left alone, and may.
    pub fn skips(&self, request: &Request<'_>) -> bool {
        let label = || request.subject().get("metadata")?.get("labels")?.get(SKIP_LABEL).and_then(Value::as_str);
        self.honour_skip_label && label() == Some("true")
    }
}

fn entry(levels: &HashMap<String, Level>, rule: &Rule) -> Option<Level> {
    levels.get(rule.id).or_else(|| levels.get(rule.family())).copied()
}

fn names(patterns: &[String], namespace: &str) -> bool {
    patterns.iter().any(|pattern| match pattern.strip_suffix('*') {
        Some(prefix) => namespace.starts_with(prefix),
        None => namespace == pattern,
    })
}
