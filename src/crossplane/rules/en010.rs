//! EN010: an EnvironmentConfig that goes, or is labelled otherwise, while it is used.

use std::sync::Arc;

use serde_json::Value;

use crate::admission::{FieldPath, Finding, Level, Operation, Request};
use crate::catalog::{Kind, Reference, Stored, View};
use crate::crossplane::composite::composition::{Choice, choose};
use crate::crossplane::composite::computed::Computed;
use crate::crossplane::composition;
use crate::crossplane::configs::{Configs, Instead};
use crate::crossplane::environment::compute;
use crate::crossplane::kinds::{self, ALPHA_ENVIRONMENT_CONFIGS, BY_COMPOSITION, COMPOSITIONS, ENVIRONMENT_CONFIGS};
use crate::crossplane::users::{How, User, users};
use crate::rule::{Example, Match, Outage, Page, Rule};

static SCOPE: [Match; 1] = [kinds::matches(
    &ENVIRONMENT_CONFIGS,
    &["v1alpha1", "v1beta1"],
    &[Operation::Update, Operation::Delete],
    Outage::Admit,
)];

/// The row of EN010.
pub(super) static RULE: Rule = Rule {
    id: "EN010",
    name: "environment-config-in-use",
    level: Level::Deny,
    summary: "deleting an EnvironmentConfig that is used, or changing it so that those who use it break",
    scope: &SCOPE,
    looks_up: &[&COMPOSITIONS, &ENVIRONMENT_CONFIGS, &ALPHA_ENVIRONMENT_CONFIGS],
    confirm: Some(confirm),
    check,
    page: Page {
        why: "Nothing keeps an EnvironmentConfig that is in use, and composites that need one which is gone are no longer \
              reconciled. Users are Compositions that name it, selectors that match its labels, and composites that \
              refer to it. Those whom it breaks are read from the API server before a deletion is refused. Where it is one \
              of several, or may be missing, composites go on without its data, which is a warning; so is a change of its \
              labels that leaves a selector without it, and data with which a composite that uses it breaks.",
        wrong: Example {
            stored: STORED,
            operation: Operation::Delete,
            object: "\
apiVersion: apiextensions.crossplane.io/v1beta1
kind: EnvironmentConfig
metadata: {name: prod, labels: {stage: prod}}
data: {region: eu-1}
",
        },
        right: Example {
            stored: STORED,
            operation: Operation::Delete,
            object: "\
apiVersion: apiextensions.crossplane.io/v1beta1
kind: EnvironmentConfig
metadata: {name: unused, labels: {stage: test}}
data: {region: eu-2}
",
        },
        mend: "Change or delete those who use it first.",
    },
};

const STORED: &str = "\
apiVersion: apiextensions.crossplane.io/v1
kind: Composition
metadata: {name: example}
spec:
  compositeTypeRef: {apiVersion: example.org/v1, kind: XExample}
  environment:
    environmentConfigs:
      - type: Reference
        ref: {name: prod}
---
apiVersion: apiextensions.crossplane.io/v1beta1
kind: EnvironmentConfig
metadata: {name: prod, labels: {stage: prod}}
data: {region: eu-1}
---
apiVersion: apiextensions.crossplane.io/v1beta1
kind: EnvironmentConfig
metadata: {name: unused, labels: {stage: test}}
data: {region: eu-2}
";

/// How many users are confirmed, and named.
const NAMED: usize = 5;

fn confirm(request: &Request<'_>, view: &View<'_>) -> Vec<Reference> {
    let needing = lost(request, view).into_iter().filter(|user| user.how == How::Needed);
    needing.take(NAMED).map(|user| user.who).collect()
}

fn check(request: &Request<'_>, view: &View<'_>) -> Vec<Finding> {
    let name = request.display_name();
    let (needed, merged): (Vec<User>, Vec<User>) =
        lost(request, view).into_iter().partition(|user| user.how == How::Needed);
    let is_deletion = request.operation == Operation::Delete;
    let (field, what) = match is_deletion {
        true => (FieldPath::root(), "EnvironmentConfig"),
        false => (FieldPath::of(["metadata", "labels"]), "with these labels EnvironmentConfig"),
    };
    let mut findings = Vec::new();
    if !needed.is_empty() {
        let said = if is_deletion { "is used by" } else { "is no longer selected by" };
        let mut finding = RULE
            .finding(field.clone(), format!("{what} {name:?} {said} {}, which cannot do without it", named(&needed)));
        if !is_deletion {
            finding.level = Level::Warn;
        }
        findings.push(finding.help("change or delete those first"));
    }
    if !merged.is_empty() {
        let mut finding = RULE
            .finding(field, format!("{what} {name:?} is merged for {}, which go on without its data", named(&merged)));
        finding.level = Level::Warn;
        findings.push(finding);
    }
    if request.operation == Operation::Update {
        findings.extend(broken(request, view));
    }
    findings
}

/// How many composites are judged again: each is a computation, and the API server waits.
const MAX_JUDGED: usize = 20;

/// The composites that other data breaks, each with the first thing that breaks.
fn broken(request: &Request<'_>, view: &View<'_>) -> Vec<Finding> {
    let (old, new) = (request.old_object(), request.object());
    if old.get("data") == new.get("data") {
        return Vec::new();
    }
    let judge = |object: &Value| Instead { configs: Configs::of(view), config: Arc::new(Stored::new(object.clone())) };
    let (before, after) = (judge(old), judge(new));
    let mut findings = Vec::new();
    for (kind, composite) in composites(old, view) {
        let Choice::One(composition) = choose(composite.value(), kind.group, kind.plural, view) else { continue };
        let known = troubles(composite.value(), &composition, &before);
        let new =
            troubles(composite.value(), &composition, &after).into_iter().find(|trouble| !known.contains(trouble));
        if let Some(trouble) = new {
            let who = shown(&Reference::new(kind, composite.namespace(), composite.name()));
            let mut finding = RULE.finding(FieldPath::of(["data"]), format!("with this data {who} breaks: {trouble}"));
            finding.level = Level::Warn;
            findings.push(finding);
        }
    }
    findings.truncate(NAMED);
    findings
}

/// The composites that use an EnvironmentConfig, themselves or by their Composition.
fn composites(config: &Value, view: &View<'_>) -> Vec<(&'static Kind, Arc<Stored>)> {
    let mut found: Vec<(&'static Kind, Arc<Stored>)> = Vec::new();
    for User { who, .. } in users(config, view) {
        let of_composition =
            view.declared().into_iter().filter(|_| std::ptr::eq(who.kind, &COMPOSITIONS)).flat_map(|kind| {
                let composites = view.indexed_everywhere(kind, &BY_COMPOSITION, &who.name, MAX_JUDGED);
                composites.into_iter().map(move |composite| (kind, composite))
            });
        let itself = view.find(who.kind, &who.namespace, &who.name).filter(|_| !std::ptr::eq(who.kind, &COMPOSITIONS));
        let all: Vec<_> = of_composition.chain(itself.map(|composite| (who.kind, composite))).collect();
        for (kind, composite) in all {
            if !found.iter().any(|(_, known)| Arc::ptr_eq(known, &composite)) {
                found.push((kind, composite));
            }
        }
    }
    found.truncate(MAX_JUDGED);
    found
}

/// What is wrong with the environment of a composite.
fn troubles(composite: &Value, composition: &Arc<Stored>, configs: &Instead<'_>) -> Vec<String> {
    let Some(declaration) = composition::declaration(composition.value()) else { return Vec::new() };
    let computation = compute(&declaration, composite, configs);
    let failure = computation.failure.clone();
    let computed = Computed { composition: composition.clone(), declaration, computation };
    let unanswered = super::en008::unanswered(&computed).into_iter().map(|finding| finding.message);
    failure.into_iter().chain(unanswered).collect()
}

/// Those who use an EnvironmentConfig before a request, and no longer after it.
fn lost(request: &Request<'_>, view: &View<'_>) -> Vec<User> {
    let labels = |object: &Value| object.get("metadata").and_then(|meta| meta.get("labels").cloned());
    let (old, new) = (request.old_object(), request.object());
    match request.operation {
        Operation::Delete => users(old, view),
        _ if labels(old) == labels(new) => Vec::new(),
        _ => {
            let after = users(new, view);
            users(old, view).into_iter().filter(|user| !after.iter().any(|other| other.who == user.who)).collect()
        }
    }
}

fn named(users: &[User]) -> String {
    let mut names: Vec<_> = users.iter().take(NAMED).map(|user| shown(&user.who)).collect();
    if users.len() > NAMED {
        names.push(format!("{} more", users.len() - NAMED));
    }
    names.join(", ")
}

fn shown(who: &Reference) -> String {
    let kind = who.kind.kind;
    if who.namespace.is_empty() {
        format!("{kind} {:?}", who.name)
    } else {
        format!("{kind} \"{}/{}\"", who.namespace, who.name)
    }
}
