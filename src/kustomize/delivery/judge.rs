//! Runs the rules on kustomize folders, and collects the findings and the rendered objects. Objects in a cluster refer
//! to these folders, or contain their files.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Instant;

use futures::future::{BoxFuture, FutureExt as _};

use super::{Artifact, At, Content, Root};
use crate::kustomize::engine::Shared;
use crate::kustomize::file::NAMES;
use crate::kustomize::finding::{InTree, Site, TreeFinding};
use crate::kustomize::flux::Excluded;
use crate::kustomize::identity::ObjectId;
use crate::kustomize::roots::{references, roots};
use crate::kustomize::rules::kz005;
use crate::kustomize::tree::{Entry, Tree, TreePath};
use crate::kustomize::{Files, analyse_shared};

/// Maximum number of findings that are kept for one kustomization root. All other findings are only counted. The limit
/// bounds the size of the result, which is cached and shown to users.
const MAX_FINDINGS: usize = 100;
/// Maximum depth of folders that are searched for kustomization files. The limit bounds the search in archives with
/// extremely deep folders.
const MAX_DEPTH: usize = 64;

/// The result of building and checking the kustomize folders that one object, such as a Flux Kustomization, deploys.
/// Contains the findings and the rendered objects.
#[derive(Debug, Clone, Default)]
pub struct Judged {
    /// The findings, in the order in which kustomize would report them.
    pub findings: Vec<TreeFinding>,
    /// Number of findings that were omitted, because `findings` has at most `MAX_FINDINGS` entries.
    pub left_out: usize,
    /// The identities of all objects that Flux renders. `None` if another tool builds the folder, if the build fails,
    /// or if an identity is unknown.
    pub rendered: Option<Vec<ObjectId>>,
    /// The rendered objects that Flux does not apply because of a label or annotation. Flux creates some of these
    /// objects if they do not exist; see [`Excluded::is_created`].
    pub excluded: Vec<Excluded>,
}

impl Judged {
    /// Returns the approximate memory size of the result in bytes.
    pub fn weight(&self) -> usize {
        let text = |finding: &TreeFinding| {
            let texts = [&finding.found, &finding.allowed, &finding.help];
            let of_options: usize = texts.into_iter().flatten().map(String::len).sum();
            size_of::<TreeFinding>() + finding.message.len() + finding.location.file.as_str().len() + of_options
        };
        let id =
            |id: &ObjectId| size_of::<ObjectId>() + id.namespace.len() + id.name.len() + id.group.len() + id.kind.len();
        let rendered: usize = self.rendered.iter().flatten().map(id).sum();
        let excluded: usize = self.excluded.iter().map(|excluded| id(&excluded.id) + excluded.by.len()).sum();
        size_of::<Self>() + rendered + excluded + self.findings.iter().map(text).sum::<usize>()
    }
}

/// The result of [`Judge::judge`]: either the findings about a kustomize tree, or the reason why the tree was not
/// checked. For example, the tree could not be fetched.
#[derive(Debug, Clone)]
pub enum Outcome {
    /// The kustomize tree was built and checked. Contains the findings and the built objects.
    Judged(Arc<Judged>),
    /// The kustomize tree could not be fetched or unpacked, or the check did not end before its deadline. Contains the
    /// reason as a text for messages.
    Unknown(String),
    /// The root is not checked, because its tree must be fetched, and offline commands do not fetch trees.
    Unasked,
}

/// The future that [`Judge::judge`] returns.
pub type Judging<'a> = BoxFuture<'a, Outcome>;

/// A service that builds kustomization files and checks them with the rules. Whether it fetches these files from the
/// network first depends on the implementation.
pub trait Judge: Send + Sync {
    /// Builds the kustomization files of `root`, and checks them with rules such as KZ001. `root` contains the files,
    /// or the URL of an archive with the files. It also says which folders to build.
    ///
    /// `last` is the deadline. If the check has not ended by then, the outcome is `Outcome::Unknown`. `hosts` are the
    /// configured hosts from which archives may be fetched. Flux's source-controller and source-watcher in the
    /// namespace `flux-system` are always allowed.
    fn judge<'a>(&'a self, root: &'a Root, hosts: &'a [String], last: Instant) -> Judging<'a>;
    /// Starts fetching an artifact that later requests will need, and returns at once.
    fn fetch_ahead(&self, artifact: &Artifact, hosts: &[String]);
}

/// An implementation of [`Judge`] for offline commands. It checks only kustomization files that are contained in a
/// Kubernetes object, such as a Bundle of Fleet. It fetches no artifacts.
pub struct Inline;

impl Judge for Inline {
    fn judge<'a>(&'a self, root: &'a Root, _: &'a [String], _: Instant) -> Judging<'a> {
        let outcome = match &root.content {
            Content::Artifact(_) => Outcome::Unasked,
            Content::Carried(unpack) => match unpack() {
                Ok(tree) => Outcome::Judged(Arc::new(judge(&tree, root, (&Files::default(), &Shared::default())))),
                Err(problem) => Outcome::Unknown(problem),
            },
        };
        std::future::ready(outcome).boxed()
    }

    fn fetch_ahead(&self, _: &Artifact, _: &[String]) {}
}

/// Builds the folders of `tree` that `root` selects, and returns the findings. For Flux, also returns the identities of
/// the built objects.
///
/// `files` is a cache of parsed kustomization files, and `shared` is a cache of built folders. Calls with the same
/// `files` must have the same tree. Calls with the same `shared` must also have the same `root.options.profile`.
pub fn judge(tree: &Tree, root: &Root, (files, shared): (&Files, &Shared)) -> Judged {
    let mut judged = Judged::default();
    let mut reported = HashSet::new();
    for folder in folders(tree, root, files) {
        let report = analyse_shared(tree, &folder, &root.options, (files, shared));
        (judged.rendered, judged.excluded) = (report.rendered, report.excluded);
        report.findings.into_iter().for_each(|finding| judged.add(finding, &mut reported));
    }
    if root.at == At::EveryRoot && kustomizations(tree).is_empty() {
        let site = Site::of_file(TreePath::root());
        judged.add(kz005::found(site, None, &TreePath::root(), &tree.names(&TreePath::root())), &mut reported);
    }
    judged
}

/// The findings reported so far, each as its rule, file, byte offset in the file, and message. If the builds of several
/// folders lead to the same finding, it is reported only once.
type Reported = HashSet<(&'static str, TreePath, usize, String)>;

impl Judged {
    fn add(&mut self, finding: TreeFinding, reported: &mut Reported) {
        let InTree { file, place, .. } = &finding.location;
        if !reported.insert((finding.rule, file.clone(), place.start, finding.message.clone())) {
            return;
        }
        if self.findings.len() < MAX_FINDINGS { self.findings.push(finding) } else { self.left_out += 1 }
    }
}

fn folders(tree: &Tree, root: &Root, files: &Files) -> Vec<TreePath> {
    match &root.at {
        At::Folder(path) => vec![TreePath::from(path.as_str())],
        At::FolderIfAny(path) => {
            let folder = TreePath::from(path.as_str());
            let has_any = tree.locate(&folder, NAMES[0]).is_ok();
            if has_any { vec![folder] } else { Vec::new() }
        }
        At::EveryRoot => roots(&kustomizations(tree), |folder| references(tree, folder, &root.options, files).folders),
    }
}

/// Returns the folders with a kustomization file.
fn kustomizations(tree: &Tree) -> Vec<TreePath> {
    let mut found = Vec::new();
    let mut open = vec![(TreePath::root(), 0)];
    while let Some((folder, depth)) = open.pop() {
        let names = tree.names(&folder);
        if names.iter().any(|name| NAMES.contains(&name.as_str())) {
            found.push(folder.clone());
        }
        let inner = names.iter().map(|name| folder.join(name)).filter(|path| tree.entry(path) == Some(Entry::Folder));
        open.extend(inner.filter(|_| depth < MAX_DEPTH).map(|path| (path, depth + 1)));
    }
    found.sort();
    found
}
