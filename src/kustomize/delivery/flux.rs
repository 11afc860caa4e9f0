//! Flux: Kustomizations of `kustomize.toolkit.fluxcd.io`, which point at a folder of a source's artifact.
//!
//! Source: `KustomizationSpec` in kustomize-controller's `api/v1/kustomization_types.go`, and its reconciler.

use std::collections::BTreeSet;

use serde::Deserialize as _;
use serde_json::Value;

use super::source::{self, Known};
use super::{At, Content, Delivery, FAMILY, Look, Root, deletions, deployed, late};
use crate::admission::{FieldPath, Finding, Level, Metadata, Request};
use crate::catalog::{Index, Kind, Reference, Scope, Storage, View};
use crate::kustomize::analyse;
use crate::kustomize::file::{Image, NAMES, Patch};
use crate::kustomize::finding::{Site, TreeFinding};
use crate::kustomize::options::{CommonMetadata, FluxSpec, Options, PostBuild, Profile};
use crate::kustomize::references::is_git;
use crate::kustomize::rules::{kz004, kz009, kz011, kz014, kz040};
use crate::kustomize::tree::{Memory, Tree, TreePath};
use crate::rule::Match;

/// API group of Flux's Kustomizations.
pub(super) const GROUP: &str = "kustomize.toolkit.fluxcd.io";
const VERSIONS: &[&str] = &["v1"];

/// The kind of Flux's Kustomizations.
pub(super) static KUSTOMIZATIONS: Kind = Kind {
    group: GROUP,
    version: "v1",
    kind: "Kustomization",
    plural: "kustomizations",
    scope: Scope::Namespaced,
    indexes: &[&BY_SOURCE],
    storage: Storage::Parts(&[&["metadata", "labels"], &["metadata", "uid"], &["spec"]]),
};

/// Index of Kustomizations by their source: `GitRepository/flux-system/apps`.
pub(super) static BY_SOURCE: Index = Index {
    name: "source",
    parts: &[&["spec"]],
    keys: |object| {
        let namespace = Metadata::of(object).namespace();
        Kustomization::of(object, namespace).map(|kustomization| kustomization.source.key()).into_iter().collect()
    },
};

pub(super) static MATCHERS: [Match; 1] = [Match::create_or_update(GROUP, VERSIONS, "kustomizations", "Kustomization")];

/// Reports errors in a Kustomization that do not depend on its source.
pub(super) static OBJECTS: Delivery = Delivery {
    name: "flux",
    family: FAMILY,
    summary: "Flux Kustomizations as they stand, with nothing fetched",
    max_level: Level::Deny,
    matchers: &MATCHERS,
    narrowed: None,
    looks_up: &[],
    live_reads: None,
    ahead: None,
    withhold: None,
    consequences: None,
    look: |request, _| Look { findings: judged(request), roots: Vec::new() },
};

/// Judges the tree of a Flux Kustomization, from the current artifact of its source.
pub(super) static TREES: Delivery = Delivery {
    name: "flux-trees",
    family: FAMILY,
    summary: "the trees that Flux Kustomizations point at, as their sources have them now",
    max_level: Level::Warn,
    matchers: &MATCHERS,
    narrowed: None,
    looks_up: &deployed::KINDS,
    live_reads: Some(live_reads),
    ahead: None,
    withhold: None,
    consequences: Some(&deletions::OF_UPDATES),
    look: |request, view| Look { findings: Vec::new(), roots: root(request, view).into_iter().collect() },
};

/// The reference to the source of a Kustomization.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::kustomize) struct SourceRef {
    pub(in crate::kustomize) kind: String,
    pub(in crate::kustomize) namespace: String,
    pub(in crate::kustomize) name: String,
}

impl SourceRef {
    /// Returns the key in [`BY_SOURCE`].
    pub(in crate::kustomize) fn key(&self) -> String {
        let Self { kind, namespace, name } = self;
        format!("{kind}/{namespace}/{name}")
    }
}

/// The build settings of a Kustomization.
#[derive(Debug, Clone)]
pub(in crate::kustomize) struct Kustomization {
    pub(in crate::kustomize) source: SourceRef,
    pub(in crate::kustomize) path: String,
    pub(in crate::kustomize) spec: FluxSpec,
}

impl Kustomization {
    /// Reads an object; `None` if it is suspended, or if fields contain unresolved variables (`${…}`).
    pub(in crate::kustomize) fn of(object: &Value, namespace: &str) -> Option<Self> {
        let spec = object.get("spec")?;
        let text = |value: Option<&Value>| value.and_then(Value::as_str).unwrap_or_default().to_owned();
        if spec.get("suspend").and_then(Value::as_bool) == Some(true) {
            return None;
        }
        let reference = spec.get("sourceRef")?;
        let own = |given: String| if given.is_empty() { namespace.to_owned() } else { given };
        let source = SourceRef {
            kind: text(reference.get("kind")),
            namespace: own(text(reference.get("namespace"))),
            name: text(reference.get("name")),
        };
        let spec = flux_spec(spec);
        let path = text(object.pointer("/spec/path"));
        let names = [&source.namespace, &source.name, &path];
        let known = names.into_iter().chain(&spec.components).all(|text| !is_open(text));
        known.then_some(Self { source, path, spec })
    }

    /// Returns the root that is built from an artifact.
    pub(super) fn root(self, artifact: source::Artifact) -> Root {
        Root {
            field: FieldPath::of(["spec", "path"]),
            of: None,
            content: Content::Artifact(artifact),
            at: At::Folder(self.path),
            options: Options { flux: self.spec, ..Options::of(Profile::Flux) },
            late: None,
            follows_revision: false,
        }
    }
}

/// Reads the parts of a Flux Kustomization's spec that change the tree.
pub fn flux_spec(spec: &Value) -> FluxSpec {
    let text = |value: Option<&Value>| value.and_then(Value::as_str).map(str::to_owned);
    let list = |name: &str| spec.get(name).and_then(Value::as_array).into_iter().flatten();
    let patches = list("patches").map(|patch| Patch::deserialize(patch).unwrap_or_default());
    FluxSpec {
        components: list("components").map(|entry| text(Some(entry)).unwrap_or_default()).collect(),
        ignore_missing_components: spec.get("ignoreMissingComponents").and_then(Value::as_bool) == Some(true),
        target_namespace: text(spec.get("targetNamespace")),
        name_prefix: text(spec.get("namePrefix")),
        name_suffix: text(spec.get("nameSuffix")),
        // The API has neither paths nor options for patches.
        patches: patches.map(|patch| Patch { path: String::new(), options: None, ..patch }).collect(),
        images: list("images").map(|image| Image::deserialize(image).unwrap_or_default()).collect(),
        build_metadata: list("buildMetadata").filter_map(|entry| text(Some(entry))).collect(),
        post_build: spec.get("postBuild").filter(|post_build| post_build.is_object()).map(post_build),
        common_metadata: spec.get("commonMetadata").map(common_metadata).unwrap_or_default(),
    }
}

fn common_metadata(common: &Value) -> CommonMetadata {
    let members = |key: &str| common.get(key).and_then(Value::as_object).into_iter().flatten();
    let texts =
        |key: &str| members(key).filter_map(|(name, value)| Some((name.clone(), value.as_str()?.to_owned()))).collect();
    CommonMetadata { labels: texts("labels"), annotations: texts("annotations") }
}

fn post_build(spec: &Value) -> PostBuild {
    let substitute = spec.get("substitute").and_then(Value::as_object).into_iter().flatten();
    // Flux takes line breaks out of values
    let pair = |(name, value): (&String, &Value)| Some((name.clone(), value.as_str()?.replace('\n', "")));
    let from = spec.get("substituteFrom").and_then(Value::as_array).into_iter().flatten();
    let reference = |reference: &Value| {
        let text = |key: &str| reference.get(key).and_then(Value::as_str).unwrap_or_default();
        format!("{}/{}", text("kind"), text("name"))
    };
    PostBuild {
        substitute: substitute.filter_map(pair).collect(),
        unknown: BTreeSet::new(),
        from: from.map(reference).collect(),
        always: spec.get("substituteStrategy").is_some_and(|strategy| strategy == "Always"),
        is_lenient: false,
    }
}

/// The fields of a Kustomization that affect the build.
const BUILT: [&str; 14] = [
    "buildMetadata",
    "components",
    "ignoreMissingComponents",
    "images",
    "namePrefix",
    "nameSuffix",
    "patches",
    "patchesJson6902",
    "patchesStrategicMerge",
    "path",
    "postBuild",
    "sourceRef",
    "suspend",
    "targetNamespace",
];

/// Returns whether two versions of a Kustomization have the same build. Intervals, timeouts and pruning do not affect
/// it.
pub(super) fn builds_the_same(one: &Value, other: &Value) -> bool {
    let built = |object: &Value, field: &str| object.get("spec").and_then(|spec| spec.get(field)).cloned();
    BUILT.into_iter().all(|field| built(one, field) == built(other, field))
}

/// Returns whether a text contains an unresolved variable of `postBuild` or of a template.
pub(in crate::kustomize::delivery) fn is_open(text: &str) -> bool {
    ["${", "{{", "<<"].iter().any(|opening| text.contains(opening))
}

/// Returns the build settings of the Kustomization in a request.
pub(super) fn subject(request: &Request<'_>) -> Option<Kustomization> {
    Kustomization::of(request.object(), &request.namespace)
}

pub(super) fn live_reads(request: &Request<'_>, view: &View<'_>) -> Vec<Reference> {
    let wanted = || {
        let SourceRef { kind, namespace, name } = subject(request)?.source;
        view.unless_found(source::kind(&kind)?, &namespace, &name)
    };
    wanted().into_iter().collect()
}

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

/// Reports errors in `spec.components` that do not depend on the tree.
fn judged(request: &Request<'_>) -> Vec<Finding> {
    let spec = request.object().get("spec");
    let field = |name: &str| spec.and_then(|spec| spec.get(name));
    if field("suspend").and_then(Value::as_bool) == Some(true) {
        return Vec::new();
    }
    let folder = TreePath::from(field("path").and_then(Value::as_str).unwrap_or_default());
    let entries = field("components").and_then(Value::as_array).into_iter().flatten().enumerate();
    let entries = entries.filter_map(|(index, entry)| Some((index, entry.as_str()?)));
    let lenient = field("ignoreMissingComponents").and_then(Value::as_bool) == Some(true);
    let at = |index| FieldPath::of(["spec", "components"]).index(index);
    let of_components = entries
        .filter(|(_, entry)| !is_open(entry))
        .filter_map(|(index, entry)| Some(of_object(component(entry, &folder, lenient)?, at(index))));
    of_components.chain(patches(spec)).collect()
}

/// Reports patches in `spec.patches` that are invalid for any object.
fn patches(spec: Option<&Value>) -> Vec<Finding> {
    let patches = spec.map(flux_spec).unwrap_or_default().patches;
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

/// Reports an invalid component; `lenient` is `spec.ignoreMissingComponents`.
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
    // Independently of links, these lead to the folder itself or to one of its parents.
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

/// Converts the finding of a tree rule to a finding about a field of an object.
pub(super) fn of_object(finding: TreeFinding, field: FieldPath) -> Finding {
    Finding { field, ..finding.with_location(None) }
}
