//! The state of one build that all kustomizations of a tree share.

use std::cell::Cell;
use std::sync::{Arc, Mutex, PoisonError};

use super::bases::Bases;
use super::budget::Budget;
use super::history::History;
use super::id::Scope;
use super::origin::OriginNote;
use super::read::{self, BadObjects};
use super::resource::Resource;
use super::stop::{Step, Stop};
use crate::admission::FieldPath;
use crate::kustomize::file::{BadFile, NAMES, SharedFile};
use crate::kustomize::files::{Files, NotRead};
use crate::kustomize::finding::Site;
use crate::kustomize::flux::Own;
use crate::kustomize::node::Origin;
use crate::kustomize::options::Options;
use crate::kustomize::references::{Loader, NoFile};
use crate::kustomize::schema::{Preferred, Schema};
use crate::kustomize::tree::{Lost, Tree, TreePath, Unreadable};
use crate::yaml::Place;

/// Maximum number of visits. A base is evaluated on every visit, so ten folders that each name the next one twice cause
/// a thousand visits.
const MOST_VISITS: usize = 20_000;
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

/// The cache that the roots of one run share: parsed kustomization files, and built bases.
#[derive(Debug, Default)]
pub struct Shared {
    pub(super) files: Files,
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
    /// What roots of one run share.
    pub(super) shared: Option<&'a Shared>,
    /// The folders that were visited.
    pub(super) folders: Vec<TreePath>,
    /// kustomize's warnings on standard error.
    pub(super) warnings: Vec<String>,
    visits: usize,
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

    /// Returns the place of a field as nodes have it.
    pub(super) fn origin(&self, site: &Site) -> Origin {
        Origin { source: self.source, line: site.place.line }
    }
}

impl<'a> Run<'a> {
    /// Creates a build that begins.
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
            shared: None,
            folders: Vec::new(),
            warnings: Vec::new(),
            visits: 0,
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
            return Err(Stop::unknown(site.clone(), "so many folders refer to one another that the build is given up"));
        }
        Ok(())
    }

    /// Reads the kustomization file of a folder.
    ///
    /// # Errors
    ///
    /// If there is none, several, or an invalid one.
    pub(super) fn kustomization(&mut self, loader: &Loader<'_>, site: &Site) -> Step<SharedFile> {
        let found = NAMES.iter().filter_map(|name| loader.file(self.tree, name, self.options).ok());
        let found: Vec<TreePath> = found.collect();
        let [path] = found.as_slice() else {
            let what = if found.is_empty() { "no kustomization file" } else { "several kustomization files" };
            return Err(Stop::refused(
                site.clone(),
                format!("there are {what} in {}", loader.root).replace("are no", "is no"),
            ));
        };
        let file = self.files.kustomization(self.tree, path).map_err(|error| not_read(path, &error))?;
        let at = |field: &FieldPath| Site::new(path.clone(), file.key_place(field), field.clone());
        if let Some(fault) = file.faults.first() {
            return Err(Stop::refused(at(&fault.path), format!("{} cannot be decoded", fault.path)));
        }
        for (field, instead) in file.deprecated() {
            let experimental = if field == "vars" { "[EXPERIMENTAL] " } else { "" };
            self.warnings.push(format!(
                "# Warning: '{field}' is deprecated. Please use '{instead}' instead. {experimental}Run 'kustomize edit fix' to update your Kustomization automatically.\n"
            ));
        }
        if file.empty {
            return Err(Stop::refused(Site::of_file(path.clone()), "the kustomization file is empty"));
        }
        let kustomization = &file.kustomization;
        let is_known = matches!(kustomization.kind(), "Kustomization" | "Component");
        if !is_known {
            let field = FieldPath::of(["kind"]);
            return Err(Stop::refused(at(&field), "the kind is neither Kustomization nor Component"));
        }
        let version = &kustomization.api_version;
        if !version.is_empty() && version != kustomization.required_version() {
            let field = FieldPath::of(["apiVersion"]);
            let message =
                format!("the apiVersion of a {} is {}", kustomization.kind(), kustomization.required_version());
            return Err(Stop::refused(at(&field), message));
        }
        Ok(file)
    }

    /// Reads a file that an entry names.
    ///
    /// # Errors
    ///
    /// If it cannot be read, or is far away.
    pub(super) fn load(&self, loader: &Loader<'_>, entry: &str, site: &Site) -> Step<(TreePath, Arc<[u8]>)> {
        let path =
            loader.file(self.tree, entry, self.options).map_err(|no_file| no_such_file(site, entry, &no_file))?;
        let bytes = self.tree.read(&path).map_err(|error| unreadable(site, &path, &error))?;
        self.read.set(self.read.get() + bytes.len());
        Ok((path, bytes))
    }

    /// Reads the objects of a file.
    ///
    /// # Errors
    ///
    /// If it holds something else.
    pub(super) fn objects(&self, path: &TreePath, bytes: &[u8]) -> Step<Vec<Resource>> {
        read::objects(bytes, self.sources.add(path)).map_err(|bad| bad_objects(&bad, path))
    }

    /// Returns the place of a node.
    pub(super) fn site_of(&self, origin: Origin) -> Site {
        let path = self.sources.path(origin.source).unwrap_or_default();
        let place = Place { line: origin.line.max(1), column: 1, start: 0, end: 0 };
        Site::new(path, place, FieldPath::root())
    }
}

/// Returns why the objects of a file cannot be used.
pub(super) fn bad_objects(bad: &BadObjects, path: &TreePath) -> Stop {
    let place = Place { line: bad.line().max(1), column: 1, start: 0, end: 0 };
    let site = Site::new(path.clone(), place, FieldPath::root());
    let message = bad.to_string();
    if bad.is_open() { Stop::unknown(site, message) } else { Stop::refused(site, message) }
}

fn not_read(path: &TreePath, error: &NotRead) -> Stop {
    let site = Site::of_file(path.clone());
    match error {
        NotRead::Bad(BadFile::Yaml(error)) => {
            Stop::refused(Site::new(path.clone(), error.place, FieldPath::root()), error.problem.to_string())
        }
        NotRead::Bad(BadFile::Limit(error)) => {
            Stop::unknown(Site::new(path.clone(), error.place, FieldPath::root()), error.problem.to_string())
        }
        NotRead::Bad(BadFile::Encoding(at)) => Stop::refused(site, format!("byte {at} is none that YAML allows")),
        NotRead::Bad(BadFile::Utf16) => Stop::unknown(site, "it is UTF-16"),
        NotRead::Unreadable(error) => unreadable(&site, path, error),
    }
}

fn unreadable(site: &Site, path: &TreePath, error: &Unreadable) -> Stop {
    let message = format!("{path} cannot be read: {error}");
    match error {
        Unreadable::System(_) => Stop::refused(site.clone(), message),
        _ => Stop::unknown(site.clone(), message),
    }
}

fn no_such_file(site: &Site, entry: &str, no_file: &NoFile) -> Stop {
    let site = site.clone();
    match no_file {
        NoFile::Http => Stop::unknown(site, format!("{entry} would have to be fetched")),
        NoFile::Folder(path) => Stop::refused(site, format!("{path} is a folder, not a file")),
        NoFile::Restricted(path) => {
            Stop::refused(site, format!("{path} is not in or below the folder of the kustomization"))
        }
        NoFile::Lost(lost) => Stop::refused(site, lost_words(entry, lost)),
        NoFile::Other => Stop::refused(site, format!("{entry} is neither a file nor a folder")),
    }
}

/// Returns the message for a path that does not exist.
pub(super) fn lost_words(entry: &str, lost: &Lost) -> String {
    match lost {
        Lost::Missing(path) => format!("`{entry}` does not exist: there is no {path}"),
        Lost::NotAFolder(path) => format!("`{entry}` leads through {path}, which is a file"),
        Lost::Loop => format!("`{entry}` leads through links that lead to one another"),
        Lost::Outside { .. } => format!("`{entry}` leads out of the tree"),
    }
}
