//! KZ011: a component of a Flux Kustomization that is not local.

use crate::admission::Level;
use crate::kustomize::finding::{Site, TreeFinding};
use crate::kustomize::rule::{TreeExample, TreePage, TreeRule};

/// The row of KZ011.
pub(super) static RULE: TreeRule = TreeRule {
    id: "KZ011",
    name: "flux-component-not-local",
    level: Level::Deny,
    summary: "an entry of spec.components of a Flux Kustomization that is not a local, relative path",
    page: TreePage {
        why: "Flux takes only local and relative paths in `spec.components`, and refuses others before it builds anything. At admission this is found without looking into the tree, and refused: whoever applies the object wrote it. Mind that kustomize-controller applies a Kustomization that is part of another one's tree with a dry run first: a denied one blocks all that the outer one applies. See docs/delivery.md.",
        wrong: TreeExample {
            components: &["https://github.com/org/repo//components/ldap"],
            ..TreeExample::flux(
                "base",
                &[
                    (
                        "base/kustomization.yaml",
                        "\
resources:
  - settings.yaml
",
                    ),
                    (
                        "base/settings.yaml",
                        "\
apiVersion: v1
kind: ConfigMap
metadata:
  name: settings
data:
  color: blue
",
                    ),
                ],
            )
        },
        right: TreeExample {
            components: &["../components/ldap"],
            ..TreeExample::flux(
                "base",
                &[
                    (
                        "base/kustomization.yaml",
                        "\
resources:
  - settings.yaml
",
                    ),
                    (
                        "base/settings.yaml",
                        "\
apiVersion: v1
kind: ConfigMap
metadata:
  name: settings
data:
  color: blue
",
                    ),
                    (
                        "components/ldap/kustomization.yaml",
                        "\
apiVersion: kustomize.config.k8s.io/v1alpha1
kind: Component
nameSuffix: -ldap
",
                    ),
                ],
            )
        },
        mend: "Keep the component in the same source, and name it relative to `spec.path`.",
    },
};

/// What Flux takes for the beginning of an address.
const ADDRESSES: [&str; 8] = ["git::", "gh:", "ssh://", "https://", "http://", "git@", "github.com:", "github.com/"];

/// Whether Flux takes a path for local and relative (`IsLocalRelativePath`).
pub(in crate::kustomize) fn is_local(path: &str) -> bool {
    let lower = path.to_lowercase();
    let is_address = ADDRESSES.into_iter().any(|address| address.len() < path.len() && lower.starts_with(address));
    !is_address && !lower.strip_prefix("file://").unwrap_or(&lower).starts_with('/')
}

/// A finding about an entry of `spec.components`.
pub(in crate::kustomize) fn found(site: Site, entry: &str) -> TreeFinding {
    RULE.finding(site, format!("\"{entry}\" is not a local, relative path"))
        .found(entry)
        .allowed("paths relative to spec.path")
        .help("keep the component in the same source, and name it relative to spec.path")
}
