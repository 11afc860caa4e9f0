//! Paths between the command line and the tree that is the whole file system.
//!
//! What a kustomize root refers to may be anywhere, so its tree is everything; it is read only where it is asked for.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use super::Unusable;
use crate::kustomize::tree::TreePath;

/// A path in the tree that is the whole file system.
pub(super) fn tree_path(path: &Path) -> Result<TreePath, Unusable> {
    let whole = path.canonicalize().map_err(|error| Unusable::because(path.display(), error))?;
    let text = whole.to_str().ok_or_else(|| Unusable::because(path.display(), "its name is not UTF-8"))?;
    Ok(TreePath::from(text.trim_start_matches('/')))
}

/// Paths of many files, whose folders are asked for once.
#[derive(Default)]
pub(super) struct TreePaths {
    folders: HashMap<PathBuf, TreePath>,
}

impl TreePaths {
    /// As [`tree_path`].
    pub(super) fn of(&mut self, file: &Path) -> Result<TreePath, Unusable> {
        let (Some(folder), Some(name)) = (file.parent(), file.file_name().and_then(|name| name.to_str())) else {
            return tree_path(file);
        };
        if !file.symlink_metadata().is_ok_and(|metadata| metadata.is_file()) {
            return tree_path(file);
        }
        if let Some(known) = self.folders.get(folder) {
            return Ok(known.join(name));
        }
        let path = tree_path(if folder.as_os_str().is_empty() { Path::new(".") } else { folder })?;
        self.folders.insert(folder.to_owned(), path.clone());
        Ok(path.join(name))
    }
}

/// A path as the user would write it: relative to where they are, if it is below.
pub(super) fn shown(path: &TreePath) -> String {
    let whole = Path::new("/").join(path.as_str());
    match whole.strip_prefix(here()) {
        Ok(below) if below.as_os_str().is_empty() => ".".to_owned(),
        Ok(below) => below.display().to_string(),
        Err(_) => whole.display().to_string(),
    }
}

/// A message with the paths in it as the user would write them.
pub(super) fn seen_from_here(message: String) -> String {
    match here().to_str().map(|here| here.trim_start_matches('/')) {
        Some(below) if !below.is_empty() => message.replace(&format!("{below}/"), ""),
        _ => message,
    }
}

/// A text about a root with the paths in it as the user would write them: with a slash before those that are elsewhere.
pub(super) fn seen_with_root(text: &str, root: &TreePath) -> String {
    let text = seen_from_here(text.to_owned());
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

/// A reason of a verdict, which begins with the path of a file, as the user would write it.
pub(super) fn reason_from_here(reason: &str) -> String {
    match reason.split_once(':') {
        Some((file, rest)) => format!("{}:{}", shown(&TreePath::from(file)), seen_from_here(rest.to_owned())),
        None => seen_from_here(reason.to_owned()),
    }
}

fn here() -> &'static Path {
    static HERE: OnceLock<PathBuf> = OnceLock::new();
    HERE.get_or_init(|| std::env::current_dir().and_then(|here| here.canonicalize()).unwrap_or_default())
}
