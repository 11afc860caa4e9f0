//! The settings of rules and mutators in the configuration file. For example, a setting reduces the findings of a rule
//! to warnings, exempts a namespace from a rule, or turns off a mutator.

use std::collections::{HashMap, HashSet};

use time::OffsetDateTime;

use crate::admission::{Level, Metadata, Request};
use crate::catalog::Settings;
use crate::kustomize::delivery::Delivery;
use crate::rule::{Mode, Mutator, Rule, RuleInfo};

/// The label that excludes an object from mutation, and limits findings about the object to the level `audit`. The
/// label has an effect only if its value is `"true"`, and if the configuration honors the label.
pub const SKIP_LABEL: &str = "portcullis.dev/skip";

/// The configuration of rules, mutators and checks of kustomization files. Without configuration, each of them has its
/// default level or mode, and there are no exemptions.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Policy {
    /// Levels by rule id or family. A rule id takes precedence over its family.
    pub levels: HashMap<String, Level>,
    /// The levels of rules, such as `deny`, in some namespaces. They take precedence over `levels`. If several items
    /// apply to a namespace, the strictest level is used.
    pub namespaces: Vec<NamespaceLevels>,
    /// Exemptions from rules, for namespaces and users.
    pub exemptions: Vec<Exemption>,
    /// Whether [`SKIP_LABEL`] is honored.
    pub honour_skip_label: bool,
    /// Whether ServiceAccounts receive warnings, as users do. This is off by default, because controllers, which use
    /// ServiceAccounts, only log warnings.
    pub warn_service_accounts: bool,
    /// Configured modes of mutators, by the name of the mutator.
    pub modes: HashMap<String, Mode>,
    /// Names of CompositeResourceDefinitions whose composites are watched and checked. `*` selects all.
    /// CompositeResourceDefinitions with the label [`CHOOSING_LABEL`](crate::catalog::CHOOSING_LABEL) are selected in
    /// addition.
    pub composites: HashSet<String>,
    /// The maximum levels of findings about kustomization files, by the name of the check that reports the findings.
    /// For example, `flux-trees` is the check of the files to which Flux Kustomizations refer. The configuration file
    /// has these levels in its key `deliveries`.
    pub deliveries: HashMap<String, Level>,
    /// Hosts from which artifacts may be fetched, in the form `name` or `name:port`. Flux's own hosts are always
    /// permitted.
    pub artifact_hosts: Vec<String>,
    /// The sections of the configuration that rules look up by name, such as `deployers`.
    pub settings: Settings,
}

/// A list of namespaces, and the levels of rules, such as `warn` or `deny`, for requests in these namespaces.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NamespaceLevels {
    /// Names of namespaces; a trailing `*` matches any suffix.
    pub namespaces: Vec<String>,
    /// Levels by rule id or family.
    pub levels: HashMap<String, Level>,
}

/// An exemption, which reduces findings of a rule to level `audit`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Exemption {
    /// A rule id or family, such as `OW001` or `OW`.
    pub rule: String,
    /// Names of namespaces; a trailing `*` matches any suffix.
    pub namespaces: Vec<String>,
    /// Names of users; empty for all users.
    pub users: Vec<String>,
    /// The time at which the exemption expires; `None` for never.
    pub until: Option<OffsetDateTime>,
}

impl Exemption {
    /// Returns whether the exemption has expired.
    pub fn is_expired(&self, now: OffsetDateTime) -> bool {
        self.until.is_some_and(|until| until <= now)
    }
}

impl Policy {
    /// Returns the configured level of a rule for requests in `namespace`. If no level is configured, returns the
    /// default level of the rule.
    pub fn level(&self, rule: &Rule, namespace: &str) -> Level {
        self.level_of(rule.info.id, rule.info.family(), rule.info.level, namespace)
    }

    /// Returns the configured level of the rule `id` of `family` in `namespace`. Returns `default` if no level is
    /// configured. The namespace is empty for files.
    pub fn level_of(&self, id: &str, family: &str, default: Level, namespace: &str) -> Level {
        if self.levels.is_empty() && self.namespaces.is_empty() {
            return default;
        }
        let own = self.namespace_levels(id, family, namespace).max();
        own.or_else(|| entry(&self.levels, id, family)).unwrap_or(default)
    }

    /// Returns whether the level of the rule `id` of `family` is above `off` in at least one namespace. `default` is
    /// the level of the rule if the configuration sets no level.
    pub fn may_report(&self, id: &str, family: &str, default: Level) -> bool {
        let of_namespaces = self.namespaces.iter().filter_map(|levels| entry(&levels.levels, id, family));
        of_namespaces.chain([entry(&self.levels, id, family).unwrap_or(default)]).any(|level| level > Level::Off)
    }

    /// Returns the level of a finding in `portcullis check` after the configuration is applied. The rule `info`
    /// reported the finding at `level`. [`Policy::levelled`] describes how the levels are combined.
    pub fn level_in_files(&self, info: &RuleInfo, level: Level) -> Level {
        Self::levelled(level, info.level, self.level_of(info.id, info.family(), info.level, ""))
    }

    /// Combines the level of a finding with the `default` level and the `configured` level of its rule.
    ///
    /// If `level` is the default level, returns `configured`. If a rule has reported a finding at a lower level,
    /// returns the lower one of `level` and `configured`.
    pub fn levelled(level: Level, default: Level, configured: Level) -> Level {
        if level >= default { configured } else { level.min(configured) }
    }

    fn namespace_levels(&self, id: &str, family: &str, namespace: &str) -> impl Iterator<Item = Level> {
        let applying = self.namespaces.iter().filter(move |levels| matches_any(&levels.namespaces, namespace));
        applying.filter_map(move |levels| entry(&levels.levels, id, family))
    }

    /// Returns the configured mode of a mutator. If no mode is configured, returns the mutator's default.
    pub fn mode(&self, mutator: &Mutator) -> Mode {
        self.modes.get(mutator.name).copied().unwrap_or(mutator.mode)
    }

    /// Returns the maximum level, such as `warn`, for the findings of the check `delivery`. `namespace` is the
    /// namespace of the request. If the field [`Delivery::limited_by`] contains a rule, the result is at most the
    /// configured level of this rule.
    pub fn max_level(&self, delivery: &Delivery, namespace: &str) -> Level {
        let own = self.deliveries.get(delivery.name).copied().unwrap_or(delivery.max_level);
        let limit = |info: &RuleInfo| self.level_of(info.id, info.family(), info.level, namespace);
        delivery.limited_by.map_or(own, |info| own.min(limit(info)))
    }

    /// Returns whether an exemption from the rule applies to the request at `now`. No exemption applies if the
    /// configuration sets the rule to `deny` in the namespace of the request.
    pub fn exempts(&self, info: &RuleInfo, request: &Request<'_>, now: OffsetDateTime) -> bool {
        let exempt = |exemption: &Exemption| {
            !exemption.is_expired(now)
                && [info.id, info.family()].contains(&exemption.rule.as_str())
                && matches_any(&exemption.namespaces, &request.namespace)
                && (exemption.users.is_empty() || exemption.users.iter().any(|user| *user == request.user.name))
        };
        self.exemptions.iter().any(exempt)
            && !self.namespace_levels(info.id, info.family(), &request.namespace).any(|level| level == Level::Deny)
    }

    /// Returns whether the object has the skip label, and the configuration honors it.
    pub fn skips(&self, request: &Request<'_>) -> bool {
        self.honour_skip_label && Metadata::of(request.subject()).label(SKIP_LABEL) == Some("true")
    }
}

fn entry(levels: &HashMap<String, Level>, id: &str, family: &str) -> Option<Level> {
    levels.get(id).or_else(|| levels.get(family)).copied()
}

fn matches_any(patterns: &[String], namespace: &str) -> bool {
    patterns.iter().any(|pattern| match pattern.strip_suffix('*') {
        Some(prefix) => namespace.starts_with(prefix),
        None => namespace == pattern,
    })
}
