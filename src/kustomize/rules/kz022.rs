//! KZ022: text that kustomize passes over.

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

/// Returns a finding about a document that is not read.
pub(in crate::kustomize) fn second_document(site: Site) -> TreeFinding {
    RULE.at(site, "kustomize does not read this second document").harmless().help("make one document of the file")
}

/// A finding about a key whose first value, on line `lost`, is lost.
pub(in crate::kustomize) fn duplicate(site: Site, lost: u32) -> TreeFinding {
    RULE.at(site, format!("the key is on line {lost} already, and what it says there is lost"))
        .harmless()
        .help("write the key once")
}

/// Returns a finding about a field in another case.
pub(in crate::kustomize) fn other_case(site: Site, name: &str) -> TreeFinding {
    RULE.at(site, format!("kustomize takes this for \"{name}\""))
        .harmless()
        .allowed(name)
        .help(format!("write \"{name}\""))
}
