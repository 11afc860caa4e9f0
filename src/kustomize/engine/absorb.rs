//! Adds the objects that generators create to the objects of a build. Such an object is added as a new object, replaces
//! an existing object, or is merged into an existing object.
//!
//! Source: `appendReplaceOrMerge` in kustomize's `api/resmap/reswrangler.go`.

use std::collections::BTreeMap;
use std::mem;

use super::generate::value_node;
use super::lost::Lost;
use super::odd_annotations;
use super::resmap::ResMap;
use super::resource::{Behavior, Resource};
use super::run::Run;
use super::stop::{Step, Stop};
use crate::kustomize::finding::Site;
use crate::kustomize::identity::Id;
use crate::kustomize::node::{Entry, Node, Tag};
use crate::kustomize::rules::{kz013, kz030, kz031};

/// The fields of a ConfigMap or Secret that contain its data. A generator with behavior `merge` merges them into an
/// existing object.
const DATA: [&str; 2] = ["data", "binaryData"];
/// The fields of `metadata` that a generator with behavior `merge` or `replace` merges into an existing object.
const METADATA: [&str; 2] = ["labels", "annotations"];

impl Run<'_> {
    /// Adds a generated object. Depending on the `behavior` of the generator, the object is created, replaces an
    /// existing object, or is merged into it.
    ///
    /// # Errors
    ///
    /// - If the behavior is `create`, and an object with the same identity exists.
    /// - If the behavior is `merge` or `replace`, and no object with the same identity exists.
    /// - If several objects have the same identity as the generated object.
    /// - If the previous identities of an object cannot be read.
    /// - If kustomize cannot merge the labels, annotations or data, for example because a key is empty.
    ///
    /// A build that continues after errors records these errors instead of returning them.
    pub(super) fn absorb(&self, map: &mut ResMap, resource: Resource, site: &Site) -> Step<()> {
        self.check_identities(map)?;
        let id = resource.id(&map.scope);
        let found = map.matching_any_id(|other| *other == id);
        let others: Vec<&Resource> = found.iter().filter_map(|at| map.resources().get(*at)).collect();
        let exists = |other: &Resource| kz030::exists(site.clone(), &id, Some(&self.site_of(other.origin)));
        let stop = match (found.as_slice(), resource.behavior) {
            ([], Behavior::Merge | Behavior::Replace) => {
                let stop = Stop::of_absence(kz030::no_object_to_merge(site.clone(), &id));
                self.recover(&mut map.lost, Lost::Nothing, Err::<(), _>(stop))?;
                // add the object, so that later parts of the build find it
                return self.append_generated(map, resource, site);
            }
            ([], _) => return self.append_generated(map, resource, site),
            ([at], Behavior::Merge | Behavior::Replace) => {
                let checked = self.check_metadata(others[0], &resource, &id);
                let checked = checked.and_then(|()| self.check_keys(others[0], &resource, &id));
                self.recover(&mut map.lost, Lost::Nothing, checked)?;
                if let Some(old) = map.resources_mut().get_mut(*at) {
                    let new = combined(mem::replace(old, resource.clone()), resource);
                    *old = new;
                }
                return Ok(());
            }
            ([_], _) => Stop::of_content(exists(others[0])),
            _ => Stop::of_content(kz030::several_objects(site.clone(), &id)),
        };
        let mut lost = others.iter().map(|other| other.lost).fold(map.lost, Lost::max);
        self.recover(&mut lost, Lost::Nothing, Err::<(), _>(stop)).map(drop)
    }

    /// Checks the data keys of the existing object `old`, into which a generator merges the object `new`. Returns an
    /// error if a key is empty, because kustomize crashes at an empty key.
    fn check_keys(&self, old: &Resource, new: &Resource, id: &Id<'_>) -> Step<()> {
        if new.behavior != Behavior::Merge {
            return Ok(());
        }
        for field in DATA {
            let mut entries = old.node.get(field).map(Node::entries).unwrap_or_default().iter();
            if let Some(entry) = entries.find(|entry| is_empty(entry)) {
                let finding = kz013::empty_key(self.site_of(entry.value.origin), id, field);
                return Err(Stop::of_content(finding));
            }
        }
        Ok(())
    }

    /// Checks the labels and annotations of the existing object `old`, before a generator merges the object `new` into
    /// `old` or replaces `old` with `new`.
    ///
    /// # Errors
    ///
    /// - If the labels or annotations are a list with an odd number of items. kustomize reads a list as alternating
    ///   keys and values, and panics if the last value is missing.
    /// - If a label or annotation has an empty key, and `old` was renamed. In this case, kustomize does not give the
    ///   current name of `old` to `new`. So kustomize does not find the object to replace.
    fn check_metadata(&self, old: &Resource, new: &Resource, id: &Id<'_>) -> Step<()> {
        let refused = |field: &str, problem: &str| {
            let message = format!("metadata.{field} of {} {problem}", id.words());
            Err(Stop::of_content(kz031::found(self.site_of(old.origin), &message)))
        };
        for field in METADATA {
            let values = old.node.at_path(&["metadata", field]);
            if values.is_some_and(|values| odd_annotations::listed(values).is_none()) {
                return refused(field, "is a list, not a mapping");
            }
            let is_renamed = old.name() != new.name() || old.namespace() != new.namespace();
            if is_renamed && overlaid(old, new, &["metadata", field], |_| true).contains_key("") {
                return refused(field, "has an empty key");
            }
        }
        Ok(())
    }

    fn append_generated(&self, map: &mut ResMap, resource: Resource, site: &Site) -> Step<()> {
        let Err(resource) = map.append(resource) else { return Ok(()) };
        let other = map.with_id(&resource.id(&map.scope)).map(|other| self.site_of(other.origin));
        Err(Stop::of_content(kz030::exists(site.clone(), &resource.id(&map.scope), other.as_ref())))
    }
}

/// Returns whether kustomize treats the key of an entry in `data` as empty. The empty string is an empty key. In a
/// file, the YAML value `null` is an empty key too. In a generator, `null` is an ordinary string.
fn is_empty(entry: &Entry) -> bool {
    entry.key_tag == Tag::Null || entry.key.is_empty()
}

/// Merges the generated object `new` with the existing object `old` of the same identity, and returns the result. Keeps
/// the name and namespace of `old`, unless a label or annotation has an empty key. Merges labels and annotations. If
/// the behavior of the generator is `merge`, also merges the data.
fn combined(old: Resource, mut new: Resource) -> Resource {
    let behavior = new.behavior;
    let nameless = METADATA.into_iter().find(|field| {
        let merged = overlaid(&old, &new, &["metadata", field], |_| true);
        let is_nameless = merged.contains_key("");
        set_map(new.metadata(), field, merged, false);
        is_nameless
    });
    if nameless.is_none() {
        new.set_name(old.name());
        new.set_namespace(old.namespace());
    }
    if behavior == Behavior::Merge {
        for field in DATA {
            // `check_keys` has reported empty keys; without them, later steps do not report them again
            let merged = overlaid(&old, &new, &[field], |entry| !is_empty(entry));
            set_map(Some(&mut new.node), field, merged, true);
        }
        new.source = old.source.clone().or(new.source);
    }
    // kustomize fails at a label or annotation without a name, ignores the error, and copies nothing else
    match nameless {
        Some("annotations") => new.forget(),
        Some(_) => {}
        None => {
            let needs_hash = new.needs_hash && old.needs_hash;
            return Resource { source: new.source, node: new.node, needs_hash, ..old };
        }
    }
    Resource { uid: old.uid, lost: old.lost, ..new }
}

/// Returns the merged entries of the mappings at `path` of two objects, by key. Skips entries for which `counts`
/// returns false. Values of the new object take precedence. If an object has duplicate keys, the first entry takes
/// precedence.
fn overlaid(old: &Resource, new: &Resource, path: &[&str], counts: fn(&Entry) -> bool) -> BTreeMap<String, Node> {
    let mut values = BTreeMap::new();
    for resource in [old, new] {
        let Some(node) = resource.node.at_path(path) else { continue };
        let listed = if path.len() > 1 { odd_annotations::listed(node).unwrap_or_default() } else { Vec::new() };
        let entries = node.entries().iter().rev().filter(|entry| counts(entry)).chain(&listed);
        values.extend(entries.map(|entry| (entry.key.to_string(), entry.value.clone())));
    }
    values
}

fn set_map(owner: Option<&mut Node>, field: &str, values: BTreeMap<String, Node>, is_data: bool) {
    let Some(owner) = owner else { return };
    owner.remove(field);
    if values.is_empty() {
        return;
    }
    if !is_data && values.contains_key("") {
        // kustomize writes the keys in order, and stops at the empty key, which comes first, without an error
        owner.set(field, Node::map(Vec::new()));
        return;
    }
    let entry = |(key, value): (String, Node)| {
        let text = value.text().filter(|_| !(is_data && value.is_null())).unwrap_or_default().to_owned();
        let node = if is_data { value_node(text, value.origin) } else { Node::string(text).at(value.origin) };
        Entry::new(key, node)
    };
    owner.set(field, Node::map(values.into_iter().map(entry).collect()));
}
