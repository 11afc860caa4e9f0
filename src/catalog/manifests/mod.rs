//! Reads Kubernetes manifests from files. Commands can check these manifests without a cluster. The webhook server can
//! use a folder of manifests instead of reading the objects of a cluster.

use std::collections::hash_map::DefaultHasher;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, SystemTime};

use serde_json::Value;

mod fill;
mod parallel;
mod pieces;
mod read;

pub use fill::fill;
pub use read::{Object, each};

use super::{Catalog, Scope};
use crate::admission::FieldPath;
use crate::admission::field::Segment;
use crate::yaml::{self, Document, Place};

/// Maximum size in bytes of a file that is read as a whole. The limit bounds the memory, and leaves room for many
/// objects, of which etcd accepts up to 1.5 MiB each.
const MAX_FILE_BYTES: u64 = 64 * 1024 * 1024;
/// Maximum depth of folders. Deeper nesting is a mistake, such as a link to a parent folder.
const MAX_FOLDER_DEPTH: usize = 64;
/// Maximum number of values that YAML aliases create in all objects of a run. A million values take about 150 MB.
/// Without this limit, two hundred short files could take gigabytes.
const MAX_ALIASED: usize = 1_000_000;
/// The namespace of objects that do not set one, as in kubectl.
pub const DEFAULT_NAMESPACE: &str = "default";
/// Interval for checking the folder of manifests for changes.
const POLL: Duration = Duration::from_secs(2);

/// The text of a file that contains manifests, and the name of the file.
#[derive(Debug)]
pub struct Source {
    /// The path of the file, or `-` for standard input.
    pub name: String,
    /// The content of the file.
    pub text: String,
}

/// A Kubernetes object in a file.
#[derive(Debug, Clone)]
pub struct Manifest {
    /// The whole object. If the file does not set `metadata.namespace`, the object has the namespace that the caller
    /// passed to `Manifests::load`.
    pub object: Value,
    /// The file that contains the object.
    pub source: Arc<Source>,
    document: Arc<Document>,
    /// The path of the object in its YAML document. The path is empty unless the object is an item of a List.
    within: FieldPath,
}

impl Manifest {
    /// Returns the position of a field in its file. If the value is an object or a list, this is the position of the
    /// key. Otherwise it is the position of the value. If the field is missing, returns the position of its closest
    /// parent.
    pub fn place(&self, field: &FieldPath) -> Place {
        let path = field.segments().iter().fold(self.within.clone(), |path, segment| match segment {
            Segment::Key(key) => path.key(key),
            Segment::Index(index) => path.index(*index),
        });
        let path = if field.is_root() { path.key("kind") } else { path };
        let is_block = self.at(field).is_some_and(|value| value.is_object() || value.is_array());
        let key = self.document.key_place(&path).filter(|_| is_block);
        key.unwrap_or_else(|| self.document.nearest(&path))
    }

    fn at(&self, field: &FieldPath) -> Option<&Value> {
        field.segments().iter().try_fold(&self.object, |value, segment| match segment {
            Segment::Key(key) => value.get(key),
            Segment::Index(index) => value.get(index),
        })
    }
}

/// An error in a file of manifests.
#[derive(Debug)]
pub struct ManifestError {
    /// The path of the file, or `-` for standard input.
    pub name: String,
    /// The file with the error, and the position of the error in the file. `None` if the file cannot be read.
    pub place: Option<(Arc<Source>, Place)>,
    /// The error message, without file and position.
    pub problem: String,
}

impl fmt::Display for ManifestError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.place {
            Some((_, place)) => write!(f, "{}:{}:{}: {}", self.name, place.line, place.column, self.problem),
            None => write!(f, "{}: {}", self.name, self.problem),
        }
    }
}

/// A counter of the values that YAML aliases create in all manifests of a run. All clones share the same counter.
#[derive(Debug, Clone, Default)]
pub struct Aliased(Arc<AtomicUsize>);

impl Aliased {
    /// Adds `values`, a number of values that YAML aliases create, to the counter. Returns false and adds nothing if
    /// the counter would exceed [`MAX_ALIASED`]. Otherwise returns true.
    fn take(&self, values: usize) -> bool {
        let with = |held: usize| held.checked_add(values).filter(|held| *held <= MAX_ALIASED);
        values == 0 || self.0.try_update(Ordering::Relaxed, Ordering::Relaxed, with).is_ok()
    }

    fn problem(values: usize) -> String {
        format!(
            "its aliases expand to {values} values, and with those of other documents to more than {MAX_ALIASED}: \
             replace the aliases with their values, or read fewer files at once"
        )
    }

    fn give_back(&self, values: usize) {
        self.0.fetch_sub(values, Ordering::Relaxed);
    }
}

/// The manifests in files, and the errors of reading them.
#[derive(Debug, Default)]
pub struct Manifests {
    /// The objects in the order of their files.
    pub found: Vec<Manifest>,
    /// The errors of files and documents that cannot be used.
    pub errors: Vec<ManifestError>,
    /// Number of YAML documents that are not Kubernetes objects, such as the values of a Helm chart.
    pub others: usize,
    /// Number of files that were read.
    pub files: usize,
    /// Number of objects that were read but are not in `found`, because the caller does not need them.
    /// [`Manifests::keep`] drops such objects.
    pub passed: usize,
    aliased: Aliased,
}

impl Manifests {
    /// Reads manifests from files and folders. In folders, reads every `.yaml`, `.yml` and `.json` file. Objects
    /// without a namespace get `namespace`, as in kubectl.
    pub fn load<P: AsRef<Path>>(paths: &[P], namespace: &str) -> Self {
        Self::load_within(paths, namespace, &Aliased::default())
    }

    /// Reads manifests like [`Manifests::load`], but limits the total number of values that YAML aliases create.
    /// `aliased` is the counter of these values. The caller can pass the same counter to several calls, so that the
    /// limit applies to all their files together. A document that would exceed the limit is an error.
    pub fn load_within<P: AsRef<Path>>(paths: &[P], namespace: &str, aliased: &Aliased) -> Self {
        let mut manifests = Self { aliased: aliased.clone(), ..Self::default() };
        for path in paths {
            manifests.add_path(path.as_ref(), namespace, 0);
        }
        manifests
    }

    /// Parses the manifests in a text, and adds them. `name` is the path of the file, or `-` for standard input.
    pub fn add_text(&mut self, name: &str, text: String, namespace: &str) {
        self.files += 1;
        let source = Arc::new(Source { name: name.to_owned(), text });
        for document in yaml::documents(&source.text, &yaml::Limits::default()) {
            match document {
                Ok(document) => self.add_document(&source, document, namespace),
                Err(error) => self.errors.push(ManifestError {
                    name: name.to_owned(),
                    place: Some((source.clone(), error.place)),
                    problem: error.problem.to_string(),
                }),
            }
        }
    }

    /// Removes the objects for which `wanted` returns false, and adds their number to the counter `passed`.
    pub fn keep(&mut self, wanted: impl Fn(&Value) -> bool) {
        let (before, aliased) = (self.found.len(), self.held());
        self.found.retain(|manifest| wanted(&manifest.object));
        self.passed += before - self.found.len();
        self.aliased.give_back(aliased - self.held());
    }

    /// Appends the objects and errors of `other`, and adds its counts to the counts of this value.
    pub fn append(&mut self, other: Self) {
        self.found.extend(other.found);
        self.errors.extend(other.errors);
        self.others += other.others;
        self.files += other.files;
        self.passed += other.passed;
    }

    /// Returns the objects without their files and positions.
    pub fn objects(self) -> Vec<Value> {
        self.found.into_iter().map(|manifest| manifest.object).collect()
    }

    /// Returns the number of values that YAML aliases, such as `*name`, create in the documents of the objects in
    /// `found`. [`Aliased`] limits this number, because a few lines with aliases can create millions of values.
    fn held(&self) -> usize {
        let documents = self.found.chunk_by(|one, other| Arc::ptr_eq(&one.document, &other.document));
        documents.filter_map(|objects| objects.first()).map(|manifest| manifest.document.aliased).sum()
    }

    fn add_path(&mut self, path: &Path, namespace: &str, depth: usize) {
        let added = match path.is_dir() {
            true if depth > MAX_FOLDER_DEPTH => Err(std::io::Error::other("folders are nested too deep here")),
            true => self.add_folder(path, namespace, depth),
            false => read(path).map(|text| self.add_text(&path.display().to_string(), text, namespace)),
        };
        if let Err(error) = added {
            let problem = error.to_string();
            self.errors.push(ManifestError { name: path.display().to_string(), place: None, problem });
        }
    }

    fn add_folder(&mut self, folder: &Path, namespace: &str, depth: usize) -> std::io::Result<()> {
        for path in entries(folder)? {
            if path.is_dir() || is_manifest(&path) {
                self.add_path(&path, namespace, depth + 1);
            }
        }
        Ok(())
    }

    fn add_document(&mut self, source: &Arc<Source>, mut document: Document, namespace: &str) {
        if !self.aliased.take(document.aliased) {
            let problem = Aliased::problem(document.aliased);
            let (name, place) = (source.name.clone(), Some((source.clone(), document.start())));
            return self.errors.push(ManifestError { name, place, problem });
        }
        let value = document.value.take();
        let document = Arc::new(document);
        let is_list = value.get("kind").and_then(Value::as_str).is_some_and(|kind| kind.ends_with("List"));
        let Some(items) = value.get("items").and_then(Value::as_array).filter(|_| is_list) else {
            return self.add_object(source, &document, value, FieldPath::root(), namespace);
        };
        for (at, item) in items.iter().enumerate() {
            let within = FieldPath::of(["items"]).index(at);
            self.add_object(source, &document, item.clone(), within, namespace);
        }
    }

    fn add_object(
        &mut self,
        source: &Arc<Source>,
        document: &Arc<Document>,
        mut object: Value,
        within: FieldPath,
        namespace: &str,
    ) {
        let has = |key| object.get(key).is_some_and(Value::is_string);
        if !has("apiVersion") || !has("kind") {
            self.others += 1;
            return;
        }
        set_default_namespace(&mut object, namespace);
        self.found.push(Manifest { object, source: source.clone(), document: document.clone(), within });
    }
}

/// Sets the namespace of an object in the same way as the API server when it stores the object. Removes the namespace
/// if the kind of the object is cluster-scoped in the catalog. Otherwise, sets the namespace to `namespace` if the
/// object has none.
pub fn set_stored_namespace(object: &mut Value, catalog: &Catalog, namespace: &str) {
    let text = |key| object.get(key).and_then(Value::as_str).unwrap_or_default();
    let (api_version, kind) = (text("apiVersion"), text("kind"));
    let group = api_version.split_once('/').map_or("", |(group, _)| group);
    let mut kinds = catalog.kinds().chain(catalog.declared());
    let is_cluster_scoped =
        kinds.any(|known| known.kind == kind && known.group == group && known.scope == Scope::Cluster);
    match object.get_mut("metadata").and_then(Value::as_object_mut) {
        Some(metadata) if is_cluster_scoped => drop(metadata.remove("namespace")),
        _ => set_default_namespace(object, namespace),
    }
}

/// Sets `metadata.namespace` of an object to `namespace`, if the object has no namespace.
pub fn set_default_namespace(object: &mut Value, namespace: &str) {
    if object.pointer("/metadata/namespace").is_none_or(Value::is_null)
        && let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut)
    {
        metadata.insert("namespace".to_owned(), namespace.into());
    }
}

fn entries(folder: &Path) -> std::io::Result<Vec<PathBuf>> {
    let mut paths: Vec<PathBuf> =
        std::fs::read_dir(folder)?.map(|entry| entry.map(|entry| entry.path())).collect::<Result<_, _>>()?;
    paths.retain(|path| !path.file_name().is_some_and(|name| name.to_string_lossy().starts_with('.')));
    paths.sort();
    Ok(paths)
}

/// Returns whether a file has the extension of manifests: `.yaml`, `.yml` or `.json`.
pub fn is_manifest(path: &Path) -> bool {
    path.extension().is_some_and(|extension| ["yaml", "yml", "json"].iter().any(|known| extension == *known))
}

fn read(path: &Path) -> std::io::Result<String> {
    let bytes = std::fs::metadata(path)?.len();
    if bytes > MAX_FILE_BYTES {
        return Err(std::io::Error::other(format!("it has {bytes} bytes, and the maximum is {MAX_FILE_BYTES}")));
    }
    String::from_utf8(std::fs::read(path)?).map_err(|_| std::io::Error::other("it is not UTF-8 text"))
}

/// Polls a folder, and reloads the catalog from the folder after each change. Never returns. If a file is invalid, logs
/// the error and does not change the catalog.
pub async fn follow(catalog: &Catalog, folder: &Path) {
    let mut seen = fingerprint(folder);
    loop {
        tokio::time::sleep(POLL).await;
        let now = fingerprint(folder);
        if now == seen {
            continue;
        }
        seen = now;
        match fill(catalog, &[folder], DEFAULT_NAMESPACE) {
            Ok(_) => tracing::info!(folder = %folder.display(), "manifests reloaded"),
            Err(errors) => {
                for error in errors {
                    tracing::error!(%error, "manifests not reloaded: the previous ones stay in use");
                }
            }
        }
    }
}

/// Returns a hash that changes when a file in the folder changes.
fn fingerprint(folder: &Path) -> u64 {
    let mut hasher = DefaultHasher::new();
    hash_folder(folder, &mut hasher, 0);
    hasher.finish()
}

fn hash_folder(folder: &Path, hasher: &mut DefaultHasher, depth: usize) {
    for path in entries(folder).unwrap_or_default() {
        path.hash(hasher);
        if path.is_dir() && depth < MAX_FOLDER_DEPTH {
            hash_folder(&path, hasher, depth + 1);
        } else if let Ok(metadata) = std::fs::metadata(&path) {
            metadata.len().hash(hasher);
            metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH).hash(hasher);
        }
    }
}
