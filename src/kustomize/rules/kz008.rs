//! KZ008: a kustomization file that cannot be decoded.

use crate::admission::Level;
use crate::kustomize::file::{Fault, FaultKind};
use crate::kustomize::finding::{Site, TreeFinding};
use crate::rule::RuleInfo;

/// The rule definition of KZ008.
pub(super) static RULE: RuleInfo = RuleInfo {
    id: "KZ008",
    name: "unreadable-kustomization",
    level: Level::Deny,
    summary: "a kustomization file that is not YAML, is empty, or has unknown fields or wrong types",
    page: include_str!("../../../docs/rules/KZ008.md"),
};

/// Returns a finding about a kustomization file, or a file in its list `configurations`, that cannot be decoded.
pub(in crate::kustomize) fn malformed(site: Site, problem: &str) -> TreeFinding {
    RULE.at(site, format!("this cannot be read: {problem}")).help("correct the YAML; tabs do not indent")
}

/// Returns a finding about a duplicate key in a file that a kustomization lists under `configurations`. kustomize
/// rejects duplicate keys in such a file.
pub(in crate::kustomize) fn duplicate_key(site: Site) -> TreeFinding {
    let message = format!("the key {} is there twice", site.field);
    RULE.at(site, message).help("keep one of them")
}

/// Returns a finding about a kustomization file in which no field has an effect.
pub(in crate::kustomize) fn empty(site: Site, component: bool) -> TreeFinding {
    let help = if component {
        "say what the component does, or take it out"
    } else {
        "list what is to be built under \"resources:\""
    };
    RULE.at(site, "the kustomization file says nothing").help(help)
}

/// Returns a finding about an unknown field in the kustomization file of the folder that Flux builds. Flux removes
/// unknown fields of this file before the build.
pub(in crate::kustomize) fn ignored_field(site: Site, fault: &Fault) -> TreeFinding {
    let (finding, _) = decoding_error(site, fault);
    TreeFinding { level: Level::Warn, message: format!("{}; Flux leaves it out", finding.message), ..finding }
        .harmless()
}

/// Returns a finding about an unknown field or a wrong type in a kustomization file. The `bool` is `true` if the field
/// is unknown.
pub(in crate::kustomize) fn decoding_error(site: Site, fault: &Fault) -> (TreeFinding, bool) {
    match &fault.kind {
        FaultKind::Unknown { key, of, allowed, near } => {
            let help = match (near, *of) {
                (Some(near), _) => format!("did you mean \"{near}\"?"),
                (None, "Kustomization") if key == "spec" => {
                    "an object of Flux or Argo CD belongs in a file of another name".to_owned()
                }
                _ => "take it out".to_owned(),
            };
            let finding = RULE.at(site, format!("there is no field \"{key}\" in {of}"));
            (finding.found(key.clone()).allowed(allowed.join(", ")).help(help), true)
        }
        FaultKind::Type { expected, found } => {
            let quoted = if found == "true" || found == "false" {
                "YAML takes yes, no, on, off, y and n for booleans: put the value into quotes"
            } else {
                "write it as it is wanted, with quotes if it is a string"
            };
            let finding = RULE.at(site, format!("{found} stands where {expected} is wanted"));
            (finding.found(found.clone()).allowed(*expected).help(quoted), false)
        }
    }
}
