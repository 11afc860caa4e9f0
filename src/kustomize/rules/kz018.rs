//! KZ018: an object in which kustomize-controller cannot substitute variables.

use crate::admission::Level;
use crate::kustomize::finding::{Site, TreeFinding};
use crate::rule::RuleInfo;

/// The rule definition of KZ018.
pub(in crate::kustomize) static RULE: RuleInfo = RuleInfo {
    id: "KZ018",
    name: "flux-substitution",
    level: Level::Deny,
    summary: "an object on which the variable substitution of a Flux Kustomization fails",
    page: include_str!("../../../docs/rules/KZ018.md"),
};

/// Returns a finding about an object in which Flux cannot substitute variables. `object` names the object, and `why` is
/// the reason.
pub(in crate::kustomize) fn found(site: Site, object: &str, why: &str) -> TreeFinding {
    RULE.at(site, format!("variables cannot be substituted in {object}: {why}")).help(
        "write $${ for a literal ${, or annotate the object with kustomize.toolkit.fluxcd.io/substitute: disabled",
    )
}

/// Returns a finding about a variable whose name Flux rejects.
pub(in crate::kustomize) fn invalid_name(site: Site, name: &str) -> TreeFinding {
    RULE.at(site, format!("\"{name}\" is not a valid variable name"))
        .found(name)
        .allowed("letters, digits and underscores, no digit first")
        .help("rename the variable")
}
