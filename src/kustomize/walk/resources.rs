//! Entries of `resources`, `bases` and the lists of plugins: a file of objects, or a folder to build
//! (`accumulateResources`, `accumulateFile`).

use std::sync::Arc;

use super::{Entry, Layer, MOST_ENTRIES, Walk};
use crate::kustomize::accumulate::keys::{self, BadKey, Unwritable};
use crate::kustomize::accumulate::manifests::{self, Manifest};
use crate::kustomize::accumulate::{Accumulator, Object};
use crate::kustomize::explain::{Step, StepKind};
use crate::kustomize::finding::Site;
use crate::kustomize::references::{NoFile, NoFolder};
use crate::kustomize::rules::{kz010, kz013, kz030};
use crate::kustomize::tree::{Lost, TreePath};
use crate::yaml::Place;

impl Walk<'_> {
    /// Evaluates an entry of `resources`, or of a list with the same semantics.
    pub(super) fn resource(&mut self, layer: &Layer<'_>, entry: &Entry<'_>, acc: &mut Accumulator) {
        self.entries += 1;
        if self.entries > MOST_ENTRIES {
            acc.complete = false;
            if self.entries == MOST_ENTRIES + 1 {
                self.uncertainty(&entry.site, format!("more than {MOST_ENTRIES} entries are not looked at"));
            }
            return;
        }
        match layer.loader.file(self.tree, entry.text, self.options) {
            Ok(path) => self.objects(entry, &path, acc),
            Err(NoFile::Http) => {
                self.far(entry, acc, "it is fetched over HTTP, which is not done here");
            }
            Err(NoFile::Other) => {
                acc.complete = false;
                self.uncertainty(&entry.site, "it is neither a file nor a folder");
            }
            Err(no_file) => match layer.loader.folder(self.tree, entry.text, self.options) {
                Ok(folder) => self.folder(layer, entry, &folder, acc),
                Err(no_folder) => {
                    acc.complete = false;
                    self.neither(layer, entry, &no_file, &no_folder);
                }
            },
        }
    }

    /// Handles an entry that must be fetched: its content is unknown.
    pub(super) fn far(&mut self, entry: &Entry<'_>, acc: &mut Accumulator, why: &str) {
        acc.complete = false;
        self.part(Step::new(entry.list, entry.text, None, StepKind::Remote));
        self.uncertainty(&entry.site, format!("{} \"{}\": {why}", entry.site.field, entry.text));
    }

    /// Reports an entry that is neither a file nor a folder.
    fn neither(&mut self, layer: &Layer<'_>, entry: &Entry<'_>, no_file: &NoFile, no_folder: &NoFolder) {
        match (no_file, no_folder) {
            (NoFile::Restricted(path), NoFolder::File(_) | NoFolder::Absolute) => {
                self.part(Step::new(entry.list, entry.text, Some(path.clone()), StepKind::Broken));
                self.report(kz010::restricted(entry.site.clone(), entry.text, path, layer.loader.root));
            }
            (NoFile::Lost(Lost::Missing(_) | Lost::NotAFolder(_)), NoFolder::Absolute) => {
                let lost = NoFolder::Lost(Lost::Missing(TreePath::root()));
                self.no_folder(layer, entry, &lost);
            }
            (_, no_folder) => self.no_folder(layer, entry, no_folder),
        }
    }

    /// Adds the objects of a file.
    fn objects(&mut self, entry: &Entry<'_>, path: &TreePath, acc: &mut Accumulator) {
        let Some(text) = self.text(&entry.site, path) else {
            acc.complete = false;
            return;
        };
        let manifests = manifests::read(&text);
        if !self.affords_aliases(entry, manifests.aliased) {
            acc.complete = false;
            return;
        }
        let mut step = Step::new(entry.list, entry.text, Some(path.clone()), StepKind::File);
        let at = |place: Place| Site::new(path.clone(), place, Default::default());
        if let Some((place, reason)) = manifests.uncertainty {
            acc.complete = false;
            self.uncertainty(&at(place), reason);
        }
        if let Some((place, fault)) = manifests.fault {
            acc.complete = false;
            step.kind = StepKind::Broken;
            self.report(kz013::found(entry.site.clone(), entry.text, &at(place), &fault));
        }
        for Manifest { value, place, keys } in manifests.objects {
            let mut object = Object::new(value, Arc::new(at(place)));
            if self.origins || keys.iter().any(BadKey::is_more_annotations) {
                object.invalidate("/metadata/annotations");
            }
            object.unwritable_mut().extend(keys.into_iter().map(|key| Unwritable {
                pointer: keys::pointer(&key.path),
                fault: key.fault,
                site: Arc::new(Site { field: key.path, ..at(key.place) }),
            }));
            step.adds.push(object.id.words());
            self.append(&entry.site, object, acc);
        }
        self.part(step);
    }

    /// Adds an object, and reports a duplicate identity.
    pub(super) fn append(&mut self, site: &Site, mut object: Object, acc: &mut Accumulator) {
        let may_be_in_none = self.own_schema && !object.id.namespace.is_empty();
        object.sure &= !may_be_in_none || object.id.is_cluster_scoped();
        if let Err((object, at)) = acc.append(object) {
            let other = acc.objects().get(at).map(|other| Arc::clone(&other.site));
            self.report(kz030::conflict(site.clone(), &object.id, &object.site, other.as_deref()));
        }
    }

    /// Returns the text of a required file; unknown if it cannot be read.
    pub(super) fn text(&mut self, site: &Site, path: &TreePath) -> Option<String> {
        match self.tree.read(path) {
            // the decoder of kustomize reports bytes that are not UTF-8 as malformed, and so does our reader U+FFFD not;
            // such files are left to kustomize
            Ok(bytes) => match String::from_utf8(bytes.to_vec()) {
                Ok(text) => Some(text),
                Err(_) => {
                    self.uncertainty(site, format!("{path} is not UTF-8"));
                    None
                }
            },
            Err(why) => {
                self.uncertainty(site, format!("{path} cannot be read: {why}"));
                None
            }
        }
    }

    /// Notes a part of the folder that is being evaluated.
    pub(super) fn part(&mut self, step: Step) {
        if let Some(folder) = self.steps.last_mut() {
            folder.parts.push(step);
        }
    }

    /// Records an effect of the folder being evaluated.
    pub(super) fn adds(&mut self, what: impl Into<String>) {
        if let Some(folder) = self.steps.last_mut() {
            folder.adds.push(what.into());
        }
    }
}

/// Returns the objects of a text, unless it is a path; or why they are not known.
pub(super) fn inline(text: &str) -> Option<Result<Vec<Manifest>, String>> {
    let manifests = manifests::read(text);
    match manifests.uncertainty {
        _ if manifests.fault.is_some() => None,
        Some((_, reason)) => Some(Err(reason)),
        None => Some(Ok(manifests.objects)),
    }
}
