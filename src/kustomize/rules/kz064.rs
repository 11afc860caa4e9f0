//! KZ064: a Namespace that `targetNamespace` of a Flux Kustomization renames.
//!
//! Source: the field specifications of `namespace` in kustomize's `api/internal/konfig/builtinpluginconsts`. They
//! contain `metadata/name` of Namespaces.

use crate::admission::Level;
use crate::kustomize::finding::{Site, TreeFinding};
use crate::rule::RuleInfo;

/// The rule definition of KZ064.
pub(in crate::kustomize) static RULE: RuleInfo = RuleInfo {
    id: "KZ064",
    name: "target-namespace-renames-namespace",
    level: Level::Warn,
    summary: "a Namespace with another name than the targetNamespace of the Flux Kustomization that renders it",
    page: include_str!("../../../docs/rules/KZ064.md"),
};

/// Returns a finding about the Namespace `name`, which is rendered with the name `target`.
pub(in crate::kustomize) fn found(site: Site, name: &str, target: &str) -> TreeFinding {
    let message = format!(
        "targetNamespace renames Namespace {name} to {target}: Flux applies it to the namespace {target} itself, and if it prunes, \
         it deletes {target} with everything in it once the tree does not have this Namespace any more"
    );
    RULE.at(site, message).harmless().found(name).help(format!(
        "remove Namespace {name} from the tree, or remove targetNamespace and set the namespace of each object"
    ))
}
