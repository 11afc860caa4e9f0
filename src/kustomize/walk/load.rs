//! Finds and reads the kustomization file of a folder (`KustTarget.Load`).

use std::sync::Arc;

use super::Walk;
use crate::admission::FieldPath;
use crate::kustomize::file::{BadFile, KustomizationFile, NAMES, SharedFile};
use crate::kustomize::files::NotRead;
use crate::kustomize::finding::Site;
use crate::kustomize::options::{Profile, Version};
use crate::kustomize::references::{Loader, NoFile};
use crate::kustomize::rules::{kz005, kz006, kz007, kz008, kz022, kz024};
use crate::kustomize::tree::TreePath;
use crate::yaml::Place;

impl Walk<'_> {
    /// Returns the kustomization file of a folder to which `from` refers; reports its errors.
    pub(super) fn load(&mut self, loader: &Loader<'_>, from: Option<(&Site, &str)>) -> Option<SharedFile> {
        let path = self.find(loader, from)?;
        let site = Site::of_file(path.clone());
        let read = match from.is_none() && self.options.profile == Profile::Flux {
            true => self.lax(&path),
            false => self.files.kustomization(self.tree, &path),
        };
        match read {
            Ok(file) => {
                if self.loaded.insert(path) {
                    self.judge(&file, from.is_none());
                }
                Some(file)
            }
            Err(NotRead::Unreadable(why)) => {
                self.uncertainty(&site, format!("the file cannot be read: {why}"));
                None
            }
            Err(NotRead::Bad(BadFile::Limit(error))) => {
                self.uncertainty(&Site { place: error.place, ..site }, format!("the file is not read: {error}"));
                None
            }
            Err(NotRead::Bad(BadFile::Utf16)) => {
                self.uncertainty(&site, "the file is not read: it is UTF-16, not UTF-8");
                None
            }
            Err(NotRead::Bad(BadFile::Yaml(error))) => {
                self.report(kz008::malformed(Site { place: error.place, ..site }, &error.problem.to_string()));
                None
            }
            Err(NotRead::Bad(BadFile::Encoding(at))) => {
                let place = Place { start: at, end: at + 1, ..site.place };
                let text = format!("byte {at} is not UTF-8, or a control character");
                self.report(kz008::malformed(Site { place, ..site }, &text));
                None
            }
        }
    }

    /// Reads the root's file as Flux does; other roots may refer to the same file, and then it is read as kustomize does.
    fn lax(&self, path: &TreePath) -> Result<SharedFile, NotRead> {
        let bytes = self.tree.read(path).map_err(NotRead::Unreadable)?;
        KustomizationFile::read_lax(path.clone(), &bytes).map(Arc::new).map_err(NotRead::Bad)
    }

    /// Returns the path of the kustomization file of a folder: there must be just one.
    fn find(&mut self, loader: &Loader<'_>, from: Option<(&Site, &str)>) -> Option<TreePath> {
        let mut found = Vec::new();
        for name in NAMES {
            match loader.file(self.tree, name, self.options) {
                Ok(path) => found.push((name, path)),
                Err(NoFile::Other) => {
                    self.uncertainty(&Site::of_file(loader.root.join(name)), "it is neither a file nor a folder");
                    return None;
                }
                Err(_) => {}
            }
        }
        let fleet_looks_no_further = from.is_none()
            && self.options.profile == Profile::Fleet
            && !found.iter().any(|(name, _)| *name == NAMES[0]);
        let site = || from.map_or_else(|| Site::of_file(loader.root.clone()), |(site, _)| site.clone());
        if found.is_empty() || fleet_looks_no_further {
            let names = self.tree.names(loader.root);
            self.report(kz005::found(site(), from.map(|(_, entry)| entry), loader.root, &names));
            return None;
        }
        if found.len() > 1 {
            let names: Vec<_> = found.iter().map(|(name, _)| *name).collect();
            self.report(kz006::found(site(), loader.root, &names));
            return None;
        }
        found.pop().map(|(_, path)| path)
    }

    /// Reports errors and warnings about a single file.
    fn judge(&mut self, file: &KustomizationFile, is_root: bool) {
        let lax = is_root && self.options.profile == Profile::Flux;
        for fault in &file.faults {
            let place = file.key_place(&fault.path);
            let site = Site::new(file.path.clone(), place, fault.path.clone());
            self.report(kz008::fault(site, fault).0);
        }
        for fault in &file.ignored {
            let site = Site::new(file.path.clone(), file.key_place(&fault.path), fault.path.clone());
            self.report(kz008::ignored(site, fault));
        }
        self.judge_oddities(file);
        let checks_empty = self.options.version > Version::NEWEST_WITH_COMPONENTS_FIRST;
        if file.empty && file.faults.is_empty() && checks_empty && !lax {
            self.report(kz008::empty(Site::of_file(file.path.clone()), file.kustomization.is_component()));
        }
        let at = |key: &str| {
            let field = FieldPath::of([key]);
            Site::new(file.path.clone(), file.place(&field), field)
        };
        for finding in kz007::found(&file.kustomization, &at) {
            self.report(finding);
        }
    }

    fn judge_oddities(&mut self, file: &KustomizationFile) {
        for duplicate in &file.duplicates {
            let site = Site::new(file.path.clone(), duplicate.kept, duplicate.path.clone());
            self.report(kz022::duplicate(site, duplicate.lost.line));
        }
        for (path, name) in &file.misspelled {
            let site = Site::new(file.path.clone(), file.key_place(path), path.clone());
            self.report(kz022::other_case(site, name));
        }
        if let Some(place) = file.second_document {
            self.report(kz022::second_document(Site::new(file.path.clone(), place, FieldPath::root())));
        }
        for (field, instead) in file.deprecated() {
            let path = FieldPath::of([field]);
            let site = Site::new(file.path.clone(), file.key_place(&path), path);
            self.report(kz024::found(site, field, instead));
        }
    }
}
