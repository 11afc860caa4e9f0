//! Checks Flux Kustomizations of the API group `kustomize.toolkit.fluxcd.io`. Such a Kustomization points at a folder
//! in the artifact of a source.
//!
//! Source: kustomize-controller's reconciler, `internal/controller/kustomization_controller.go`.

use serde_json::Value;

use super::kustomization::{MATCHERS, SourceRef, flux_spec, is_open, live_reads, subject};
use super::source::{self, Known};
use super::{Delivery, FAMILY, Look, Root, deletions, deployed, late};
use crate::admission::{FieldPath, Finding, Level, Request};
use crate::catalog::View;
use crate::kustomize::analyse;
use crate::kustomize::file::NAMES;
use crate::kustomize::finding::{Site, TreeFinding};
use crate::kustomize::options::{FluxSpec, Options, Profile};
use crate::kustomize::remote::is_git;
use crate::kustomize::rules::{kz004, kz009, kz011, kz014, kz040};
use crate::kustomize::tree::{Memory, Tree, TreePath};

/// A check that reports errors in a Flux Kustomization itself, without fetching the files of its source. Its name
/// `flux` is a key under `deliveries` in the configuration file.
pub(super) static OBJECTS: Delivery = Delivery {
    name: "flux",
    family: FAMILY,
    summary: "Flux Kustomizations themselves; nothing is fetched",
    max_level: Level::Deny,
    limited_by: None,
    matchers: &MATCHERS,
    narrowed: None,
    looks_up: &[],
    live_reads: None,
    ahead: None,
    withhold: None,
    consequences: None,
    look: |request, _| Look { findings: judged(request), roots: Vec::new() },
};

/// The definition of the check `flux-trees`, which builds the folder of a Flux Kustomization. The files come from the
/// current artifact of the Kustomization's source. This artifact is the archive from which Flux builds. In the
/// configuration file, `deliveries.flux-trees` sets the highest level of its findings, such as `warn`.
pub(super) static TREES: Delivery = Delivery {
    name: "flux-trees",
    family: FAMILY,
    summary: "the trees that Flux Kustomizations build, from the current artifacts of their sources",
    max_level: Level::Warn,
    limited_by: None,
    matchers: &MATCHERS,
    narrowed: None,
    looks_up: &deployed::KINDS,
    live_reads: Some(live_reads),
    ahead: None,
    withhold: None,
    consequences: Some(&deletions::OF_UPDATES),
    look: |request, view| Look { findings: Vec::new(), roots: root(request, view).into_iter().collect() },
};

fn root(request: &Request<'_>, view: &View<'_>) -> Option<Root> {
    let kustomization = subject(request)?;
    let SourceRef { kind, namespace, name } = &kustomization.source;
    match source::find(view, source::kind(kind)?, namespace, name) {
        Known::Artifact(artifact, stored) => {
            let late = late::reason(stored.value(), request.object());
            Some(Root { late, ..kustomization.root(artifact) })
        }
        Known::Empty | Known::Missing | Known::Unknown => None,
    }
}

/// Reports errors in `spec.components` and `spec.patches` of a Flux Kustomization. Reports only errors that can be
/// found without the files that the Kustomization builds. Reports none if the Kustomization is suspended.
fn judged(request: &Request<'_>) -> Vec<Finding> {
    let spec = request.object().get("spec");
    let field = |name: &str| spec.and_then(|spec| spec.get(name));
    if field("suspend").and_then(Value::as_bool) == Some(true) {
        return Vec::new();
    }
    let folder = || TreePath::from(field("path").and_then(Value::as_str).unwrap_or_default());
    let entries = field("components").and_then(Value::as_array).into_iter().flatten().enumerate();
    let entries = entries.filter_map(|(index, entry)| Some((index, entry.as_str()?)));
    let lenient = field("ignoreMissingComponents").and_then(Value::as_bool) == Some(true);
    let at = |index| FieldPath::of(["spec", "components"]).index(index);
    let of_components = entries
        .filter(|(_, entry)| !is_open(entry))
        .filter_map(|(index, entry)| Some(of_object(component(entry, &folder(), lenient)?, at(index))));
    of_components.chain(patches(spec)).collect()
}

/// Reports patches in `spec.patches` that are invalid regardless of the objects in the tree.
fn patches(spec: Option<&Value>) -> Vec<Finding> {
    let Some(spec) = spec.filter(|spec| spec.get("patches").is_some()) else { return Vec::new() };
    let patches = flux_spec(spec).patches;
    if patches.is_empty() || patches.iter().any(|patch| is_open(&patch.patch)) {
        return Vec::new();
    }
    let tree = Tree::new(Memory::new().file(NAMES[0], ""), "/");
    let flux = FluxSpec { patches, ..FluxSpec::default() };
    let report = analyse(&tree, &TreePath::root(), &Options { flux, ..Options::of(Profile::Flux) });
    let refused =
        report.findings.into_iter().filter(|finding| finding.rule == kz014::RULE.id && finding.location.refused);
    refused.map(|finding| finding.with_location(None)).collect()
}

/// Returns a finding about an entry of `spec.components` that is invalid regardless of the files in the tree. Also
/// returns a finding if the entry is a git repository, which Portcullis does not fetch. `folder` is the folder in
/// `spec.path`, and `lenient` is the value of `spec.ignoreMissingComponents`.
fn component(entry: &str, folder: &TreePath, lenient: bool) -> Option<TreeFinding> {
    let site = Site::of_file(folder.clone());
    if entry.is_empty() {
        return Some(kz004::empty(site));
    }
    if !kz011::is_local(entry) {
        return Some(kz011::found(site, entry));
    }
    if is_git(entry) {
        return Some(kz040::found(site, &format!("\"{entry}\" is a git repository, which is not fetched here")));
    }
    // Entries of only `..` and `.` lead to the folder itself or to one of its parents, whatever links the tree has.
    let mut above = Some(folder.clone());
    for name in entry.split('/').filter(|name| !["", "."].contains(name)) {
        above = above.filter(|_| name == "..")?.parent();
    }
    match above {
        Some(above) => Some(kz009::found(site, entry, &above, folder, std::slice::from_ref(folder))),
        None if lenient => None,
        None => Some(kz009::above_tree(site, entry, std::slice::from_ref(folder))),
    }
}

/// Converts a finding about a kustomization file to a finding about the field `field` of a Kubernetes object.
pub(super) fn of_object(finding: TreeFinding, field: FieldPath) -> Finding {
    Finding { field, ..finding.with_location(None) }
}
