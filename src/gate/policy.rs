//! Levels and exemptions: what the configuration says of the rules.

use std::collections::{HashMap, HashSet};

use serde_json::Value;
use time::OffsetDateTime;

use super::Row;
use crate::admission::{Level, Request};
use crate::catalog::Settings;
use crate::kustomize::delivery::Delivery;
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
    /// Whether ServiceAccounts are shown warnings too: controllers only write them to their logs.
    pub warn_service_accounts: bool,
    /// Modes of mutators, by name.
    pub modes: HashMap<String, Mode>,
    /// The names of CompositeResourceDefinitions whose composites are looked at, besides those with the label
    /// [`CHOOSING_LABEL`](crate::catalog::CHOOSING_LABEL); `*` stands for all.
    pub composites: HashSet<String>,
    /// The gravest level of what is found in trees, by the name of the delivery.
    pub deliveries: HashMap<String, Level>,
    /// Hosts from which artifacts may be fetched, besides Flux's own: `name` or `name:port`.
    pub artifact_hosts: Vec<String>,
    /// What it says to systems, in sections of their own.
    pub settings: Settings,
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
    /// When it expires: from then on it lets nothing through.
    pub until: Option<OffsetDateTime>,
}

impl Exemption {
    /// Whether it no longer lets anything through.
    pub fn is_expired(&self, now: OffsetDateTime) -> bool {
        self.until.is_some_and(|until| until <= now)
    }
}

impl Policy {
    /// The level of a rule in a namespace.
    pub fn level(&self, rule: &Rule, namespace: &str) -> Level {
        self.level_of(rule.id, rule.family(), rule.level, namespace)
    }

    /// The level of a rule of any shape in a namespace: of files, in none.
    pub fn level_of(&self, id: &str, family: &str, default: Level, namespace: &str) -> Level {
        if self.levels.is_empty() && self.namespaces.is_empty() {
            return default;
        }
        let own = self.namespace_levels(id, family, namespace).max();
        own.or_else(|| entry(&self.levels, id, family)).unwrap_or(default)
    }

    /// Whether a rule may find something in any namespace.
    pub fn may_speak(&self, id: &str, family: &str, default: Level) -> bool {
        let of_namespaces = self.namespaces.iter().filter_map(|levels| entry(&levels.levels, id, family));
        of_namespaces.chain([entry(&self.levels, id, family).unwrap_or(default)]).any(|level| level > Level::Off)
    }

    /// The level of a finding in files that `row` gave `level`; see [`Policy::levelled`].
    pub fn level_in_files(&self, row: Row, level: Level) -> Level {
        Self::levelled(level, row.level(), self.level_of(row.id(), row.family(), row.level(), ""))
    }

    /// What becomes of a finding's level where the rule's own is `default` and the configured one `configured`.
    ///
    /// A rule speaks at its own level or, of something less grave, below it: a configured level replaces the first and
    /// bounds the second.
    pub fn levelled(level: Level, default: Level, configured: Level) -> Level {
        if level >= default { configured } else { level.min(configured) }
    }

    fn namespace_levels(&self, id: &str, family: &str, namespace: &str) -> impl Iterator<Item = Level> {
        let applying = self.namespaces.iter().filter(move |levels| names(&levels.namespaces, namespace));
        applying.filter_map(move |levels| entry(&levels.levels, id, family))
    }

    /// What a mutator does.
    pub fn mode(&self, mutator: &Mutator) -> Mode {
        self.modes.get(mutator.name).copied().unwrap_or(mutator.mode)
    }

    /// The gravest level of what a delivery finds.
    pub fn most(&self, delivery: &Delivery) -> Level {
        self.deliveries.get(delivery.name).copied().unwrap_or(delivery.most)
    }

    /// Whether an exemption lets a request through, at this time. A `deny` for its namespace goes before any exemption.
    pub fn exempts(&self, row: Row, request: &Request<'_>, now: OffsetDateTime) -> bool {
        let exempt = |exemption: &Exemption| {
            !exemption.is_expired(now)
                && [row.id(), row.family()].contains(&exemption.rule.as_str())
                && names(&exemption.namespaces, &request.namespace)
                && (exemption.users.is_empty() || exemption.users.iter().any(|user| *user == request.user.name))
        };
        self.exemptions.iter().any(exempt)
            && !self.namespace_levels(row.id(), row.family(), &request.namespace).any(|level| level == Level::Deny)
    }

    /// Whether the object asks to be left alone, and may.
    pub fn skips(&self, request: &Request<'_>) -> bool {
        let label = || request.subject().get("metadata")?.get("labels")?.get(SKIP_LABEL).and_then(Value::as_str);
        self.honour_skip_label && label() == Some("true")
    }
}

fn entry(levels: &HashMap<String, Level>, id: &str, family: &str) -> Option<Level> {
    levels.get(id).or_else(|| levels.get(family)).copied()
}

fn names(patterns: &[String], namespace: &str) -> bool {
    patterns.iter().any(|pattern| match pattern.strip_suffix('*') {
        Some(prefix) => namespace.starts_with(prefix),
        None => namespace == pattern,
    })
}
