//! `portcullis build --all`: builds every root of a repository in one process.

use std::fs;
use std::mem::ManuallyDrop;
use std::path::{Path, PathBuf};

use super::super::checkout::{Folders, reached};
use super::super::last_uses::LastUses;
use super::super::parallel::in_order;
use super::super::trees::{TreePaths, folder_path, shown, with_display_paths};
use super::super::walk::{self, Progress};
use super::super::{OK, Unusable, say};
use super::FAILED;
use crate::kustomize::Files;
use crate::kustomize::engine::{Settings, Shared, Stop, build_shared};
use crate::kustomize::file::NAMES;
use crate::kustomize::options::Options;
use crate::kustomize::tree::{Tree, TreePath};

/// Builds every kustomize root below `folder`, and writes the output of each root to its own file below `output`. A
/// root is a folder with a kustomization file to which no other kustomization refers. Components are not built.
/// Finally, prints how many roots were built and how many failed, and returns the exit code.
pub(super) fn run(
    folder: &Path,
    tree: Tree,
    output: &Path,
    options: &Options,
    settings: &Settings,
) -> Result<u8, Unusable> {
    // The process ends after the build, so the contents of these caches are not freed.
    let (files, shared) = (ManuallyDrop::new(Files::default()), ManuallyDrop::new(Shared::default()));
    let Folders { roots: found, references, .. } = found(folder, &tree, options, &files)?;
    let used = found.iter().map(|root| reached(&references, vec![root.clone()]));
    let mut last_uses = LastUses::of(used, &references);
    if found.is_empty() {
        return Err(Unusable::because(folder.display(), "no kustomize root found"));
    }
    let mut outputs = Outputs::new(output, folder);
    let mut progress = Progress::new("built kustomize roots:");
    let (mut built, mut failed) = (0, 0);
    let mut trouble = Ok(());
    let build = |root: &TreePath| {
        build_shared(&tree, root, options, settings, (&files, &shared)).and_then(|built| built.text())
    };
    in_order(&found, build, |number, text| {
        progress.step(number, found.len());
        last_uses.release(number, &files, std::iter::once(&*shared));
        match text {
            Ok(text) => {
                built += 1;
                let written = outputs.write(&found[number], &text);
                if trouble.is_ok() {
                    trouble = written;
                }
            }
            Err(stop) => {
                failed += 1;
                say(&failure_text(&found[number], &stop));
            }
        }
    });
    trouble?;
    say(&format!("{built} of {} roots built, {failed} failed\n", found.len()));
    Ok(if failed == 0 { OK } else { FAILED })
}

/// Finds the kustomize roots below a folder. A root is a folder with a kustomization file to which no other
/// kustomization refers. Components are not roots here.
fn found(folder: &Path, tree: &Tree, options: &Options, read: &Files) -> Result<Folders, Unusable> {
    folder_path(folder)?;
    let files = walk::manifests(folder).map_err(Unusable::new)?;
    let is_component = |root: &TreePath| {
        let file = NAMES.iter().find_map(|name| read.kustomization(tree, &root.join(name)).ok());
        file.is_some_and(|file| file.kustomization.is_component())
    };
    let mut folders = Folders::of(&files, &mut TreePaths::default(), tree, options, read)?;
    folders.roots.retain(|root| !is_component(root));
    Ok(folders)
}

/// The output of `build --all`: a folder with one file for each root. Each file is named after the folder of its root,
/// such as `apps/a.yaml`.
struct Outputs<'o> {
    output: &'o Path,
    /// The folder below which `build --all` searches for roots. The names of the output files are relative to this
    /// folder.
    base: PathBuf,
    /// The output folder that was created last. If the next file is in the same folder, the folder is not created
    /// again.
    created: PathBuf,
}

impl<'o> Outputs<'o> {
    fn new(output: &'o Path, folder: &Path) -> Self {
        let base = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
        Self { output, base, created: PathBuf::new() }
    }

    /// Writes the YAML of a kustomize root to a file in the output folder. The path of the file follows from `root`,
    /// the folder of the root. If the file has the content `text` already, it is not written again.
    fn write(&mut self, root: &TreePath, text: &str) -> Result<(), Unusable> {
        let whole = Path::new("/").join(root.as_str());
        let below = whole.strip_prefix(&self.base).unwrap_or(&whole);
        let below = if below.as_os_str().is_empty() { Path::new("root") } else { below };
        let mut name = self.output.join(below).into_os_string();
        name.push(".yaml");
        let path = PathBuf::from(name);
        // Overwriting a file is slow, because it makes the file system flush the file.
        if fs::read(&path).is_ok_and(|old| old == text.as_bytes()) {
            return Ok(());
        }
        let failed = |error| Unusable::because(path.display(), error);
        if let Some(parent) = path.parent().filter(|parent| *parent != self.created) {
            fs::create_dir_all(parent).map_err(failed)?;
            self.created = parent.to_owned();
        }
        fs::write(&path, text).map_err(failed)
    }
}

fn failure_text(root: &TreePath, stop: &Stop) -> String {
    let (site, message) = (stop.site(), stop.message());
    let word = if matches!(stop, Stop::Unknown(_)) { "cannot be built by portcullis" } else { "error" };
    with_display_paths(format!("{}: {word}: {message} ({}:{})\n", shown(root), site.file, site.place.line))
}
