//! KZ017: a setting in a kustomization file that kustomize rejects.

use crate::admission::Level;
use crate::kustomize::finding::{Site, TreeFinding};
use crate::rule::RuleInfo;

/// The rule definition of KZ017.
pub(super) static RULE: RuleInfo = RuleInfo {
    id: "KZ017",
    name: "bad-setting",
    level: Level::Deny,
    summary: "sort options, variables, schemas or replacements that kustomize rejects",
    page: include_str!("../../../docs/rules/KZ017.md"),
};

/// Returns a finding about an unknown `openapi.version`. `built_in` is the only known version.
pub(in crate::kustomize) fn unknown_schema_version(site: Site, version: &str, built_in: &str) -> TreeFinding {
    RULE.at(site, format!("the schema {version} is not built in")).found(version).allowed(built_in).help("remove it")
}

/// Returns a finding about an invalid entry of `crds`. The message of the finding is the entry, followed by `why`.
pub(in crate::kustomize) fn invalid_crds(site: Site, entry: &str, why: &str) -> TreeFinding {
    RULE.at(site, format!("\"{entry}\" {why}"))
        .allowed("a mapping of names to schemas")
        .help("correct the file, or remove the entry")
}

/// Returns a finding about a duplicate name in `vars`. `site` is the position of the later entry with this name, and
/// `before` is the position of the earlier entry.
pub(in crate::kustomize) fn duplicate_var(site: Site, name: &str, before: &Site) -> TreeFinding {
    RULE.at(site, format!("the variable {name} already exists ({before})")).found(name).help("give it another name")
}

/// Returns a finding about an entry of `vars` whose value cannot be determined. `why` completes a sentence whose
/// subject is the variable, such as `may select several objects`.
pub(in crate::kustomize) fn unresolved_var(site: Site, name: &str, why: &str) -> TreeFinding {
    RULE.at(site, format!("the variable {name} {why}")).found(name).help("correct its objref and fieldref")
}

/// Returns a finding about an invalid schema in `openapi`. `why` completes a sentence whose subject is the schema, such
/// as `has both a version and a path`.
pub(in crate::kustomize) fn invalid_schema(site: Site, why: &str) -> TreeFinding {
    RULE.at(site, format!("the schema {why}")).help("correct the file, or remove the entry")
}

/// Returns a finding about an unknown `sortOptions.order`.
pub(in crate::kustomize) fn unknown_sort_order(site: Site, order: &str) -> TreeFinding {
    RULE.at(site, format!("unknown order \"{order}\""))
        .found(order)
        .allowed("fifo or legacy")
        .help("write fifo or legacy")
}

/// Returns a finding about `sortOptions.legacySortOptions` with an order other than `legacy`.
pub(in crate::kustomize) fn invalid_legacy_sort(site: Site) -> TreeFinding {
    RULE.at(site, "the order fifo has no options").help("remove the options, or write order: legacy")
}

/// Returns a finding about an invalid entry of `replacements`. `why` completes a sentence whose subject is the
/// replacement, such as `has both a source and a sourceValue`.
pub(in crate::kustomize) fn invalid_replacement(site: Site, why: &str) -> TreeFinding {
    RULE.at(site, format!("the replacement {why}")).help("correct it")
}
