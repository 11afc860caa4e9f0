//! KZ022: a second YAML document, a duplicate key, or a key in the wrong case in a kustomization file.

use crate::admission::Level;
use crate::kustomize::finding::{Site, TreeFinding};
use crate::rule::RuleInfo;

/// The rule definition of KZ022.
pub(super) static RULE: RuleInfo = RuleInfo {
    id: "KZ022",
    name: "overlooked-text",
    level: Level::Warn,
    summary: "a second document, a duplicate key or a misspelled field in a kustomization file",
    page: include_str!("../../../docs/rules/KZ022.md"),
};

/// Returns a finding about a second YAML document in a kustomization file, which kustomize ignores.
pub(in crate::kustomize) fn second_document(site: Site) -> TreeFinding {
    RULE.at(site, "kustomize does not read this second document").harmless().help("merge the documents into one")
}

/// Returns a finding about a duplicate key in a kustomization file, at `site`. kustomize ignores the first value of the
/// key, on line `lost`.
pub(in crate::kustomize) fn duplicate_key(site: Site, lost: u32) -> TreeFinding {
    RULE.at(site, format!("duplicate key: kustomize ignores its value on line {lost}"))
        .harmless()
        .help("write the key once")
}

/// Returns a finding about a key of a kustomization file that differs from the field `name` only in case.
pub(in crate::kustomize) fn wrong_case(site: Site, name: &str) -> TreeFinding {
    RULE.at(site, format!("kustomize reads this as \"{name}\""))
        .harmless()
        .allowed(name)
        .help(format!("write \"{name}\""))
}
