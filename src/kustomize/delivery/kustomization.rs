//! Reads Kustomizations of Flux: source, path and build settings.
//!
//! Source: `KustomizationSpec` in kustomize-controller's `api/v1/kustomization_types.go`.

use std::collections::BTreeSet;

use serde::Deserialize as _;
use serde_json::Value;

use super::{APPROVAL_ANNOTATION, At, Content, Root, source};
use crate::admission::json::Lookup as _;
use crate::admission::{FieldPath, Metadata, Request};
use crate::catalog::{Index, Kind, Reference, Scope, Storage, View};
use crate::kustomize::file::{Image, Patch};
use crate::kustomize::options::{CommonMetadata, FluxSpec, Options, PostBuild, Profile};
use crate::rule::Match;

/// API group of Flux's Kustomizations.
pub(super) const GROUP: &str = "kustomize.toolkit.fluxcd.io";
const VERSIONS: &[&str] = &["v1"];

/// The kind Kustomization of Flux. The cache of watched objects stores only the fields of a Kustomization that checks
/// need, such as `spec`.
pub(super) static KUSTOMIZATIONS: Kind = Kind {
    group: GROUP,
    version: "v1",
    kind: "Kustomization",
    plural: "kustomizations",
    scope: Scope::Namespaced,
    indexes: &[&BY_SOURCE, &BY_CLUSTER],
    storage: Storage::Parts(&[
        &["metadata", "labels"],
        &["metadata", "uid"],
        &["metadata", "annotations", APPROVAL_ANNOTATION],
        &["spec"],
    ]),
};

/// Index of Kustomizations by their source, such as `GitRepository/flux-system/apps`. Omits suspended Kustomizations,
/// and those whose source, path or components contain unresolved variables.
pub(super) static BY_SOURCE: Index = Index {
    name: "source",
    parts: &[&["metadata", "namespace"], &["spec"]],
    keys: |object| {
        let namespace = Metadata::of(object).namespace();
        SourceRef::of(object, namespace).map(|source| source.key()).into_iter().collect()
    },
};

/// Index of Kustomizations by the cluster to which they apply their objects. [`cluster`] computes the key. Omits
/// suspended Kustomizations, and those whose source, path or components contain unresolved variables.
pub(super) static BY_CLUSTER: Index = Index {
    name: "cluster",
    parts: &[&["metadata", "namespace"], &["spec"]],
    keys: |object| {
        let namespace = Metadata::of(object).namespace();
        SourceRef::of(object, namespace).map(|_| cluster(object, namespace)).into_iter().collect()
    },
};

/// Returns a string that identifies the cluster to which the Kustomization `object` applies its objects. Without
/// `spec.kubeConfig`, the string is `own`, which stands for the cluster in which Flux runs. Otherwise, the string
/// includes `namespace`, the namespace of the Kustomization, because this namespace contains the Secret with the
/// kubeconfig. A Secret of the same name in another namespace may belong to another cluster.
pub(super) fn cluster(object: &Value, namespace: &str) -> String {
    match object.at(&["spec", "kubeConfig"]) {
        Some(config) => format!("{namespace}/{config}"),
        None => "own".to_owned(),
    }
}

pub(super) static MATCHERS: [Match; 1] = [Match::create_or_update(GROUP, VERSIONS, "kustomizations", "Kustomization")];

/// The reference to the source of a Kustomization.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::kustomize) struct SourceRef {
    pub(in crate::kustomize) kind: String,
    pub(in crate::kustomize) namespace: String,
    pub(in crate::kustomize) name: String,
}

impl SourceRef {
    /// Reads the reference to the source from a Kustomization. If the reference contains no namespace, the source is in
    /// `namespace`, the namespace of the Kustomization.
    ///
    /// `None` if the Kustomization has no reference or is suspended. Also `None` if its source, path or components
    /// contain unresolved variables (`${…}`).
    pub(in crate::kustomize) fn of(object: &Value, namespace: &str) -> Option<Self> {
        let [kind, namespace, name] = Self::parts(object, namespace)?.map(str::to_owned);
        Some(Self { kind, namespace, name })
    }

    /// Returns kind, namespace and name of the source to which `spec.sourceRef` of a Flux Kustomization refers.
    /// `namespace` is the namespace of the Kustomization.
    ///
    /// `None` if the Kustomization has no `sourceRef` or is suspended. Also `None` if its source, path or components
    /// contain unresolved variables (`${…}`).
    pub(super) fn parts<'v>(object: &'v Value, namespace: &'v str) -> Option<[&'v str; 3]> {
        let spec = object.get("spec")?;
        if spec.get("suspend").and_then(Value::as_bool) == Some(true) {
            return None;
        }
        let reference = spec.get("sourceRef")?;
        let given = text(reference.get("namespace"));
        let namespace = if given.is_empty() { namespace } else { given };
        let (kind, name) = (text(reference.get("kind")), text(reference.get("name")));
        let components = spec.get("components").and_then(Value::as_array).into_iter().flatten();
        let components = components.map(|entry| text(Some(entry)));
        let is_known =
            [namespace, name, text(spec.get("path"))].into_iter().chain(components).all(|text| !is_open(text));
        is_known.then_some([kind, namespace, name])
    }

    /// Returns the key of the source in the index [`BY_SOURCE`], such as `GitRepository/flux-system/apps`.
    pub(in crate::kustomize) fn key(&self) -> String {
        let Self { kind, namespace, name } = self;
        [kind, "/", namespace, "/", name].concat()
    }
}

/// The source, path and build settings of a Kustomization.
#[derive(Debug, Clone)]
pub(in crate::kustomize) struct Kustomization {
    pub(in crate::kustomize) source: SourceRef,
    pub(in crate::kustomize) path: String,
    pub(in crate::kustomize) spec: FluxSpec,
}

impl Kustomization {
    /// Reads source, path and build settings of a Kustomization. `namespace` is the namespace of the Kustomization.
    /// `None` if the Kustomization has no `sourceRef` or is suspended. Also `None` if its source, path or components
    /// contain unresolved variables (`${…}`).
    pub(in crate::kustomize) fn of(object: &Value, namespace: &str) -> Option<Self> {
        let source = SourceRef::of(object, namespace)?;
        let spec = object.get("spec")?;
        Some(Self { source, path: text(spec.get("path")).to_owned(), spec: flux_spec(spec) })
    }

    /// Returns the folder that Flux builds for this Kustomization, with the options of the build. The folder is in
    /// `artifact`.
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

fn text(value: Option<&Value>) -> &str {
    value.and_then(Value::as_str).unwrap_or_default()
}

/// Reads the fields of a Flux Kustomization's spec that change the build.
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
        // Patches in the API have neither `path` nor `options`.
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
    // Flux removes line breaks from values
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

/// The fields in the `spec` of a Flux Kustomization that affect its build.
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

/// Returns whether the Kustomizations `one` and `other` have equal values in all fields in [`BUILT`]. Changes of other
/// fields, such as the interval, the timeout or pruning, do not affect the build.
pub(super) fn builds_the_same(one: &Value, other: &Value) -> bool {
    let built = |object: &Value, field: &str| object.get("spec").and_then(|spec| spec.get(field)).cloned();
    BUILT.into_iter().all(|field| built(one, field) == built(other, field))
}

/// Returns whether a text contains an unresolved variable of `postBuild` or of a template: `${`, `{{` or `<<`.
pub(in crate::kustomize::delivery) fn is_open(text: &str) -> bool {
    let may_open = text.bytes().any(|byte| matches!(byte, b'{' | b'<'));
    may_open && ["${", "{{", "<<"].iter().any(|opening| text.contains(opening))
}

/// Returns the source of the Kustomization in a request. `None` if the Kustomization has no `sourceRef` or is
/// suspended. Also `None` if its source, path or components contain unresolved variables.
pub(super) fn source_of(request: &Request<'_>) -> Option<SourceRef> {
    SourceRef::of(request.object(), &request.namespace)
}

/// Returns a reference to the source of the Kustomization in a request, if the catalog does not contain the source. The
/// source must then be read from the API server. Otherwise, returns an empty list.
pub(super) fn live_reads(request: &Request<'_>, view: &View<'_>) -> Vec<Reference> {
    let wanted = || {
        let [kind, namespace, name] = SourceRef::parts(request.object(), &request.namespace)?;
        view.unless_found(source::kind(kind)?, namespace, name)
    };
    wanted().into_iter().collect()
}

/// Reads source, path and build settings of the Kustomization in a request. `None` if the Kustomization has no
/// `sourceRef` or is suspended. Also `None` if its source, path or components contain unresolved variables.
pub(super) fn subject(request: &Request<'_>) -> Option<Kustomization> {
    Kustomization::of(request.object(), &request.namespace)
}
