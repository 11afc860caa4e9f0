//! KZ001: a Component in a list of resources.

use crate::admission::Level;
use crate::kustomize::finding::Fix;
use crate::kustomize::finding::{Site, TreeFinding};
use crate::rule::RuleInfo;

/// The rule definition of KZ001.
pub(in crate::kustomize) static RULE: RuleInfo = RuleInfo {
    id: "KZ001",
    name: "component-as-resource",
    level: Level::Deny,
    summary: "a Component listed as a resource, base, generator, transformer or validator",
    page: include_str!("../../../docs/rules/KZ001.md"),
};

/// Returns the finding that a list other than `components` refers to a Component. `list` is the name of the list, such
/// as `resources`. `entry` is the reference to the Component, and `index` is its index in the list. `defined` says in
/// which file and line the Component sets `kind`.
pub(in crate::kustomize) fn found(site: Site, list: &str, index: usize, entry: &str, defined: &Site) -> TreeFinding {
    let message = format!("\"{entry}\" is a kustomize Component ({defined})");
    let finding = RULE.at(site, message).found("kind: Component");
    match list {
        "resources" | "bases" => finding
            .allowed("manifests, and folders with a Kustomization")
            .help(format!("list it under \"components:\" instead of \"{list}:\""))
            .fix(Fix::MoveEntry { from: list.to_owned(), index, to: "components".to_owned() }),
        _ => finding.allowed(format!("configurations of plugins; {list} does not accept Components")).help(format!(
            "list it under \"components:\", or list the configuration of the plugin itself under \"{list}:\""
        )),
    }
}
