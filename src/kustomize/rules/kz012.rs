//! KZ012: a Component below a folder without a kustomization file.
//!
//! Flux generates the missing file, and lists the Component in it as a resource.

use crate::admission::Level;
use crate::kustomize::finding::{Site, TreeFinding};
use crate::kustomize::tree::TreePath;
use crate::rule::RuleInfo;

/// The rule definition of KZ012.
pub(super) static RULE: RuleInfo = RuleInfo {
    id: "KZ012",
    name: "flux-generates-component",
    level: Level::Deny,
    summary: "a Component below a spec.path without kustomization file, which Flux lists as a resource",
    page: include_str!("../../../docs/rules/KZ012.md"),
};

/// Returns a finding about a Component in `folder`, which is inside the folder `root`. Flux generates a kustomization
/// file for `root`, and this file lists the Component as a resource.
pub(in crate::kustomize) fn found(site: Site, folder: &TreePath, root: &TreePath) -> TreeFinding {
    let message = format!(
        "{root} has no kustomization file: Flux generates one that lists {folder} (kind: Component) as a resource, which fails"
    );
    RULE.at(site, message).help(format!("add {root}/kustomization.yaml, or move the component out of {root}"))
}
