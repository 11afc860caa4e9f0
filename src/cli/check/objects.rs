//! Reads the Kubernetes objects in the checked files, and runs the rules on them.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;

use futures::executor::block_on;
use serde_json::{Value, json};

use super::super::parallel::in_order;
use super::super::report::{Located, Report};
use super::super::walk::Progress;
use super::super::{Unusable, inputs};
use super::Args;
use crate::admission::{self, Metadata, Object, Operation, Phase, Request, Resource, User};
use crate::catalog::Catalog;
use crate::catalog::manifests::{self, Aliased, Manifest, Manifests};
use crate::gate::{Gate, Policy, Registry};
use crate::kustomize::annotations::PATH_ANNOTATION;
use crate::landscaper::context;
use crate::landscaper::kinds::{CONTEXTS, INSTALLATIONS};
use crate::rule::Match;

/// The identity of an object: API version, kind, namespace, name.
type Identity = [Option<Value>; 4];

fn identity(object: &Value) -> Identity {
    ["/apiVersion", "/kind", "/metadata/namespace", "/metadata/name"].map(|part| object.pointer(part).cloned())
}

/// Reads the objects in `files`. Namespaced objects that set no namespace get `namespace`. Objects that no rule matches
/// or looks up are counted and dropped.
pub(super) fn read(files: &[PathBuf], namespace: &str, registry: &Registry) -> Manifests {
    let kinds = registry.kinds();
    let wanted = |object: &Value| {
        kinds.iter().any(|kind| kind.is_kind_of(object)) || {
            let (group, _, kind) = type_of(object);
            resource(group, kind, registry).is_some() || may_be_declared(group)
        }
    };
    let aliased = Aliased::default();
    let read = |file: &PathBuf| {
        let mut manifests = Manifests::load_within(&[file], namespace, &aliased);
        manifests.keep(wanted);
        manifests
    };
    let mut all = Manifests::default();
    in_order(files, read, |_, manifests| all.append(manifests));
    all
}

/// Returns group, version and kind of an object.
fn type_of(object: &Value) -> (&str, &str, &str) {
    let text = |key| object.get(key).and_then(Value::as_str).unwrap_or_default();
    let (group, version) = text("apiVersion").rsplit_once('/').unwrap_or(("", text("apiVersion")));
    (group, version, text("kind"))
}

/// Runs the rules on every object in the files, and adds the findings to the report. The rules check the admission
/// request that the API server would send if the object were applied.
pub(super) fn judge(manifests: Manifests, args: &Args, policy: Policy, report: &mut Report) -> Result<(), Unusable> {
    report.errors.extend(manifests.errors);
    (report.files, report.objects) = (manifests.files, manifests.found.len() + manifests.passed);
    let mut found = manifests.found;
    found.retain(|manifest| args.names(&manifest.source.name) || !is_kustomization_file(&manifest.object));
    let registry = Registry::standard();
    let catalog = catalog(&registry, args)?;
    catalog.insert_all(found.iter().map(|manifest| &manifest.object));
    catalog.insert_all(default_contexts(&found, &catalog).iter());
    let gate = Gate::new(registry, policy, Arc::new(catalog));
    let stored = updated(&found, args)?;
    let (mut progress, all) = (Progress::new("checked objects:"), found.len());
    for (done, manifest) in found.into_iter().enumerate() {
        progress.step(done, all);
        let old = stored.get(&identity(&manifest.object));
        let Some(request) = request(&manifest.object, old, &gate) else { continue };
        let verdict = block_on(gate.decide(Phase::Validate, &request));
        let located = |finding| Rc::new(Located::in_manifest(finding, &manifest));
        report.findings.extend(verdict.findings.into_iter().map(located));
    }
    Ok(())
}

/// Returns whether an object is the content of a kustomization file. Objects with the annotation `portcullis.dev/path`
/// do not count, because they are meant to be stored in a cluster. The name of the file does not matter, because a
/// kustomization file can have another name than `kustomization.yaml`, for example if it is an unused template.
fn is_kustomization_file(object: &Value) -> bool {
    let is_stored = || Metadata::of(object).annotations().is_some_and(|all| all.contains_key(PATH_ANNOTATION));
    type_of(object).0 == KUSTOMIZATION_FILES && !is_stored()
}

/// Returns the default Contexts that Landscaper would create in the namespaces of the Installations in `found`. Omits
/// Contexts that `catalog` already contains.
fn default_contexts(found: &[Manifest], catalog: &Catalog) -> Vec<Value> {
    let installations = found.iter().map(|manifest| &manifest.object).filter(|object| INSTALLATIONS.is_kind_of(object));
    let namespaces: BTreeSet<_> = installations.map(|object| Metadata::of(object).namespace()).collect();
    let missing = namespaces.into_iter().filter(|namespace| !catalog.contains(&CONTEXTS, namespace, context::DEFAULT));
    let context = |namespace| {
        json!({"apiVersion": CONTEXTS.api_version(), "kind": CONTEXTS.kind,
               "metadata": {"name": context::DEFAULT, "namespace": namespace}})
    };
    missing.map(context).collect()
}

/// Returns a catalog (a cache of cluster objects) with the objects of `--manifests`. If neither `--manifests` nor
/// `--complete` is set, the catalog is empty. Rules then assume that an object may exist in the cluster even if the
/// catalog does not contain it.
pub(super) fn catalog(registry: &Registry, args: &Args) -> Result<Catalog, Unusable> {
    match args.is_complete() {
        true => inputs::catalog(registry, &args.manifests, &args.namespace),
        false => Ok(registry.catalog()),
    }
}

/// Returns the objects of `--manifests` that have the same identity as an object in `found`. They would be updated if
/// the objects in `found` were applied.
fn updated(found: &[Manifest], args: &Args) -> Result<HashMap<Identity, Value>, Unusable> {
    let given: HashSet<_> = found.iter().map(|manifest| identity(&manifest.object)).collect();
    let mut stored = HashMap::new();
    let errors = manifests::each(&args.manifests, |object| {
        let mut value = admission::json::parse(object.text).map_err(|error| error.to_string())?;
        manifests::set_default_namespace(&mut value, &args.namespace);
        let identity = identity(&value);
        if given.contains(&identity) {
            stored.insert(identity, value);
        }
        Ok(())
    });
    if errors.is_empty() { Ok(stored) } else { Err(inputs::unreadable(errors)) }
}

/// Returns the admission request that the API server would send if `object` were applied. `old` is the stored object
/// that would be updated; `None` if `object` would be created. Returns `None` if no rule matches the kind of the
/// object.
pub(super) fn request(object: &Value, old: Option<&Value>, gate: &Gate) -> Option<Request<'static>> {
    let (group, version, kind) = type_of(object);
    let plural = plural(group, kind, gate)?;
    Some(Request {
        uid: "check".into(),
        resource: Resource {
            group: group.to_owned().into(),
            version: version.to_owned().into(),
            plural: plural.into(),
            kind: kind.to_owned().into(),
            subresource: "".into(),
        },
        name: Metadata::of(object).name().to_owned().into(),
        namespace: Metadata::of(object).namespace().to_owned().into(),
        operation: if old.is_some() { Operation::Update } else { Operation::Create },
        user: User::default(),
        dry_run: true,
        object: Object::parsed(object.clone()),
        old_object: old.cloned().map(Object::parsed).unwrap_or_default(),
        deadline: None,
    })
}

/// The API group of kustomization files. Such files are checked as parts of kustomize trees, and not as objects.
const KUSTOMIZATION_FILES: &str = "kustomize.config.k8s.io";

/// Returns the first request matcher for objects of the given API group and kind. Returns `None` if Portcullis does not
/// check such objects.
fn resource(group: &str, kind: &str, registry: &Registry) -> Option<&'static Match> {
    let of_rules = registry.rules().iter().flat_map(|rule| rule.matchers);
    let of_trees = registry.deliveries().iter().flat_map(|delivery| delivery.matchers);
    let of_trees = of_trees.filter(|matcher| matcher.group != KUSTOMIZATION_FILES);
    let mut matchers = of_rules.chain(of_trees).filter(|matcher| matcher.subresource.is_empty());
    matchers.find(|matcher| matcher.group == group && matcher.kind == kind)
}

/// Returns whether CompositeResourceDefinitions can declare kinds in the API group `group`. The name of the group must
/// contain a dot. Names that end with `.k8s.io` are reserved for Kubernetes.
fn may_be_declared(group: &str) -> bool {
    group.contains('.') && !group.ends_with(".k8s.io")
}

/// Returns the plural name of a kind. `None` if Portcullis does not check the kind: no rule matches it, its objects
/// contain no kustomize tree, and no definition in the catalog (such as a CompositeResourceDefinition) declares it.
fn plural(group: &str, kind: &str, gate: &Gate) -> Option<&'static str> {
    let declared = || gate.catalog().declared().into_iter().find(|held| held.group == group && held.kind == kind);
    resource(group, kind, gate.registry()).map(|matcher| matcher.plural).or_else(|| Some(declared()?.plural))
}
