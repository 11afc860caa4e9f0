//! KZ002: a Kustomization listed under `components`.

use crate::admission::Level;
use crate::kustomize::finding::Fix;
use crate::kustomize::finding::{Site, TreeFinding};
use crate::rule::RuleInfo;

/// The rule definition of KZ002.
pub(in crate::kustomize) static RULE: RuleInfo = RuleInfo {
    id: "KZ002",
    name: "kustomization-as-component",
    level: Level::Deny,
    summary: "a Kustomization listed as a component",
    page: include_str!("../../../docs/rules/KZ002.md"),
};

/// Returns the finding that an entry of the list `components` refers to a Kustomization instead of a Component. `entry`
/// is the text of the entry, and `index` is its position in the list.
///
/// `has_kind` is `true` if the kustomization file of the Kustomization contains the field `kind`. `defined` is the
/// position of this field, or of the whole YAML document if the field is missing.
pub(in crate::kustomize) fn found(
    site: Site,
    index: usize,
    entry: &str,
    defined: &Site,
    has_kind: bool,
) -> TreeFinding {
    let why = if has_kind { "" } else { ", because it sets no kind" };
    RULE.at(site, format!("\"{entry}\" is a Kustomization{why} ({defined})"))
        .found(if has_kind { "kind: Kustomization" } else { "no kind" })
        .allowed("folders with a Component")
        .help(
            "list it under \"resources:\", or make it a Component: apiVersion kustomize.config.k8s.io/v1alpha1, kind \
             Component",
        )
        .fix(Fix::MoveEntry { from: "components".to_owned(), index, to: "resources".to_owned() })
}
