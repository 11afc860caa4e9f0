//! KZ050: a kustomization file as an object of the API server.

use crate::admission::{FieldPath, Finding, Level, Operation, Request};
use crate::catalog::View;
use crate::rule::{Example, Match, Outage, Page, Rule};

const GROUP: &str = "kustomize.config.k8s.io";
const WRITES: &[Operation] = &[Operation::Create, Operation::Update];

static SCOPE: [Match; 2] = [
    Match {
        group: GROUP,
        versions: &["v1beta1"],
        plural: "kustomizations",
        kind: "Kustomization",
        subresource: "",
        operations: WRITES,
        outage: Outage::Admit,
        reads: None,
    },
    Match {
        group: GROUP,
        versions: &["v1alpha1"],
        plural: "components",
        kind: "Component",
        subresource: "",
        operations: WRITES,
        outage: Outage::Admit,
        reads: None,
    },
];

/// The row of KZ050.
pub(super) static RULE: Rule = Rule {
    id: "KZ050",
    name: "kustomization-as-object",
    level: Level::Deny,
    summary: "a kustomization file applied to the cluster as if it were an object",
    scope: &SCOPE,
    looks_up: &[],
    confirm: None,
    check,
    page: Page {
        why: "A kustomization file is read by kustomize, not by a cluster. A cluster takes it only where somebody made a \
              resource definition for it, and then nothing comes of it.",
        wrong: Example {
            stored: "",
            operation: Operation::Create,
            object: "\
apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
metadata:
  name: app
resources:
  - deployment.yaml
",
        },
        right: Example {
            stored: "",
            operation: Operation::Create,
            object: "\
apiVersion: v1
kind: ConfigMap
metadata:
  name: app
",
        },
        mend: "Apply the folder: `kubectl apply -k <folder>`.",
    },
};

fn check(request: &Request<'_>, _: &View<'_>) -> Vec<Finding> {
    if request.resource.group != GROUP {
        return Vec::new();
    }
    let message = "this is an input of kustomize, not an object of the cluster: nothing will come of it";
    vec![RULE.finding(FieldPath::root(), message).help("use kubectl apply -k <folder>")]
}
