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

/// Returns a finding about a file that cannot be decoded: a kustomization file, or a file that a kustomization lists
/// under `configurations`. `problem` is the reason.
pub(in crate::kustomize) fn malformed(site: Site, problem: &str) -> TreeFinding {
    RULE.at(site, format!("this file cannot be read: {problem}"))
        .help("correct the YAML; indent with spaces, not with tabs")
}

/// Returns a finding about a duplicate key in a file that a kustomization lists under `configurations`. kustomize
/// rejects duplicate keys in such a file.
pub(in crate::kustomize) fn duplicate_key(site: Site) -> TreeFinding {
    let message = format!("duplicate key {}", site.field);
    RULE.at(site, message).help("keep one of them")
}

/// Returns a finding about a kustomization file in which no field has an effect. `component` is `true` if the file
/// defines a Component.
pub(in crate::kustomize) fn empty(site: Site, component: bool) -> TreeFinding {
    let help = if component {
        "add a field such as \"patches:\", or remove the component"
    } else {
        "list the files and folders to build under \"resources:\""
    };
    RULE.at(site, "kustomize treats this kustomization file as empty").help(help)
}

/// Returns a finding about an unknown field in the kustomization file of the folder that Flux builds. Flux removes
/// unknown fields of this file before the build.
pub(in crate::kustomize) fn ignored_field(site: Site, fault: &Fault) -> TreeFinding {
    let (finding, _) = decoding_error(site, fault);
    TreeFinding { level: Level::Warn, message: format!("{}; Flux ignores it", finding.message), ..finding }.harmless()
}

/// Returns a finding about an unknown field or a wrong type in a kustomization file. The returned `bool` is `true` if
/// `fault` is an unknown field.
pub(in crate::kustomize) fn decoding_error(site: Site, fault: &Fault) -> (TreeFinding, bool) {
    match &fault.kind {
        FaultKind::Unknown { key, of, allowed, near } => {
            let help = match (near, *of) {
                (Some(near), _) => format!("did you mean \"{near}\"?"),
                (None, "Kustomization") if key == "spec" => {
                    "move objects of Flux or Argo CD to a file with another name".to_owned()
                }
                _ => "remove it".to_owned(),
            };
            let finding = RULE.at(site, format!("there is no field \"{key}\" in {of}"));
            (finding.found(key.clone()).allowed(allowed.join(", ")).help(help), true)
        }
        FaultKind::Type { expected, found } => {
            let quoted = if found == "true" || found == "false" {
                "YAML reads yes, no, on, off, y and n as booleans: put the value in quotes"
            } else {
                "write a value of the expected type; put strings in quotes"
            };
            let finding = RULE.at(site, format!("{found} is not allowed here; expected {expected}"));
            (finding.found(found.clone()).allowed(*expected).help(quoted), false)
        }
    }
}
