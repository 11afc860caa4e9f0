//! Paths between the command line and the tree that is the whole file system.
//!
//! What a kustomize root refers to may be anywhere, so its tree is everything; it is read only where it is asked for.

use std::path::{Path, PathBuf};

use super::Unusable;
use crate::kustomize::tree::TreePath;

/// A path in the tree that is the whole file system.
pub(super) fn tree_path(path: &Path) -> Result<TreePath, Unusable> {
    let whole = path.canonicalize().map_err(|error| Unusable::because(path.display(), error))?;
    let text = whole.to_str().ok_or_else(|| Unusable::because(path.display(), "its name is not UTF-8"))?;
    Ok(TreePath::from(text.trim_start_matches('/')))
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
    let here = here();
    match here.to_str().map(|here| here.trim_start_matches('/')) {
        Some(below) if !below.is_empty() => message.replace(&format!("{below}/"), ""),
        _ => message,
    }
}

fn here() -> PathBuf {
    std::env::current_dir().and_then(|here| here.canonicalize()).unwrap_or_default()
}
