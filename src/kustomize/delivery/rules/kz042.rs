//! KZ042: a `spec.path` of a Flux Kustomization that leads to a folder outside of the Flux source.

use crate::admission::json::Lookup as _;
use crate::admission::{FieldPath, Finding, Level, Request};
use crate::catalog::View;
use crate::kustomize::delivery::kustomization::MATCHERS;
use crate::kustomize::tree::TreePath;
use crate::rule::{Rule, RuleInfo};

/// The rule definition of KZ042.
pub(super) static RULE: Rule = Rule {
    info: RuleInfo {
        id: "KZ042",
        name: "flux-path-leaves-source",
        level: Level::Warn,
        summary: "a spec.path of a Flux Kustomization that points outside of the source",
        page: include_str!("../../../../docs/rules/KZ042.md"),
    },
    matchers: &MATCHERS,
    looks_up: &[],
    live_reads: None,
    check,
};

fn check(request: &Request<'_>, _: &View<'_>) -> Vec<Finding> {
    let path = request.object().at(&["spec", "path"]).and_then(serde_json::Value::as_str).unwrap_or_default();
    if path.contains("${") || !leaves(path) {
        return Vec::new();
    }
    let taken = TreePath::from(path);
    let message = format!("\"{path}\" points outside of the source; Flux treats it as \"{taken}\"");
    vec![
        RULE.finding(FieldPath::of(["spec", "path"]), message)
            .found(path)
            .help("write the path relative to the root of the source"),
    ]
}

fn leaves(path: &str) -> bool {
    let mut depth = 0_usize;
    for name in path.split('/').filter(|name| !["", "."].contains(name)) {
        match (name, depth) {
            ("..", 0) => return true,
            ("..", _) => depth -= 1,
            _ => depth += 1,
        }
    }
    false
}
