//! Creates the errors for files and folders that a kustomization file names, but that cannot be loaded. For example, a
//! file does not exist, or it is on another host.

use super::run::Run;
use super::stop::{Cause, Stop};
use super::target::Entry;
use crate::kustomize::explain::StepKind;
use crate::kustomize::finding::Site;
use crate::kustomize::options::Profile;
use crate::kustomize::references::{Loader, NoFile, NoFolder};
use crate::kustomize::rules::{kz003, kz004, kz009, kz010, kz023};
use crate::kustomize::tree::{Located, Lost, TreePath};

impl Run<'_> {
    /// Returns the error for `text`, a path in a kustomization file, if this path cannot be loaded as a file. `no_file`
    /// is the reason.
    pub(super) fn no_file(&self, loader: &Loader<'_>, text: &str, site: &Site, no_file: NoFile) -> Stop {
        let at = site.clone();
        match no_file {
            NoFile::Http(None) => unfetched(at, format!("\"{text}\" is an HTTP URL, which is not fetched here")),
            NoFile::Http(Some(why)) => unfetched(at, not_fetched(text, &why)),
            NoFile::Other => Stop::unknown(at, format!("{text} is neither a file nor a folder")),
            NoFile::Folder(path) => Stop::refused(kz004::folder(at, text, &path)),
            NoFile::Restricted(path) => Stop::refused(kz010::restricted(at, text, &path, loader.root)),
            NoFile::Lost(Lost::Outside { above: true }) => Stop::refused(kz010::outside(at, text)),
            NoFile::Lost(lost) => self.lost(loader, text, site, &lost),
        }
    }

    /// Returns the error for `entry`, which is an item of a list in a kustomization file. Kustomize can load the item
    /// neither as a file, for the reason `no_file`, nor as a folder, for the reason `no_folder`.
    pub(super) fn neither_file_nor_folder(
        &self,
        loader: &Loader<'_>,
        entry: &Entry<'_>,
        no_file: &NoFile,
        no_folder: &NoFolder,
    ) -> Stop {
        match (no_file, no_folder) {
            (NoFile::Restricted(path), NoFolder::File(_) | NoFolder::Absolute) => {
                self.part(entry, Some(path), StepKind::Broken);
                Stop::refused(kz010::restricted(entry.site.clone(), entry.text, path, loader.root))
            }
            (NoFile::Lost(Lost::Missing(_) | Lost::NotAFolder(_)), NoFolder::Absolute) => {
                self.no_folder(loader, entry, &NoFolder::Lost(Lost::Missing(TreePath::root())))
            }
            (NoFile::Http(Some(file)), no_folder) => {
                self.part(entry, None, StepKind::Remote);
                let folder = match no_folder {
                    NoFolder::Git { failure: Some(why), .. } => format!("; as a repository: {why}"),
                    _ => String::new(),
                };
                unfetched(entry.site.clone(), not_fetched(entry.text, &format!("{file}{folder}")))
            }
            (_, no_folder) => self.no_folder(loader, entry, no_folder),
        }
    }

    /// Returns the error for `entry`, an item of a list in a kustomization file, if this entry cannot be loaded as a
    /// folder. `no_folder` is the reason. For example, the folder does not exist, or it is a parent of the folder that
    /// is being built.
    pub(super) fn no_folder(&self, loader: &Loader<'_>, entry: &Entry<'_>, no_folder: &NoFolder) -> Stop {
        let (site, text) = (entry.site.clone(), entry.text);
        let kind = if matches!(no_folder, NoFolder::Git { .. }) { StepKind::Remote } else { StepKind::Broken };
        self.part(entry, None, kind);
        Stop::refused(match no_folder {
            NoFolder::Empty => kz004::empty(site),
            NoFolder::Git { failure: Some(why), .. } => {
                return unfetched(site, not_fetched(text, why));
            }
            NoFolder::Git { local, failure: None } => {
                if let Some(folder) = local {
                    self.report(kz023::found(site.clone(), text, folder));
                }
                let message = format!("\"{text}\" is a git repository, which is not fetched here");
                return unfetched(site, message);
            }
            NoFolder::Absolute => {
                let folder = self.tree.locate(loader.root, text).ok();
                let relative = folder.map(|located| match located {
                    Located::File(path) | Located::Folder(path) | Located::Other(path) => path.relative_to(loader.root),
                });
                kz010::absolute(site, text, relative.as_deref())
            }
            NoFolder::Ambiguous => kz010::ambiguous(site, text),
            NoFolder::File(path) => kz003::found(site, text, path),
            NoFolder::Ancestor { folder, visited } => kz009::found(site, text, folder, visited, &loader.chain()),
            NoFolder::Lost(lost) => return self.lost(loader, text, &entry.site, lost),
        })
    }

    /// Returns the error for an entry whose path `text` cannot be resolved. `lost` is the reason.
    fn lost(&self, loader: &Loader<'_>, text: &str, site: &Site, lost: &Lost) -> Stop {
        let at = site.clone();
        Stop::refused(match lost {
            Lost::Outside { above: true } => kz009::above_tree(at, text, &loader.chain()),
            Lost::Outside { above: false } if self.options.profile == Profile::Flux => kz010::outside(at, text),
            Lost::Outside { above: false } => {
                return Stop::unknown(at, format!("\"{text}\" is outside of the given files"));
            }
            Lost::Loop => kz004::link_loop(at, text),
            Lost::Missing(_) | Lost::NotAFolder(_) => {
                let near = self.near(loader.root, text);
                let from_root = self.tree.locate(&TreePath::root(), text).is_ok();
                let elsewhere = from_root.then(|| TreePath::from(text).relative_to(loader.root));
                kz004::missing(at, text, loader.root, near, elsewhere)
            }
        })
    }

    /// Returns the path of the existing file or folder that is most similar to `entry`, for a suggestion. `entry` is a
    /// path relative to `root`. Only files and folders in the same folder as `entry` are compared.
    pub(super) fn near(&self, root: &TreePath, entry: &str) -> Option<String> {
        let (folder, name) = entry.trim_end_matches('/').rsplit_once('/').unwrap_or((".", entry));
        let Ok(Located::Folder(parent)) = self.tree.locate(root, folder) else { return None };
        let names = self.tree.names(&parent);
        let near = crate::suggestion::most_similar(name.trim(), names.iter().map(String::as_str))?;
        Some(if folder == "." { near.to_owned() } else { format!("{folder}/{near}") })
    }
}

/// Creates the error for a file or folder on another host that Portcullis has not fetched. The error says that the
/// result of the build is unknown.
pub(super) fn unfetched(site: Site, message: String) -> Stop {
    Stop::unknown_by(Cause::Network, site, message)
}

fn not_fetched(text: &str, why: &str) -> String {
    format!("\"{text}\" cannot be fetched: {why}")
}
