//! The engine: renders what `kustomize build` renders, byte for byte.
//!
//! It does what kustomize 5.8.1 does, in its order: it accumulates the objects of a kustomization and its bases, runs
//! generators and transformers, and fixes references between objects once, at the root. Each step returns a value, an error of
//! kustomize, or the reason why the result is unknown: it needs a network or an external program.
//!
//! ```
//! use portcullis::kustomize::Files;
//! use portcullis::kustomize::build::{Settings, build};
//! use portcullis::kustomize::options::Options;
//! use portcullis::kustomize::tree::{Memory, Tree};
//!
//! let files = Memory::new()
//!     .file("kustomization.yaml", "namePrefix: a-\nresources: [b.yaml]\n")
//!     .file("b.yaml", "kind: ConfigMap\napiVersion: v1\nmetadata: {name: b}\n");
//! let tree = Tree::new(files, "/");
//! let (options, settings, files) = (Options::default(), Settings::default(), Files::default());
//! let built = build(&tree, &"".into(), &options, &settings, &files)?;
//! assert_eq!(built.text()?, "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a-b\n");
//! # Ok::<(), portcullis::kustomize::build::Stop>(())
//! ```

mod absorb;
mod affix;
mod bases;
mod budget;
mod clash;
mod config;
mod configure;
mod crds;
mod field_spec;
mod finish;
mod generate;
mod hash;
mod history;
mod id;
mod images;
mod json;
mod json6902;
mod labels;
mod matcher;
mod name_references;
mod namespace;
mod origin;
mod patches;
mod path;
mod plugins;
mod read;
mod replacements;
mod replicas;
mod resmap;
mod resource;
mod run;
mod select;
mod shared;
mod sort;
mod stop;
mod structured;
mod target;
mod transformer;
mod value_add;
mod vars;

use std::sync::Arc;

pub use history::Change;
use resmap::ResMap;
pub use resource::Resource;
use run::Run;
pub use run::{Shared, Sources};
pub use stop::{Reason, Step, Stop};

use history::History;
use origin::OriginNote;
use run::Target;
use sort::Ranks;
use target::Accumulator;

use super::file::{Kustomization, SharedFile};
use super::files::Files;
use super::finding::Site;
use super::flux::{Own, RootFile};
use super::options::Options;
use super::references::Loader;
use super::tree::{Located, Tree, TreePath};
use crate::admission::FieldPath;

/// The version that the label `managedByLabel` names.
const VERSION: &str = "kustomize-v5.8.1";

/// The order of the objects, if the kustomization does not set it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Reorder {
    /// By kind, namespace and name: the default of the command line.
    #[default]
    Legacy,
    /// As they were loaded.
    None,
}

/// How a build is printed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Settings {
    /// The order of the objects.
    pub reorder: Reorder,
    /// Whether a label names kustomize (`--enable-managedby-label`).
    pub managed_by_label: bool,
}

/// The objects of a root, finished.
pub struct Built<'a> {
    map: ResMap,
    run: Run<'a>,
}

impl Built<'_> {
    /// Returns the objects, in the order in which they are printed.
    pub fn resources(&self) -> &[Resource] {
        self.map.resources()
    }

    /// Looks whether all objects can be printed.
    ///
    /// # Errors
    ///
    /// If one cannot, or they are much larger than the files that they come from.
    pub fn check(&self) -> Step<()> {
        finish::check(&self.map, &self.run)
    }

    /// Returns kustomize's warnings on standard error: deprecated fields.
    pub fn warnings(&self) -> String {
        self.run.warnings.concat()
    }

    /// Returns the names and texts of the files that kustomize writes into a folder.
    ///
    /// # Errors
    ///
    /// If an object cannot be printed.
    pub fn files(&self) -> Step<Vec<(String, String)>> {
        finish::files(&self.map, &self.run)
    }

    /// Returns the text that kustomize prints.
    ///
    /// # Errors
    ///
    /// If an object cannot be printed.
    pub fn text(&self) -> Step<String> {
        finish::print(&self.map, &self.run)
    }
}

/// Builds a folder of a tree.
///
/// # Errors
///
/// If kustomize cannot build it, or the result depends on something that is not executed.
pub fn build<'a>(
    tree: &'a Tree,
    root: &TreePath,
    options: &'a Options,
    settings: &Settings,
    files: &'a Files,
) -> Step<Built<'a>> {
    build_by(Run::new(tree, options, files, Arc::new(Sources::default())), root, settings)
}

/// Builds one of several folders of a tree, which share files and bases.
///
/// # Errors
///
/// As [`build`].
pub fn build_shared<'a>(
    tree: &'a Tree,
    root: &TreePath,
    options: &'a Options,
    settings: &Settings,
    shared: &'a Shared,
) -> Step<Built<'a>> {
    let mut run = Run::new(tree, options, &shared.files, Arc::clone(&shared.sources));
    run.shared = Some(shared);
    build_by(run, root, settings)
}

/// Returns the history of a field: each step that set it, with the value. The object is named by its final kind and
/// name; `None` if it does not exist.
///
/// # Errors
///
/// See [`build`].
pub fn history(
    tree: &Tree,
    root: &TreePath,
    options: &Options,
    (kind, name): (&str, &str),
    field: &str,
) -> Step<Option<Vec<Change>>> {
    let files = Files::default();
    let mut run = Run::new(tree, options, &files, Arc::new(Sources::default()));
    run.history = Some(History::new(kind, field));
    let mut built = build_by(run, root, &Settings::default())?;
    let object = built.map.resources().iter().find(|object| object.kind() == kind && object.name() == name);
    Ok(object.map(|object| object.uid).map(|uid| built.run.changes(uid)))
}

fn build_by<'a>(mut run: Run<'a>, root: &TreePath, settings: &Settings) -> Step<Built<'a>> {
    let tree = run.tree;
    let site = Site::of_file(root.clone());
    let folder = match tree.locate(&TreePath::root(), root.as_str()) {
        Ok(Located::Folder(folder)) => folder,
        Ok(_) => return Err(Stop::refused(site, format!("{root} is not a folder"))),
        Err(lost) => return Err(Stop::refused(site, run::lost_words(root.as_str(), &lost))),
    };
    let loader = Loader { root: &folder, referrer: None };
    let file = run.kustomization(&loader, &site)?;
    build_target(run, loader, (file, None), settings)
}

/// Builds a folder whose kustomization file a Flux Kustomization changes.
///
/// # Errors
///
/// As [`build`].
pub(super) fn build_flux<'a>(
    tree: &'a Tree,
    folder: &TreePath,
    root: &RootFile,
    options: &'a Options,
    files: &'a Files,
) -> Step<Built<'a>> {
    let run = Run::new(tree, options, files, Arc::new(Sources::default()));
    let file = (Arc::clone(&root.file), Some(root.own));
    build_target(run, Loader { root: folder, referrer: None }, file, &Settings::default())
}

fn build_target<'a>(
    mut run: Run<'a>,
    loader: Loader<'_>,
    (file, own): (SharedFile, Option<Own>),
    settings: &Settings,
) -> Step<Built<'a>> {
    let source = run.sources.add(&file.path);
    let note = (!file.kustomization.build_metadata.is_empty()).then(OriginNote::default);
    let target = Target { loader, file, own, source, note, depth: 0 };
    run.openapi(&target, true)?;
    let map = rooted(&mut run, &target, settings)?;
    Ok(Built { map, run })
}

/// Builds a root, including the final steps.
fn rooted(run: &mut Run<'_>, target: &Target<'_>, settings: &Settings) -> Step<ResMap> {
    let start = Accumulator { map: ResMap::new(run.scope()), ..Accumulator::default() };
    let Accumulator { mut map, config, vars } = run.accumulate(target, start)?;
    let refused = |field: &str, message: String| Stop::refused(target.site(FieldPath::of([field])), message);
    map.scope = run.scope();
    let site = Site::of_file(target.file.path.clone());
    if map.resources().iter().any(|resource| resource.has_broken_identities) {
        let message = "the annotations of kustomize itself for former names, namespaces and kinds disagree";
        return Err(refused("resources", message.to_owned()));
    }
    transformer::append_hashes(run, &mut map)?;
    run.observe(&map, "hashes", &site);
    name_references::fix(&mut map, &config.name_reference).map_err(|message| refused("resources", message))?;
    run.observe(&map, "name references", &site);
    let vars_site = target.site(FieldPath::of(["vars"]));
    vars.resolve(&mut map, &config.var_reference, &run.budget).map_err(|failed| failed.at(vars_site))?;
    run.observe(&map, "vars", &site);
    finish::drop_local(&mut map, run)?;
    let kustomization = &target.file.kustomization;
    sort(&mut map, kustomization, settings).map_err(|message| refused("sortOptions", message))?;
    let wants = |word: &str| kustomization.build_metadata.iter().any(|own| own == word);
    if settings.managed_by_label || wants("managedByLabel") {
        finish::managed_by(&mut map, VERSION);
    }
    finish::annotations(&mut map, wants("originAnnotations"), wants("transformerAnnotations"));
    Ok(map)
}

/// Sorts the objects as configured in the kustomization or on the command line.
fn sort(map: &mut ResMap, kustomization: &Kustomization, settings: &Settings) -> Result<(), String> {
    let ranks = match &kustomization.sort_options {
        None if settings.reorder == Reorder::None => return Ok(()),
        None => Ranks::default(),
        Some(options) => match (options.order.as_str(), &options.legacy_sort_options) {
            ("fifo", None) => return Ok(()),
            ("fifo", Some(_)) => return Err("legacySortOptions is set, and the order is not legacy".to_owned()),
            ("legacy", None) => Ranks::default(),
            ("legacy", Some(legacy)) => {
                let list = |key: &str| serde_json::from_value(legacy[key].clone()).unwrap_or_default();
                Ranks::new(list("orderFirst"), list("orderLast"))
            }
            (other, _) => return Err(format!("the order `{other}` is neither fifo nor legacy")),
        },
    };
    sort::legacy(map, &ranks);
    match map.duplicate() {
        Some((_, other)) => {
            Err(format!("may not add resource with an already registered id: {}", other.id(&map.scope)))
        }
        None => Ok(()),
    }
}
