//! Determines which folders of a checkout are built, and which system builds each of them: Flux, Argo CD, Fleet or
//! Sveltos. A checkout is a local copy of a git repository. The module only reads files. It starts no processes, and
//! does not use the network.
//!
//! The search for the folders that Flux builds has these steps:
//!
//! 1. Read the Flux Kustomizations and Flux sources in the files of the checkout.
//! 2. Find the sources whose repository is this checkout.
//! 3. Build the folders of the Kustomizations that use these sources.
//! 4. Repeat step 3 with the Kustomizations in the output, until no new Kustomization appears.
//!
//! A Kustomization in the output of a build is used instead of the one in the file, because patches or variables may
//! have changed it. Flux builds from an artifact. An artifact contains no links, and only some of the files of the
//! checkout (see `ignore.rs`).

mod argo;
mod flux;
mod generated;
mod git;
mod ignore;
mod object;
mod others;
pub mod overview;
mod pass;
mod reach;
mod render;
mod source;
mod url;

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

pub use git::Git;
pub use object::Object;
pub use url::Repository;

use self::object::ToolObjects;
use super::analysis::{Report, Verdict};
use super::file::NAMES;
use super::files::Files;
use super::finding::{InTree, Site, TreeFinding};
use super::options::Options;
use super::rules::{kz004, kz040};
use super::tree::{Tree, TreePath};
use crate::admission::field::Segment;
use crate::admission::{FieldPath, Level};

/// A checkout of a git repository, as the input for finding the folders that Flux, Argo CD, Fleet and Sveltos build. It
/// lists the folders with kustomization files, and the manifests that may refer to such folders.
pub struct Checkout<'a> {
    /// A file tree that contains the checkout. It is the whole file system for `portcullis check`, and only the
    /// checkout for `portcullis diff`.
    pub tree: &'a Arc<Tree>,
    /// The cache of parsed kustomization files.
    pub files: &'a Files,
    /// The git state of the checkout.
    pub git: &'a Git,
    /// Candidates for the top folder of the repository, such as the folders that the user passes on the command line.
    /// Paths in Flux Kustomizations are relative to the top folder.
    pub tops: &'a [TreePath],
    /// The folders with a kustomization file.
    pub folders: &'a [TreePath],
    /// The YAML and JSON files that may contain objects. Kustomization files are not included. Files that only
    /// kustomization files use, such as patches, are not included either.
    pub manifests: &'a [TreePath],
    /// The folders that the user sets for Flux sources, by namespace and name of the source.
    pub sources: &'a BTreeMap<(String, String), TreePath>,
}

/// A folder that is built, with the build options of the tool that builds it, such as Flux or Argo CD.
#[derive(Debug, Clone)]
pub struct Build {
    /// The files that are available to the build. Flux builds from an artifact, which contains only some files of the
    /// checkout. Other tools use all files of the checkout.
    pub tree: Arc<Tree>,
    /// The folder that is built.
    pub root: TreePath,
    /// The build options of the tool that builds the folder, such as the version of kustomize.
    pub options: Options,
    /// The objects that refer to the built folder, such as Flux Kustomizations. Empty if no object refers to it.
    pub owners: Vec<Object>,
    /// Whether the root is applied to a cluster, as far as the files show.
    pub is_used: bool,
}

/// The result of searching a checkout for the folders that Flux, Argo CD, Fleet and Sveltos build. Also contains the
/// objects that refer to these folders, such as Flux Kustomizations.
#[derive(Debug, Default)]
pub struct Survey {
    /// The builds of folders of the checkout by Flux, Argo CD, Fleet and Sveltos. A folder that is built with different
    /// options has several builds.
    pub builds: Vec<Build>,
    /// The Kustomizations that are built from other repositories, each with the name of the repository.
    pub elsewhere: Vec<(Object, String)>,
    /// The Kustomizations that are built from an ExternalArtifact, each with the name of this artifact. Another
    /// controller writes the artifact.
    pub composed: Vec<(Object, String)>,
    /// The Kustomizations whose path or source is unknown, each with the reason.
    pub unknown: Vec<(Object, String)>,
    /// The Kustomizations of each cluster.
    pub clusters: Vec<Cluster>,
    /// The paths of the files whose Flux Kustomizations are also in `clusters`. Portcullis checks the Kustomizations in
    /// `clusters` and ignores those in the files, because kustomize may have changed them, for example with patches.
    pub rendered: HashSet<TreePath>,
    /// The Flux sources whose repository is this checkout. The key contains namespace and name of a source. The value
    /// is the top folder of the source's files in the checkout.
    pub sources: BTreeMap<(String, String), TreePath>,
    /// The folders that Flux, Argo CD, Fleet and Sveltos build from the checkout, including bases and components.
    pub reached: HashSet<TreePath>,
    /// The files of the checkout that Flux, Argo CD, Fleet and Sveltos read when they build folders.
    pub reached_files: HashSet<TreePath>,
    /// Problems that do not belong to one build, such as an exceeded limit.
    pub problems: Vec<String>,
}

/// The Flux Kustomizations of one cluster, as far as they can be determined from files.
#[derive(Debug, Clone, Default)]
pub struct Cluster {
    /// The folder of the checkout from which users set up Flux in the cluster, for example with `flux bootstrap` or by
    /// hand. It contains the first Kustomizations of the cluster. `None` if it is unknown to which cluster the
    /// Kustomizations belong, usually because kustomize cannot build the folders that contain them.
    pub folder: Option<TreePath>,
    /// The Kustomizations of the cluster. A Kustomization comes before the Kustomizations that it renders.
    pub members: Vec<Member>,
}

/// A Flux Kustomization of a cluster.
#[derive(Debug, Clone)]
pub struct Member {
    /// The Kustomization as Flux applies it: after kustomize has applied patches to it, and Flux has substituted the
    /// known variables.
    pub object: Object,
    /// The index in `Cluster::members` of the Kustomization that renders this Kustomization, if any.
    pub parent: Option<usize>,
    /// Whether the Kustomization is applied to the cluster, as far as the files show.
    pub is_applied: bool,
    /// The index in [`Survey::builds`] of the build of this Kustomization; `None` if the Kustomization is not built
    /// from the checkout.
    pub build: Option<usize>,
}

impl Cluster {
    /// Returns the Flux Kustomizations of the cluster, as they are after kustomize has applied patches to them, and
    /// Flux has substituted the known variables.
    pub fn objects(&self) -> impl Iterator<Item = &Object> + Clone {
        self.members.iter().map(|member| &member.object)
    }
}

impl Build {
    /// Moves a finding about the `spec` of a Flux Kustomization or Application to the position of the field in the file
    /// that defines this object. Returns other findings unchanged. If the file does not contain the reported field, for
    /// example because a patch adds it, lowers the level to `audit`. Errors that make the build fail keep their level.
    pub fn located(&self, tree: &Tree, finding: TreeFinding) -> TreeFinding {
        let field = match finding.field.segments().first() {
            _ if kz004::is_absent_root(&finding) => FieldPath::of(["spec", "path"]),
            Some(Segment::Key(key)) if &**key == "spec" => finding.field.clone(),
            _ => return finding,
        };
        let Some(owner) = self.owners.first() else { return finding };
        let is_inherited = !finding.location.refused && !owner.has_written(tree, &field);
        let level = if is_inherited { finding.level.min(Level::Audit) } else { finding.level };
        let Site { file, place, field } = owner.site(tree, &field);
        let location = InTree { file, place, ..finding.location };
        TreeFinding { level, field, location, ..finding }
    }
}

/// Returns whether an object is a Kustomization of Flux.
pub fn is_flux_kustomization(object: &serde_json::Value) -> bool {
    object::group(object) == object::KUSTOMIZE && object::text(object.get("kind")) == "Kustomization"
}

/// Replaces errors about missing paths in git submodules that are not checked out. The new KZ040 findings report that
/// the result of the build is unknown.
pub fn without_submodules(tree: &Tree, git: &Git, report: Report) -> Report {
    if git.submodules.is_empty() {
        return report;
    }
    without(tree, report, |path| {
        let submodule = git.not_checked_out(tree, path)?;
        Some(format!("{submodule} is a submodule, which is not checked out"))
    })
}

/// Replaces errors about files that are probably generated before the build with KZ040 findings, which report that the
/// result of the build is unknown. The following files count as generated:
///
/// - Missing files that a `.gitignore` excludes.
/// - Missing files that a script may write. `written_by` receives the name of a file, and returns the position of a
///   command that writes a file of this name.
/// - Kustomization files that are templates of other tools.
pub fn without_generated(
    tree: &Tree,
    git: &Git,
    report: Report,
    written_by: impl Fn(&str) -> Option<String>,
) -> Report {
    let report = without_templates(tree, report);
    without(tree, report, |path| {
        if let Some(file) = generated::ignoring(tree, &git.top, path) {
            return Some(format!("{path} does not exist, and {file} excludes it from the repository"));
        }
        let place = written_by(path.name())?;
        Some(format!("{path} does not exist, and {place} writes a file with this name"))
    })
}

/// Replaces the errors in kustomization files that are templates of other tools with KZ040 findings, which report that
/// the result of the build is unknown. A file counts as a template if it contains `{{` or `{%`.
fn without_templates(tree: &Tree, report: Report) -> Report {
    let is_template = |file: &TreePath| {
        let bytes = tree.read(file).unwrap_or_else(|_| [].into());
        ["{{", "{%"].iter().any(|mark| memchr::memmem::find(&bytes, mark.as_bytes()).is_some())
    };
    with_unknown(report, |finding| {
        let file = &finding.location.file;
        (NAMES.contains(&file.name()) && is_template(file)).then(|| format!("{file} is a template of another tool"))
    })
}

/// Replaces errors about missing files and folders with KZ040 findings, which report that the result of the build is
/// unknown. `reason` receives the missing path, and returns the text that explains why the result is unknown. If
/// `reason` returns `None`, the error is not replaced.
fn without(tree: &Tree, report: Report, reason: impl Fn(&TreePath) -> Option<String>) -> Report {
    with_unknown(report, |finding| {
        let is_missing = MISSING.contains(&finding.rule);
        is_missing.then(|| entry(tree, finding)).flatten().and_then(|path| reason(&path))
    })
}

/// Replaces errors with KZ040 findings, which report that the result of the build is unknown. `reason` receives an
/// error, and returns why the result is unknown. If `reason` returns `None`, the error is not replaced.
fn with_unknown(mut report: Report, reason: impl Fn(&TreeFinding) -> Option<String>) -> Report {
    for finding in report.findings.iter_mut().filter(|finding| finding.location.refused) {
        let Some(why) = reason(finding) else { continue };
        report.reasons.push(format!("{}: {why}", finding.site()));
        *finding = kz040::found(finding.site(), &why);
    }
    let is_refused = report.findings.iter().any(|finding| finding.location.refused);
    if !is_refused && !report.reasons.is_empty() {
        report.verdict = Verdict::Unknown;
    }
    report
}

/// The ids of the rules about missing files and folders. KZ004 reports a path in a kustomization file that does not
/// exist. KZ005 reports a folder without a kustomization file.
const MISSING: [&str; 2] = ["KZ004", "KZ005"];

/// Returns the path that `finding` is about, for example an entry of the list `resources`. Reads this entry from the
/// kustomization file, at the location of `finding`. The returned path is relative to the root of `tree`. `None` if the
/// file cannot be read.
fn entry(tree: &Tree, finding: &TreeFinding) -> Option<TreePath> {
    let InTree { file, place, .. } = &finding.location;
    let bytes = tree.read(file).ok()?;
    let text = std::str::from_utf8(&bytes).ok()?;
    let entry = text.get(place.start..place.end)?.trim_matches(['"', '\'']);
    // An entry of a generator may set another name: `NAME=FILE`.
    let entry = entry.split_once('=').map_or(entry, |(_, file)| file);
    Some(TreePath::from(&*format!("{}/{entry}", file.parent()?)))
}

/// Searches a checkout for the folders that Flux, Argo CD, Fleet and Sveltos build. Also returns the objects that refer
/// to these folders, such as Flux Kustomizations and Applications.
pub fn survey(checkout: &Checkout<'_>) -> Survey {
    let tool_objects = ToolObjects::read(checkout.tree, checkout.manifests);
    let mut survey = flux::survey(checkout, &tool_objects);
    argo::add(checkout, &tool_objects, &mut survey);
    others::add(checkout, &tool_objects, &flux::sources(checkout, &tool_objects), &mut survey);
    survey
}
