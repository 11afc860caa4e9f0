//! KZ018: variables that kustomize-controller cannot put in.

use crate::admission::Level;
use crate::kustomize::finding::{Site, TreeFinding};
use crate::kustomize::rule::{TreeExample, TreePage, TreeRule};

/// The row of KZ018.
pub(in crate::kustomize) static RULE: TreeRule = TreeRule {
    id: "KZ018",
    name: "flux-substitution",
    level: Level::Deny,
    summary: "an object that variables of a Flux Kustomization's postBuild cannot be put into",
    page: TreePage {
        why: "kustomize-controller puts the variables of `spec.postBuild` into the whole text of every object that was built. Its language is not the shell's: `${a-b}` is an error, `${{ x }}` is one too, and so is a variable that is not set and has no default (since Flux 2.8). Names of variables consist of letters, digits and underscores. One such text in one object fails the whole Kustomization.",
        wrong: TreeExample {
            substitute: &[("cluster", "prod")],
            ..TreeExample::flux(
                "apps",
                &[
                    (
                        "apps/kustomization.yaml",
                        "\
resources:
  - workflow.yaml
",
                    ),
                    (
                        "apps/workflow.yaml",
                        "\
apiVersion: v1
kind: ConfigMap
metadata:
  name: workflow
data:
  run: deploy ${{ github.sha }} to ${cluster}
",
                    ),
                ],
            )
        },
        right: TreeExample {
            substitute: &[("cluster", "prod")],
            ..TreeExample::flux(
                "apps",
                &[
                    (
                        "apps/kustomization.yaml",
                        "\
resources:
  - workflow.yaml
",
                    ),
                    (
                        "apps/workflow.yaml",
                        "\
apiVersion: v1
kind: ConfigMap
metadata:
  name: workflow
data:
  run: deploy $${{ github.sha }} to ${cluster}
",
                    ),
                ],
            )
        },
        mend: "Write `$${` where the characters themselves are meant, or set the label or annotation `kustomize.toolkit.fluxcd.io/substitute: disabled` on the object. Set every variable, or give it a default: `${name:=value}`.",
    },
};

/// Returns a finding about an object that variables cannot be put into.
pub(in crate::kustomize) fn found(site: Site, object: &str, why: &str) -> TreeFinding {
    RULE.finding(site, format!("variables cannot be put into {object}: {why}")).help(
        "write $${ for the characters themselves, or annotate the object kustomize.toolkit.fluxcd.io/substitute: disabled",
    )
}

/// Returns a finding about a variable whose name Flux refuses.
pub(in crate::kustomize) fn bad_name(site: Site, name: &str) -> TreeFinding {
    RULE.finding(site, format!("\"{name}\" is no name of a variable"))
        .found(name)
        .allowed("letters, digits and underscores, no digit first")
        .help("rename the variable")
}
