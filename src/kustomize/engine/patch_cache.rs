//! A cache of parsed patch files, which several builds share. A Component is built again for each kustomization that
//! uses it, but its patches are always the same.

use std::sync::Arc;

use super::patch::{BadPatch, Patch};
use crate::cache::Lru;
use crate::kustomize::tree::TreePath;

/// Maximum total size of the patch files in a cache, in bytes. A parsed patch needs about ten times the size of its
/// file.
const MAX_BYTES: u64 = 1 << 20;

/// A cache of parsed patch files. If a new patch does not fit, the least recently used patches are removed.
#[derive(Debug)]
pub(super) struct PatchCache(Lru<TreePath, Arc<Patch>>);

impl Default for PatchCache {
    fn default() -> Self {
        Self(Lru::new(MAX_BYTES, usize::MAX))
    }
}

impl PatchCache {
    /// Returns the parsed patch of the file at `path`, which has the content `text`. Uses the cache if it contains the
    /// patch. `source` is the number of the file in [`Sources`](super::Sources).
    ///
    /// # Errors
    ///
    /// If the text is not a patch, or is valid both as a strategic merge patch and as a JSON patch. Errors are not
    /// cached.
    pub(super) fn read(&self, path: &TreePath, text: &str, source: u32) -> Result<Patch, BadPatch> {
        if let Some(patch) = self.0.get(path) {
            return Ok(Patch::clone(&patch));
        }
        let patch = Patch::read(text, source)?;
        self.0.insert(path.clone(), Arc::new(patch.clone()), text.len());
        Ok(patch)
    }

    /// Removes the patch of the file at `path`.
    pub(super) fn forget(&self, path: &TreePath) {
        self.0.remove(path);
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
        assert_eq!(cache.0.count(), 1, "errors are not cached");
    }

    #[test]
    fn the_cache_does_not_grow_without_limit() {
        let cache = PatchCache::default();
        let text = format!(
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: a}}\ndata: {{a: {}}}\n",
            "b".repeat(MAX_BYTES as usize / 3)
        );
        for at in 0..7 {
            cache.read(&TreePath::from(format!("{at}.yaml").as_str()), &text, at).unwrap();
            assert_eq!(cache.0.weight(), (cache.0.count() * text.len()) as u64);
            assert!(cache.0.weight() <= MAX_BYTES && cache.0.count() > 0);
        }
        let path = TreePath::from("large.yaml");
        cache.read(&path, &text.replace('b', "bbbb"), 8).unwrap();
        assert!(cache.0.get(&path).is_none(), "a file above the limit is not cached");
    }
}
