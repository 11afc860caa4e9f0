//! Tests that the chart grants exactly the required rights: in all tests, no request was forbidden, and every right was
//! used.
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
    ("rights::nothing_that_is_needed_is_missing", nothing_is_missing),
    ("rights::nothing_is_granted_that_is_not_used", nothing_is_superfluous),
];

const SOURCES: &str = "a source is read live only if the watch does not have it, or before it is annotated; the tests have GitRepositories for all of them";
const GONE: &str = "the Landscaper version of the tests no longer has this kind";
const LAGS: &str = "the controller manager reads it live only if its watch lags; the server uses the same right";
const REPORTS: &str = "one code writes all four kinds: the manager of the tests the first ones of a namespace, the command the \
                       others, as an administrator";
/// Rights that the chart grants, but that the tests do not use. Each entry contains a verb, a resource and the reason.
const UNREACHED: &[(&str, &str, &str)] = &[
    ("get", "source.toolkit.fluxcd.io/buckets", SOURCES),
    ("get", "source.toolkit.fluxcd.io/externalartifacts", SOURCES),
    ("get", "source.toolkit.fluxcd.io/ocirepositories", SOURCES),
    ("get", "landscaper.gardener.cloud/deployerregistrations", GONE),
    ("watch", "landscaper.gardener.cloud/deployerregistrations", GONE),
    ("get", "landscaper.gardener.cloud/contexts", LAGS),
    ("get", "landscaper.gardener.cloud/componentversionoverwrites", LAGS),
    (
        "get",
        "apiextensions.crossplane.io/compositeresourcedefinitions",
        "granted with the other kinds of rules that have live reads; none wants a definition yet",
    ),
    (
        "get",
        "apiextensions.crossplane.io/compositionrevisions",
        "read live only if the watch lacks a revision that a composite names; no test has one",
    ),
    ("patch", "source.toolkit.fluxcd.io/buckets", SOURCES),
    ("patch", "source.toolkit.fluxcd.io/ocirepositories", SOURCES),
    ("create", "openreports.io/clusterreports", REPORTS),
    ("update", "openreports.io/clusterreports", REPORTS),
    ("delete", "openreports.io/clusterreports", REPORTS),
    ("update", "openreports.io/reports", REPORTS),
    ("create", "wgpolicyk8s.io/clusterpolicyreports", REPORTS),
    ("update", "wgpolicyk8s.io/clusterpolicyreports", REPORTS),
    ("delete", "wgpolicyk8s.io/clusterpolicyreports", REPORTS),
    ("create", "wgpolicyk8s.io/policyreports", REPORTS),
    ("update", "wgpolicyk8s.io/policyreports", REPORTS),
    ("delete", "wgpolicyk8s.io/policyreports", REPORTS),
    (
        "patch",
        "secrets",
        "a Secret of exports that is there with other values: a dry run exports the same ones each time",
    ),
];
/// The API group of the composites in the tests, as a prefix of resource names. The chart grants no rights on
/// composites, because users define the kinds of composites. Users also grant these rights.
const OF_COMPOSITES: &str = "demo.org/";

/// The name of a ConfigMap that a test also creates in a namespace where portcullis must not read it. The test expects
/// a warning about the forbidden read.
const SCHEMA_ELSEWHERE: &str = "environments";

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

fn nothing_is_missing(ctx: &Context) {
    let is_forbidden = |event: &Value| {
        let object = &event["objectRef"];
        let is_elsewhere = object["name"] == SCHEMA_ELSEWHERE && object["namespace"] != NAMESPACE;
        event["annotations"]["authorization.k8s.io/decision"] == "forbid" && !is_elsewhere
    };
    let events = events(ctx);
    let forbidden = events.iter().filter(|event| is_forbidden(event)).filter_map(used);
    let forbidden: BTreeSet<_> = forbidden.filter(|right| !right.resource.starts_with(OF_COMPOSITES)).collect();
    assert!(forbidden.is_empty(), "the chart does not grant what is needed:\n{}", lines(&forbidden));
}

fn nothing_is_superfluous(ctx: &Context) {
    let (used, granted): (BTreeSet<_>, _) = (events(ctx).iter().filter_map(used).collect(), granted(ctx));
    let is_unreached =
        |right: &Right| UNREACHED.iter().any(|(verb, resource, _)| right.verb == *verb && right.resource == *resource);
    let unused: BTreeSet<_> = granted.difference(&used).filter(|right| !is_unreached(right)).cloned().collect();
    assert!(unused.is_empty(), "granted, and never used:\n{}", lines(&unused));
    for (verb, resource, why) in UNREACHED {
        let is_it = |right: &&Right| right.verb == *verb && right.resource == *resource;
        assert!(granted.iter().any(|right| is_it(&right)), "{verb} {resource} is no longer granted ({why})");
    }
}

fn lines(rights: &BTreeSet<Right>) -> String {
    rights.iter().map(|right| format!("  {right}\n")).collect()
}

/// Returns the audit events of all requests of the release's users.
fn events(ctx: &Context) -> Vec<Value> {
    let log = fs::read_to_string(ctx.cluster.audit_log()).expect("the API server keeps a log");
    log.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

fn used(event: &Value) -> Option<Right> {
    let of = |key: &str| event["objectRef"][key].as_str().unwrap_or_default();
    let user = User::OF_RELEASE.into_iter().find(|user| event["user"]["username"] == user.name())?;
    let plural = of("resource");
    let resource = resource(of("apiGroup"), &[plural, of("subresource")].join("/"));
    let verb = event["verb"].as_str().unwrap_or_default().to_owned();
    (!plural.is_empty()).then(|| Right { user: user.name(), verb, resource })
}

fn resource(group: &str, plural: &str) -> String {
    let plural = plural.trim_end_matches('/');
    if group.is_empty() { plural.to_owned() } else { format!("{group}/{plural}") }
}

/// Returns the rights that the roles of the release grant to its users. The names of these roles begin with
/// `portcullis`.
fn granted(ctx: &Context) -> BTreeSet<Right> {
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
            let is_its = |role: &&Value| {
                role["kind"] == binding["roleRef"]["kind"]
                    && role["metadata"]["name"] == binding["roleRef"]["name"]
                    && (role["kind"] == "ClusterRole"
                        || role["metadata"]["namespace"] == binding["metadata"]["namespace"])
            };
            let role = roles.iter().find(is_its).expect("what is bound is there");
            let is_ours = role["metadata"]["name"].as_str().is_some_and(|name| name.starts_with("portcullis"));
            granted.extend(rights(role).into_iter().filter(|_| is_ours).map(|(verb, resource)| Right {
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
fn rights(role: &Value) -> Vec<(String, String)> {
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
