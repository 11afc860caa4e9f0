//! KZ050: a kustomization file that is applied as an object to the API server.

use crate::admission::{FieldPath, Finding, Level, Metadata, Request};
use crate::catalog::View;
use crate::kustomize::annotations::PATH_ANNOTATION;
use crate::rule::{Match, Rule, RuleInfo};

const GROUP: &str = "kustomize.config.k8s.io";

static MATCHERS: [Match; 2] = [
    Match::create_or_update(GROUP, &["v1beta1"], "kustomizations", "Kustomization"),
    Match::create_or_update(GROUP, &["v1alpha1"], "components", "Component"),
];

/// The rule definition of KZ050.
pub(super) static RULE: Rule = Rule {
    info: RuleInfo {
        id: "KZ050",
        name: "kustomization-as-object",
        level: Level::Deny,
        summary: "a kustomization file applied to the cluster as an object",
        page: include_str!("../../../docs/rules/KZ050.md"),
    },
    matchers: &MATCHERS,
    looks_up: &[],
    live_reads: None,
    check,
};

fn check(request: &Request<'_>, _: &View<'_>) -> Vec<Finding> {
    let says_where = Metadata::of(request.object()).annotations().is_some_and(|all| all.contains_key(PATH_ANNOTATION));
    if request.resource.group != GROUP || says_where {
        return Vec::new();
    }
    let message = "this is an input of kustomize, not a cluster object: no controller processes it";
    vec![RULE.finding(FieldPath::root(), message).help(format!(
        "use kubectl apply -k <folder>; to store it in the cluster, set its folder in the annotation {PATH_ANNOTATION}"
    ))]
}
