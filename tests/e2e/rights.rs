//! Tests that the chart grants exactly the required RBAC permissions. The API server must not have forbidden any
//! request of the other tests, and these requests must have used every permission.
//!
//! These tests evaluate the audit log of the API server. So they run after all other tests, and only if no test was
//! filtered out.

use std::collections::BTreeSet;
use std::fmt;
use std::fs;

use serde_json::Value;

use crate::Case;
use crate::context::Context;
use crate::helm::NAMESPACE;
use crate::user::User;

/// The tests of this file.
pub const CASES: &[Case] = &[
    ("rights::no_required_right_is_missing", no_required_right_is_missing),
    ("rights::every_granted_right_is_used", every_granted_right_is_used),
];

const SOURCES_REASON: &str = "a source is read live only if it is missing in the watch, or before it is annotated; all sources of the tests are GitRepositories";
const REMOVED_KIND_REASON: &str = "the Landscaper version of the tests no longer has this kind";
const WATCH_LAG_REASON: &str =
    "the controller manager reads it live only if its watch lags; the server uses the same right";
const REPORTS_REASON: &str = "the same code writes all four kinds; in the tests, the controller manager writes only the first report of a \
                              namespace, and an administrator writes the others with the command";
/// Rights that the chart grants, but that the tests do not use. Each entry contains a verb, a resource and the reason.
const UNUSED_RIGHTS: &[(&str, &str, &str)] = &[
    ("get", "source.toolkit.fluxcd.io/buckets", SOURCES_REASON),
    ("get", "source.toolkit.fluxcd.io/externalartifacts", SOURCES_REASON),
    ("get", "source.toolkit.fluxcd.io/ocirepositories", SOURCES_REASON),
    ("get", "landscaper.gardener.cloud/deployerregistrations", REMOVED_KIND_REASON),
    ("watch", "landscaper.gardener.cloud/deployerregistrations", REMOVED_KIND_REASON),
    ("get", "landscaper.gardener.cloud/contexts", WATCH_LAG_REASON),
    ("get", "landscaper.gardener.cloud/componentversionoverwrites", WATCH_LAG_REASON),
    (
        "get",
        "apiextensions.crossplane.io/compositeresourcedefinitions",
        "granted with the other kinds that rules may read live; no rule reads a definition yet",
    ),
    (
        "get",
        "apiextensions.crossplane.io/compositionrevisions",
        "read live only if a composite refers to a revision that is missing in the watch; no test has such a composite",
    ),
    ("patch", "source.toolkit.fluxcd.io/buckets", SOURCES_REASON),
    ("patch", "source.toolkit.fluxcd.io/ocirepositories", SOURCES_REASON),
    ("create", "openreports.io/clusterreports", REPORTS_REASON),
    ("update", "openreports.io/clusterreports", REPORTS_REASON),
    ("delete", "openreports.io/clusterreports", REPORTS_REASON),
    ("update", "openreports.io/reports", REPORTS_REASON),
    ("create", "wgpolicyk8s.io/clusterpolicyreports", REPORTS_REASON),
    ("update", "wgpolicyk8s.io/clusterpolicyreports", REPORTS_REASON),
    ("delete", "wgpolicyk8s.io/clusterpolicyreports", REPORTS_REASON),
    ("create", "wgpolicyk8s.io/policyreports", REPORTS_REASON),
    ("update", "wgpolicyk8s.io/policyreports", REPORTS_REASON),
    ("delete", "wgpolicyk8s.io/policyreports", REPORTS_REASON),
    (
        "patch",
        "secrets",
        "a Secret of exports is patched only if its values change; the tests export the same values each time",
    ),
];
/// The API group of the composites in the tests, as a prefix of resource names. The chart grants no rights on
/// composites, because users define the kinds of composites and grant these rights themselves.
const COMPOSITES_GROUP_PREFIX: &str = "demo.org/";

/// The name of a ConfigMap that a test creates in a namespace where portcullis has no permission to read it. The test
/// expects a warning about the forbidden read.
const UNREADABLE_CONFIG_MAP: &str = "environments";

/// A right that was granted or used.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Right {
    user: &'static str,
    verb: String,
    /// The resource with its API group and subresource, such as `apps/deployments/status`.
    resource: String,
}

impl fmt::Display for Right {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let user = self.user.rsplit(':').next().unwrap_or_default();
        write!(f, "{user}: {} {}", self.verb, self.resource)
    }
}

fn no_required_right_is_missing(ctx: &Context) {
    let is_forbidden = |event: &Value| {
        let object = &event["objectRef"];
        let is_expected = object["name"] == UNREADABLE_CONFIG_MAP && object["namespace"] != NAMESPACE;
        event["annotations"]["authorization.k8s.io/decision"] == "forbid" && !is_expected
    };
    let events = events(ctx);
    let forbidden = events.iter().filter(|event| is_forbidden(event)).filter_map(right_of_event);
    let forbidden: BTreeSet<_> =
        forbidden.filter(|right| !right.resource.starts_with(COMPOSITES_GROUP_PREFIX)).collect();
    assert!(forbidden.is_empty(), "the chart does not grant these required rights:\n{}", lines(&forbidden));
}

fn every_granted_right_is_used(ctx: &Context) {
    let (used, granted): (BTreeSet<_>, _) =
        (events(ctx).iter().filter_map(right_of_event).collect(), granted_rights(ctx));
    let is_listed_as_unused = |right: &Right| {
        UNUSED_RIGHTS.iter().any(|(verb, resource, _)| right.verb == *verb && right.resource == *resource)
    };
    let unused: BTreeSet<_> = granted.difference(&used).filter(|right| !is_listed_as_unused(right)).cloned().collect();
    assert!(unused.is_empty(), "granted, but never used:\n{}", lines(&unused));
    for (verb, resource, reason) in UNUSED_RIGHTS {
        let is_match = |right: &&Right| right.verb == *verb && right.resource == *resource;
        assert!(granted.iter().any(|right| is_match(&right)), "{verb} {resource} is no longer granted ({reason})");
    }
}

fn lines(rights: &BTreeSet<Right>) -> String {
    rights.iter().map(|right| format!("  {right}\n")).collect()
}

/// Returns the audit events of all requests that the ServiceAccounts of the Helm release ([`User::OF_RELEASE`]) sent.
fn events(ctx: &Context) -> Vec<Value> {
    let log = fs::read_to_string(ctx.cluster.audit_log()).expect("the API server keeps a log");
    log.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

fn right_of_event(event: &Value) -> Option<Right> {
    let field = |key: &str| event["objectRef"][key].as_str().unwrap_or_default();
    let user = User::OF_RELEASE.into_iter().find(|user| event["user"]["username"] == user.name())?;
    let plural = field("resource");
    let resource = resource(field("apiGroup"), &[plural, field("subresource")].join("/"));
    let verb = event["verb"].as_str().unwrap_or_default().to_owned();
    (!plural.is_empty()).then(|| Right { user: user.name(), verb, resource })
}

fn resource(group: &str, plural: &str) -> String {
    let plural = plural.trim_end_matches('/');
    if group.is_empty() { plural.to_owned() } else { format!("{group}/{plural}") }
}

/// Returns the rights that the Helm release grants to its ServiceAccounts ([`User::OF_RELEASE`]) through roles. The
/// names of these roles begin with `portcullis`.
fn granted_rights(ctx: &Context) -> BTreeSet<Right> {
    let get = |kinds: &str| -> Vec<Value> {
        let answer =
            ctx.cluster.kubectl().args(["get", kinds, "--all-namespaces", "-o", "json"]).run().expect_success();
        let mut list: Value = serde_json::from_str(&answer.stdout).expect("kubectl writes JSON");
        list["items"].as_array_mut().map(std::mem::take).unwrap_or_default()
    };
    let roles = get("clusterroles,roles");
    let mut granted = BTreeSet::new();
    for binding in get("clusterrolebindings,rolebindings") {
        for user in User::OF_RELEASE.into_iter().filter(|user| binds(&binding, *user)) {
            let is_bound_role = |role: &&Value| {
                role["kind"] == binding["roleRef"]["kind"]
                    && role["metadata"]["name"] == binding["roleRef"]["name"]
                    && (role["kind"] == "ClusterRole"
                        || role["metadata"]["namespace"] == binding["metadata"]["namespace"])
            };
            let role = roles.iter().find(is_bound_role).expect("the bound role exists");
            let is_ours = role["metadata"]["name"].as_str().is_some_and(|name| name.starts_with("portcullis"));
            granted.extend(rights_of_role(role).into_iter().filter(|_| is_ours).map(|(verb, resource)| Right {
                user: user.name(),
                verb,
                resource,
            }));
        }
    }
    granted
}

fn binds(binding: &Value, user: User) -> bool {
    let subjects = binding["subjects"].as_array().map(Vec::as_slice).unwrap_or_default();
    let text = |subject: &Value, key: &str| subject[key].as_str().unwrap_or_default().to_owned();
    let name =
        |subject: &Value| format!("system:serviceaccount:{}:{}", text(subject, "namespace"), text(subject, "name"));
    subjects.iter().any(|subject| subject["kind"] == "ServiceAccount" && name(subject) == user.name())
}

/// Returns each pair of a verb and a resource that a role grants.
fn rights_of_role(role: &Value) -> Vec<(String, String)> {
    let texts = |value: &Value| -> Vec<String> {
        let list = value.as_array().map(Vec::as_slice).unwrap_or_default();
        list.iter().filter_map(|text| text.as_str().map(str::to_owned)).collect()
    };
    let mut rights = Vec::new();
    for rule in role["rules"].as_array().map(Vec::as_slice).unwrap_or_default() {
        for group in texts(&rule["apiGroups"]) {
            for plural in texts(&rule["resources"]) {
                rights.extend(texts(&rule["verbs"]).into_iter().map(|verb| (verb, resource(&group, &plural))));
            }
        }
    }
    rights
}
