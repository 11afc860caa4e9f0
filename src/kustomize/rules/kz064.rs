//! KZ064: reports a Namespace that Flux renames, because `targetNamespace` of a Kustomization differs from the name of
//! the Namespace.
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

/// Returns the finding that `targetNamespace` of a Flux Kustomization renames the Namespace `name` to `target`. If this
/// Namespace is later removed from the tree, Flux may delete the Namespace `target` with everything in it.
pub(in crate::kustomize) fn found(site: Site, name: &str, target: &str) -> TreeFinding {
    let message = format!(
        "targetNamespace renames Namespace {name} to {target}: Flux applies it to the namespace {target} itself, and if it prunes, \
         it deletes {target} with everything in it once the tree no longer contains this Namespace"
    );
    RULE.at(site, message).harmless().found(name).help(format!(
        "remove Namespace {name} from the tree, or remove targetNamespace and set the namespace of each object"
    ))
}
