//! KZ011: an entry of a Flux Kustomization's `spec.components` that is not a local path.

use crate::admission::Level;
use crate::kustomize::finding::{Site, TreeFinding};
use crate::rule::RuleInfo;

/// The rule definition of KZ011.
pub(super) static RULE: RuleInfo = RuleInfo {
    id: "KZ011",
    name: "flux-component-not-local",
    level: Level::Deny,
    summary: "an entry of spec.components of a Flux Kustomization that is not a local, relative path",
    page: include_str!("../../../docs/rules/KZ011.md"),
};

/// The prefixes by which Flux recognizes that a path is a remote address.
const ADDRESSES: [&str; 8] = ["git::", "gh:", "ssh://", "https://", "http://", "git@", "github.com:", "github.com/"];

/// Returns whether Flux treats a path as local and relative (`IsLocalRelativePath`).
pub(in crate::kustomize) fn is_local(path: &str) -> bool {
    let lower = path.to_lowercase();
    let is_address = ADDRESSES.into_iter().any(|address| address.len() < path.len() && lower.starts_with(address));
    !is_address && !lower.strip_prefix("file://").unwrap_or(&lower).starts_with('/')
}

/// Returns a finding about an entry of `spec.components` that is not a relative path of a local folder.
pub(in crate::kustomize) fn found(site: Site, entry: &str) -> TreeFinding {
    RULE.at(site, format!("\"{entry}\" is not a local, relative path"))
        .found(entry)
        .allowed("paths relative to spec.path")
        .help("keep the component in the same source, and write its path relative to spec.path")
}
