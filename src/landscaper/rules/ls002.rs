//! LS002: reports metadata of an Installation that Landscaper rejects.

use serde_json::Value;

use super::WRITES;
use crate::admission::{FieldPath, Finding, Level, Request};
use crate::catalog::View;
use crate::landscaper::kinds::{self, INSTALLATIONS};
use crate::landscaper::validation::{Findings, list, member, names, text};
use crate::rule::{FailurePolicy, Match, Rule, RuleInfo};

static MATCHERS: [Match; 1] = [kinds::matches(&INSTALLATIONS, WRITES, FailurePolicy::Ignore)];

/// The definition of rule LS002.
pub(super) static RULE: Rule = Rule {
    info: RuleInfo {
        id: "LS002",
        name: "landscaper-installation-name",
        level: Level::Off,
        summary: "metadata of an Installation that Landscaper rejects, such as a name of more than 58 characters",
        page: include_str!("../../../docs/rules/LS002.md"),
    },
    matchers: &MATCHERS,
    looks_up: &[],
    live_reads: None,
    check,
};

/// Maximum length of an Installation's name. Landscaper writes the name with the prefix `Inst.` into a label, and a
/// label value has at most 63 characters.
const MAX_NAME_LENGTH: usize = 58;
/// Maximum length of `generateName`. The API server adds five random characters to it.
const MAX_PREFIX_LENGTH: usize = 53;
/// Maximum size of all annotations of an object, keys and values, in bytes. Kubernetes has the same limit.
const MAX_ANNOTATION_BYTES: usize = 256 * 1024;

fn check(request: &Request<'_>, _: &View<'_>) -> Vec<Finding> {
    let mut findings = Findings::new(&RULE, request);
    let metadata = member(request.object(), "metadata");
    let place = FieldPath::of(["metadata"]);
    name(metadata, &place, &mut findings);
    let written = text(metadata, "namespace");
    let namespace = if written.is_empty() { &*request.namespace } else { written };
    if namespace.is_empty() {
        findings.require(metadata, &place, "namespace");
    }
    labels(metadata, &place, &mut findings);
    owners(metadata, &place, &mut findings);
    findings.into_found()
}

fn name(metadata: &Value, place: &FieldPath, findings: &mut Findings<'_>) {
    let (name, prefix) = (text(metadata, "name"), text(metadata, "generateName"));
    let help = format!("write at most {MAX_NAME_LENGTH} lowercase letters, digits and dashes");
    if name.is_empty() {
        findings.add(place.key("name"), "name is missing", help.clone());
    }
    // The API server adds characters after the dash at the end of a prefix.
    let completed = prefix.strip_suffix('-').map(|prefix| format!("{prefix}a")).unwrap_or_else(|| prefix.to_owned());
    for (key, text) in [("name", name), ("generateName", &*completed)] {
        let problems = if text.is_empty() { Vec::new() } else { names::label(text) };
        problems
            .into_iter()
            .for_each(|problem| findings.add(place.key(key), format!("{text:?}: {problem}"), help.clone()));
    }
    if name.len() > MAX_NAME_LENGTH {
        let message = format!("{name:?} has {} characters; the maximum is {MAX_NAME_LENGTH}", name.len());
        findings.add(place.key("name"), message, help);
    } else if prefix.len() > MAX_PREFIX_LENGTH {
        let message = format!("{prefix:?} has {} characters; the maximum is {MAX_PREFIX_LENGTH}", prefix.len());
        findings.add(place.key("generateName"), message, "write a shorter prefix");
    }
}

fn labels(metadata: &Value, place: &FieldPath, findings: &mut Findings<'_>) {
    let texts = |key: &str| member(metadata, key).as_object().into_iter().flatten().collect::<Vec<_>>();
    let mut size = 0;
    for (key, value) in texts("annotations") {
        size += key.len() + value.as_str().map_or(0, str::len);
        if let Some(problem) = names::key(&key.to_lowercase()) {
            findings.add(
                place.key("annotations"),
                format!("{key:?} is not a valid key: {problem}"),
                "write another key",
            );
        }
    }
    if size > MAX_ANNOTATION_BYTES {
        let message = format!("the annotations have {size} bytes; the maximum is {MAX_ANNOTATION_BYTES}");
        findings.add(place.key("annotations"), message, "store large texts in another object");
    }
    for (key, value) in texts("labels") {
        let wrong = names::key(key).or_else(|| names::label_value(value.as_str().unwrap_or_default()));
        if let Some(problem) = wrong {
            findings.add(
                place.key("labels"),
                format!("{key:?} is not a valid label: {problem}"),
                "write another label",
            );
        }
    }
    for (field, finalizer) in list(metadata, "finalizers", place) {
        let finalizer = finalizer.as_str().unwrap_or_default();
        if let Some(problem) = names::key(finalizer) {
            findings.add(field, format!("{finalizer:?} is not a valid finalizer: {problem}"), "write another name");
        }
    }
}

fn owners(metadata: &Value, place: &FieldPath, findings: &mut Findings<'_>) {
    let owners = list(metadata, "ownerReferences", place);
    for (field, owner) in &owners {
        for key in ["apiVersion", "kind", "name", "uid"] {
            findings.require(owner, field, key);
        }
    }
    let controllers = owners.iter().filter(|(_, owner)| member(owner, "controller") == true);
    let controllers: Vec<_> =
        controllers.map(|(_, owner)| format!("{}/{}", text(owner, "kind"), text(owner, "name"))).collect();
    if controllers.len() > 1 {
        let message = format!("{} are controllers; only one owner can be the controller", controllers.join(" and "));
        findings.add(place.key("ownerReferences"), message, "keep controller: true on one of them");
    }
}
