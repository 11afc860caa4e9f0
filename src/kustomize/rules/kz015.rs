//! KZ015: reports Helm charts and plugins that kustomize does not run.
//!
//! kustomize runs Helm charts and external plugins only if a flag such as `--enable-helm` is set. The rule also reports
//! plugins that kustomize does not know.

use crate::admission::Level;
use crate::kustomize::finding::{Site, TreeFinding};
use crate::rule::RuleInfo;

/// The rule definition of KZ015.
pub(super) static RULE: RuleInfo = RuleInfo {
    id: "KZ015",
    name: "plugin-disabled",
    level: Level::Deny,
    summary: "a Helm chart or an external plugin, which kustomize does not run by default",
    page: include_str!("../../../docs/rules/KZ015.md"),
};

/// Returns the finding that a kustomization uses Helm charts, but the build runs without `--enable-helm`.
pub(in crate::kustomize) fn helm(site: Site) -> TreeFinding {
    RULE.at(site, "Helm charts are not inflated unless that is enabled")
        .help("build with --enable-helm, or render the chart into the tree")
}

/// Returns a finding about an external plugin, for which the build needs a flag.
pub(in crate::kustomize) fn external(site: Site, kind: &str) -> TreeFinding {
    RULE.at(site, format!("the external plugin {kind} does not run unless that is enabled"))
        .help("build with --enable-alpha-plugins, or use a built-in one: apiVersion builtin")
}

/// Returns a finding about a plugin of the kind `kind` that is not built in, or is not allowed in the field `list`,
/// such as `generators`.
pub(in crate::kustomize) fn unknown(site: Site, kind: &str, list: &str) -> TreeFinding {
    RULE.at(site, format!("{kind} is not a built-in plugin for {list}"))
        .found(kind)
        .help("check its kind, and the field that lists it")
}
