//! KZ007: a wrong kind or apiVersion.

use crate::admission::Level;
use crate::kustomize::file::{COMPONENT, Kustomization};
use crate::kustomize::finding::{Site, TreeFinding};
use crate::kustomize::rule::{TreeExample, TreePage, TreeRule};
use crate::suggestion::most_similar;

/// The row of KZ007.
pub(super) static RULE: TreeRule = TreeRule {
    id: "KZ007",
    name: "wrong-kind",
    level: Level::Deny,
    summary: "a kustomization file of another kind or apiVersion than kustomize takes",
    page: TreePage {
        why: "A Kustomization has the apiVersion `kustomize.config.k8s.io/v1beta1`, a Component `kustomize.config.k8s.io/v1alpha1`, both spelled just so; \"upgrading\" a Component to v1beta1 breaks it. Where the kind is not said it is Kustomization. A Flux Kustomization in a file named `kustomization.yaml` is taken for a kustomization file and refused.",
        wrong: TreeExample::new(
            "components/ldap",
            &[(
                "components/ldap/kustomization.yaml",
                "\
apiVersion: kustomize.config.k8s.io/v1beta1
kind: Component
nameSuffix: -ldap
",
            )],
        ),
        right: TreeExample::new(
            "components/ldap",
            &[(
                "components/ldap/kustomization.yaml",
                "\
apiVersion: kustomize.config.k8s.io/v1alpha1
kind: Component
nameSuffix: -ldap
",
            )],
        ),
        mend: "Write the apiVersion that goes with the kind.",
    },
};

/// Findings about the kind and the apiVersion; `at` gives the place of a field.
pub(in crate::kustomize) fn found(kustomization: &Kustomization, at: &dyn Fn(&str) -> Site) -> Vec<TreeFinding> {
    let mut findings = Vec::new();
    let kind = kustomization.kind();
    if ![COMPONENT, "Kustomization"].contains(&kind) {
        let finding =
            RULE.finding(at("kind"), format!("kind is {kind}")).found(kind).allowed("Kustomization or Component");
        let near = most_similar(kind, [COMPONENT, "Kustomization"].into_iter());
        findings.push(match near {
            Some(near) => finding.help(format!("did you mean {near}?")),
            None => finding.help("kustomize takes no other kinds in a kustomization file"),
        });
    }
    let (said, required) = (kustomization.api_version.as_str(), kustomization.required_version());
    if !said.is_empty() && said != required {
        let finding =
            RULE.finding(at("apiVersion"), format!("apiVersion of a {kind} is {said}")).found(said).allowed(required);
        findings.push(if said.starts_with("kustomize.toolkit.fluxcd.io/") {
            finding.help("this is an object of Flux: give the file another name than a kustomization file has")
        } else {
            finding.help(format!("write apiVersion: {required}"))
        });
    }
    findings
}
