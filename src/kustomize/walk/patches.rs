//! Patches: `patchesStrategicMerge`, `patches`, `patchesJson6902`.
//!
//! Source: `PatchStrategicMergeTransformer`, `PatchTransformer` and `PatchJson6902Transformer` in kustomize's
//! `api/internal/builtins`.

use serde_json::Value;

use super::resources::key_words;
use super::{Layer, Walk};
use crate::admission::FieldPath;
use crate::kustomize::accumulate::json_patch::{self, Applied, Operations};
use crate::kustomize::accumulate::keys::Writable;
use crate::kustomize::accumulate::manifests::{self, Manifest};
use crate::kustomize::accumulate::merge::{self, Merged};
use crate::kustomize::accumulate::select::{BadSelector, Compiled, Selected};
use crate::kustomize::accumulate::{Accumulator, Id, Object};
use crate::kustomize::file::{Patch, Selector};
use crate::kustomize::finding::Site;
use crate::kustomize::rules::{kz014, kz025, kz030};

/// A patch that was read and can be applied.
pub(super) enum Prepared<'k> {
    /// Strategic merge patches of one entry.
    Merge(Merge<'k>),
    /// A JSON patch.
    Json(Json<'k>),
    /// One of which nothing is known: it may change and delete any object.
    Unread(Site),
}

/// Strategic merge patches of one entry.
pub(super) struct Merge<'k> {
    patches: Vec<Manifest>,
    target: Option<&'k Selector>,
    renames: bool,
    rekinds: bool,
    site: Site,
}

/// A JSON patch.
pub(super) struct Json<'k> {
    operations: Operations,
    target: Option<&'k Selector>,
    /// Whether the object keeps its identity before it is patched, which `patchesJson6902` forgets.
    remembers: bool,
    site: Site,
}

impl Merge<'_> {
    /// Whether a patch may give an object another identity, or take it away.
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
    /// `patchesStrategicMerge`: texts or paths.
    pub(super) fn prepare_merges(&mut self, layer: &Layer<'_>) -> Vec<Prepared<'static>> {
        let list = &layer.kustomization().patches_strategic_merge;
        let mut prepared = Vec::new();
        let mut whole = true;
        for (index, text) in list.iter().enumerate() {
            let site = layer.site(FieldPath::of(["patchesStrategicMerge"]).index(index));
            let doubts = self.doubts;
            let objects = match super::resources::inline(text) {
                Some(Ok(objects)) => Some(objects),
                Some(Err(reason)) => {
                    self.doubt(&site, format!("the patch is not read: {reason}"));
                    None
                }
                None => self.merges_of_file(layer, &site, text),
            };
            prepared.extend((self.doubts > doubts).then(|| Prepared::Unread(site.clone())));
            whole &= objects.is_some();
            prepared.extend(objects.unwrap_or_default().into_iter().map(|patch| {
                Prepared::Merge(Merge {
                    patches: vec![patch],
                    target: None,
                    renames: false,
                    rekinds: false,
                    site: site.clone(),
                })
            }));
        }
        if whole && !list.is_empty() && prepared.is_empty() {
            self.report(kz014::nothing(layer.site(FieldPath::of(["patchesStrategicMerge"]))));
        }
        prepared
    }

    fn merges_of_file(&mut self, layer: &Layer<'_>, site: &Site, text: &str) -> Option<Vec<Manifest>> {
        let (path, content) = self.named_text(layer, site, text)?;
        let manifests = manifests::read(&content);
        if let Some((place, reason)) = manifests.doubt {
            self.doubt(&Site { place, ..Site::of_file(path.clone()) }, reason);
            return None;
        }
        if let Some((place, fault)) = manifests.fault {
            let words = format!("{path}:{} {}", place.line, super::resources::words(&fault));
            self.report(kz014::unreadable(site.clone(), &words));
            return None;
        }
        Some(manifests.objects)
    }

    /// `patches`: strategic merge or JSON, from a file or in place.
    pub(super) fn prepare_patches<'k>(&mut self, layer: &'k Layer<'_>) -> Vec<Prepared<'k>> {
        let patches = layer.kustomization().patches.iter().enumerate();
        let mut prepared = Vec::new();
        for (index, patch) in patches {
            let field = FieldPath::of(["patches"]).index(index);
            let site = layer.site(field.clone());
            let inline = patch.patch.trim();
            let text = match (inline.is_empty(), patch.path.is_empty()) {
                (true, true) => {
                    self.report(kz014::neither(site));
                    continue;
                }
                (false, false) => {
                    self.report(kz014::both(site));
                    continue;
                }
                (false, true) => inline.to_owned(),
                (true, false) => {
                    let doubts = self.doubts;
                    match self.named_text(layer, &layer.site(field.key("path")), &patch.path) {
                        Some((_, text)) => text,
                        None => {
                            prepared.extend((self.doubts > doubts).then_some(Prepared::Unread(site)));
                            continue;
                        }
                    }
                }
            };
            prepared.extend(self.prepare(patch, &text, site));
        }
        prepared
    }

    fn prepare<'k>(&mut self, patch: &'k Patch, text: &str, site: Site) -> Option<Prepared<'k>> {
        let manifests = manifests::read(text);
        if let Some((_, reason)) = &manifests.doubt {
            self.doubt(&site, format!("the patch is not read: {reason}"));
            return Some(Prepared::Unread(site));
        }
        let target = patch.target.as_ref();
        match manifests.fault.map(|(_, fault)| (fault, json_patch::read(text))) {
            Some((fault, None)) => {
                self.report(kz014::unreadable(site, &super::resources::words(&fault)));
                None
            }
            Some((_, Some(operations))) if operations.is_empty() => None,
            Some((_, Some(operations))) => Some(Prepared::Json(Json { operations, target, remembers: true, site })),
            None if manifests.objects.is_empty() => None,
            None => {
                let options = patch.options.clone().unwrap_or_default();
                Some(Prepared::Merge(Merge {
                    patches: manifests.objects,
                    target,
                    renames: options.allow_name_change,
                    rekinds: options.allow_kind_change,
                    site,
                }))
            }
        }
    }

    /// `patchesJson6902`.
    pub(super) fn prepare_json_patches<'k>(&mut self, layer: &'k Layer<'_>) -> Vec<Prepared<'k>> {
        let patches = layer.kustomization().patches_json6902.iter().enumerate();
        let mut prepared = Vec::new();
        for (index, patch) in patches {
            let field = FieldPath::of(["patchesJson6902"]).index(index);
            let site = layer.site(field.clone());
            if patch.target.as_ref().is_none_or(|target| target.name.is_empty()) {
                self.report(kz014::nameless_target(site));
                continue;
            }
            let text = match (patch.patch.is_empty(), patch.path.is_empty()) {
                (true, true) => {
                    self.report(kz014::neither(site));
                    continue;
                }
                (false, false) => {
                    self.report(kz014::both(site));
                    continue;
                }
                (false, true) => patch.patch.clone(),
                (true, false) => {
                    let doubts = self.doubts;
                    match self.named_text(layer, &layer.site(field.key("path")), &patch.path) {
                        Some((_, text)) => text,
                        None => {
                            prepared.extend((self.doubts > doubts).then_some(Prepared::Unread(site)));
                            continue;
                        }
                    }
                }
            };
            match json_patch::read(&text) {
                Some(operations) if !operations.is_empty() => prepared.push(Prepared::Json(Json {
                    operations,
                    target: patch.target.as_ref(),
                    remembers: false,
                    site,
                })),
                Some(_) => self.report(kz014::nothing(site)),
                None => self.report(kz014::unreadable(site, "is not a list of operations")),
            }
        }
        prepared
    }

    /// Leaves open what a patch or a component of which nothing is known may have done.
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
                Selected::Perhaps => {
                    perhaps(acc, at, rewrites);
                    if rewrites {
                        self.doubt(&merge.site, "whether the patch applies depends on what is not known of an object");
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
                self.doubt(&merge.site, format!("how the patch changes {words} is not worked out here"));
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

    /// The one object that a patch without a target is for.
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
                    self.doubt(site, format!("whether {} is there to be patched is not certain", id.words()));
                }
            }
        }
        None
    }

    /// Which objects a target selects.
    fn selected(&mut self, site: &Site, target: &Selector, acc: &Accumulator) -> Vec<(usize, Selected)> {
        let compiled = match Compiled::new(target) {
            Ok(compiled) => compiled,
            Err(BadSelector::Refused(text)) => {
                self.report(kz014::expression(site.clone(), &text));
                return Vec::new();
            }
            Err(BadSelector::Unsure(text)) => {
                self.doubt(site, format!("the expression `{text}` may mean something else in Go"));
                return acc.objects().iter().enumerate().map(|(at, _)| (at, Selected::Perhaps)).collect();
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
                Selected::Perhaps => {
                    perhaps(acc, at, rewrites);
                    self.doubt(&json.site, "whether the patch applies depends on labels, or on patches before it");
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
                let why = format!("its key {} {}", key.pointer, key_words(key.fault));
                self.report(kz014::inapplicable(json.site.clone(), &words, &why));
                return;
            }
            Writable::Perhaps => {
                self.doubt(&json.site, format!("whether {words} has keys that are no strings is not worked out here"));
                return perhaps(acc, at, rewrites);
            }
        }
        match json_patch::apply(object, &json.operations) {
            Applied::Done if object.id.name.is_empty() || object.id.kind.is_empty() => {
                object.sure = false;
                self.doubt(&json.site, format!("the patch takes kind or name from {words}"));
            }
            Applied::Done => object.write_annotations(),
            Applied::Refused(why) => {
                acc.complete = false;
                self.report(kz014::inapplicable(json.site.clone(), &words, &why));
            }
            Applied::Unsure(why) => {
                self.doubt(&json.site, format!("whether the patch applies to {words} is not worked out here: {why}"));
                perhaps(acc, at, rewrites);
            }
        }
    }

    /// Looks for identities that are there twice, where kustomize gathers the objects anew.
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

/// An object that a patch may or may not have changed.
fn perhaps(acc: &mut Accumulator, at: usize, rewrites: bool) {
    if let Some(object) = acc.objects_mut().get_mut(at) {
        object.blur("");
        object.sure &= !rewrites;
    }
}

fn drop_deleted(acc: &mut Accumulator) {
    if acc.objects().iter().any(|object| object.raw().is_null()) {
        acc.objects_mut().retain(|object: &Object| !object.raw().is_null());
    }
}

/// Whether operations may change kind, name, namespace or apiVersion.
fn touches_identity(operations: &Operations) -> bool {
    const IDENTITY: [&str; 6] = ["", "/kind", "/apiVersion", "/metadata", "/metadata/name", "/metadata/namespace"];
    operations.iter().any(|operation| {
        ["path", "from"].into_iter().filter_map(|key| operation.get(key)?.as_str()).any(|path| IDENTITY.contains(&path))
    })
}
