//! Finds the kustomization files in a list of files, usually a checkout of a git repository. Also finds the objects
//! that refer to the folders of kustomization files, such as Flux Kustomizations.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::Unusable;
use super::inputs;
use super::parallel::in_order;
use super::trees::{TreePaths, tree_path};
use crate::config::Repository;
use crate::gate::{Policy, Registry};
use crate::kustomize::Files;
use crate::kustomize::checkout::{self, Checkout, Git, Survey};
use crate::kustomize::file::NAMES;
use crate::kustomize::options::{NotAllowed, Options, Profile, Restrictor};
use crate::kustomize::roots::{self, References};
use crate::kustomize::tree::{Tree, TreePath};

/// The value of `--profile`: which system, such as Flux or kubectl, builds the kustomizations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Choice {
    /// Detects which system, such as Flux or kubectl, builds each kustomization. The detection uses the objects in the
    /// files, such as Flux Kustomizations.
    Auto,
    /// Assumes that one system, such as Flux or kubectl, builds all kustomizations.
    One(Profile),
}

impl std::str::FromStr for Choice {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "auto" {
            return Ok(Self::Auto);
        }
        text.parse().map(Self::One).map_err(|error: NotAllowed| format!("{error}, or auto"))
    }
}

/// The folder of each Flux source, by namespace and name of the source.
pub(super) type Sources = BTreeMap<(String, String), TreePath>;

/// The folders with kustomization files, and the references of these files to other folders.
pub(super) struct Folders {
    folders: Vec<TreePath>,
    /// The kustomize roots. A root is a folder with a kustomization file to which no other kustomization refers.
    pub(super) roots: Vec<TreePath>,
    pub(super) references: HashMap<TreePath, References>,
}

impl Folders {
    /// Reads the kustomization files among `files`, and finds the roots. `paths` is a cache of file paths in `tree`,
    /// and `read` is a cache of parsed kustomization files.
    pub(super) fn of(
        files: &[PathBuf],
        paths: &mut TreePaths,
        tree: &Tree,
        options: &Options,
        read: &Files,
    ) -> Result<Self, Unusable> {
        let mut folders = BTreeSet::new();
        for file in files.iter().filter(|file| is_kustomization(file)) {
            folders.extend(paths.of(file)?.parent());
        }
        let folders: Vec<_> = folders.into_iter().collect();
        let mut references = HashMap::new();
        let of = |folder: &TreePath| roots::references(tree, folder, options, read);
        in_order(&folders, of, |number, found| drop(references.insert(folders[number].clone(), found)));
        let roots = roots::roots(&folders, |folder| match references.get(folder) {
            Some(found) => found.folders.clone(),
            None => of(folder).folders,
        });
        Ok(Self { folders, roots, references })
    }
}

/// The kustomizations that were found in a list of files.
///
/// Paths are relative to the root of the file system, because kustomize roots may refer to files anywhere. Files are
/// read on demand.
pub(super) struct Scan {
    pub(super) tree: Arc<Tree>,
    /// The files that were searched for kustomizations. The paths are absolute, but without the first `/`.
    pub(super) files: Vec<TreePath>,
    /// The files that can contain objects to apply. Omits kustomization files, and files that only kustomize reads,
    /// such as patches.
    pub(super) manifests: Vec<TreePath>,
    /// The folders with kustomization files.
    pub(super) folders: Vec<TreePath>,
    /// The kustomize roots. A root is a folder with a kustomization file to which no other kustomization refers.
    pub(super) roots: Vec<TreePath>,
    /// The files and folders to which the kustomization in each folder refers.
    pub(super) references: HashMap<TreePath, References>,
    /// The kustomization files parsed so far.
    pub(super) read: Files,
}

impl Scan {
    /// Finds the kustomizations in `files`. Also removes kustomization files, patches and data files from `files`,
    /// because only kustomize reads them.
    pub(super) fn of(files: &mut Vec<PathBuf>, options: &Options) -> Result<Self, Unusable> {
        let tree = Tree::folder(Path::new("/")).map_err(|error| Unusable::new(error.to_string()))?;
        let (read, mut paths) = (Files::default(), TreePaths::default());
        // The load restriction is ignored here: a patch is not an object, even if kustomize may not load it from its
        // folder.
        let any = Options { restrictor: Restrictor::None, ..options.clone() };
        let Folders { folders, roots, references } = Folders::of(files, &mut paths, &tree, &any, &read)?;
        let (mut all, mut manifests) = (Vec::new(), Vec::new());
        let parts: HashSet<_> = references.values().flat_map(|found| &found.parts).collect();
        files.retain(|file| {
            let path = paths.of(file).ok();
            let is_manifest = !is_kustomization(file) && path.as_ref().is_none_or(|path| !parts.contains(path));
            all.extend(path.clone());
            manifests.extend(path.filter(|_| is_manifest));
            is_manifest
        });
        Ok(Self { tree: Arc::new(tree), files: all, manifests, folders, roots, references, read })
    }

    /// Finds the kustomize roots that Flux, Argo CD, Fleet and Sveltos build. Also finds the objects that name these
    /// roots, such as Flux Kustomizations. The paths in Flux Kustomizations are relative to the root folder of the
    /// repository. This folder is one of the candidates in `tops`.
    pub(super) fn survey(&self, git: &Git, tops: &[TreePath], sources: &Sources) -> Survey {
        let Self { tree, manifests, folders, read: files, .. } = self;
        checkout::survey(&Checkout { tree, files, git, tops, folders, manifests, sources })
    }
}

/// Reads the git data of a folder, such as remotes and submodules. Paths in the result are relative to `folder`.
/// Returns empty data if the folder has no `.git`.
pub(super) fn git_of_tree(folder: &Path) -> Result<Git, Unusable> {
    let tree = Tree::folder(Path::new("/")).map_err(|error| Unusable::new(error.to_string()))?;
    let top = tree_path(folder)?;
    let git = Git::find(&tree, &top).filter(|git| git.top == top).unwrap_or_default();
    let below = |path: &TreePath| TreePath::from(path.as_str().strip_prefix(top.as_str()).unwrap_or_default());
    let submodules = git.submodules.iter().map(below).collect();
    Ok(Git { top: TreePath::root(), submodules, ..git })
}

/// Returns the paths of all folders in `paths`, relative to `/`, such as `home/user/repo`. Resolves symbolic links.
/// Omits files.
pub(super) fn tops(paths: &[PathBuf]) -> Result<Vec<TreePath>, Unusable> {
    paths.iter().filter(|path| path.is_dir()).map(|path| tree_path(path)).collect()
}

/// Reads the git data of the checkout that contains the first folder in `tops`, such as its remotes and submodules. If
/// the folder is not in a checkout, the result has no remotes, and the folder counts as the root of the repository.
/// Returns empty data if `tops` is empty.
pub(super) fn git(tree: &Tree, tops: &[TreePath]) -> Git {
    let Some(top) = tops.first() else { return Git::default() };
    Git::find(tree, top).unwrap_or(Git { top: top.clone(), ..Git::default() })
}

/// Returns the folders in `open`, and all folders to which these folders refer directly or indirectly. `references`
/// contains the references of the kustomization file in each folder.
pub(super) fn reached(references: &HashMap<TreePath, References>, mut open: Vec<TreePath>) -> HashSet<TreePath> {
    let mut found = HashSet::new();
    while let Some(folder) = open.pop() {
        let references = references.get(&folder);
        if found.insert(folder) {
            open.extend(references.into_iter().flat_map(|references| &references.folders).cloned());
        }
    }
    found
}

fn is_kustomization(file: &Path) -> bool {
    file.file_name().is_some_and(|name| NAMES.iter().any(|known| name == *known))
}

/// A Flux source, and the local folder with its files, in the form `flux-system/apps=../apps` (`NAMESPACE/NAME=DIR`).
#[derive(Debug, Clone)]
pub(super) struct SourceFolder {
    namespace: String,
    name: String,
    folder: PathBuf,
}

impl std::str::FromStr for SourceFolder {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parts = text.split_once('=').and_then(|(source, folder)| Some((source.split_once('/')?, folder)));
        let Some(((namespace, name), folder)) = parts else {
            return Err("use NAMESPACE/NAME=DIR, such as flux-system/apps=.".to_owned());
        };
        Ok(Self { namespace: namespace.to_owned(), name: name.to_owned(), folder: folder.into() })
    }
}

/// Settings for commands that read a repository, from the configuration file and from flags. `policy` contains the
/// levels of rules, such as `deny`, and exemptions from rules. The other fields say which folder belongs to which Flux
/// source, and which folders contain all objects of a cluster.
pub(super) struct Known {
    pub(super) policy: Policy,
    /// The folders of Flux sources, from the configuration file and from flags.
    pub(super) sources: Sources,
    /// Folders that each contain all objects of one cluster. The configuration file lists them under `check.complete`.
    complete: Vec<TreePath>,
}

impl Known {
    /// Reads the configuration file `config`, or the `portcullis.yaml` of the repository if `config` is `None`. Flux
    /// sources in `flags` override the Flux sources in the file.
    pub(super) fn read(config: Option<&Path>, flags: &[SourceFolder], registry: &Registry) -> Result<Self, Unusable> {
        let file = inputs::repository_file(config);
        let policy = inputs::policy(file.as_deref(), registry)?;
        let base = file.as_deref().and_then(Path::parent).unwrap_or_else(|| Path::new(""));
        let Repository { sources: of_file, complete } = Repository::of(&policy);
        let folder = |folder: &String| tree_path(&base.join(folder));
        let mut sources = Sources::new();
        for (source, path) in &of_file {
            let (namespace, name) = source.split_once('/').unwrap_or(("", source));
            sources.insert((namespace.to_owned(), name.to_owned()), folder(path)?);
        }
        for SourceFolder { namespace, name, folder } in flags {
            sources.insert((namespace.clone(), name.clone()), tree_path(folder)?);
        }
        let complete = complete.iter().map(folder).collect::<Result<_, _>>()?;
        Ok(Self { policy, sources, complete })
    }

    /// Returns whether each of `paths` is inside a folder that the configuration file lists under `check.complete`.
    /// Such a folder contains all objects of a cluster. If the result is true, `portcullis check` reports references to
    /// objects that are not in the files.
    pub(super) fn covers(&self, paths: &[PathBuf]) -> Result<bool, Unusable> {
        let paths = paths.iter().filter(|path| path.as_os_str() != "-").map(|path| tree_path(path));
        let paths: Vec<_> = paths.collect::<Result<_, _>>()?;
        let is_in = |path: &TreePath| self.complete.iter().any(|folder| path.is_within(folder));
        Ok(!paths.is_empty() && paths.iter().all(is_in))
    }
}
