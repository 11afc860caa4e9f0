//! EN008: patches that the merged environment does not answer.

use serde_json::Value;

use super::{WRITTEN_COMPOSITES, told};
use crate::admission::{FieldPath, Finding, Level, Operation, Request};
use crate::catalog::View;
use crate::crossplane::composite::computed::{Computed, computed, confirm, reads_environment, writes_composite};
use crate::crossplane::composition::distance;
use crate::crossplane::environment::{ActionOutcome, Ending, Patch, PatchOutcome};
use crate::crossplane::field_path::{Path, Segment};
use crate::crossplane::kinds::{ALPHA_ENVIRONMENT_CONFIGS, COMPOSITIONS, DEFINITIONS, ENVIRONMENT_CONFIGS};
use crate::rule::{Example, Page, Rule};

/// The row of EN008.
pub(super) static RULE: Rule = Rule {
    id: "EN008",
    name: "environment-path-missing",
    level: Level::Warn,
    summary: "a patch that reads what the merged environment does not have, or has of another type than it needs",
    scope: &WRITTEN_COMPOSITES,
    looks_up: &[&COMPOSITIONS, &DEFINITIONS, &ENVIRONMENT_CONFIGS, &ALPHA_ENVIRONMENT_CONFIGS],
    confirm: Some(confirm),
    check,
    page: Page {
        why: "A patch from the environment whose path leads to nothing is passed over, unless its policy says Required, and then \
              the composite is not reconciled. Either way a misspelled path shows nowhere. The rule computes the composite's \
              environment from the EnvironmentConfigs that are there, runs every patch with its transforms, and names those \
              that read nothing, that fail, or whose format makes `%!d(float64=7)` of a value. What is read from the \
              composite itself may come later, and is not looked at.",
        wrong: Example { stored: STORED, operation: Operation::Create, object: WRONG },
        right: Example {
            stored: STORED,
            operation: Operation::Create,
            object: "\
apiVersion: example.org/v1
kind: XExample
metadata: {name: mine}
spec: {compositionRef: {name: good}}
",
        },
        mend: "Correct the path in the Composition, or add the value to an EnvironmentConfig that it selects. Paths begin at the \
               data: without `data.`.",
    },
};

const WRONG: &str = "\
apiVersion: example.org/v1
kind: XExample
metadata: {name: mine}
spec: {compositionRef: {name: bad}}
";

const STORED: &str = "\
apiVersion: apiextensions.crossplane.io/v1
kind: CompositeResourceDefinition
metadata: {name: xexamples.example.org, labels: {portcullis.dev/composites: \"true\"}}
spec:
  group: example.org
  names: {kind: XExample, plural: xexamples}
  versions: [{name: v1, served: true, referenceable: true}]
---
apiVersion: apiextensions.crossplane.io/v1beta1
kind: EnvironmentConfig
metadata: {name: prod}
data: {network: {subnets: [subnet-7]}}
---
apiVersion: apiextensions.crossplane.io/v1
kind: Composition
metadata: {name: bad}
spec:
  compositeTypeRef: {apiVersion: example.org/v1, kind: XExample}
  environment:
    environmentConfigs: [{type: Reference, ref: {name: prod}}]
    patches:
      - {type: ToCompositeFieldPath, fromFieldPath: 'network.subnet[0]', toFieldPath: spec.subnet}
---
apiVersion: apiextensions.crossplane.io/v1
kind: Composition
metadata: {name: good}
spec:
  compositeTypeRef: {apiVersion: example.org/v1, kind: XExample}
  environment:
    environmentConfigs: [{type: Reference, ref: {name: prod}}]
    patches:
      - {type: ToCompositeFieldPath, fromFieldPath: 'network.subnets[0]', toFieldPath: spec.subnet}
";

fn check(request: &Request<'_>, view: &View<'_>) -> Vec<Finding> {
    found(request, view).into_iter().map(told).collect()
}

fn found(request: &Request<'_>, view: &View<'_>) -> Vec<Finding> {
    let computed = computed(request.object(), request, view).filter(|computed| !computed.is_uncertain());
    computed.map(|computed| unanswered(&computed)).unwrap_or_default()
}

/// The patches that a composite's environment does not answer.
pub(super) fn unanswered(computed: &Computed) -> Vec<Finding> {
    let name = format!("Composition {:?}", computed.composition.name());
    let mut findings = Vec::new();
    for (step, at, patch, outcome) in computed.environment_patches() {
        if writes_composite(patch) {
            let place = place(computed, step).key("environment").key("patches").index(at);
            findings.extend(judged(
                &format!("{name}, {place}"),
                outcome,
                &computed.computation.steps[step].environment,
            ));
        }
    }
    for step in &computed.computation.steps {
        let ActionOutcome::Patched { templates, .. } = &step.action else { continue };
        for template in templates {
            let from_environment = template.patches.iter().filter(|(patch, _)| reads_environment(patch));
            let of = |(patch, outcome): &(Patch, PatchOutcome)| {
                judged(&format!("{name}, resource {:?}, {}", template.name, shown(patch)), outcome, &step.environment)
            };
            findings.extend(from_environment.filter_map(of));
        }
    }
    findings
}

fn place(computed: &Computed, step: usize) -> FieldPath {
    computed.declaration.steps[step].field.clone()
}

fn shown(patch: &Patch) -> String {
    let to = patch.to_field_path.as_deref().or(patch.from_field_path.as_deref()).unwrap_or_default();
    format!("patch of {to}")
}

/// What is to be said of a patch that reads the environment.
fn judged(place: &str, outcome: &PatchOutcome, environment: &Value) -> Option<Finding> {
    if !outcome.mistakes.is_empty() {
        let message = format!("{place}: the text would hold {}", outcome.mistakes.join(", "));
        return Some(RULE.finding(FieldPath::root(), message).help("correct the format, or convert the value first"));
    }
    match &outcome.ending {
        Ending::Skipped(why) => {
            let message = format!("{place}: the environment has nothing there, and the patch does nothing: {why}");
            Some(with_help(RULE.finding(FieldPath::root(), message), outcome, environment))
        }
        Ending::Failed(why) => {
            let message = format!("{place}: {why}");
            Some(with_help(RULE.finding(FieldPath::root(), message), outcome, environment))
        }
        Ending::Written | Ending::Ignored(_) | Ending::Deferred(_) => None,
    }
}

/// Says what there is in the place of what was asked for.
fn with_help(finding: Finding, outcome: &PatchOutcome, environment: &Value) -> Finding {
    let missing = outcome.reads.iter().find(|read| read.value.is_none());
    let Some(path) = missing.and_then(|read| Path::parse(&read.path).ok()) else { return finding };
    match near(&path, environment) {
        Some((at, keys)) => finding.help(format!("{at} has {keys}")),
        None => finding,
    }
}

/// The last place on a path that there is, and its keys, those that are spelled alike first.
fn near(path: &Path, environment: &Value) -> Option<(String, String)> {
    /// More keys help nobody.
    const KEYS: usize = 8;
    let (mut value, mut at) = (environment, "the environment".to_owned());
    for segment in path.segments() {
        let next = match segment {
            Segment::Field(name) => value.get(name),
            Segment::Index(index) => value.get(*index as usize),
        };
        if let Some(next) = next {
            value = next;
            at = match segment {
                Segment::Field(name) if at == "the environment" => name.clone(),
                Segment::Field(name) => format!("{at}.{name}"),
                Segment::Index(index) => format!("{at}[{index}]"),
            };
            continue;
        }
        let Segment::Field(name) = segment else { return None };
        let is_ours = |key: &&String| at != "the environment" || !["apiVersion", "kind"].contains(&key.as_str());
        let mut keys: Vec<_> =
            value.as_object()?.keys().filter(is_ours).map(|key| (distance(key, name), key.as_str())).collect();
        keys.sort_unstable();
        let keys: Vec<_> = keys.into_iter().take(KEYS).map(|(_, key)| key).collect();
        return (!keys.is_empty()).then(|| (at, keys.join(", ")));
    }
    None
}
