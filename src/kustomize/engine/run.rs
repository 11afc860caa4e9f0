//! The state of one build, which all kustomizations in it share.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use super::base_cache::Bases;
use super::budget::Budget;
use super::history::{Change, History};
use super::log::Log;
use super::patch_cache::PatchCache;
use super::resmap::ResMap;
use super::resource::Resource;
use super::stop::{Step, Stop};
use crate::admission::FieldPath;
use crate::kustomize::files::Files;
use crate::kustomize::finding::Site;
use crate::kustomize::identity::{Scope, cluster_scope};
use crate::kustomize::node::Origin;
use crate::kustomize::options::Options;
use crate::kustomize::references::Loader;
use crate::kustomize::schema::{Preferred, Schema};
use crate::kustomize::tree::{Tree, TreePath};
use crate::yaml::Place;

/// Maximum number of times that a build visits folders. A build visits a folder once for each entry that refers to it,
/// so the number can grow exponentially. For example, ten folders cause a thousand visits if each folder names the next
/// folder twice.
const MAX_VISITS: usize = 20_000;
/// Maximum number of list entries that add files or folders to a build, such as the entries of `resources`. The entries
/// of a base count each time that the base is built. Only a malicious kustomization has more entries.
const MAX_ENTRIES: usize = 100_000;
/// Maximum nesting depth of kustomizations in a build: an overlay, its base, the base of this base, and so on. The
/// limit prevents a stack overflow, because each level takes several stack frames.
pub(super) const MAX_DEPTH: usize = 100;

/// The files of a build, each with a number. Nodes refer to their files by these numbers.
#[derive(Debug, Default)]
pub struct Sources {
    known: Mutex<Numbered>,
}

#[derive(Debug, Default)]
struct Numbered {
    paths: Vec<TreePath>,
    numbers: HashMap<TreePath, u32>,
}

impl Sources {
    /// Returns the number of a file. A new file gets the next number, starting at 1. If several kustomizations read the
    /// same file, it keeps its number.
    pub(super) fn add(&self, path: &TreePath) -> u32 {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(number) = known.numbers.get(path) {
            return *number;
        }
        known.paths.push(path.clone());
        let number = known.paths.len() as u32;
        known.numbers.insert(path.clone(), number);
        number
    }

    /// Returns the path of the file with the number `source`; `None` if no file has this number.
    pub fn path(&self, source: u32) -> Option<TreePath> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.paths.get(usize::try_from(source).ok()?.checked_sub(1)?).cloned()
    }
}

/// The caches that several builds share. All these builds must use the same tree and the same options.
#[derive(Debug, Default)]
pub struct Shared {
    pub(super) sources: Arc<Sources>,
    pub(super) bases: Bases,
    pub(super) patches: PatchCache,
}

impl Shared {
    /// Creates empty caches. `max_bytes` limits the total size of the cached bases. If a new base does not fit, the
    /// least recently used bases are removed. The size of a base is the number of bytes that its build counts against
    /// the memory limit. A base that is larger than `max_bytes` is not cached.
    pub fn within(max_bytes: u64) -> Self {
        Self { bases: Bases::within(max_bytes), ..Self::default() }
    }

    /// Removes the base in `folder` and the patch files `patches` from the caches, to free memory. Call this function
    /// after the last build that uses the folder.
    pub fn forget<'p>(&self, folder: &TreePath, patches: impl Iterator<Item = &'p TreePath>) {
        self.bases.forget(folder);
        patches.for_each(|path| self.patches.forget(path));
    }
}

/// The state of a build in progress.
pub(super) struct Run<'a> {
    /// The tree with the files of the build.
    pub(super) tree: &'a Tree,
    /// The options of the build, such as the profile and the load restrictions.
    pub(super) options: &'a Options,
    /// The cache of parsed kustomization files.
    pub(super) files: &'a Files,
    /// The files of the build, each with a number. Nodes refer to their files by these numbers.
    pub(super) sources: Arc<Sources>,
    /// The schema in use: the built-in schema, or the one that `openapi` names. It determines how objects are merged
    /// and which kinds are cluster-scoped.
    pub(super) schema: Arc<Schema>,
    /// Whether a kustomization of this build has set the schema with its field `openapi`.
    pub(super) has_schema: bool,
    /// The error of the custom schema (`openapi.path`). Steps that need the schema return this error. `None` if the
    /// schema is valid, or if there is none.
    pub(super) invalid_schema: Option<Stop>,
    /// The schema that takes precedence if a later base or component of this build sets a custom schema
    /// (`openapi.path`): the built-in or the custom one. `None` if this build has not used any schema yet. The custom
    /// schema then replaces the built-in schema.
    pub(super) beside: Cell<Option<Preferred>>,
    /// Total size of the files that the build has read, in bytes.
    pub(super) read: Cell<usize>,
    /// The limit on the memory and work of the build.
    pub(super) budget: Budget,
    /// The recorder of the changes of one field; `None` if the build does not record them.
    pub(super) history: Option<History>,
    /// The cache of bases that several builds share; `None` if this build shares none.
    pub(super) bases: Option<&'a Bases>,
    /// The cache of patch files that several builds share; `None` if this build shares none.
    pub(super) patches: Option<&'a PatchCache>,
    /// The folders that the build has visited.
    pub(super) folders: Vec<TreePath>,
    /// The warnings that kustomize writes to standard error.
    pub(super) warnings: Vec<String>,
    /// The findings, the reasons why the result is unknown, and the recorded steps of the build.
    pub(super) log: RefCell<Log>,
    /// Whether the build stops at its first error. Otherwise, it records its errors and continues.
    pub(super) is_strict: bool,
    visits: usize,
    entries: usize,
}

impl<'a> Run<'a> {
    /// Creates the state of a new build. This build stops at its first error.
    pub(super) fn new(tree: &'a Tree, options: &'a Options, files: &'a Files, sources: Arc<Sources>) -> Self {
        Self {
            tree,
            options,
            files,
            sources,
            schema: Schema::built_in(),
            has_schema: false,
            invalid_schema: None,
            beside: Cell::new(None),
            read: Cell::new(0),
            budget: Budget::default(),
            history: None,
            bases: None,
            patches: None,
            folders: Vec::new(),
            warnings: Vec::new(),
            log: RefCell::default(),
            is_strict: true,
            visits: 0,
            entries: 0,
        }
    }

    /// Returns the lookup that tells whether a kind is namespaced or cluster-scoped. If the build has a custom schema,
    /// the lookup includes the kinds of this schema.
    pub(super) fn scope(&self) -> Scope {
        Scope { custom: self.schema.cluster_scoped() }
    }

    /// Records that kustomize uses a schema to look up whether the kinds of `resources` are namespaced. Does nothing if
    /// kustomize's built-in table contains all these kinds, because kustomize then needs no schema.
    ///
    /// The record matters if a later kustomization sets a custom schema. If kustomize has used a schema before, it uses
    /// both the built-in schema and the custom one. Otherwise, it uses only the custom schema.
    ///
    /// # Errors
    ///
    /// If a schema is needed, and the custom schema is invalid.
    pub(super) fn looked_up<'r>(&self, resources: impl IntoIterator<Item = &'r Resource>) -> Step<()> {
        if resources.into_iter().all(|resource| cluster_scope::is_known(&resource.gvk())) {
            return Ok(());
        }
        if self.beside.get().is_none() {
            self.beside.set(Some(Preferred::BuiltIn));
        }
        self.usable_schema().map(drop)
    }

    /// Returns the schema that kustomize uses to merge objects.
    ///
    /// Also records that kustomize has used a schema. The record matters if a later kustomization sets a custom schema:
    /// kustomize then combines the custom schema with the built-in one, instead of replacing the built-in one.
    ///
    /// # Errors
    ///
    /// If a custom schema is set and invalid.
    pub(super) fn schema_for_merging(&self) -> Step<&Schema> {
        self.beside.set(Some(Preferred::Custom));
        self.usable_schema()
    }

    fn usable_schema(&self) -> Step<&Schema> {
        match &self.invalid_schema {
            Some(stop) => Err(stop.clone()),
            None => Ok(&self.schema),
        }
    }

    /// Counts a visit to a folder against the limits of the build. `site` is the position of the entry that refers to
    /// the folder. `depth` is the nesting depth of the kustomization with this entry.
    ///
    /// # Errors
    ///
    /// If there are too many visits, or the folder is nested too deeply.
    pub(super) fn visit(&mut self, site: &Site, depth: usize) -> Step<()> {
        self.visits += 1;
        if self.visits > MAX_VISITS || depth > MAX_DEPTH {
            let message = format!("the build has more than {MAX_VISITS} folders, or more than {MAX_DEPTH} nested ones");
            return Err(Stop::limit(site.clone(), message));
        }
        Ok(())
    }

    /// Counts an entry of a list of files or folders, such as `resources`, against the limit of the build.
    ///
    /// # Errors
    ///
    /// If there are too many entries.
    pub(super) fn count_entry(&mut self, site: &Site) -> Step<()> {
        self.entries += 1;
        if self.entries > MAX_ENTRIES {
            return Err(Stop::limit(site.clone(), format!("the build has more than {MAX_ENTRIES} entries")));
        }
        Ok(())
    }

    /// Reads a file of the tree. `site` is the position of the entry that names the file.
    ///
    /// # Errors
    ///
    /// If the file cannot be read.
    pub(super) fn read(&self, path: &TreePath, site: &Site) -> Step<Arc<[u8]>> {
        let unreadable = |why| Stop::unknown(site.clone(), format!("{path} cannot be read: {why}"));
        let bytes = self.tree.read(path).map_err(unreadable)?;
        self.read.set(self.read.get() + bytes.len());
        Ok(bytes)
    }

    /// Reads the file that an entry of a kustomization names, and returns its path and content. `site` is the position
    /// of the entry.
    ///
    /// # Errors
    ///
    /// - If the entry does not name a file that the kustomization may read. For example, the file is missing, outside
    ///   of the folder, or remote and not fetched.
    /// - If the file cannot be read.
    pub(super) fn load(&self, loader: &Loader<'_>, entry: &str, site: &Site) -> Step<(TreePath, Arc<[u8]>)> {
        let path = loader.file(self.tree, entry, self.options).map_err(|no| self.no_file(loader, entry, site, no))?;
        let bytes = self.read(&path, site)?;
        Ok((path, bytes))
    }

    /// Returns the position of a YAML node, with the path of its file. `origin` contains the line of the node, and the
    /// number of the file in the list of files of the build.
    pub(super) fn site_of(&self, origin: Origin) -> Site {
        let path = self.sources.path(origin.source).unwrap_or_default();
        self.site_at(&path, origin.line)
    }

    /// Returns the position of a line in a file. The position begins after the indentation, and ends at the end of the
    /// line.
    pub(super) fn site_at(&self, path: &TreePath, line: u32) -> Site {
        let line = line.max(1);
        let bytes = self.tree.read(path).unwrap_or_else(|_| [].into());
        let mut lines = bytes.split_inclusive(|byte| *byte == b'\n');
        let start: usize = lines.by_ref().take(line as usize - 1).map(<[u8]>::len).sum();
        let text = lines.next().unwrap_or_default();
        let indent = text.iter().take_while(|byte| **byte == b' ').count();
        let start = start + indent;
        let end = start + text.trim_ascii().len();
        Site::new(path.clone(), Place { line, column: indent as u32 + 1, start, end }, FieldPath::root())
    }

    /// Records the changes of the field that [`Run::history`] tracks. `step` is the name of the build step that has
    /// just run. `site` is the position of the entry or object that configures this step. Does nothing if the build
    /// tracks no field.
    pub(super) fn observe(&mut self, map: &ResMap, step: &str, site: &Site) {
        let Some(mut history) = self.history.take() else { return };
        history.record(map, step, site, |origin| self.site_of(origin));
        self.history = Some(history);
    }

    /// Returns the recorded changes of the field that [`Run::history`] tracks in the object `uid`, in the order of the
    /// build steps. Stops the recording.
    pub(super) fn changes(&mut self, uid: u64) -> Vec<Change> {
        self.history.take().map(|history| history.into_changes(uid)).unwrap_or_default()
    }
}
