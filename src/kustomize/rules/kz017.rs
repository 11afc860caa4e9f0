//! KZ017: a setting that is refused.

use crate::admission::Level;
use crate::kustomize::finding::{Site, TreeFinding};
use crate::rule::RuleInfo;

/// The rule definition of KZ017.
pub(super) static RULE: RuleInfo = RuleInfo {
    id: "KZ017",
    name: "bad-setting",
    level: Level::Deny,
    summary: "sort options, variables, schemas or replacements that kustomize refuses",
    page: include_str!("../../../docs/rules/KZ017.md"),
};

/// Returns a finding about an unknown `openapi.version`.
pub(in crate::kustomize) fn schema_version(site: Site, version: &str, built_in: &str) -> TreeFinding {
    RULE.at(site, format!("the schema {version} is not built in")).found(version).allowed(built_in).help("take it out")
}

/// Returns a finding about an invalid entry of `crds`.
pub(in crate::kustomize) fn crds(site: Site, entry: &str, why: &str) -> TreeFinding {
    RULE.at(site, format!("\"{entry}\" {why}"))
        .allowed("schemas by name")
        .help("correct the file, or take the entry out")
}

/// Returns a finding about a duplicate name of a variable.
pub(in crate::kustomize) fn var(site: Site, name: &str, before: &Site) -> TreeFinding {
    RULE.at(site, format!("the variable {name} is there already ({before})")).found(name).help("give it another name")
}

/// Returns a finding about a variable that has no value.
pub(in crate::kustomize) fn variable(site: Site, name: &str, why: &str) -> TreeFinding {
    RULE.at(site, format!("the variable {name} {why}")).found(name).help("correct its objref and fieldref")
}

/// Returns a finding about a file of `openapi.path`.
pub(in crate::kustomize) fn schema(site: Site, why: &str) -> TreeFinding {
    RULE.at(site, format!("the schema {why}")).help("correct the file, or take the entry out")
}

/// Returns a finding about an unknown `sortOptions.order`.
pub(in crate::kustomize) fn sort_order(site: Site, order: &str) -> TreeFinding {
    RULE.at(site, format!("there is no order \"{order}\""))
        .found(order)
        .allowed("fifo or legacy")
        .help("write fifo or legacy")
}

/// Returns a finding about `sortOptions.legacySortOptions` with another order than `legacy`.
pub(in crate::kustomize) fn sort_legacy(site: Site) -> TreeFinding {
    RULE.at(site, "the order fifo has no options").help("take the options out, or write order: legacy")
}

/// Returns a finding about an invalid replacement.
pub(in crate::kustomize) fn replacement(site: Site, why: &str) -> TreeFinding {
    RULE.at(site, format!("the replacement {why}")).help("correct it")
}
