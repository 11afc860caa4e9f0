//! The last steps of a build. They run once, for the kustomization that the user builds, and not for its bases. They
//! remove objects with the annotation `config.kubernetes.io/local-config`, set labels and annotations, and print the
//! objects.
//!
//! Source: kustomize's `api/krusty/kustomizer.go` and `api/resource/resource.go`.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use super::field_spec::FieldSpec;
use super::labels;
use super::lost::Lost;
use super::odd_annotations::{self, LOCAL};
use super::origin::{ORIGIN, TRANSFORMATIONS, transformations};
use super::read;
use super::resmap::ResMap;
use super::resource::Resource;
use super::run::Run;
use super::stop::{Step, Stop};
use crate::kustomize::bad_objects::BadObjects;
use crate::kustomize::emit::{self, EmitError, Value};
use crate::kustomize::identity::{Id, Scope};
use crate::kustomize::node::{Entry, Node, Origin, Style, Tag, printed};
use crate::kustomize::rules::{kz013, kz031};
use crate::yaml;

const MANAGED_BY: &str = "app.kubernetes.io/managed-by";
/// The value of the label `app.kubernetes.io/managed-by`: the version of kustomize that the engine reproduces.
const VERSION: &str = "kustomize-v5.8.1";
/// Number of output bytes that a build may produce for each byte of the files that it has read. In addition, it may
/// produce `MAX_TEXT_BYTES`. Without a limit, YAML aliases and bases that are built many times could make the output
/// very large.
const MAX_GROWTH: usize = 4;
/// The fixed part of the limit on the output size of a build, in bytes. The limit also includes `MAX_GROWTH` bytes for
/// each byte of the files that the build has read.
const MAX_TEXT_BYTES: usize = 8 << 20;
/// Annotations that kustomize removes, even if the user wrote them.
const REMOVED: [&str; 19] = [
    "internal.config.kubernetes.io/previousKinds",
    "internal.config.kubernetes.io/previousNames",
    "internal.config.kubernetes.io/prefixes",
    "internal.config.kubernetes.io/suffixes",
    "internal.config.kubernetes.io/previousNamespaces",
    "internal.config.kubernetes.io/allowNameChange",
    "internal.config.kubernetes.io/allowKindChange",
    "internal.config.kubernetes.io/refBy",
    "internal.config.kubernetes.io/generatorBehavior",
    "internal.config.kubernetes.io/needsHashSuffix",
    "internal.config.kubernetes.io/path",
    "internal.config.kubernetes.io/index",
    "internal.config.kubernetes.io/seqindent",
    "internal.config.kubernetes.io/id",
    "internal.config.kubernetes.io/annotations-migration-resource-id",
    "config.kubernetes.io/path",
    "config.kubernetes.io/index",
    "config.k8s.io/id",
    super::namespace::HELM,
];

/// Removes local objects: objects whose annotation `config.kubernetes.io/local-config` has a value other than `false`.
/// Like kustomize, keeps a local object if an object that is not local has the same identity.
///
/// # Errors
///
/// If an object has no kind or no name, or if two removed objects have the same identity. A build that does not stop at
/// its first error records these errors and continues.
pub(super) fn drop_local(map: &mut ResMap, run: &Run<'_>) -> Step<()> {
    let (scope, mut lost) = (map.scope.clone(), map.lost);
    for resource in map.resources_mut() {
        let checked = check_form(run, resource, &scope);
        run.recover_object(resource, &mut lost, checked)?;
    }
    map.lost = lost;
    remove_local(map, run)
}

/// Removes local objects from the build output. A local object has the annotation [`LOCAL`] with a value other than
/// `false`.
///
/// Like kustomize, keeps a local object if an object that is not local has the same identity.
///
/// # Errors
///
/// If two of the removed objects have the same identity. kustomize removes objects by identity, and fails if an
/// identity belongs to more than one object.
fn remove_local(map: &mut ResMap, run: &Run<'_>) -> Step<()> {
    let is_local = |resource: &Resource| resource.annotation(LOCAL).is_some_and(|text| text != "false");
    if !map.resources().iter().any(is_local) {
        return Ok(());
    }
    let (scope, mut lost) = (map.scope.clone(), map.lost);
    let printed = map.resources().iter().filter(|resource| !is_local(resource) && !resource.node.is_null_or_empty());
    let kept: HashSet<_> = printed.map(|resource| resource.id(&scope).key()).collect();
    let is_removed = |resource: &Resource| is_local(resource) && !kept.contains(&resource.id(&scope).key());
    let removed = map.positions(is_removed);
    let mut seen = HashSet::new();
    let resources = removed.iter().map(|at| &map.resources()[*at]);
    let repeated: Vec<_> = resources.filter(|resource| !seen.insert(resource.id(&scope).key())).collect();
    for resource in repeated {
        let id = resource.id(&scope);
        let message = format!("two local objects are both {}, and kustomize cannot remove them", id.words());
        let stop = Stop::of_content(kz031::found(run.site_of(resource.origin), &message));
        run.recover(&mut lost, Lost::Nothing, Err::<(), _>(stop))?;
    }
    let mut at = 0..;
    map.resources_mut().retain(|_| at.next().is_none_or(|at| removed.binary_search(&at).is_err()));
    Ok(())
}

fn check_form(run: &Run<'_>, resource: &Resource, scope: &Scope) -> Step<()> {
    let wrong = |why: &str| {
        let words = resource.id(scope).words();
        Err(Stop::of_content(kz013::no_object(run.site_of(resource.origin), &words, why)))
    };
    if resource.node.is_null_or_empty() {
        return Ok(());
    }
    match read::check(&resource.node) {
        Ok(()) => Ok(()),
        Err(BadObjects::NoKind(_)) => wrong("it has no kind"),
        Err(BadObjects::NoName { .. }) => wrong("it has no metadata.name"),
        Err(_) => wrong("it has neither apiVersion, nor kind, nor metadata"),
    }
}

/// Adds the label `app.kubernetes.io/managed-by` to all objects.
pub(super) fn managed_by(map: &mut ResMap) {
    let pairs = BTreeMap::from([(MANAGED_BY.to_owned(), VERSION.to_owned())]);
    let specs = [FieldSpec::of_all("metadata/labels", true)];
    for resource in map.resources_mut() {
        // this cannot fail: the path leads through metadata, which is a mapping
        drop(labels::set(resource, &pairs, &specs, Origin::default()));
    }
}

/// Converts the annotations of all objects to strings, and removes kustomize's internal annotations. Also adds the
/// annotations of `buildMetadata`. These are the origin of an object if `with_origins` is true, and the transformers
/// that changed the object if `with_transformations` is true.
///
/// # Errors
///
/// - If the key of an annotation is empty, a list or a mapping, because kustomize panics in this case.
/// - If an object has several fields `annotations` that kustomize cannot merge.
///
/// A build that stops at its first error returns this error. Other builds record the error and continue.
pub(super) fn annotations(map: &mut ResMap, run: &Run<'_>, with_origins: bool, with_transformations: bool) -> Step<()> {
    let (scope, mut lost) = (map.scope.clone(), map.lost);
    let is_written = !(with_origins && with_transformations);
    for resource in map.resources_mut() {
        if is_written && !resource.node.is_null_or_empty() && resource.node.get("metadata").is_none() {
            // a List without metadata: kustomize creates metadata when it sets no annotations
            let _ = resource.metadata();
        }
        if has_nameless_annotation(resource) {
            let words = resource.id(&scope).words();
            let finding = kz013::no_object(run.site_of(resource.origin), &words, "an annotation has an empty key");
            run.recover_object(resource, &mut lost, Err(Stop::of_content(finding)))?;
            continue;
        }
        let are_odd = resource.node.get("metadata").is_some_and(odd_annotations::are_odd);
        if are_odd {
            let merged = merge_odd(run, resource, &scope, with_origins && with_transformations);
            run.recover_object(resource, &mut lost, merged)?;
        }
        let notes = notes(resource, with_origins, with_transformations);
        let own = resource.node.at_path(&["metadata", "annotations"]);
        if (own.is_none() || are_odd) && notes.is_empty() {
            continue;
        }
        let kept = |key: &str| {
            !REMOVED.contains(&key)
                && (with_origins || key != ORIGIN)
                && (with_transformations || key != TRANSFORMATIONS)
        };
        if !notes.is_empty() || !own.is_some_and(|own| is_normal(own, kept)) {
            let values = values(own, kept, notes);
            set(resource, values);
        }
    }
    map.lost = lost;
    Ok(())
}

/// Returns the annotations that kustomize prints for an object, by key, with strings as values.
///
/// `own` contains the current annotations of the object. An annotation is left out if `kept` returns false for its key.
/// `notes` contains the annotations that `buildMetadata` requests, such as the origin of the object.
fn values(
    own: Option<&Node>,
    kept: impl Fn(&str) -> bool,
    notes: Vec<(&'static str, String)>,
) -> BTreeMap<String, Node> {
    let entries = own.map(Node::entries).unwrap_or_default().iter().filter(|entry| kept(&entry.key));
    let own = entries.map(|entry| {
        let text = entry.value.shared_text().unwrap_or_else(|| "".into());
        (entry.key.to_string(), Node::string(text).at(entry.value.origin))
    });
    own.chain(notes.into_iter().map(|(key, text)| (key.to_owned(), Node::string(text)))).collect()
}

/// Merges duplicate fields `metadata.annotations` of an object, as kustomize does at the end of a build. If such a
/// field is a list, converts it to a mapping. The caller passes only objects that need one of these changes.
///
/// `keeps_notes` is true if `buildMetadata` requests two annotations for the output: the origin of each object, and the
/// transformers that changed it.
///
/// # Errors
///
/// If kustomize cannot merge the fields, for example because one of them is not a mapping.
///
/// If the result cannot be predicted. This can happen if kustomize has added the origin or the transformers to the
/// object's annotations during the build.
fn merge_odd(run: &Run<'_>, resource: &mut Resource, scope: &Scope, keeps_notes: bool) -> Step<()> {
    let words = resource.id(scope).words();
    let site = run.site_of(resource.origin);
    let stored = resource.stored();
    let Some(metadata) = resource.node.get_mut("metadata") else { return Ok(()) };
    if stored.notes && (keeps_notes || odd_annotations::count(metadata) > 2) {
        return Err(Stop::unknown(
            site,
            format!("{words} has a duplicate key metadata.annotations, whose values kustomize merges"),
        ));
    }
    let merged = odd_annotations::finish(metadata, stored, |key| !REMOVED.contains(&key));
    merged.map_err(|why| Stop::of_content(kz013::no_object(site, &words, why)))
}

/// Returns whether the object has an annotation whose key is empty, a list or a mapping. If `metadata.annotations` is a
/// list, kustomize reads its items as alternating keys and values. This function does the same.
pub(super) fn has_nameless_annotation(resource: &Resource) -> bool {
    let Some(annotations) = resource.node.at_path(&["metadata", "annotations"]) else { return false };
    let is_nameless = |key: &Node| key.text().unwrap_or_default().is_empty();
    annotations.entries().iter().any(|entry| entry.key.is_empty())
        || annotations.items().iter().step_by(2).any(is_nameless)
}

/// Returns whether kustomize prints `annotations` unchanged. It does so only if all of these conditions hold:
///
/// - There is at least one annotation.
/// - All keys are different, and YAML reads each key as a string even without quotes.
/// - `kept` returns true for each key. It returns false for annotations that kustomize removes.
/// - All values are strings, and none is in YAML's folded style (`>`).
fn is_normal(annotations: &Node, kept: impl Fn(&str) -> bool) -> bool {
    let is_string = |entry: &Entry| {
        entry.value.is_scalar()
            && entry.value.tag == Tag::Str
            && entry.value.style != Style::Folded
            && kept(&entry.key)
            && yaml::core::tag_of(&entry.key) == Tag::Str
    };
    let mut keys: Vec<&str> = annotations.entries().iter().map(|entry| &*entry.key).collect();
    keys.sort_unstable();
    !keys.is_empty() && annotations.entries().iter().all(is_string) && keys.windows(2).all(|pair| pair[0] != pair[1])
}

fn notes(resource: &Resource, with_origins: bool, with_transformations: bool) -> Vec<(&'static str, String)> {
    let origin = resource.source.as_ref().filter(|_| with_origins).map(|note| (ORIGIN, note.text()));
    let has_transformations = with_transformations && !resource.transformations.is_empty();
    let all = has_transformations.then(|| (TRANSFORMATIONS, transformations(&resource.transformations)));
    origin.into_iter().chain(all).collect()
}

fn set(resource: &mut Resource, values: BTreeMap<String, Node>) {
    let Some(metadata) = resource.metadata() else { return };
    metadata.remove("annotations");
    if !values.is_empty() {
        let entries = values.into_iter().map(|(key, value)| Entry::new(key, value));
        metadata.set("annotations", Node::map(entries.collect()));
    }
}

/// Formats all objects as one YAML stream, as `kustomize build` prints them.
///
/// # Errors
///
/// If an object cannot be converted to YAML.
pub(super) fn print(map: &ResMap, run: &Run<'_>) -> Step<String> {
    let mut out = String::new();
    for resource in map.resources() {
        if !out.is_empty() {
            out.push_str(emit::SEPARATOR);
        }
        document(resource, run, &mut out)?;
    }
    Ok(out)
}

/// Formats each object as a separate YAML document.
///
/// # Errors
///
/// If an object cannot be converted to YAML.
pub(super) fn each(map: &ResMap, run: &Run<'_>) -> Step<Vec<String>> {
    let text = |resource| {
        let mut out = String::new();
        document(resource, run, &mut out).map(|()| out)
    };
    map.resources().iter().map(text).collect()
}

/// Checks that all objects can be converted to YAML. Discards the YAML.
///
/// # Errors
///
/// If the YAML of all objects is much larger than the files that were read. A build that stops at its first error also
/// fails if an object cannot be converted to YAML. Other builds record this error and continue.
pub(super) fn check(map: &mut ResMap, run: &Run<'_>) -> Step<()> {
    let most = MAX_TEXT_BYTES + MAX_GROWTH * run.read.get();
    if surely_fit(map, most) {
        return Ok(());
    }
    let (mut out, mut printed, mut lost) = (String::new(), 0, map.lost);
    for resource in map.resources_mut() {
        out.clear();
        let document = document(resource, run, &mut out);
        run.recover_object(resource, &mut lost, document)?;
        printed += out.len();
        if printed > most {
            let message = format!("the output is larger than {most} bytes, which is the limit");
            return Err(Stop::limit(run.site_of(resource.origin), message));
        }
    }
    map.lost = lost;
    Ok(())
}

/// Returns true if it is certain that all objects can be printed and that their YAML has at most `most` bytes. Returns
/// false if this is uncertain. This check needs less time than printing the objects.
fn surely_fit(map: &ResMap, most: usize) -> bool {
    let mut left = most;
    map.resources().iter().all(|resource| {
        let size = printed(&resource.node).ok().and_then(|value| emit::max_size(&value));
        size.and_then(|size| left.checked_sub(size)).inspect(|rest| left = *rest).is_some()
    })
}

/// Returns the names and contents of the files that kustomize writes into a folder. There is one file for each object.
/// The names include the namespace if the objects have several namespaces.
///
/// # Errors
///
/// If an object cannot be converted to YAML.
pub(super) fn files(map: &ResMap, run: &Run<'_>) -> Step<Vec<(String, String)>> {
    let ids = || map.resources().iter().map(|resource| resource.id(&map.scope));
    let namespaces: BTreeSet<&str> = ids().filter(|id| !id.is_cluster).map(|id| id.effective_namespace()).collect();
    let name = |id: &Id<'_>| {
        let prefix = (namespaces.len() > 1 && !id.is_cluster).then(|| id.effective_namespace());
        let parts = [prefix.unwrap_or_default(), id.gvk.group, id.gvk.version, id.gvk.kind, id.name];
        let parts: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
        format!("{}.yaml", parts.join("_").to_lowercase())
    };
    let file = |(resource, id): (&Resource, Id<'_>)| {
        let mut text = String::new();
        document(resource, run, &mut text).map(|()| (name(&id), text))
    };
    map.resources().iter().zip(ids()).map(file).collect()
}

/// Returns the YAML of each object without the label `validated-by`, or `None` for an object that cannot be converted
/// to YAML. The caller compares the results from before and after a validator runs.
pub(super) fn texts(map: &ResMap, run: &Run<'_>) -> Vec<Option<String>> {
    let text = |resource: &Resource| {
        let mut out = String::new();
        let mut resource = resource.clone();
        if let Some(labels) = resource.node.get_mut("metadata").and_then(|metadata| metadata.get_mut("labels")) {
            labels.remove("validated-by");
        }
        document(&resource, run, &mut out).ok().map(|()| out)
    };
    map.resources().iter().map(text).collect()
}

fn document(resource: &Resource, run: &Run<'_>, out: &mut String) -> Step<()> {
    with_value(resource, run, |value| emit::document(value, out))
}

/// Converts an object to the value that kustomize prints, and passes it to `print`.
///
/// # Errors
///
/// If the object cannot be converted, or `print` fails.
pub(super) fn with_value<T>(
    resource: &Resource,
    run: &Run<'_>,
    print: impl FnOnce(&Value<'_>) -> Result<T, EmitError>,
) -> Step<T> {
    let words = || resource.id(&run.scope()).words();
    let value = printed(&resource.node)
        .map_err(|error| Stop::of_content(kz013::unprintable(run.site_of(error.origin), &words(), &error)))?;
    print(&value)
        .map_err(|error| Stop::of_content(kz013::no_object(run.site_of(resource.origin), &words(), &error.to_string())))
}
