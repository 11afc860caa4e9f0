//! Converts paths of the command line to paths in a tree of the whole file system.
//!
//! The tree is the whole file system, because kustomize roots may refer to files anywhere. Files are read on demand.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use super::Unusable;
use crate::kustomize::file::NAMES;
use crate::kustomize::tree::TreePath;

/// Converts a path from the command line to a `TreePath`: resolves symbolic links, and makes the path relative to the
/// file system root `/`. Fails if the path does not exist or is not UTF-8.
pub(super) fn tree_path(path: &Path) -> Result<TreePath, Unusable> {
    let whole = path.canonicalize().map_err(|error| Unusable::because(path.display(), error))?;
    let text = whole.to_str().ok_or_else(|| Unusable::because(path.display(), "its name is not UTF-8"))?;
    Ok(TreePath::from(text.trim_start_matches('/')))
}

/// Returns the path of a folder that the user gave on the command line, relative to `/`, such as `home/user/repo`.
/// Resolves symbolic links. Fails if the path is a file, does not exist, or is not UTF-8.
pub(super) fn folder_path(path: &Path) -> Result<TreePath, Unusable> {
    if path.is_file() {
        let is_kustomization = path.file_name().is_some_and(|name| NAMES.iter().any(|other| name == *other));
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let why = if is_kustomization { format!("; use its folder: {}", folder.display()) } else { String::new() };
        return Err(Unusable::because(path.display(), format!("this is a file, not a folder{why}")));
    }
    tree_path(path)
}

/// A converter from paths on the command line to paths in the tree, as in [`tree_path`]. It resolves each folder only
/// once, so it is fast for many files.
#[derive(Default)]
pub(super) struct TreePaths {
    folders: HashMap<PathBuf, TreePath>,
}

impl TreePaths {
    /// Converts the path of a file: resolves symbolic links, and makes the path relative to the file system root `/`.
    /// Fails if the file does not exist, or if its path is not UTF-8.
    pub(super) fn of(&mut self, file: &Path) -> Result<TreePath, Unusable> {
        let (Some(folder), Some(name)) = (file.parent(), file.file_name().and_then(|name| name.to_str())) else {
            return tree_path(file);
        };
        if !file.symlink_metadata().is_ok_and(|metadata| metadata.is_file()) {
            return tree_path(file);
        }
        Ok(self.folder(folder)?.join(name))
    }

    /// Converts the path of a folder to a path in the tree, and caches the result. The result is the same as that of
    /// [`tree_path`], but usually this function only converts the parent folder and appends the name of the folder,
    /// which is cheap. It calls [`tree_path`] only for the topmost folder, and for paths that end with `..` or a
    /// symbolic link.
    fn folder(&mut self, folder: &Path) -> Result<TreePath, Unusable> {
        if let Some(known) = self.folders.get(folder) {
            return Ok(known.clone());
        }
        let name = folder.file_name().and_then(|name| name.to_str());
        let is_folder = |path: &Path| path.symlink_metadata().is_ok_and(|metadata| metadata.is_dir());
        let path = match (folder.parent(), name) {
            (Some(parent), Some(name)) if is_folder(folder) => self.folder(parent)?.join(name),
            _ => tree_path(if folder.as_os_str().is_empty() { Path::new(".") } else { folder })?,
        };
        self.folders.insert(folder.to_owned(), path.clone());
        Ok(path)
    }
}

/// Returns a path for display. The path is relative if it is below the current folder. Otherwise it is absolute.
pub(super) fn shown(path: &TreePath) -> String {
    let whole = Path::new("/").join(path.as_str());
    match whole.strip_prefix(current_folder()) {
        Ok(below) if below.as_os_str().is_empty() => ".".to_owned(),
        Ok(below) => below.display().to_string(),
        Err(_) => whole.display().to_string(),
    }
}

/// Makes paths in a message relative if they are below the current folder.
pub(super) fn with_display_paths(message: String) -> String {
    match current_folder().to_str().map(|current_folder| current_folder.trim_start_matches('/')) {
        Some(below) if !below.is_empty() => message.replace(&format!("{below}/"), ""),
        _ => message,
    }
}

/// Rewrites the paths in `text` for display. `text` is about the kustomize root `root`, and its paths have no leading
/// slash, such as `home/ann/repo/app.yaml`. Paths below the current folder become relative. If `root` is not below the
/// current folder, other paths get a leading slash if they begin with the same topmost folder as `root`, such as
/// `home/`.
pub(super) fn with_display_paths_of_root(text: &str, root: &TreePath) -> String {
    let text = with_display_paths(text.to_owned());
    let Some((top, _)) = root.as_str().split_once('/').filter(|_| shown(root).starts_with('/')) else { return text };
    let top = format!("{top}/");
    let begins = |at: usize| {
        let before = text.get(..at).and_then(|before| before.chars().next_back());
        !before.is_some_and(|letter| letter.is_alphanumeric() || "/._-".contains(letter))
    };
    let (mut seen, mut copied) = (String::with_capacity(text.len()), 0);
    for (at, _) in text.match_indices(&top).filter(|(at, _)| begins(*at)) {
        seen.push_str(text.get(copied..at).unwrap_or_default());
        seen.push('/');
        copied = at;
    }
    seen + text.get(copied..).unwrap_or_default()
}

/// Rewrites a message that starts with a path, such as `home/ann/repo/app.yaml:3: …`. The path becomes relative if it
/// is below the current folder. Otherwise, it becomes absolute.
pub(super) fn reason_with_display_path(reason: &str) -> String {
    match reason.split_once(':') {
        Some((file, rest)) => format!("{}:{}", shown(&TreePath::from(file)), with_display_paths(rest.to_owned())),
        None => with_display_paths(reason.to_owned()),
    }
}

fn current_folder() -> &'static Path {
    static HERE: OnceLock<PathBuf> = OnceLock::new();
    HERE.get_or_init(|| {
        std::env::current_dir().and_then(|current_folder| current_folder.canonicalize()).unwrap_or_default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(unix)]
    #[test]
    fn paths_are_those_of_the_system() {
        let top = tempfile::tempdir().unwrap();
        let inner = top.path().join("real/inner");
        std::fs::create_dir_all(&inner).unwrap();
        std::fs::write(inner.join("file"), "").unwrap();
        std::os::unix::fs::symlink("real", top.path().join("link")).unwrap();
        std::os::unix::fs::symlink("file", inner.join("other")).unwrap();
        let mut paths = TreePaths::default();
        for path in ["real/inner/file", "link/inner/file", "link/../real/inner/file", "real/./inner/other"] {
            let path = top.path().join(path);
            assert_eq!(paths.of(&path).unwrap(), tree_path(&path).unwrap(), "{}", path.display());
        }
    }
}
