//! A cache of built bases, which several builds share.
//!
//! The result of a base depends mainly on its own files. Hashes, references between objects and vars are computed at
//! the end of the whole build, so the result of a base does not include them. Besides the files, the result depends on
//! only three properties of the build that uses the base:
//!
//! - The schema in use (`openapi`). Bases that are built with a custom schema are not shared.
//! - The annotations with the origin of objects (`buildMetadata` of the kustomization that the user builds).
//! - The folders that are being built, because a folder must not contain itself.

use std::sync::Arc;

use super::accumulator::Accumulator;
use super::log::Folder;
use crate::cache::Lru;
use crate::kustomize::schema::Preferred;
use crate::kustomize::tree::TreePath;

/// Default maximum size of the cached bases of one tree, in bytes. This is enough for about 20,000 objects. Commands
/// that build a whole repository also remove each base after the last root that uses it.
const MAX_BYTES: u64 = 128 << 20;
/// Approximate size of a base without its objects, in bytes.
const OVERHEAD: u64 = 1 << 10;

/// The cached result of building a base.
#[derive(Debug)]
pub(super) struct Base {
    /// The objects, field specs and vars of the base.
    pub(super) accumulator: Accumulator,
    /// The number of bytes that building the base added to the [`Budget`](super::budget::Budget) of the build. A later
    /// build that takes the base from the cache adds the same number to its own budget.
    pub(super) bytes: u64,
    /// The total size in bytes of the files that were read to build the base.
    pub(super) read: usize,
    /// The folders that the build of the base has visited, including the folder of the base itself.
    pub(super) folders: Vec<TreePath>,
    pub(super) warnings: Vec<String>,
    /// The schema that takes precedence if a later kustomization sets a custom schema: the built-in schema or that
    /// custom schema. `None` if the build of the base used no schema. A build that takes the base from the cache copies
    /// this value to [`Run::beside`](super::run::Run::beside).
    pub(super) beside: Option<Preferred>,
    /// The findings about the base, such as warnings. There are no errors, because a base with errors is not cached. A
    /// base whose result is unknown is not cached either.
    pub(super) reports: Folder,
}

/// The key of a cached base: the folder of the base, and the value of [`Run::beside`](super::run::Run::beside) before
/// the base is built. This value says how a custom schema in the base would be combined with the built-in schema.
pub(super) type Key = (TreePath, Option<Preferred>);

/// A cache of built bases, with a limit on their total size. If a new base does not fit, the least recently used bases
/// are removed. The size of a base is the sum of [`Base::bytes`] and [`OVERHEAD`].
#[derive(Debug)]
pub(super) struct Bases(Lru<Key, Arc<Base>>);

impl Default for Bases {
    fn default() -> Self {
        Self::within(MAX_BYTES)
    }
}

impl Bases {
    /// Creates a cache with a total size of at most `max_bytes`.
    pub(super) fn within(max_bytes: u64) -> Self {
        Self(Lru::new(max_bytes, usize::MAX))
    }

    /// Returns the cached result of a base; `None` if it is not cached.
    pub(super) fn get(&self, key: &Key) -> Option<Arc<Base>> {
        self.0.get(key)
    }

    /// Adds the result of a base to the cache. Does nothing if the base is larger than the limit of the cache.
    pub(super) fn put(&self, key: Key, base: Base) {
        let weight = usize::try_from(base.bytes + OVERHEAD).unwrap_or(usize::MAX);
        self.0.insert(key, Arc::new(base), weight);
    }

    /// Removes the results of the base in `folder`.
    pub(super) fn forget(&self, folder: &TreePath) {
        for preferred in [None, Some(Preferred::BuiltIn), Some(Preferred::Custom)] {
            self.0.remove(&(folder.clone(), preferred));
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::kustomize::Files;
    use crate::kustomize::engine::{Settings, Shared, build, build_shared};
    use crate::kustomize::options::Options;
    use crate::kustomize::tree::{Memory, Tree};

    const OBJECT: &str = "apiVersion: example.org/v1\nkind: Thing\nmetadata: {name: t}\nspec: {items: ITEMS}\n";

    /// Returns a schema for kind `Thing`. `key` is the merge key of the list `spec.items`.
    fn schema(key: &str) -> String {
        let items = json!({"type": "array", "x-kubernetes-patch-merge-key": key, "x-kubernetes-patch-strategy": "merge",
                           "items": {"type": "object", "properties": {"name": {"type": "string"}}}});
        let spec = json!({"type": "object", "properties": {"items": items}});
        let kind = json!({"group": "example.org", "version": "v1", "kind": "Thing"});
        let thing = json!({"type": "object", "properties": {"spec": spec}, "x-kubernetes-group-version-kind": [kind]});
        json!({"definitions": {"v1.Thing": thing}}).to_string()
    }

    fn tree() -> Tree {
        let root = |at: &str| format!("resources: [../base]\nopenapi: {{path: {at}.json}}\n");
        let memory = Memory::new()
            .file("base/kustomization.yaml", "resources: [o.yaml]\npatches: [{path: p.yaml}]\n")
            .file("base/o.yaml", OBJECT.replace("ITEMS", "[{name: a, size: 1}, {name: b, size: 2}]"))
            .file("base/p.yaml", OBJECT.replace("ITEMS", "[{name: a, size: 2}]"))
            .file("plain/kustomization.yaml", "resources: [../base]\n")
            .file("name/kustomization.yaml", root("s"))
            .file("name/s.json", schema("name"))
            .file("size/kustomization.yaml", root("s"))
            .file("size/s.json", schema("size"));
        Tree::new(memory, "/")
    }

    #[test]
    fn a_shared_base_is_built_with_the_schema_of_each_root() {
        let (tree, options, settings) = (tree(), Options::default(), Settings::default());
        let (files, shared) = (Files::default(), Shared::default());
        let mut texts = std::collections::HashSet::new();
        for root in ["plain", "name", "size", "name", "plain", "size"] {
            let alone = build(&tree, &root.into(), &options, &settings, &files).unwrap().text().unwrap();
            let built = build_shared(&tree, &root.into(), &options, &settings, (&files, &shared)).unwrap();
            assert_eq!(built.text().unwrap(), alone, "{root}");
            texts.insert(alone);
        }
        assert_eq!(texts.len(), 3, "each schema merges in another way");
        assert_eq!(shared.bases.0.count(), 1, "only the base of plain is shared");
    }

    #[test]
    fn the_size_of_shared_bases_is_bounded() {
        let files = (0..20).fold(Memory::new(), |memory, at| {
            let base = format!("base{at}");
            memory
                .file(&format!("{base}/kustomization.yaml"), "resources: [o.yaml]\n")
                .file(&format!("{base}/o.yaml"), OBJECT.replace("ITEMS", "[]"))
                .file(&format!("root{at}/kustomization.yaml"), format!("resources: [../{base}]\n"))
        });
        let tree = Tree::new(files, "/");
        let (options, settings, files) = (Options::default(), Settings::default(), Files::default());
        let [large, small, none] = [1 << 20, 10_000, 100].map(|bytes| (bytes, Shared::within(bytes)));
        for (bytes, shared) in [&large, &small, &none] {
            for at in 0..20 {
                let root = TreePath::from(&*format!("root{at}"));
                build_shared(&tree, &root, &options, &settings, (&files, shared)).unwrap();
                assert!(shared.bases.0.weight() <= *bytes);
            }
        }
        let number = |(_, shared): &(u64, Shared)| shared.bases.0.count();
        assert_eq!((number(&large), number(&none)), (20, 0));
        assert!((1..20).contains(&number(&small)), "{}", number(&small));
        (0..20).for_each(|at| large.1.forget(&TreePath::from(&*format!("base{at}")), std::iter::empty()));
        assert_eq!((number(&large), large.1.bases.0.weight()), (0, 0));
    }
}
