//! KZ065: reports `commonMetadata` of a Flux Kustomization if its labels or annotations prevent Flux from pruning
//! objects of the Kustomization.
//!
//! In kustomize-controller, `SetCommonMetadata` runs after `SetOwnerLabels`. So a label in `commonMetadata` can replace
//! a label that names the Kustomization as the owner of the object.
//!
//! Source: `apply` and `deleteObjects` in kustomize-controller's `internal/controller/kustomization_controller.go`.

use serde_json::Value;

use crate::admission::json::Lookup as _;
use crate::admission::{FieldPath, Finding, Level, Request};
use crate::catalog::View;
use crate::kustomize::delivery::fate::OPT_OUTS;
use crate::kustomize::delivery::kustomization::{GROUP, MATCHERS, is_open};
use crate::rule::{Rule, RuleInfo};

/// The rule definition of KZ065.
pub(super) static RULE: Rule = Rule {
    info: RuleInfo {
        id: "KZ065",
        name: "common-metadata-defeats-pruning",
        level: Level::Warn,
        summary: "a commonMetadata of a Flux Kustomization that replaces its owner labels, or excludes all objects from pruning",
        page: include_str!("../../../../docs/rules/KZ065.md"),
    },
    matchers: &MATCHERS,
    looks_up: &[],
    live_reads: None,
    check,
};

fn check(request: &Request<'_>, _: &View<'_>) -> Vec<Finding> {
    let object = request.object();
    if object.at(&["spec", "commonMetadata"]).is_none() || request.is_deleting() || !deletes(object) {
        return Vec::new();
    }
    let own = [("name", request.display_name()), ("namespace", request.namespace.to_string())];
    let of = |place: &'static str| {
        let members = object.at(&["spec", "commonMetadata", place]).and_then(Value::as_object);
        members.into_iter().flatten().filter_map(move |(key, value)| Some((place, key, value.as_str()?)))
    };
    let found = of("labels").chain(of("annotations")).filter(|(.., value)| !is_open(value));
    found.filter_map(|(place, key, value)| finding(place, key, value, &own)).collect()
}

/// Returns whether Flux may delete objects of the Kustomization, because of `prune` or `deletionPolicy`.
fn deletes(object: &Value) -> bool {
    let policy = object.at(&["spec", "deletionPolicy"]).and_then(Value::as_str);
    object.at(&["spec", "prune"]) == Some(&Value::Bool(true)) || matches!(policy, Some("Delete" | "WaitForTermination"))
}

fn finding(place: &'static str, key: &str, value: &str, own: &[(&str, String); 2]) -> Option<Finding> {
    let word = key.strip_prefix(GROUP)?.strip_prefix('/')?;
    let replaces_owner = place == "labels" && own.iter().any(|(label, own)| *label == word && own != value);
    let opts_out = OPT_OUTS.contains(&(word, &value.to_lowercase()));
    let message = if replaces_owner {
        format!(
            "{key}: {value} replaces the label by which Flux recognizes the objects of this Kustomization: Flux does not \
             delete objects that the Kustomization no longer renders"
        )
    } else if opts_out && word == "prune" {
        format!("{key}: {value} on every object excludes all of them from pruning: Flux deletes none of them")
    } else if opts_out {
        format!("{key}: {value} on every object: Flux neither applies nor deletes any of them")
    } else {
        return None;
    };
    let field = FieldPath::of(["spec", "commonMetadata", place]).key(key);
    let help = if replaces_owner {
        "remove the entry: Flux sets this label itself"
    } else {
        "set spec.prune to false to keep all objects, or annotate only the objects to keep"
    };
    Some(RULE.finding(field, message).found(value).help(help))
}
