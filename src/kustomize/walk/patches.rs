//! Applying patches: `patchesStrategicMerge`, `patches`, `patchesJson6902`, as [`prepare`](super::prepare) read them.
//!
//! Source: `Transform` of `PatchStrategicMergeTransformer`, `PatchTransformer` and `PatchJson6902Transformer` in kustomize's
//! `api/internal/builtins`.

use serde_json::Value;

use super::Walk;
use crate::admission::FieldPath;
use crate::kustomize::accumulate::json_patch::{self, Applied, Operations};
use crate::kustomize::accumulate::manifests::Manifest;
use crate::kustomize::accumulate::merge::{self, Merged};
use crate::kustomize::accumulate::select::{BadSelector, Compiled, Selected};
use crate::kustomize::accumulate::writable::Writable;
use crate::kustomize::accumulate::{Accumulator, Id, Object};
use crate::kustomize::file::Selector;
use crate::kustomize::finding::Site;
use crate::kustomize::rules::{kz014, kz025, kz030};

/// A patch that was read and can be applied.
pub(super) enum Prepared<'k> {
    /// Strategic merge patches of one entry.
    Merge(Merge<'k>),
    /// A JSON patch.
    Json(Json<'k>),
    /// An unknown patch, which may change and delete any object.
    Unread(Site),
}

/// Strategic merge patches of one entry.
pub(super) struct Merge<'k> {
    pub(super) patches: Vec<Manifest>,
    pub(super) target: Option<&'k Selector>,
    pub(super) renames: bool,
    pub(super) rekinds: bool,
    pub(super) site: Site,
}

/// A JSON patch.
pub(super) struct Json<'k> {
    pub(super) operations: Operations,
    pub(super) target: Option<&'k Selector>,
    /// Whether the object keeps its identity before it is patched, which `patchesJson6902` forgets.
    pub(super) remembers: bool,
    pub(super) site: Site,
}

impl Merge<'_> {
    /// Returns whether a patch may give an object another identity, or take it away.
    fn rewrites(&self, patch: &Value) -> bool {
        self.renames || self.rekinds || patch.get("$patch").is_some()
    }
}

impl Prepared<'_> {
    pub(super) fn words(&self) -> String {
        match self {
            Self::Merge(merge) => format!("patch {}", merge.site.field),
            Self::Json(json) => format!("JSON patch {}", json.site.field),
            Self::Unread(site) => format!("patch {}, which is not read", site.field),
        }
    }
}

impl Walk<'_> {
    /// Marks everything that an unknown patch or component may have changed as unknown.
    pub(super) fn unread(acc: &mut Accumulator) {
        for at in 0..acc.objects().len() {
            perhaps(acc, at, true);
        }
    }

    /// Applies strategic merge patches.
    pub(super) fn merge(&mut self, merge: &Merge<'_>, acc: &mut Accumulator) {
        let Some(target) = merge.target else {
            for patch in &merge.patches {
                if let Some(at) = self.only_match(merge, &patch.value, acc) {
                    self.merge_into(merge, patch, at, acc);
                }
            }
            drop_deleted(acc);
            return;
        };
        let [patch] = merge.patches.as_slice() else {
            self.report(kz014::several(merge.site.clone()));
            return;
        };
        let rewrites = merge.rewrites(&patch.value);
        for (at, selected) in self.selected(&merge.site, target, acc) {
            match selected {
                Selected::Yes => self.merge_into(merge, patch, at, acc),
                Selected::Unknown => {
                    perhaps(acc, at, rewrites);
                    if rewrites {
                        self.uncertainty(
                            &merge.site,
                            "whether the patch applies depends on what is not known of an object",
                        );
                    }
                }
                Selected::No => {}
            }
        }
        drop_deleted(acc);
        if merge.renames || merge.rekinds {
            self.recheck(&merge.site, acc);
        }
    }

    fn merge_into(&mut self, merge: &Merge<'_>, patch: &Manifest, at: usize, acc: &mut Accumulator) {
        if !self.affords_merge(&merge.site, &patch.value) {
            return perhaps(acc, at, merge.rewrites(&patch.value));
        }
        let Some(object) = acc.objects_mut().get_mut(at) else { return };
        if merge.renames || merge.rekinds {
            object.remember();
        }
        match merge::apply_with(object, &patch.value, &patch.keys, &merge.site) {
            Merged::Changed => {}
            Merged::Deleted => object.replace(Value::Null),
            Merged::Unsure => {
                let words = object.id.words();
                self.uncertainty(&merge.site, format!("how the patch changes {words} is not worked out here"));
                return perhaps(acc, at, merge.rewrites(&patch.value));
            }
        }
        let id = Id::of(&patch.value);
        if merge.renames && !id.name.is_empty() {
            object.id.name = id.name;
        }
        if merge.rekinds && !id.kind.is_empty() {
            object.id.kind = id.kind;
        }
    }

    /// Returns the one object that a patch without a target is for.
    fn only_match(&mut self, merge: &Merge<'_>, patch: &Value, acc: &mut Accumulator) -> Option<usize> {
        let site = &merge.site;
        let id = Id::of(patch);
        let matching = acc.matching(&id);
        let sure = matching.iter().filter(|at| acc.objects().get(**at).is_some_and(|object| object.sure)).count();
        match (matching.as_slice(), sure) {
            ([at], 1) => return Some(*at),
            (_, 2..) => self.report(kz030::several_to_patch(site.clone(), &id)),
            ([], _) if acc.is_certain() => {
                self.report(kz030::nothing_to_patch(site.clone(), &id, acc.objects().iter().map(|object| &object.id)));
            }
            _ => {
                matching.iter().for_each(|at| perhaps(acc, *at, merge.rewrites(patch)));
                if acc.complete {
                    self.uncertainty(site, format!("whether {} is there to be patched is not certain", id.words()));
                }
            }
        }
        None
    }

    /// Returns the objects that a target selects.
    fn selected(&mut self, site: &Site, target: &Selector, acc: &Accumulator) -> Vec<(usize, Selected)> {
        let compiled = match Compiled::new(target) {
            Ok(compiled) => compiled,
            Err(BadSelector::Invalid(text)) => {
                self.report(kz014::expression(site.clone(), &text));
                return Vec::new();
            }
            Err(BadSelector::Unsupported(text)) => {
                self.uncertainty(site, format!("`{text}` in a selector is not supported by this analysis"));
                return acc.objects().iter().enumerate().map(|(at, _)| (at, Selected::Unknown)).collect();
            }
        };
        let selected: Vec<_> = acc.objects().iter().map(|object| compiled.selects(object)).enumerate().collect();
        if acc.is_certain() && selected.iter().all(|(_, selected)| *selected == Selected::No) {
            let field = FieldPath::root();
            let site = Site { field: joined(&site.field, &field.key("target")), ..site.clone() };
            self.report(kz025::found(site, target));
        }
        selected
    }

    /// Applies a JSON patch.
    pub(super) fn json(&mut self, json: &Json<'_>, acc: &mut Accumulator) {
        let Some(target) = json.target else {
            self.report(kz014::no_target(json.site.clone()));
            return;
        };
        let rewrites = touches_identity(&json.operations);
        for (at, selected) in self.selected(&json.site, target, acc) {
            match selected {
                Selected::Yes => self.json_into(json, at, rewrites, acc),
                Selected::Unknown => {
                    perhaps(acc, at, rewrites);
                    self.uncertainty(
                        &json.site,
                        "whether the patch applies depends on labels, or on patches before it",
                    );
                }
                Selected::No => {}
            }
        }
    }

    fn json_into(&mut self, json: &Json<'_>, at: usize, rewrites: bool, acc: &mut Accumulator) {
        let Some(object) = acc.objects_mut().get_mut(at) else { return };
        if !self.affords_operations(&json.site, &json.operations, object.raw()) {
            return perhaps(acc, at, rewrites);
        }
        if json.remembers {
            object.remember();
        }
        let words = object.id.words();
        match object.writable() {
            Writable::Yes => {}
            Writable::No(key) => {
                let why = format!("its key {} {}", key.pointer, key.fault);
                self.report(kz014::inapplicable(json.site.clone(), &words, &why));
                return;
            }
            Writable::Perhaps => {
                self.uncertainty(
                    &json.site,
                    format!("whether {words} has keys that are no strings is not worked out here"),
                );
                return perhaps(acc, at, rewrites);
            }
        }
        match json_patch::apply(object, &json.operations) {
            Applied::Done if object.id.name.is_empty() || object.id.kind.is_empty() => {
                object.sure = false;
                self.uncertainty(&json.site, format!("the patch takes kind or name from {words}"));
            }
            Applied::Done => object.write_annotations(),
            Applied::Refused(why) => {
                acc.complete = false;
                self.report(kz014::inapplicable(json.site.clone(), &words, &why));
            }
            Applied::Unsure(why) => {
                self.uncertainty(
                    &json.site,
                    format!("whether the patch applies to {words} is not worked out here: {why}"),
                );
                perhaps(acc, at, rewrites);
            }
        }
    }

    /// Reports duplicate identities where kustomize gathers the objects again.
    pub(super) fn recheck(&mut self, site: &Site, acc: &mut Accumulator) {
        let objects = std::mem::take(acc.objects_mut());
        for object in objects {
            self.append(site, object, acc);
        }
    }
}

fn joined(path: &FieldPath, tail: &FieldPath) -> FieldPath {
    tail.segments().iter().fold(path.clone(), |path, segment| match segment {
        crate::admission::field::Segment::Key(key) => path.key(key),
        crate::admission::field::Segment::Index(index) => path.index(*index),
    })
}

/// Handles an object that a patch may have changed.
fn perhaps(acc: &mut Accumulator, at: usize, rewrites: bool) {
    if let Some(object) = acc.objects_mut().get_mut(at) {
        object.invalidate("");
        object.sure &= !rewrites;
    }
}

fn drop_deleted(acc: &mut Accumulator) {
    if acc.objects().iter().any(|object| object.raw().is_null()) {
        acc.objects_mut().retain(|object: &Object| !object.raw().is_null());
    }
}

/// Returns whether operations may change kind, name, namespace or apiVersion.
fn touches_identity(operations: &Operations) -> bool {
    const IDENTITY: [&str; 6] = ["", "/kind", "/apiVersion", "/metadata", "/metadata/name", "/metadata/namespace"];
    operations.iter().any(|operation| {
        ["path", "from"].into_iter().filter_map(|key| operation.get(key)?.as_str()).any(|path| IDENTITY.contains(&path))
    })
}
