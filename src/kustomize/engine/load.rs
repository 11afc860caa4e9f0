//! Finds and reads kustomization files.
//!
//! Source: `KustTarget.Load` in kustomize's `api/internal/target/kusttarget.go`.

use std::sync::Arc;

use super::lost::Lost;
use super::run::Run;
use super::stop::{Step, Stop};
use super::target::Entry;
use crate::admission::FieldPath;
use crate::kustomize::file::{BadFile, KustomizationFile, NAMES, SharedFile};
use crate::kustomize::files::NotRead;
use crate::kustomize::finding::{Site, TreeFinding};
use crate::kustomize::options::{Profile, Version};
use crate::kustomize::references::{Loader, NoFile};
use crate::kustomize::rules::{kz005, kz006, kz007, kz008, kz022, kz024};
use crate::kustomize::tree::TreePath;
use crate::yaml::Place;

impl Run<'_> {
    /// Finds and parses the kustomization file of a folder. `from` is the entry that refers to the folder. It is `None`
    /// for the folder that the user builds. If the build continues after errors, also returns files with invalid
    /// fields.
    ///
    /// # Errors
    ///
    /// If the folder has no kustomization file or more than one, or if the file cannot be read or is not YAML. In a
    /// build that stops at its first error, also if a field is invalid.
    pub(super) fn kustomization(&mut self, loader: &Loader<'_>, from: Option<&Entry<'_>>) -> Step<SharedFile> {
        let path = self.find(loader, from)?;
        let is_lax = from.is_none() && self.options.profile == Profile::Flux;
        let read = match is_lax {
            true => self.lax(&path),
            false => self.files.kustomization(self.tree, &path),
        };
        let file = read.map_err(|error| not_read(&path, error))?;
        for stop in errors(&file, is_lax, self.options.version).into_iter().map(Stop::refused) {
            self.recover(&mut Lost::Nothing, Lost::Nothing, Err::<(), _>(stop))?;
        }
        self.warn(&file);
        Ok(file)
    }

    /// Reads the kustomization file of the folder that Flux builds. Like Flux, accepts for example unknown fields and a
    /// missing `kind`.
    ///
    /// The result is not cached. Another kustomization may include the same folder as a base, and then the stricter
    /// rules of kustomize apply to the file.
    fn lax(&self, path: &TreePath) -> Result<SharedFile, NotRead> {
        let bytes = self.tree.read(path).map_err(NotRead::Unreadable)?;
        KustomizationFile::read_lax(path.clone(), &bytes).map(Arc::new).map_err(NotRead::Bad)
    }

    /// Returns the path of the kustomization file of a folder.
    fn find(&self, loader: &Loader<'_>, from: Option<&Entry<'_>>) -> Step<TreePath> {
        let mut found = Vec::new();
        for name in NAMES {
            match loader.file(self.tree, name, self.options) {
                Ok(path) => found.push((name, path)),
                Err(NoFile::Other) => {
                    let site = Site::of_file(loader.root.join(name));
                    return Err(Stop::unknown(site, "it is neither a file nor a folder"));
                }
                Err(_) => {}
            }
        }
        let is_fleet = from.is_none() && self.options.profile == Profile::Fleet;
        let site = || from.map_or_else(|| Site::of_file(loader.root.clone()), |entry| entry.site.clone());
        let absent = || {
            let names = self.tree.names(loader.root);
            Stop::refused(kz005::found(site(), from.map(|entry| entry.text), loader.root, &names))
        };
        match found.as_slice() {
            // Fleet looks only for the first name, `kustomization.yaml`
            [] => Err(absent()),
            [(name, _), ..] if is_fleet && *name != NAMES[0] => Err(absent()),
            [(_, path)] => Ok(path.clone()),
            several => {
                let names: Vec<_> = several.iter().map(|(name, _)| *name).collect();
                Err(Stop::refused(kz006::found(site(), loader.root, &names)))
            }
        }
    }

    /// Records kustomize's warnings about deprecated fields of a kustomization file. A build that continues after
    /// errors also records findings about probable mistakes that kustomize accepts, such as a duplicate key.
    fn warn(&mut self, file: &KustomizationFile) {
        for (field, instead) in &file.deprecated {
            let experimental = if *field == "vars" { "[EXPERIMENTAL] " } else { "" };
            self.warnings.push(format!(
                "# Warning: '{field}' is deprecated. Please use '{instead}' instead. {experimental}Run 'kustomize edit fix' to update your Kustomization automatically.\n"
            ));
        }
        if !self.is_strict {
            warnings(file).into_iter().for_each(|finding| self.report(finding));
        }
    }
}

/// Returns the position of the key of `field` in a kustomization file.
fn key(file: &KustomizationFile, field: &FieldPath) -> Site {
    Site::new(file.path.clone(), file.key_place(field), field.clone())
}

/// Returns the errors in a kustomization file, in the order in which kustomize finds them. `is_lax` is true if Flux
/// builds the folder of this file. Such a file may be empty. For other files, `version`, the version of kustomize,
/// determines whether they may be empty.
fn errors(file: &KustomizationFile, is_lax: bool, version: Version) -> Vec<TreeFinding> {
    let mut errors: Vec<_> =
        file.faults.iter().map(|fault| kz008::decoding_error(key(file, &fault.path), fault).0).collect();
    let checks_empty = version > Version::NEWEST_WITH_COMPONENTS_FIRST;
    if file.empty && file.faults.is_empty() && checks_empty && !is_lax {
        errors.push(kz008::empty(Site::of_file(file.path.clone()), file.kustomization.is_component()));
    }
    let at = |key: &str| {
        let field = FieldPath::of([key]);
        Site::new(file.path.clone(), file.place(&field), field)
    };
    errors.extend(kz007::found(&file.kustomization, &at));
    errors
}

fn warnings(file: &KustomizationFile) -> Vec<TreeFinding> {
    let at = |place: Place, field: &FieldPath| Site::new(file.path.clone(), place, field.clone());
    let ignored = file.ignored.iter().map(|fault| kz008::ignored_field(key(file, &fault.path), fault));
    let duplicates =
        file.duplicates.iter().map(|twice| kz022::duplicate_key(at(twice.kept, &twice.path), twice.lost.line));
    let misspelled = file.misspelled.iter().map(|(path, name)| kz022::wrong_case(key(file, path), name));
    let second = file.second_document.map(|place| kz022::second_document(at(place, &FieldPath::root())));
    let deprecated = file
        .deprecated
        .iter()
        .map(|(field, instead)| kz024::found(key(file, &FieldPath::of([*field])), field, instead));
    ignored.chain(duplicates).chain(misspelled).chain(second).chain(deprecated).collect()
}

fn not_read(path: &TreePath, error: NotRead) -> Stop {
    let site = Site::of_file(path.clone());
    match error {
        NotRead::Unreadable(why) => Stop::unknown(site, format!("the file cannot be read: {why}")),
        NotRead::Bad(bad) => bad_file(site, &bad),
    }
}

/// Returns the error for a YAML file that cannot be parsed. The file is either a kustomization file, or a file that a
/// kustomization lists in its field `configurations`.
pub(super) fn bad_file(site: Site, bad: &BadFile) -> Stop {
    match bad {
        BadFile::Limit(error) => {
            Stop::unknown(Site { place: error.place, ..site }, format!("the file is not read: {error}"))
        }
        BadFile::Utf16 => Stop::unknown(site, "the file is not read: it is UTF-16, not UTF-8"),
        BadFile::Yaml(error) => {
            Stop::refused(kz008::malformed(Site { place: error.place, ..site }, &error.problem.to_string()))
        }
        BadFile::Encoding(at) => {
            let place = Place { start: *at, end: at + 1, ..site.place };
            let text = format!("byte {at} is not UTF-8, or a control character");
            Stop::refused(kz008::malformed(Site { place, ..site }, &text))
        }
    }
}
