//! The state of one build that all kustomizations of a tree share.

use std::cell::{Cell, RefCell};
use std::sync::{Arc, Mutex, PoisonError};

use super::bases::Bases;
use super::budget::Budget;
use super::history::History;
use super::id::Scope;
use super::log::Log;
use super::origin::OriginNote;
use super::resource::Resource;
use super::stop::{Step, Stop};
use super::target::Entry;
use crate::admission::FieldPath;
use crate::kustomize::file::SharedFile;
use crate::kustomize::files::Files;
use crate::kustomize::finding::Site;
use crate::kustomize::flux::Own;
use crate::kustomize::node::Origin;
use crate::kustomize::options::Options;
use crate::kustomize::references::Loader;
use crate::kustomize::schema::{Preferred, Schema};
use crate::kustomize::tree::{Tree, TreePath};
use crate::yaml::Place;

/// Maximum number of visits. A base is evaluated on every visit, so ten folders that each name the next one twice cause
/// a thousand visits.
const MOST_VISITS: usize = 20_000;
/// A root has more entries that are files only if it is hostile.
const MOST_ENTRIES: usize = 100_000;
/// Each visit is some frames of the stack.
pub(super) const DEEPEST: usize = 100;

/// The files of a run, by the numbers that nodes have in their origins.
#[derive(Debug, Default)]
pub struct Sources {
    paths: Mutex<Vec<TreePath>>,
}

impl Sources {
    /// Returns the number of a file.
    pub(super) fn add(&self, path: &TreePath) -> u32 {
        let mut paths = self.paths.lock().unwrap_or_else(PoisonError::into_inner);
        paths.push(path.clone());
        paths.len() as u32
    }

    /// Returns the file with a number.
    pub fn path(&self, source: u32) -> Option<TreePath> {
        let paths = self.paths.lock().unwrap_or_else(PoisonError::into_inner);
        paths.get(usize::try_from(source).ok()?.checked_sub(1)?).cloned()
    }
}

/// The bases that the roots of one run share, all of which are built with the same options.
#[derive(Debug, Default)]
pub struct Shared {
    pub(super) sources: Arc<Sources>,
    pub(super) bases: Bases,
}

/// A build that is going on.
pub(super) struct Run<'a> {
    /// The files.
    pub(super) tree: &'a Tree,
    /// Who builds them.
    pub(super) options: &'a Options,
    /// Kustomization files that were read.
    pub(super) files: &'a Files,
    /// The files that nodes come from.
    pub(super) sources: Arc<Sources>,
    /// The schema that objects are merged by.
    pub(super) schema: Arc<Schema>,
    /// Whether the schema was chosen by an `openapi` field.
    pub(super) has_schema: bool,
    /// Whether kustomize would also have loaded its built-in schema by now, if another one is set.
    pub(super) beside: Cell<Option<Preferred>>,
    /// How many bytes were read.
    pub(super) read: Cell<usize>,
    /// Limits the size of the objects.
    pub(super) budget: Budget,
    /// The field whose history is recorded.
    pub(super) history: Option<History>,
    /// The bases that roots of one run share.
    pub(super) bases: Option<&'a Bases>,
    /// The folders that were visited.
    pub(super) folders: Vec<TreePath>,
    /// kustomize's warnings on standard error.
    pub(super) warnings: Vec<String>,
    /// What is reported.
    pub(super) log: RefCell<Log>,
    /// Whether the build ends with its first error.
    pub(super) is_strict: bool,
    visits: usize,
    entries: usize,
}

/// A kustomization on the way from the root that is built.
pub(super) struct Target<'t> {
    /// Its folder.
    pub(super) loader: Loader<'t>,
    /// Its file.
    pub(super) file: SharedFile,
    /// Which parts of the file are its own and which come from a Flux Kustomization, if one changes it.
    pub(super) own: Option<Own>,
    /// The number of its file.
    pub(super) source: u32,
    /// Where it is, if the build records where objects come from.
    pub(super) note: Option<OriginNote>,
    /// How many kustomizations led to it.
    pub(super) depth: usize,
}

impl Target<'_> {
    /// Returns the place of a field of its file.
    pub(super) fn site(&self, field: FieldPath) -> Site {
        if let Some(field) = self.own.and_then(|own| own.in_spec(&field)) {
            return Site { field, ..Site::of_file(self.file.path.clone()) };
        }
        Site::new(self.file.path.clone(), self.file.place(&field), field)
    }

    /// Returns the place of an entry of a list.
    pub(super) fn entry(&self, list: &str, index: usize) -> Site {
        self.site(FieldPath::of([list]).index(index))
    }

    /// Returns an entry of a list that names files or folders.
    pub(super) fn list_entry<'e>(&self, list: &'static str, index: usize, text: &'e str) -> Entry<'e> {
        Entry { list, index, text, site: self.entry(list, index) }
    }

    /// Returns the place of a field as nodes have it.
    pub(super) fn origin(&self, site: &Site) -> Origin {
        Origin { source: self.source, line: site.place.line }
    }
}

impl<'a> Run<'a> {
    /// Creates a build that ends with its first error.
    pub(super) fn new(tree: &'a Tree, options: &'a Options, files: &'a Files, sources: Arc<Sources>) -> Self {
        Self {
            tree,
            options,
            files,
            sources,
            schema: Schema::built_in(),
            has_schema: false,
            beside: Cell::new(None),
            read: Cell::new(0),
            budget: Budget::default(),
            history: None,
            bases: None,
            folders: Vec::new(),
            warnings: Vec::new(),
            log: RefCell::default(),
            is_strict: true,
            visits: 0,
            entries: 0,
        }
    }

    /// Returns the scope of kinds.
    pub(super) fn scope(&self) -> Scope {
        Scope { custom: self.schema.cluster_scoped() }
    }

    /// Records that kinds of objects were looked up. For an unknown kind kustomize loads its built-in schema, even if
    /// another schema is set.
    pub(super) fn looked_up<'r>(&self, resources: impl IntoIterator<Item = &'r Resource>) {
        let is_foreign = |group: &str| group.contains('.') && !group.ends_with(".k8s.io");
        if self.beside.get().is_none() && resources.into_iter().any(|resource| is_foreign(resource.gvk().group)) {
            self.beside.set(Some(Preferred::BuiltIn));
        }
    }

    /// Counts a visit of a folder.
    ///
    /// # Errors
    ///
    /// If there are too many.
    pub(super) fn visit(&mut self, site: &Site, depth: usize) -> Step<()> {
        self.visits += 1;
        if self.visits > MOST_VISITS || depth > DEEPEST {
            let message = format!("more than {MOST_VISITS} folders, or {DEEPEST} within one another, are built");
            return Err(Stop::limit(site.clone(), message));
        }
        Ok(())
    }

    /// Counts an entry of a list.
    ///
    /// # Errors
    ///
    /// If there are too many.
    pub(super) fn count_entry(&mut self, site: &Site) -> Step<()> {
        self.entries += 1;
        if self.entries > MOST_ENTRIES {
            return Err(Stop::limit(site.clone(), format!("more than {MOST_ENTRIES} entries are not looked at")));
        }
        Ok(())
    }

    /// Reads a file.
    ///
    /// # Errors
    ///
    /// If it cannot be read.
    pub(super) fn read(&self, path: &TreePath, site: &Site) -> Step<Arc<[u8]>> {
        let unreadable = |why| Stop::unknown(site.clone(), format!("{path} cannot be read: {why}"));
        let bytes = self.tree.read(path).map_err(unreadable)?;
        self.read.set(self.read.get() + bytes.len());
        Ok(bytes)
    }

    /// Reads a file that a field names.
    ///
    /// # Errors
    ///
    /// If it does not exist, cannot be read, or is far away.
    pub(super) fn load(&self, loader: &Loader<'_>, entry: &str, site: &Site) -> Step<(TreePath, Arc<[u8]>)> {
        let path = loader.file(self.tree, entry, self.options).map_err(|no| self.no_file(loader, entry, site, no))?;
        let bytes = self.read(&path, site)?;
        Ok((path, bytes))
    }

    /// Returns the place of a node.
    pub(super) fn site_of(&self, origin: Origin) -> Site {
        let path = self.sources.path(origin.source).unwrap_or_default();
        self.site_at(&path, origin.line)
    }

    /// Returns the place of the text on a line of a file.
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
}
