//! Represents one side of a comparison: the files of a repository before or after a change, with the folders that are
//! built from them. A folder is identified by the object that refers to it, such as a Flux Kustomization. Portcullis
//! compares both sides to find the effects of the change.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use serde_json::Value;

use super::object::Object;
use super::reach::Reach;
use crate::catalog::manifests::is_manifest;
use crate::kustomize::Files;
use crate::kustomize::checkout::{self, Build, Checkout, Git, Survey};
use crate::kustomize::engine::{Built, Settings, Shared, Step, build_shared};
use crate::kustomize::file::NAMES;
use crate::kustomize::options::{CommonMetadata, Options, PostBuild, Profile};
use crate::kustomize::roots;
use crate::kustomize::tree::{Entry, Tree, TreePath};

/// A tree before or after a change, with the roots that are built from it.
pub struct Side {
    files: Files,
    settings: Settings,
    pub(super) roots: Vec<Root>,
    /// The index in `roots` for each key. A key is an object that builds a folder, such as a Flux Kustomization, or the
    /// folder itself if no object builds it. Objects that build the same folder with equal options have the same index.
    pub(super) keys: BTreeMap<Key, usize>,
}

/// An identifier of a folder that is built, used to compare its builds before and after a change of files. The
/// identifier is the object that refers to the folder, such as a Flux Kustomization, or the path of the folder if there
/// is no such object.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Key {
    /// The path of a built folder, if no Flux Kustomization or similar object refers to it.
    Folder(TreePath),
    /// An object whose controller builds a folder, such as a Flux Kustomization or an Argo CD Application.
    Object {
        /// The folder from which the cluster of the object is set up, by hand or with `flux bootstrap`. It identifies
        /// the cluster. `None` if the folder is unknown.
        cluster: Option<TreePath>,
        /// Kind, namespace and name, such as `Kustomization flux-system/apps`.
        object: String,
        /// The folder that the object builds, if the object can build several folders, like an Argo CD Application.
        /// `None` for a Flux Kustomization, which builds only one folder.
        folder: Option<TreePath>,
    },
}

impl Key {
    /// Returns the folder from which the cluster of the object is set up, for example with `flux bootstrap`. This
    /// folder identifies the cluster. `None` if the folder is unknown, or if this key is a `Folder`.
    pub(super) fn cluster(&self) -> Option<&TreePath> {
        match self {
            Self::Folder(_) => None,
            Self::Object { cluster, .. } => cluster.as_ref(),
        }
    }

    /// Returns kind, namespace and name of the object in this key, such as `Kustomization flux-system/apps`. `None` if
    /// this key is a `Folder`.
    pub(super) fn owner(&self) -> Option<&str> {
        match self {
            Self::Folder(_) => None,
            Self::Object { object, .. } => Some(object),
        }
    }
}

/// A folder that is built (a kustomization root), with the files and the options of its build.
pub(super) struct Root {
    tree: Arc<Tree>,
    shared: Arc<Shared>,
    pub(super) folder: TreePath,
    /// The options of the build, without `postBuild`.
    pub(super) options: Options,
    /// The variables that Flux substitutes after the build, if any.
    pub(super) post_build: Option<PostBuild>,
    /// Whether objects are deleted from the cluster if the root does not render them any more. For a Flux
    /// Kustomization, this is `spec.prune`. True if no Flux Kustomization builds the folder.
    pub(super) prunes: bool,
    /// Whether the objects from this folder are deleted from the cluster together with the Flux Kustomization that
    /// builds the folder. The fields `spec.deletionPolicy` and `spec.prune` of the Kustomization decide this. True if
    /// no Flux Kustomization builds the folder.
    pub(super) deletes: bool,
}

impl Side {
    /// Finds the folders to build in `tree`. These are the folders with a kustomization file that no other
    /// kustomization includes. All folders are built with `options`. Objects such as Flux Kustomizations are ignored.
    pub fn new(tree: Tree, options: &Options) -> Self {
        let found = Found::of(&tree, options);
        Self::with(Arc::new(tree), options, found, &Survey::default())
    }

    /// Finds the folders to build in a git repository. These are the folders that Flux, Argo CD, Fleet and Sveltos
    /// build, according to the manifests in the repository. All other kustomizations that no kustomization includes are
    /// built too. `tree` contains the files of the repository, beginning at its top folder. `git` contains the remotes
    /// and branches of the repository.
    pub fn surveyed(tree: Tree, options: &Options, git: &Git) -> Self {
        let (found, tree) = (Found::of(&tree, options), Arc::new(tree));
        let survey = checkout::survey(&Checkout {
            tree: &tree,
            files: &found.files,
            git,
            tops: &[TreePath::root()],
            folders: &found.folders,
            manifests: &found.manifests,
            sources: &BTreeMap::new(),
        });
        Self::with(tree, options, found, &survey)
    }

    fn with(tree: Arc<Tree>, options: &Options, found: Found, survey: &Survey) -> Self {
        let mut shared: HashMap<(*const Tree, Profile), Arc<Shared>> = HashMap::new();
        let mut root = |build: &Build| {
            let shared = shared.entry((Arc::as_ptr(&build.tree), build.options.profile)).or_default();
            Root::of(build, Arc::clone(shared))
        };
        let mut roots: Vec<Root> = survey.builds.iter().map(&mut root).collect();
        let mut keys = keys(survey);
        let rest = found.roots.into_iter().filter(|root| !survey.reached.contains(root));
        for folder in rest {
            let (tree, options) = (Arc::clone(&tree), options.clone());
            keys.insert(Key::Folder(folder.clone()), roots.len());
            roots.push(root(&Build { tree, root: folder, options, owners: Vec::new(), is_used: true }));
        }
        Self { files: found.files, settings: Settings::default(), roots, keys }
    }

    /// Runs the kustomize build of `root.folder`. Does not substitute the variables that `postBuild` of a Flux
    /// Kustomization sets.
    ///
    /// # Errors
    ///
    /// If the build fails, or if its result is unknown, for example because it needs a Helm chart.
    pub(super) fn build<'s>(&'s self, root: &'s Root) -> Step<Built<'s>> {
        build_shared(&root.tree, &root.folder, &root.options, &self.settings, (&self.files, &root.shared))
    }

    /// Returns the objects of a build after the steps that Flux adds. Flux substitutes the known variables of
    /// `postBuild`, and sets the labels and annotations of `commonMetadata`.
    ///
    /// # Errors
    ///
    /// If kustomize cannot write an object as YAML.
    pub(super) fn objects(root: &Root, built: &Built<'_>) -> Step<Vec<Object>> {
        let mut objects = Object::of_build(built)?;
        if let Some(post_build) = &root.post_build {
            objects.iter_mut().for_each(|object| object.substitute(post_build));
        }
        let common = &root.options.flux.common_metadata;
        if *common != CommonMetadata::default() {
            objects.iter_mut().for_each(|object| object.set_common_metadata(common));
        }
        Ok(objects)
    }

    /// Returns the files and folders that the build of a root can read.
    pub(super) fn reach(&self, root: &Root) -> Reach {
        Reach::of(&root.folder, &root.tree, &root.options, &self.files)
    }
}

impl Root {
    fn of(build: &Build, shared: Arc<Shared>) -> Self {
        let mut options = build.options.clone();
        let wants = |post_build: &PostBuild| post_build.is_certain() || !post_build.from.is_empty();
        let post_build = options.flux.post_build.take().filter(wants);
        let spec = |pointer: &str| build.owners.first().and_then(|owner| owner.value.pointer(pointer));
        let is_flux = options.profile == Profile::Flux && !build.owners.is_empty();
        let prunes = !is_flux || spec("/spec/prune") == Some(&Value::Bool(true));
        let deletes = match spec("/spec/deletionPolicy").and_then(Value::as_str).filter(|_| is_flux) {
            Some("Delete" | "WaitForTermination") => true,
            Some("Orphan") => false,
            _ => prunes,
        };
        let (tree, folder) = (Arc::clone(&build.tree), build.root.clone());
        Self { tree, shared, folder, options, post_build, prunes, deletes }
    }

    /// Returns whether two roots have the same folder and build settings. The content of their files may be different.
    pub(super) fn is_like(&self, other: &Self) -> bool {
        let settings = |root: &Self| (root.folder.clone(), root.options.clone(), root.post_build.clone());
        settings(self) == settings(other)
    }
}

/// Returns a map from keys to indexes in `survey.builds`. Each key identifies one build. It contains an object that
/// refers to the built folder, such as a Flux Kustomization. If there is no such object, it contains the path of the
/// folder.
fn keys(survey: &Survey) -> BTreeMap<Key, usize> {
    let mut keys = BTreeMap::new();
    for cluster in &survey.clusters {
        for member in &cluster.members {
            let Some(build) = member.build else { continue };
            let key = Key::Object { cluster: cluster.folder.clone(), object: member.object.title(), folder: None };
            keys.entry(key).or_insert(build);
        }
    }
    let known: BTreeSet<usize> = keys.values().copied().collect();
    for (at, build) in survey.builds.iter().enumerate().filter(|(at, _)| !known.contains(at)) {
        if build.owners.is_empty() {
            keys.insert(Key::Folder(build.root.clone()), at);
        }
        for owner in &build.owners {
            keys.insert(Key::Object { cluster: None, object: owner.title(), folder: Some(build.root.clone()) }, at);
        }
    }
    keys
}

/// The kustomization files, roots and manifests of a tree.
struct Found {
    files: Files,
    /// The folders with a kustomization file.
    folders: Vec<TreePath>,
    /// The folders to which no other folder refers. Folders of Components are not included.
    roots: Vec<TreePath>,
    /// YAML and JSON files that are neither kustomization files nor parts of kustomizations.
    manifests: Vec<TreePath>,
}

impl Found {
    fn of(tree: &Tree, options: &Options) -> Self {
        let (files, mut folders, mut manifests) = (Files::default(), Vec::new(), Vec::new());
        collect(tree, &TreePath::root(), &mut folders, &mut manifests);
        let is_component = |root: &TreePath| {
            let file = NAMES.iter().find_map(|name| files.kustomization(tree, &root.join(name)).ok());
            file.is_some_and(|file| file.kustomization.is_component())
        };
        let references: HashMap<_, _> =
            folders.iter().map(|folder| (folder, roots::references(tree, folder, options, &files))).collect();
        let refers = |folder: &TreePath| references.get(folder).map(|found| found.folders.clone()).unwrap_or_default();
        let mut roots = roots::roots(&folders, refers);
        roots.retain(|root| !is_component(root));
        let parts: BTreeSet<&TreePath> = references.values().flat_map(|found| &found.parts).collect();
        manifests.retain(|file| !parts.contains(file));
        drop(references);
        Self { files, folders, roots, manifests }
    }
}

/// Collects the folders with a kustomization file, and all other YAML and JSON files. Skips hidden files and folders,
/// and templates of Helm charts.
fn collect(tree: &Tree, folder: &TreePath, folders: &mut Vec<TreePath>, manifests: &mut Vec<TreePath>) {
    let names = tree.names(folder);
    if names.iter().any(|name| NAMES.contains(&name.as_str())) {
        folders.push(folder.clone());
    }
    let is_chart = names.iter().any(|name| name == "Chart.yaml");
    let is_left_out = |name: &str| name.starts_with('.') || (is_chart && name == "templates");
    for name in names.iter().filter(|name| !is_left_out(name)) {
        let path = folder.join(name);
        match tree.entry(&path) {
            Some(Entry::Folder) => collect(tree, &path, folders, manifests),
            Some(_) if !NAMES.contains(&name.as_str()) && is_manifest(std::path::Path::new(name)) => {
                manifests.push(path)
            }
            _ => {}
        }
    }
}
