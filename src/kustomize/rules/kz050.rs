//! KZ050: a kustomization file as an object of the API server.

use crate::admission::{FieldPath, Finding, Level, Metadata, Operation, Request};
use crate::catalog::View;
use crate::kustomize::delivery::PATH_ANNOTATION;
use crate::rule::{Example, Match, Page, Rule};

const GROUP: &str = "kustomize.config.k8s.io";

static SCOPE: [Match; 2] = [
    Match::written(GROUP, &["v1beta1"], "kustomizations", "Kustomization"),
    Match::written(GROUP, &["v1alpha1"], "components", "Component"),
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
              resource definition for it, and then nothing comes of it. Who keeps them there on purpose says by the \
              annotation `portcullis.dev/path` in which folder of the namespace's tree each stands: then they are judged \
              against one another, as files are (KZ001, KZ002, KZ004, KZ006, KZ009), in both directions.",
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
apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
metadata:
  name: app
  annotations:
    portcullis.dev/path: clusters/prod/app
resources:
  - deployment.yaml
",
        },
        mend: "Apply the folder: `kubectl apply -k <folder>`. Or, if it is to be kept as an object, give it the annotation.",
    },
};

fn check(request: &Request<'_>, _: &View<'_>) -> Vec<Finding> {
    let says_where = Metadata::of(request.object()).annotations().is_some_and(|all| all.contains_key(PATH_ANNOTATION));
    if request.resource.group != GROUP || says_where {
        return Vec::new();
    }
    let message = "this is an input of kustomize, not an object of the cluster: nothing will come of it";
    vec![RULE.finding(FieldPath::root(), message).help(format!(
        "use kubectl apply -k <folder>; one that is to be kept here says its folder in the annotation {PATH_ANNOTATION}"
    ))]
}
