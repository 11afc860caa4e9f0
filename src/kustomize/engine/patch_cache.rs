//! A cache of parsed patch files, which several builds share. A Component is built again for each kustomization that
//! uses it, but its patches are always the same.

use std::collections::HashMap;
use std::sync::{PoisonError, RwLock};

use super::patch::{BadPatch, Patch};
use crate::kustomize::tree::TreePath;

/// Maximum total size of the patch files in a cache, in bytes. A parsed patch needs about ten times the size of its
/// file. When the limit is exceeded, the cache is emptied.
const MAX_BYTES: usize = 1 << 20;

/// A cache of parsed patch files.
#[derive(Debug, Default)]
pub(super) struct PatchCache {
    known: RwLock<Known>,
}

#[derive(Debug, Default)]
struct Known {
    patches: HashMap<TreePath, Patch>,
    bytes: usize,
}

impl PatchCache {
    /// Returns the parsed patch of the file at `path`, which has the content `text`. Uses the cache if it contains the
    /// patch. `source` is the number of the file in [`Sources`](super::Sources).
    ///
    /// # Errors
    ///
    /// See [`Patch::read`]. Errors are not cached.
    pub(super) fn read(&self, path: &TreePath, text: &str, source: u32) -> Result<Patch, BadPatch> {
        if let Some(patch) = self.known.read().unwrap_or_else(PoisonError::into_inner).patches.get(path) {
            return Ok(patch.clone());
        }
        let patch = Patch::read(text, source)?;
        if text.len() > MAX_BYTES {
            return Ok(patch);
        }
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        if known.bytes.saturating_add(text.len()) > MAX_BYTES {
            *known = Known::default();
        }
        if known.patches.insert(path.clone(), patch.clone()).is_none() {
            known.bytes += text.len();
        }
        Ok(patch)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(patch: &Patch) -> &str {
        match patch {
            Patch::Strategic(objects) => objects[0].name(),
            Patch::Json(_) => "",
        }
    }

    #[test]
    fn a_patch_is_parsed_once() {
        let (cache, path) = (PatchCache::default(), TreePath::from("p.yaml"));
        let text = |name: &str| format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}}}\n");
        assert_eq!(named(&cache.read(&path, &text("a"), 1).unwrap()), "a");
        assert_eq!(named(&cache.read(&path, &text("b"), 1).unwrap()), "a", "the text is not read again");
        assert!(cache.read(&TreePath::from("q.yaml"), "[", 2).is_err());
        assert_eq!(cache.known.read().unwrap().patches.len(), 1, "errors are not cached");
    }

    #[test]
    fn the_cache_does_not_grow_without_limit() {
        let cache = PatchCache::default();
        let text = format!(
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: a}}\ndata: {{a: {}}}\n",
            "b".repeat(MAX_BYTES / 3)
        );
        for at in 0..7 {
            cache.read(&TreePath::from(format!("{at}.yaml").as_str()), &text, at).unwrap();
            let known = cache.known.read().unwrap();
            assert_eq!(known.bytes, known.patches.len() * text.len());
            assert!(known.bytes <= MAX_BYTES && !known.patches.is_empty());
        }
        let path = TreePath::from("large.yaml");
        cache.read(&path, &text.replace('b', "bbbb"), 8).unwrap();
        assert!(!cache.known.read().unwrap().patches.contains_key(&path), "a file above the limit is not cached");
    }
}
