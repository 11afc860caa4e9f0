//! Converts the configuration file to a policy, and checks its values.

use std::collections::BTreeMap;

use serde_saphyr::Spanned;
use time::format_description::well_known::{Iso8601, Rfc3339};
use time::{Date, OffsetDateTime};

use super::problem::{self, Problem};
use super::{ExemptionFile, File, Levels, Repository};
use crate::admission::Level;
use crate::crossplane::configuration as environments;
use crate::gate::{Exemption, NamespaceLevels, Policy, Registry};
use crate::kustomize::delivery::{guard, limits};
use crate::landscaper::deployer::configuration::{Deployers, SECTION as DEPLOYERS};
use crate::landscaper::dry_run::MUTATOR;
use crate::landscaper::dry_run::configuration::{DryRunFile, DryRuns, SECTION as DRY_RUNS};
use crate::rule::Mode;
use crate::suggestion;

/// A converter from the configuration file to a policy. It adds an error for each invalid value to `problems`.
pub(super) struct Check<'a> {
    pub(super) registry: &'a Registry,
    pub(super) problems: Vec<Problem>,
}

impl Check<'_> {
    pub(super) fn policy(&mut self, mut file: File) -> Policy {
        let mut policy = Policy::default();
        self.modes(std::mem::take(&mut file.mutators), &mut policy);
        self.sections(&mut file, &mut policy);
        policy.levels = self.levels(file.rules);
        policy.honour_skip_label = file.honour_skip_label;
        policy.warn_service_accounts = file.warn_service_accounts;
        policy.composites = file.composites;
        for entry in file.namespaces {
            let levels = self.levels(entry.rules);
            policy.namespaces.push(NamespaceLevels { namespaces: entry.names, levels });
        }
        for entry in file.exemptions {
            self.rule(&entry.rule.value, &entry.rule);
            let until = entry.until.and_then(|until| self.until(&until));
            let ExemptionFile { rule, namespaces, users, .. } = entry;
            policy.exemptions.push(Exemption { rule: rule.value, namespaces, users, until });
        }
        let deliveries: Vec<_> = self.registry.deliveries().iter().map(|delivery| delivery.name).collect();
        for (name, level) in file.deliveries {
            self.one_of("delivery", &name, &deliveries, &level);
            policy.deliveries.insert(name, level.value);
        }
        policy.artifact_hosts = file.artifact_hosts.into_iter().map(|host| self.host(host)).collect();
        policy
    }

    fn modes(&mut self, modes: BTreeMap<String, Spanned<Mode>>, policy: &mut Policy) {
        let mutators: Vec<_> = self.registry.mutators().iter().map(|mutator| mutator.name).collect();
        for (name, mode) in modes {
            self.one_of("mutator", &name, &mutators, &mode);
            policy.modes.insert(name, mode.value);
        }
    }

    /// Moves the sections that configure single rules or mutators, such as `deployers`, from the file to the policy.
    /// Call `modes` before this method, because the section `dryRun` depends on the modes of mutators.
    fn sections(&mut self, file: &mut File, policy: &mut Policy) {
        self.deployers(file.deployers.take(), policy);
        self.dry_runs(file.dry_run.take(), policy);
        if let Some(section) = file.environment_configs.take() {
            policy.settings = std::mem::take(&mut policy.settings).with(environments::NAME, section.to_value());
        }
        if let Some(section) = file.deletions.take() {
            if let Some(problem) = section.value.problem() {
                self.report(problem, &section);
            }
            policy.settings = std::mem::take(&mut policy.settings).with(limits::SECTION, section.value.to_value());
        }
        if let Some(section) = file.guard.take() {
            if section.hold == Some(guard::Hold::Source) {
                policy.deliveries.insert(guard::SOURCES.to_owned(), Level::Deny);
            }
            policy.settings = std::mem::take(&mut policy.settings).with(guard::SECTION, section.to_value());
        }
        if let Some(section) = file.check.take() {
            if let Some(problem) = section.value.problem() {
                self.report(problem, &section);
            }
            let value = serde_json::to_value(&section.value).unwrap_or_default();
            policy.settings = std::mem::take(&mut policy.settings).with(Repository::SECTION, value);
        }
    }

    fn deployers(&mut self, section: Option<Spanned<Deployers>>, policy: &mut Policy) {
        let Some(deployers) = section else { return };
        if let Some(problem) = deployers.value.problem() {
            self.report(problem, &deployers);
        }
        policy.settings = std::mem::take(&mut policy.settings).with(DEPLOYERS, deployers.value.to_value());
    }

    /// Validates the section `dryRun` of the configuration file, and adds its settings to `policy`. The section turns
    /// on the mutator `dry-run`: its mode becomes `apply`, unless the file sets another mode for it.
    fn dry_runs(&mut self, section: Option<Spanned<DryRunFile>>, policy: &mut Policy) {
        if let Some((section, problem)) = section.as_ref().and_then(|section| Some((section, section.value.problem()?)))
        {
            self.report(problem.to_owned(), section);
        }
        if section.is_some() {
            policy.modes.entry(MUTATOR.to_owned()).or_insert(Mode::Apply);
        }
        let routes = policy.modes.get(MUTATOR) == Some(&Mode::Apply);
        if section.is_some() || routes {
            let types = section.map(|section| section.value).unwrap_or_default().types;
            let dry_runs = DryRuns { types, routes }.to_value();
            policy.settings = std::mem::take(&mut policy.settings).with(DRY_RUNS, dry_runs);
        }
    }

    fn levels<M: FromIterator<(String, Level)>>(&mut self, levels: Levels) -> M {
        for (name, level) in &levels {
            self.rule(name, level);
        }
        levels.into_iter().map(|(name, level)| (name, level.value)).collect()
    }

    fn rule<T>(&mut self, name: &str, place: &Spanned<T>) {
        let families = self.registry.families();
        let rules = self.registry.ids();
        if families.contains(&name) || rules.contains(&name) {
            return;
        }
        let near = suggestion::most_similar(name, families.iter().chain(&rules).copied());
        let advice = near.map(|near| format!("did you mean {near:?}?"));
        let advice = advice
            .or_else(|| of_family(name, &rules))
            .unwrap_or_else(|| format!("the families are {}; `portcullis rules` lists the rules", families.join(", ")));
        self.report(format!("unknown rule or family {name:?}; {advice}"), place);
    }

    fn host(&mut self, host: Spanned<String>) -> String {
        let is_part = |c: char| c.is_ascii_alphanumeric() || ".-:".contains(c);
        if host.value.is_empty() || !host.value.chars().all(is_part) {
            let wanted = "write a name, or a name and a port, without http:// and path";
            self.report(format!("{:?} is not a host; {wanted}", host.value), &host);
        }
        host.value
    }

    /// Parses the time at which an exemption expires. A date without a time means the end of that day in UTC. Reports a
    /// problem and returns `None` if the text is neither a date nor a time.
    fn until(&mut self, until: &Spanned<String>) -> Option<OffsetDateTime> {
        let text = &until.value;
        let end = || day(text)?.next_day().map(|next| next.midnight().assume_utc());
        let parsed = OffsetDateTime::parse(text, &Rfc3339).ok().or_else(end);
        if parsed.is_none() {
            let wanted = "write a date, such as 2026-12-31, or a time with its zone, such as 2026-12-31T18:00:00Z";
            self.report(format!("{text:?} is neither a date nor a time; {wanted}"), until);
        }
        parsed
    }

    fn one_of<T>(&mut self, what: &str, name: &str, names: &[&str], place: &Spanned<T>) {
        if !names.contains(&name) {
            self.report(problem::unknown(what, name, names), place);
        }
    }

    fn report<T>(&mut self, text: String, place: &Spanned<T>) {
        self.problems.push(Problem::at(&place.defined, text));
    }
}

/// Returns a hint for an unknown rule id, such as `OW999`. The hint names the first and the last rule of the family.
/// `None` if the family is unknown too.
fn of_family(name: &str, rules: &[&str]) -> Option<String> {
    let family = name.trim_end_matches(|c: char| c.is_ascii_digit());
    let mut own = rules.iter().filter(|id| id.trim_end_matches(|c: char| c.is_ascii_digit()) == family);
    let first = own.next()?;
    Some(format!(
        "{family} has rules from {first} to {}; `portcullis rules` lists them",
        own.next_back().unwrap_or(first)
    ))
}

/// Parses a date such as `2026-12-31`. Returns `None` for other forms of ISO 8601, such as week dates.
fn day(text: &str) -> Option<Date> {
    let is_written = text.bytes().enumerate().all(|(at, byte)| match at {
        4 | 7 => byte == b'-',
        _ => byte.is_ascii_digit(),
    });
    Date::parse(text, &Iso8601::DATE).ok().filter(|_| is_written && text.len() == "2026-12-31".len())
}
