//! Folders: resolves entries to folders, checks whether a list allows them, and evaluates them (`accumulateComponents`,
//! `accumulateDirectory`).

use super::{DEEPEST, Entry, Layer, MOST_VISITS, Walk};
use crate::admission::FieldPath;
use crate::kustomize::accumulate::Accumulator;
use crate::kustomize::explain::{Step, StepKind};
use crate::kustomize::file::KustomizationFile;
use crate::kustomize::finding::Site;
use crate::kustomize::flux::Own;
use crate::kustomize::options::Profile;
use crate::kustomize::references::{Loader, NoFolder};
use crate::kustomize::rules::{kz001, kz002, kz003, kz004, kz009, kz010, kz021, kz023};
use crate::kustomize::tree::{Located, Lost, TreePath};

impl Walk<'_> {
    /// Evaluates an entry of `components`, which must be a folder.
    pub(super) fn component(&mut self, layer: &Layer<'_>, entry: &Entry<'_>, acc: &mut Accumulator) {
        match layer.loader.folder(self.tree, entry.text, self.options) {
            Ok(folder) => {
                if let Some(before) = acc.components.get(&folder) {
                    self.report(kz021::found(entry.site.clone(), entry.text, before));
                }
                acc.components.entry(folder.clone()).or_insert_with(|| entry.site.clone());
                self.folder(layer, entry, &folder, acc);
            }
            Err(NoFolder::File(path)) => {
                acc.complete = false;
                self.part(Step {
                    misplaced: true,
                    ..Step::new(entry.list, entry.text, Some(path.clone()), StepKind::File)
                });
                self.report(kz003::found(entry.site.clone(), entry.text, &path));
            }
            Err(no_folder) => {
                acc.complete = false;
                let uncertainties = self.uncertainties;
                self.no_folder(layer, entry, &no_folder);
                if self.uncertainties > uncertainties {
                    Self::unread(acc);
                }
            }
        }
    }

    /// Reports an entry that is not a folder, and not a file if files are allowed.
    pub(super) fn no_folder(&mut self, layer: &Layer<'_>, entry: &Entry<'_>, no_folder: &NoFolder) {
        let site = entry.site.clone();
        let text = entry.text;
        let kind = if matches!(no_folder, NoFolder::Git { .. }) { StepKind::Remote } else { StepKind::Broken };
        self.part(Step::new(entry.list, text, None, kind));
        match no_folder {
            NoFolder::Empty => self.report(kz004::empty(site)),
            NoFolder::Git { local } => {
                if let Some(folder) = local {
                    self.report(kz023::found(site.clone(), text, folder));
                }
                self.uncertainty(
                    &site,
                    format!("{} \"{text}\" is a git repository, which is not fetched here", site.field),
                );
            }
            NoFolder::Absolute => {
                let folder = self.tree.locate(layer.loader.root, text).ok();
                let relative = folder.map(|located| match located {
                    Located::File(path) | Located::Folder(path) | Located::Other(path) => {
                        path.relative_to(layer.loader.root)
                    }
                });
                self.report(kz010::absolute(site, text, relative.as_deref()));
            }
            NoFolder::Ambiguous => self.report(kz010::ambiguous(site, text)),
            NoFolder::File(path) => self.report(kz003::found(site, text, path)),
            NoFolder::Ancestor { folder, visited } => {
                self.report(kz009::found(site, text, folder, visited, &layer.loader.chain()));
            }
            NoFolder::Lost(lost) => self.lost(layer, entry, lost),
        }
    }

    /// Reports an entry that leads nowhere.
    pub(super) fn lost(&mut self, layer: &Layer<'_>, entry: &Entry<'_>, lost: &Lost) {
        let site = entry.site.clone();
        match lost {
            Lost::Outside { above: true } => {
                self.report(kz009::above_all(site, entry.text, &layer.loader.chain()));
            }
            Lost::Outside { above: false } if self.options.profile == Profile::Flux => {
                self.report(kz010::outside(site, entry.text));
            }
            Lost::Outside { above: false } => {
                self.uncertainty(&site, format!("{} \"{}\" leads out of the files given", site.field, entry.text));
            }
            Lost::Loop => self.report(kz004::link_loop(site, entry.text)),
            Lost::Missing(_) | Lost::NotAFolder(_) => {
                let near = self.near(layer.loader.root, entry.text);
                let from_root = self.tree.locate(&TreePath::root(), entry.text).is_ok();
                let elsewhere = from_root.then(|| TreePath::from(entry.text).relative_to(layer.loader.root));
                self.report(kz004::missing(site, entry.text, layer.loader.root, near, elsewhere));
            }
        }
    }

    /// Returns an existing path with a spelling similar to `entry`.
    pub(super) fn near(&self, root: &TreePath, entry: &str) -> Option<String> {
        let (folder, name) = entry.trim_end_matches('/').rsplit_once('/').unwrap_or((".", entry));
        let Ok(Located::Folder(parent)) = self.tree.locate(root, folder) else { return None };
        let names = self.tree.names(&parent);
        let near = crate::suggestion::most_similar(name.trim(), names.iter().map(String::as_str))?;
        Some(if folder == "." { near.to_owned() } else { format!("{folder}/{near}") })
    }

    /// Evaluates the folder of an entry.
    pub(super) fn folder(&mut self, layer: &Layer<'_>, entry: &Entry<'_>, folder: &TreePath, acc: &mut Accumulator) {
        self.visits += 1;
        if self.visits > MOST_VISITS || layer.depth >= DEEPEST {
            acc.complete = false;
            self.uncertainty(
                &entry.site,
                format!("more than {MOST_VISITS} folders, or {DEEPEST} within one another, are built"),
            );
            if entry.list == "components" {
                Self::unread(acc);
            }
            return;
        }
        let loader = Loader { root: folder, referrer: Some(&layer.loader) };
        let uncertainties = self.uncertainties;
        let Some(file) = self.load(&loader, Some((&entry.site, entry.text))) else {
            acc.complete = false;
            if entry.list == "components" && self.uncertainties > uncertainties {
                Self::unread(acc);
            }
            self.part(Step::new(entry.list, entry.text, Some(folder.clone()), StepKind::Broken));
            return;
        };
        let own = Own::of(&file.kustomization);
        let inner = Layer { loader, file: &file, own, depth: layer.depth + 1 };
        self.schema(&inner, false);
        let misplaced = self.placement(entry, &file);
        let kind = if file.kustomization.is_component() { StepKind::Component } else { StepKind::Kustomization };
        self.steps.push(Step { misplaced, ..Step::new(entry.list, entry.text, Some(folder.clone()), kind) });
        if misplaced || !file.faults.is_empty() {
            acc.complete = false;
            self.target(&inner, &mut Accumulator::incomplete());
        } else if entry.list == "components" {
            self.target(&inner, acc);
            // kustomize merges the result of a component into an empty accumulator.
            self.recheck(&entry.site, acc);
        } else {
            let mut own = Accumulator::default();
            self.target(&inner, &mut own);
            self.absorb(&entry.site, own, acc);
        }
        if let Some(step) = self.steps.pop() {
            self.part(step);
        }
    }

    /// Checks whether the list of an entry allows its folder.
    fn placement(&mut self, entry: &Entry<'_>, file: &KustomizationFile) -> bool {
        let wants_component = entry.list == "components";
        let is_component = file.kustomization.is_component();
        let kind = FieldPath::of(["kind"]);
        let defined = Site::new(file.path.clone(), file.place(&kind), kind);
        match (wants_component, is_component) {
            (false, true) => {
                self.report(kz001::found(entry.site.clone(), entry.list, entry.index, entry.text, &defined));
                true
            }
            (true, false) => {
                let said = !file.kustomization.kind.is_empty();
                self.report(kz002::found(entry.site.clone(), entry.index, entry.text, &defined, said));
                true
            }
            _ => false,
        }
    }

    /// Merges the objects of a base (`MergeAccumulator`).
    fn absorb(&mut self, site: &Site, mut own: Accumulator, acc: &mut Accumulator) {
        acc.complete &= own.complete;
        acc.custom_names |= own.custom_names;
        acc.custom_replicas |= own.custom_replicas;
        for object in std::mem::take(own.objects_mut()) {
            self.append(site, object, acc);
        }
        for (name, said) in own.vars {
            self.var(&name, said, acc);
        }
    }
}
