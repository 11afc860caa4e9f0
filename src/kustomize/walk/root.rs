//! The folder that is built (`Kustomizer.Run`, `makeCustomizedResMap`).

use std::collections::HashMap;
use std::sync::Arc;

use super::{Layer, Walk};
use crate::admission::FieldPath;
use crate::kustomize::accumulate::writable::Writable;
use crate::kustomize::accumulate::{Accumulator, Object};
use crate::kustomize::explain::{Step, StepKind};
use crate::kustomize::file::SharedFile;
use crate::kustomize::finding::Site;
use crate::kustomize::flux::{self, Own, RootFile};
use crate::kustomize::options::Profile;
use crate::kustomize::references::Loader;
use crate::kustomize::rules::{kz003, kz004, kz013, kz020, kz030};
use crate::kustomize::tree::{Located, TreePath};

/// The annotation of objects that are not printed, unless its value is `false`.
const LOCAL: &str = "config.kubernetes.io/local-config";

impl Walk<'_> {
    /// Builds a folder.
    pub(in crate::kustomize) fn root(&mut self, root: &TreePath) -> Option<Step> {
        let site = Site::of_file(root.clone());
        let root = match self.tree.locate(&TreePath::root(), root.as_str()) {
            Ok(Located::Folder(path)) => path,
            Ok(Located::File(path) | Located::Other(path)) => {
                self.report(kz003::found(site, root.as_str(), &path));
                return None;
            }
            Err(_) => {
                let near = self.near(&TreePath::root(), root.as_str());
                self.report(kz004::absent_root(site, near));
                return None;
            }
        };
        let loader = Loader { root: &root, referrer: None };
        let (file, own) = match self.options.profile {
            Profile::Flux => self.flux_file(&loader)?,
            _ => self.load(&loader, None).map(|file| (Arc::clone(&file), Own::of(&file.kustomization)))?,
        };
        let is_flux = self.options.profile == Profile::Flux;
        self.built = Some((root.clone(), is_flux.then(|| RootFile { file: Arc::clone(&file), own })));
        let layer = Layer { loader, file: &file, own, depth: 0 };
        Some(self.built(&layer))
    }

    fn built(&mut self, layer: &Layer<'_>) -> Step {
        let kustomization = layer.kustomization();
        let is_component = kustomization.is_component();
        let kind = if is_component { StepKind::Component } else { StepKind::Kustomization };
        self.steps.push(Step::new("", "", Some(layer.loader.root.clone()), kind));
        if is_component && !self.options.lone_components {
            self.report(kz020::found(layer.site(FieldPath::of(["kind"])), layer.loader.root));
        }
        self.origins = !kustomization.build_metadata.is_empty();
        self.schema(layer, true);
        let mut acc = Accumulator::default();
        acc.complete = layer.file.faults.is_empty() && !(is_component && self.options.lone_components);
        self.target(layer, &mut acc);
        self.unique(layer, &acc);
        if acc.complete {
            acc.objects_mut().iter_mut().for_each(Object::write_annotations);
            self.written(acc.objects());
        }
        self.sort_options(layer);
        self.of_build = Some((self.reasons.len(), self.findings.len()));
        if self.options.profile == Profile::Flux {
            self.post_build(&acc);
        }
        self.steps.pop().unwrap_or_else(|| Step::new("", "", None, kind))
    }

    /// Reports duplicates after sorting, which gathers all objects again and detects identities that patches made
    /// equal.
    fn unique(&mut self, layer: &Layer<'_>, acc: &Accumulator) {
        let keeps_order = layer.kustomization().sort_options.as_ref().is_some_and(|options| options.order != "legacy");
        let mut seen = HashMap::new();
        for object in acc.objects().iter().filter(|object| object.sure) {
            if keeps_order || is_local(object) == Some(true) {
                continue;
            }
            // Objects with the same name and a hash suffix differ if their contents do.
            let hashed = object.hashed;
            if let Some(other) = seen.insert((object.id.effective(), hashed), Arc::clone(&object.site)) {
                let site = Site::clone(&object.site);
                if self.options.profile == Profile::Kubectl && !hashed {
                    self.report(kz030::conflict(site, &object.id, &object.site, Some(&other)));
                } else {
                    self.uncertainty(&site, format!("{} is there twice", object.id.words()));
                }
            }
        }
    }

    /// Looks for keys with which an object cannot be written.
    pub(super) fn written<'o>(&mut self, objects: impl IntoIterator<Item = &'o Object>) {
        for object in objects {
            let is_local = is_local(object);
            match object.writable() {
                _ if is_local == Some(true) => {}
                Writable::Yes => {}
                Writable::No(key) if is_local.is_some() && object.sure => {
                    self.report(kz013::key(&key.site, &object.id.words(), &key.pointer, key.fault));
                }
                _ => self.uncertainty(
                    &object.site,
                    format!("whether all keys of {} are strings is not worked out here", object.id.words()),
                ),
            }
        }
    }

    /// Returns the file that Flux writes for the root, and what of it was there before.
    fn flux_file(&mut self, loader: &Loader<'_>) -> Option<(SharedFile, Own)> {
        let names = self.tree.names(loader.root);
        let has_file = crate::kustomize::file::NAMES.iter().any(|name| names.iter().any(|own| own == name));
        let file = if has_file { self.load(loader, None)? } else { Arc::new(self.generated(loader.root)) };
        let mut file = (*file).clone();
        if has_file {
            flux::complete(&mut file.kustomization);
        }
        let is_there = |entry: &str| self.tree.locate(loader.root, entry).is_ok();
        let (own, findings) = flux::merge(&mut file, &self.options.flux, &is_there);
        for finding in findings {
            self.report(finding);
        }
        Some((Arc::new(file), own))
    }

    /// Returns the file that Flux generates if none exists.
    fn generated(&mut self, root: &TreePath) -> crate::kustomize::file::KustomizationFile {
        let generated = flux::generate(self.tree, root, self.files);
        for finding in generated.findings {
            self.report(finding);
        }
        for (site, reason) in generated.uncertainties {
            self.uncertainty(&site, reason);
        }
        generated.file
    }
}

impl Walk<'_> {
    /// Evaluates the steps of kustomize-controller after a build.
    fn post_build(&mut self, acc: &Accumulator) {
        let is_written = |object: &&Object| is_local(object) != Some(true);
        let objects: Vec<_> = acc.objects().iter().filter(is_written).collect();
        let judged = flux::post_build(&objects, acc.complete, self.options.flux.post_build.as_ref());
        for finding in judged.findings {
            self.report(finding);
        }
        for (site, reason) in judged.uncertainties {
            self.uncertainty(&site, reason);
        }
    }
}

/// Returns whether an object is not written out; nothing where its annotations are not known.
fn is_local(object: &Object) -> Option<bool> {
    let local = object.raw()["metadata"]["annotations"][LOCAL].as_str().is_some_and(|local| local != "false");
    (local || object.is_clear("/metadata/annotations")).then_some(local)
}
