//! EN010: an EnvironmentConfig that goes, or is labelled otherwise, while it is used.

use std::sync::Arc;

use serde_json::Value;

use super::told;
use crate::admission::{FieldPath, Finding, Level, Operation, Request};
use crate::catalog::{Reference, Stored, View};
use crate::crossplane::breaks::{Broken, Judgement, MAX_JUDGED, judge};
use crate::crossplane::configs::{Configs, Instead};
use crate::crossplane::configuration::on_change;
use crate::crossplane::kinds::{self, ALPHA_ENVIRONMENT_CONFIGS, COMPOSITIONS, DEFINITIONS, ENVIRONMENT_CONFIGS};
use crate::crossplane::users::{How, User, users};
use crate::rule::{Example, Match, Outage, Page, Rule};

static SCOPE: [Match; 1] = [kinds::matches(
    &ENVIRONMENT_CONFIGS,
    &["v1alpha1", "v1beta1"],
    &[Operation::Create, Operation::Update, Operation::Delete],
    Outage::Admit,
)];

/// The row of EN010.
pub(super) static RULE: Rule = Rule {
    id: "EN010",
    name: "environment-config-in-use",
    level: Level::Deny,
    summary: "deleting an EnvironmentConfig that is used, or changing it so that those who use it break",
    scope: &SCOPE,
    looks_up: &[&COMPOSITIONS, &DEFINITIONS, &ENVIRONMENT_CONFIGS, &ALPHA_ENVIRONMENT_CONFIGS],
    confirm: Some(confirm),
    check,
    page: Page {
        why: "Nothing keeps an EnvironmentConfig that is in use, and composites that need one which is gone are no longer \
              reconciled. Users are Compositions that name it, selectors that match its labels, and composites that \
              refer to it. Those whom it breaks are read from the API server before a deletion is refused. Where it is one \
              of several, or may be missing, composites go on without its data, which is a warning.\n\nOf one that is \
              created or changed, every Composition and composite that uses it is judged again, with the EnvironmentConfigs \
              as they are and as they will be: a selector that is left without it or now matches two, a patch that no \
              longer finds what it reads or fails. What is wrong only then is a warning that names them; \
              `environmentConfigs: {onChange: deny}` in the configuration file refuses it. A Composition without composites \
              is judged with one that says nothing, and only warned about. At most a hundred composites are judged, and it \
              is said how many are left out.",
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
    let mut wanted: Vec<_> = needing.take(NAMED).map(|user| user.who).collect();
    if request.operation != Operation::Delete && on_change(view) == Level::Deny {
        let broken = judgement(request, view).broken.into_iter().take(NAMED);
        wanted.extend(broken.flat_map(|broken| [broken.who, broken.composition]));
    }
    wanted
}

fn check(request: &Request<'_>, view: &View<'_>) -> Vec<Finding> {
    let mut findings = unselected(request, view);
    if request.operation != Operation::Delete {
        findings.extend(broken(request, view));
    }
    findings.retain(|finding| finding.level != Level::Off);
    findings.into_iter().map(told).collect()
}

/// What is to be said to those who use it no longer.
fn unselected(request: &Request<'_>, view: &View<'_>) -> Vec<Finding> {
    let name = request.display_name();
    let (needed, merged): (Vec<User>, Vec<User>) =
        lost(request, view).into_iter().partition(|user| user.how == How::Needed);
    let is_deletion = request.operation == Operation::Delete;
    let (field, what, said) = match is_deletion {
        true => (FieldPath::root(), "EnvironmentConfig", "is used by"),
        false => (LABELS.field(), "with these labels EnvironmentConfig", "is no longer selected by"),
    };
    let mut findings = Vec::new();
    if !needed.is_empty() {
        let message = format!("{what} {name:?} {said} {}, which cannot do without it", named(&needed));
        let mut finding = RULE.finding(field.clone(), message).help("change or delete those first");
        if !is_deletion {
            finding.level = on_change(view);
        }
        findings.push(finding);
    }
    if !merged.is_empty() {
        let message = format!("{what} {name:?} is merged for {}, which go on without its data", named(&merged));
        let mut finding = RULE.finding(field, message);
        finding.level = Level::Warn.min(finding.level);
        findings.push(finding);
    }
    findings
}

/// What changes of an EnvironmentConfig.
struct Changed {
    words: &'static str,
    field: &'static [&'static str],
}

const LABELS: Changed = Changed { words: "with these labels", field: &["metadata", "labels"] };
const DATA: Changed = Changed { words: "with this data", field: &["data"] };
const BOTH: Changed = Changed { words: "with these labels and this data", field: &[] };
const ALL: Changed = Changed { words: "with this EnvironmentConfig", field: &[] };

impl Changed {
    /// `None` where nobody would notice.
    fn of(request: &Request<'_>) -> Option<Self> {
        let (old, new) = (request.old_object(), request.object());
        match (labels(old) != labels(new), old.get("data") != new.get("data")) {
            _ if request.operation == Operation::Create => Some(ALL),
            (true, true) => Some(BOTH),
            (true, false) => Some(LABELS),
            (false, true) => Some(DATA),
            (false, false) => None,
        }
    }

    fn field(&self) -> FieldPath {
        self.field.iter().fold(FieldPath::root(), |field, key| field.key(key))
    }
}

fn labels(object: &Value) -> Option<&Value> {
    object.get("metadata").and_then(|meta| meta.get("labels"))
}

/// Those who break with what is written, each with what breaks.
fn broken(request: &Request<'_>, view: &View<'_>) -> Vec<Finding> {
    let Some(changed) = Changed::of(request) else { return Vec::new() };
    let Judgement { broken, left_out, is_counted } = judgement(request, view);
    let finding = |message: String, level: Level| {
        let mut finding = RULE.finding(changed.field(), message);
        finding.level = level;
        finding
    };
    let of = |broken: &Broken| {
        let (who, troubles) = (shown(&broken.who), broken.troubles.join("; "));
        // What no composite has yet may never be: a composite of its own may say what is missing.
        let is_certain = !std::ptr::eq(broken.who.kind, &COMPOSITIONS);
        let level = if is_certain { on_change(view) } else { on_change(view).min(Level::Warn) };
        finding(format!("{} {who} breaks: {troubles}", changed.words), level)
    };
    let mut findings: Vec<_> = broken.iter().take(NAMED).map(of).collect();
    if let Some(more) = broken.len().checked_sub(NAMED).filter(|more| *more > 0) {
        findings.push(finding(format!("{} {more} more break", changed.words), on_change(view)));
    }
    if left_out > 0 {
        let least = if is_counted { "" } else { "at least " };
        let message = format!("{least}{left_out} more composites use it and were not judged: at most {MAX_JUDGED} are");
        findings.push(finding(message, Level::Warn));
    }
    findings
}

/// What becomes of those who use it before or after a request. Of those who no longer use it and cannot do without,
/// [`unselected`] speaks.
fn judgement(request: &Request<'_>, view: &View<'_>) -> Judgement {
    if Changed::of(request).is_none() {
        return Judgement::default();
    }
    let (old, new) = (request.old_object(), request.object());
    let instead =
        |object: &Value| Instead { configs: Configs::of(view), config: Arc::new(Stored::new(object.clone())) };
    let mut using = users(new, view);
    if request.operation == Operation::Create {
        return judge(&using, &Configs::of(view), &instead(new), view);
    }
    let lost = lost(request, view);
    let is_lost = |user: &User| lost.iter().any(|lost| lost.who == user.who && lost.how == How::Needed);
    let before = users(old, view).into_iter().filter(|user| !is_lost(user));
    let before: Vec<_> = before.filter(|user| !using.iter().any(|known| known.who == user.who)).collect();
    using.extend(before);
    judge(&using, &instead(old), &instead(new), view)
}

/// Those who use an EnvironmentConfig before a request, and no longer after it.
fn lost(request: &Request<'_>, view: &View<'_>) -> Vec<User> {
    let (old, new) = (request.old_object(), request.object());
    match request.operation {
        Operation::Delete => users(old, view),
        Operation::Create => Vec::new(),
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
