//! KZ007: a wrong kind or apiVersion in a kustomization file.

use crate::admission::Level;
use crate::kustomize::file::{COMPONENT, Kustomization};
use crate::kustomize::finding::{Site, TreeFinding};
use crate::rule::RuleInfo;
use crate::suggestion::most_similar;

/// The rule definition of KZ007.
pub(super) static RULE: RuleInfo = RuleInfo {
    id: "KZ007",
    name: "wrong-kind",
    level: Level::Deny,
    summary: "a kustomization file with a kind or apiVersion that kustomize does not accept",
    page: include_str!("../../../docs/rules/KZ007.md"),
};

/// Returns findings about an invalid kind or apiVersion of a kustomization file. `at` receives the name of a field, and
/// returns where the field is in the file.
pub(in crate::kustomize) fn found(kustomization: &Kustomization, at: &dyn Fn(&str) -> Site) -> Vec<TreeFinding> {
    let mut findings = Vec::new();
    let kind = kustomization.kind();
    if ![COMPONENT, "Kustomization"].contains(&kind) {
        let finding = RULE.at(at("kind"), format!("kind is {kind}")).found(kind).allowed("Kustomization or Component");
        let near = most_similar(kind, [COMPONENT, "Kustomization"].into_iter());
        findings.push(match near {
            Some(near) => finding.help(format!("did you mean {near}?")),
            None => finding.help("write kind: Kustomization or kind: Component"),
        });
    }
    let (said, required) = (kustomization.api_version.as_str(), kustomization.required_version());
    if !said.is_empty() && said != required {
        let finding =
            RULE.at(at("apiVersion"), format!("apiVersion of a {kind} is {said}")).found(said).allowed(required);
        findings.push(if said.starts_with("kustomize.toolkit.fluxcd.io/") {
            finding.help("this is a Flux object: rename the file, because only kustomization files may have this name")
        } else {
            finding.help(format!("write apiVersion: {required}"))
        });
    }
    findings
}
