//! KZ024: a deprecated field in a kustomization file.

use crate::admission::Level;
use crate::kustomize::finding::{Site, TreeFinding};
use crate::rule::RuleInfo;

/// The rule definition of KZ024.
pub(in crate::kustomize) static RULE: RuleInfo = RuleInfo {
    id: "KZ024",
    name: "deprecated-field",
    level: Level::Audit,
    summary: "a field that kustomize warns about",
    page: include_str!("../../../docs/rules/KZ024.md"),
};

/// Returns a finding about the deprecated field `field`. `instead` is the name of the field that replaces it.
pub(in crate::kustomize) fn found(site: Site, field: &str, instead: &str) -> TreeFinding {
    RULE.at(site, format!("\"{field}\" is deprecated")).harmless().allowed(instead).help(format!("use \"{instead}\""))
}
