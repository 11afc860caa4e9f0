//! Reads the two versions of the files that `portcullis diff` compares: before and after a change. Each version is a
//! folder, a tar archive or a git revision.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};

use super::super::Unusable;
use super::super::checkout::{Choice, git_of_tree};
use super::Args;
use crate::kustomize::changes::{Side, changed_files};
use crate::kustomize::checkout::Git;
use crate::kustomize::options::{Options, Profile};
use crate::kustomize::tree::{Repository, Tree, TreePath};

/// The files before and after a change, and the paths of the files that differ.
pub(super) struct Sides {
    pub(super) old: Side,
    pub(super) new: Side,
    pub(super) changed: BTreeSet<TreePath>,
}

/// The files before and after a change, the paths of the files that differ, and the folder of their git repository.
struct Trees {
    old: Tree,
    new: Tree,
    changed: BTreeSet<TreePath>,
    repository: PathBuf,
}

impl Sides {
    /// Opens the files before and after the change. The arguments name folders, archives or git revisions.
    pub(super) fn open(args: &Args) -> Result<Self, Unusable> {
        let trees = match (&args.old, &args.new, &args.git) {
            (_, _, Some(range)) => revisions(&args.repository, range)?,
            (Some(old), Some(new), None) => {
                let (old, new, repository) = (tree(old)?, tree(new)?, new.clone());
                Trees { changed: changed_files(&old, &new), old, new, repository }
            }
            _ => return Err(Unusable::new("give two folders, or --git")),
        };
        let profile = match args.profile {
            Choice::Auto => Profile::Kubectl,
            Choice::One(profile) => profile,
        };
        let options = Options::of(profile);
        let options = Options { restrictor: args.load_restrictor.unwrap_or(options.restrictor), ..options };
        let Trees { old, new, changed, repository } = trees;
        if args.profile != Choice::Auto {
            return Ok(Self { old: Side::new(old, &options), new: Side::new(new, &options), changed });
        }
        let git = if repository.is_dir() { git_of_tree(&repository)? } else { Git::default() };
        let side = |tree| Side::surveyed(tree, &options, &git);
        Ok(Self { old: side(old), new: side(new), changed })
    }
}

/// Opens a folder or a tar archive.
fn tree(path: &Path) -> Result<Tree, Unusable> {
    let failed = |error: &dyn std::fmt::Display| Unusable::because(path.display(), error);
    if path.is_dir() {
        return Tree::folder(path).map_err(|error| Unusable::new(error.to_string()));
    }
    let file = File::open(path).map_err(|error| failed(&error))?;
    Tree::archive(BufReader::new(file), "/").map_err(|error| failed(&error))
}

/// Opens the two git revisions of `range`, which has the form `A..B`. If `range` is a single revision, opens this
/// revision and the files of the checkout.
fn revisions(folder: &Path, range: &str) -> Result<Trees, Unusable> {
    let failed = |error: crate::kustomize::tree::GitError| Unusable::new(error.to_string());
    let repository = Repository::discover(folder).map_err(failed)?;
    let checkout = repository.folder();
    let or_head = |name: &str| if name.is_empty() { "HEAD".to_owned() } else { name.to_owned() };
    let Some((from, to)) = range.split_once("..") else {
        let old = repository.revision(range).map_err(failed)?.into_tree();
        let folder = checkout.ok_or_else(|| Unusable::new("a bare repository has no checkout: give A..B"))?;
        let new = tree(&folder)?;
        return Ok(Trees { changed: changed_files(&old, &new), old, new, repository: folder });
    };
    if to.starts_with('.') {
        return Err(Unusable::because(range, "a range with three dots is not supported: give the merge base, A..B"));
    }
    let (old, new) = (repository.revision(&or_head(from)), repository.revision(&or_head(to)));
    let (old, new) = (old.map_err(failed)?, new.map_err(failed)?);
    let changed = old.changed_files(&new);
    let repository = checkout.unwrap_or_else(|| folder.to_owned());
    Ok(Trees { changed, old: old.into_tree(), new: new.into_tree(), repository })
}
