//! LS002: names of an Installation that Landscaper refuses.

use serde_json::Value;

use super::{Findings, WRITES, list, member, names, text};
use crate::admission::{FieldPath, Finding, Level, Operation, Request};
use crate::catalog::View;
use crate::landscaper::kinds::{self, INSTALLATIONS};
use crate::rule::{Example, Match, Outage, Page, Rule};

static SCOPE: [Match; 1] = [kinds::matches(&INSTALLATIONS, WRITES, Outage::Admit)];

/// The row of LS002.
pub(super) static RULE: Rule = Rule {
    id: "LS002",
    name: "landscaper-installation-name",
    level: Level::Off,
    summary: "metadata of an Installation that Landscaper refuses, such as a name of more than 58 characters",
    scope: &SCOPE,
    looks_up: &[],
    confirm: None,
    check,
    page: Page {
        why: "An Installation becomes objects whose names begin with `Inst.` and its own, and whose names have at \
              most 63 characters; so its own may have 58, a generated one 53 before what is added, and it must be \
              a DNS label, without dots. Landscaper's own webhook server refuses the same; the rule is off unless \
              it is to stand in for that.",
        wrong: Example {
            stored: "",
            operation: Operation::Create,
            object: "\
apiVersion: landscaper.gardener.cloud/v1alpha1
kind: Installation
metadata:
  name: test.installation
  namespace: cu-example
spec:
  blueprint:
    ref:
      resourceName: blueprint
",
        },
        right: Example {
            stored: "\
apiVersion: landscaper.gardener.cloud/v1alpha1
kind: Context
metadata:
  name: default
  namespace: cu-example
",
            operation: Operation::Create,
            object: "\
apiVersion: landscaper.gardener.cloud/v1alpha1
kind: Installation
metadata:
  name: test-installation
  namespace: cu-example
spec:
  blueprint:
    ref:
      resourceName: blueprint
",
        },
        mend: "Choose a name of at most 58 small letters, digits and dashes.",
    },
};

/// What is left of a label once Landscaper has put `Inst.` before the name.
const LONGEST_NAME: usize = 58;
/// What is left of that once the API server has added its random letters.
const LONGEST_PREFIX: usize = 53;
/// The most that keys and values of annotations have together.
const ANNOTATIONS: usize = 256 * 1024;

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
    let help = format!("write at most {LONGEST_NAME} small letters, digits and dashes");
    if name.is_empty() {
        findings.add(place.key("name"), "name is missing", help.clone());
    }
    // The dash at the end of a prefix is followed by letters.
    let ended = prefix.strip_suffix('-').map(|prefix| format!("{prefix}a")).unwrap_or_else(|| prefix.to_owned());
    for (key, text) in [("name", name), ("generateName", &*ended)] {
        let problems = if text.is_empty() { Vec::new() } else { names::label(text) };
        problems
            .into_iter()
            .for_each(|problem| findings.add(place.key(key), format!("{text:?}: {problem}"), help.clone()));
    }
    if name.len() > LONGEST_NAME {
        let message = format!("{name:?} has {} characters, and may have {LONGEST_NAME}", name.len());
        findings.add(place.key("name"), message, help);
    } else if prefix.len() > LONGEST_PREFIX {
        let message = format!("{prefix:?} has {} characters, and may have {LONGEST_PREFIX}", prefix.len());
        findings.add(place.key("generateName"), message, "write a shorter one");
    }
}

fn labels(metadata: &Value, place: &FieldPath, findings: &mut Findings<'_>) {
    let texts = |key: &str| member(metadata, key).as_object().into_iter().flatten().collect::<Vec<_>>();
    let mut size = 0;
    for (key, value) in texts("annotations") {
        size += key.len() + value.as_str().map_or(0, str::len);
        if let Some(problem) = names::key(&key.to_lowercase()) {
            findings.add(place.key("annotations"), format!("{key:?} is no key: {problem}"), "write another key");
        }
    }
    if size > ANNOTATIONS {
        let message = format!("the annotations have {size} bytes, and may have {ANNOTATIONS}");
        findings.add(place.key("annotations"), message, "keep large texts elsewhere");
    }
    for (key, value) in texts("labels") {
        let wrong = names::key(key).or_else(|| names::label_value(value.as_str().unwrap_or_default()));
        if let Some(problem) = wrong {
            findings.add(place.key("labels"), format!("{key:?} is no label: {problem}"), "write another label");
        }
    }
    for (field, finalizer) in list(metadata, "finalizers", place) {
        let finalizer = finalizer.as_str().unwrap_or_default();
        if let Some(problem) = names::key(finalizer) {
            findings.add(field, format!("{finalizer:?} is no finalizer: {problem}"), "write another name");
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
        let message = format!("{} are controllers, and there can be one", controllers.join(" and "));
        findings.add(place.key("ownerReferences"), message, "leave controller: true at one of them");
    }
}
