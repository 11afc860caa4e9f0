//! Checks Applications and ApplicationSets of Argo CD. Portcullis does not fetch the sources of these objects, because
//! Argo CD fetches them with its own credentials. So Portcullis reports only errors that do not depend on the files of
//! the repository.
//!
//! Source: `ApplicationSourceKustomize` in argo-cd's `pkg/apis/application/v1alpha1/types.go`, and the build of such a
//! source in `util/kustomize/kustomize.go`. Argo CD adds components with `kustomize edit add component`. This command
//! expands patterns and accepts repositories, but it accepts neither files nor absolute paths.

use serde_json::Value;

use super::flux::of_object;
use super::{Delivery, FAMILY, Look, Narrowed};
use crate::admission::{FieldPath, Finding, Level, Request};
use crate::kustomize::file::NAMES;
use crate::kustomize::finding::{Site, TreeFinding};
use crate::kustomize::rules::{kz003, kz004, kz009, kz010};
use crate::kustomize::tree::TreePath;
use crate::rule::Match;

const fn written(plural: &'static str, kind: &'static str) -> Match {
    Match::create_or_update("argoproj.io", &["v1alpha1"], plural, kind)
}

static MATCHERS: [Match; 2] = [written("applications", "Application"), written("applicationsets", "ApplicationSet")];

static NARROWED: Narrowed = Narrowed {
    webhook: "argo-cd.portcullis.dev",
    reason: "Argo CD often updates the status of Applications, and does not use the status subresource.",
    when: &["request.operation == 'CREATE' || object.spec != oldObject.spec"],
};

/// The definition of the check `argo-cd`, which reports errors in Applications and ApplicationSets of Argo CD. It finds
/// only errors that do not depend on the files in their repositories. In the configuration file, `deliveries.argo-cd`
/// sets the highest level of its findings, such as `warn`.
pub(super) static DELIVERY: Delivery = Delivery {
    name: "argo-cd",
    family: FAMILY,
    summary: "Argo CD Applications and ApplicationSets themselves; nothing is fetched",
    max_level: Level::Deny,
    limited_by: None,
    matchers: &MATCHERS,
    narrowed: Some(&NARROWED),
    looks_up: &[],
    live_reads: None,
    ahead: None,
    withhold: None,
    consequences: None,
    look: |request, _| Look { findings: judged(request), roots: Vec::new() },
};

fn judged(request: &Request<'_>) -> Vec<Finding> {
    let (spec, field) = match &*request.resource.plural {
        "applicationsets" => ("/spec/template/spec", FieldPath::of(["spec", "template", "spec"])),
        _ => ("/spec", FieldPath::of(["spec"])),
    };
    let Some(spec) = request.object().pointer(spec) else { return Vec::new() };
    sources(spec, &field).into_iter().flat_map(|(field, source)| of_source(&field, source)).collect()
}

/// Returns the sources in the spec of an Application (`source` and `sources`), each with its field path. `field` is the
/// path of the spec.
fn sources<'a>(spec: &'a Value, field: &FieldPath) -> Vec<(FieldPath, &'a Value)> {
    let one = spec.get("source").map(|source| (field.key("source"), source));
    let many = spec.get("sources").and_then(Value::as_array).into_iter().flatten().enumerate();
    let many = many.map(|(index, source)| (field.key("sources").index(index), source));
    one.into_iter().chain(many).collect()
}

fn of_source(field: &FieldPath, source: &Value) -> Vec<Finding> {
    let text = |value: Option<&Value>| value.and_then(Value::as_str).unwrap_or_default().to_owned();
    let Some(kustomize) = source.get("kustomize") else { return Vec::new() };
    let lenient = kustomize.get("ignoreMissingComponents").and_then(Value::as_bool) == Some(true);
    let path = text(source.get("path"));
    if path.contains("{{") {
        return Vec::new();
    }
    let field = field.key("kustomize").key("components");
    let entries = kustomize.get("components").and_then(Value::as_array).into_iter().flatten().enumerate();
    let entries = entries.filter_map(|(index, entry)| Some((field.index(index), entry.as_str()?)));
    let found = entries.filter(|(_, entry)| !entry.contains("{{")).filter_map(|(field, entry)| {
        let finding = component(entry, &TreePath::from(&*path))?;
        Some((field, if lenient && is_left_out(finding.rule) { mild(finding) } else { finding }))
    });
    found.map(|(field, finding)| of_object(finding, field)).collect()
}

/// Returns whether Argo CD ignores errors that the rule `rule` reports, if the Application sets
/// `ignoreMissingComponents`. Argo CD then skips missing components instead of failing, so the findings of the rule are
/// only warnings. `rule` is a rule id, such as `KZ004`.
fn is_left_out(rule: &str) -> bool {
    ["KZ004", "KZ009", "KZ010"].contains(&rule)
}

fn component(entry: &str, folder: &TreePath) -> Option<TreeFinding> {
    let site = Site::of_file(folder.clone());
    if entry.is_empty() {
        return Some(kz004::empty(site));
    }
    if entry.starts_with('/') {
        return Some(kz010::absolute(site, entry, None));
    }
    if entry.starts_with('$') {
        let finding = kz004::missing(site, entry, folder, None, None);
        return Some(mild(
            finding.help("$names of other sources work only in Helm value files; move the component to this source"),
        ));
    }
    let name = entry.rsplit('/').next().unwrap_or_default();
    if NAMES.contains(&name) {
        return Some(mild(kz003::found(site, entry, &folder.join(name))));
    }
    let mut above = Some(folder.clone());
    for name in entry.split('/').filter(|name| !["", "."].contains(name)) {
        above = above.filter(|_| name == "..")?.parent();
    }
    above.map(|above| kz009::found(site, entry, &above, folder, std::slice::from_ref(folder)))
}

/// Lowers the level of a finding to `warn` if it is higher, because the finding may be wrong. For example, a component
/// whose path ends with `kustomization.yaml` can be a folder with this name.
fn mild(finding: TreeFinding) -> TreeFinding {
    TreeFinding { level: Level::Warn.min(finding.level), ..finding }
}
