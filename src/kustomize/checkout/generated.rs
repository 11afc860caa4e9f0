//! Finds the `.gitignore` file that excludes a missing file from the repository. A missing file that git ignores is
//! usually generated.

use std::path::Path;

use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};

use crate::kustomize::file::NAMES;
use crate::kustomize::tree::{Entry, Tree, TreePath};

/// The name of a file with patterns for the paths that git ignores. The patterns apply to the folder that contains the
/// file, and to the folders below.
const FILE: &str = ".gitignore";

/// Returns the `.gitignore` file that makes git ignore `path`, if any. Searches upwards from the parent folder of
/// `path` to `top`, the top folder of the repository. The first `.gitignore` file with a matching pattern decides.
///
/// If `path` is a folder that git does not ignore, the function searches in the same way for the kustomization file in
/// this folder.
pub(super) fn ignoring(tree: &Tree, top: &TreePath, path: &TreePath) -> Option<TreePath> {
    let is_folder = tree.entry(path) == Some(Entry::Folder);
    let inner = NAMES.into_iter().filter(|_| is_folder).map(|name| path.join(name));
    [path.clone()].into_iter().chain(inner).find_map(|path| file_ignoring(tree, top, &path))
}

fn file_ignoring(tree: &Tree, top: &TreePath, path: &TreePath) -> Option<TreePath> {
    let mut folder = path.parent();
    while let Some(current) = folder.filter(|folder| folder.is_within(top)) {
        let file = current.join(FILE);
        match matched(tree, &current, &file, path) {
            Match::Ignore(()) => return Some(file),
            Match::Whitelist(()) => return None,
            Match::None => folder = current.parent(),
        }
    }
    None
}

/// Matches `path` against the patterns of a `.gitignore` file. Matches the path both as a file and as a folder, because
/// a missing path may be either.
fn matched(tree: &Tree, folder: &TreePath, file: &TreePath, path: &TreePath) -> Match<()> {
    let Ok(bytes) = tree.read(file) else { return Match::None };
    let patterns = patterns(&String::from_utf8_lossy(&bytes));
    let relative = path.relative_to(folder);
    let matched = |is_folder| patterns.matched_path_or_any_parents(Path::new(&relative), is_folder).map(drop);
    match matched(false) {
        Match::None => matched(true),
        matched => matched,
    }
}

fn patterns(text: &str) -> Gitignore {
    let mut builder = GitignoreBuilder::new("");
    for line in text.lines() {
        // Like git, this skips a pattern that cannot be parsed.
        drop(builder.add_line(None, line));
    }
    builder.build().unwrap_or_else(|_| Gitignore::empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kustomize::tree::Memory;

    #[test]
    fn the_innermost_file_decides() {
        let files = [
            (".gitignore", "*.gen.yaml\n/tmp/\n"),
            ("a/.gitignore", "!kept.gen.yaml\nkustomization.yaml\n"),
            ("a/b/x", ""),
        ];
        let memory = files.iter().fold(Memory::new(), |memory, (path, text)| memory.file(&format!("r/{path}"), *text));
        let tree = Tree::new(memory, "/");
        let ignoring = |path: &str| ignoring(&tree, &"r".into(), &format!("r/{path}").as_str().into());
        assert_eq!(ignoring("a/x.gen.yaml"), Some("r/.gitignore".into()));
        assert_eq!(ignoring("tmp/base"), Some("r/.gitignore".into()));
        assert_eq!(ignoring("tmp"), Some("r/.gitignore".into()));
        assert_eq!(ignoring("a/b"), Some("r/a/.gitignore".into()), "its kustomization file");
        assert_eq!((ignoring("a/kept.gen.yaml"), ignoring("a/x.yaml"), ignoring("a/tmp")), (None, None, None));
    }
}
