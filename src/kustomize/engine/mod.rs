//! The kustomize engine: builds a kustomization, with the same output as `kustomize build`, byte for byte.
//!
//! The engine follows kustomize 5.8.1 step by step. It collects the objects of a kustomization and its bases, and runs
//! generators and transformers. At the end of the build, it updates references between objects. Each step returns a
//! value, an error of kustomize, or the reason why the result is unknown. For example, a result is unknown if it
//! depends on a remote file or an external program.
//!
//! ```
//! use portcullis::kustomize::Files;
//! use portcullis::kustomize::engine::{Settings, build};
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
//! # Ok::<(), portcullis::kustomize::engine::Stop>(())
//! ```

mod absorb;
mod accumulate;
mod accumulator;
mod affix;
mod base_cache;
mod budget;
mod clash;
mod config;
mod configure;
mod crds;
mod entries;
mod field_spec;
mod finish;
mod folder;
mod generate;
mod generators;
mod hash;
mod history;
mod identities;
mod images;
mod internal_annotations;
mod json;
mod json6902;
mod label_selector;
mod labels;
mod load;
mod log;
mod lost;
mod matcher;
mod name_references;
mod namespace;
mod odd_annotations;
mod origin;
mod output_settings;
mod patch;
mod patch_cache;
mod patched_json;
mod patches;
mod path;
mod plugin_config;
mod plugins;
mod provenance;
mod read;
mod recover;
mod replacements;
mod replicas;
mod resmap;
mod resolve_vars;
mod resource;
mod root;
mod run;
mod select;
mod setters;
mod settings;
mod shared;
mod shared_bases;
mod sort;
mod stop;
mod structured;
mod target;
mod transformer;
mod validators;
mod value_add;
mod vars;

use std::sync::Arc;

pub use history::Change;
pub use output_settings::{Reorder, Settings};
pub use resource::Resource;
pub use run::{Shared, Sources};
pub use stop::{Cause, Reason, Refusal, Step, Stop};

use history::History;
use resmap::ResMap;
use run::Run;

use super::explain;
use super::files::Files;
use super::finding::{Site, TreeFinding};
use super::flux::Excluded;
use super::identity::ObjectId;
use super::node::Node;
use super::options::Options;
use super::tree::{Tree, TreePath};

/// The result of a build: the objects as kustomize prints them, and other data of the build, such as warnings.
pub struct Built<'a> {
    map: ResMap,
    run: Run<'a>,
}

impl Built<'_> {
    /// Returns the objects, in the order in which they are printed.
    pub fn resources(&self) -> &[Resource] {
        self.map.resources()
    }

    /// Returns the position of an object in its file. For a generated object, returns the position of the entry that
    /// generates it.
    pub(super) fn site(&self, resource: &Resource) -> Site {
        self.run.site_of(resource.origin)
    }

    /// Returns the warnings about deprecated fields that kustomize writes to standard error.
    pub fn warnings(&self) -> String {
        self.run.warnings.concat()
    }

    /// Returns the names and contents of the files that `kustomize build --output` writes into a folder, one per
    /// object.
    ///
    /// # Errors
    ///
    /// If an object cannot be converted to YAML.
    pub fn files(&self) -> Step<Vec<(String, String)>> {
        finish::files(&self.map, &self.run)
    }

    /// Returns each object as YAML, in the order in which kustomize prints them.
    ///
    /// # Errors
    ///
    /// If an object cannot be converted to YAML.
    pub fn texts(&self) -> Step<Vec<String>> {
        finish::each(&self.map, &self.run)
    }

    /// Returns the file and line of a node. For a mapping or sequence, returns the position of its first scalar. `None`
    /// if the node does not come from a file.
    pub fn place(&self, node: &Node) -> Option<(TreePath, usize)> {
        let origin = history::first_origin(node);
        let file = self.run.sources.path(origin.source)?;
        Some((file, usize::try_from(origin.line).ok()?))
    }

    /// Returns the YAML that kustomize prints, with the file and line of each value in a comment after the value.
    /// `shown` formats the paths of these files.
    ///
    /// # Errors
    ///
    /// If an object cannot be converted to YAML.
    pub fn text_with_places(&self, shown: &dyn Fn(&TreePath) -> String) -> Step<String> {
        provenance::print(&self.map, &self.run, shown)
    }

    /// Returns the YAML that kustomize prints for all objects.
    ///
    /// # Errors
    ///
    /// If an object cannot be converted to YAML.
    pub fn text(&self) -> Step<String> {
        finish::print(&self.map, &self.run)
    }
}

/// Builds the kustomization in the folder `root` of a tree, and stops at the first error. `settings` affect only the
/// output. `files` caches parsed kustomization files.
///
/// # Errors
///
/// If kustomize cannot build the folder, or if Portcullis cannot determine the result of kustomize. For example, a Helm
/// chart is needed, or a limit is exceeded.
pub fn build<'a>(
    tree: &'a Tree,
    root: &TreePath,
    options: &'a Options,
    settings: &Settings,
    files: &'a Files,
) -> Step<Built<'a>> {
    build_by(Run::new(tree, options, files, Arc::new(Sources::default())), root, settings)
}

/// Builds the folder `root` of a tree in the same way as [`build`]. Builds with the same `files` and `shared` reuse
/// parsed files and built bases.
///
/// # Errors
///
/// If kustomize cannot build the folder, or its result cannot be determined, as for [`build`].
pub fn build_shared<'a>(
    tree: &'a Tree,
    root: &TreePath,
    options: &'a Options,
    settings: &Settings,
    (files, shared): (&'a Files, &'a Shared),
) -> Step<Built<'a>> {
    let mut run = Run::new(tree, options, files, Arc::clone(&shared.sources));
    (run.bases, run.patches) = (Some(&shared.bases), Some(&shared.patches));
    build_by(run, root, settings)
}

/// Returns the history of one field of an object: each build step that changed the field, with the new value. `kind`
/// and `name` are the kind and the name of the object after the build. `field` is a path such as `spec.replicas`.
/// Returns `None` if the object does not exist.
///
/// # Errors
///
/// If kustomize cannot build the folder `root`, or its result cannot be determined, as for [`build`].
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
    let map = run.root(root, settings)?;
    Ok(Built { map, run })
}

/// The result of a build that continues after errors.
#[derive(Debug)]
pub(super) struct Reported {
    /// All findings, in the order in which kustomize finds the problems.
    pub(super) findings: Vec<TreeFinding>,
    /// The reasons why the result of the build is unknown; empty if it is known.
    pub(super) reasons: Vec<String>,
    /// The recorded steps of the build, such as the bases and transformers in their order. `None` if the kustomization
    /// cannot be read, or if the build shares caches with other builds.
    pub(super) evaluation: Option<explain::Step>,
    /// The identities of all objects that Flux renders. `None` if the folder is not built for Flux, or if an identity
    /// is unknown, for example because of an error.
    pub(super) rendered: Option<Vec<ObjectId>>,
    /// The rendered objects that Flux does not apply, for example because they are annotated
    /// `kustomize.toolkit.fluxcd.io/reconcile: disabled`.
    pub(super) excluded: Vec<Excluded>,
}

/// Builds the folder `root` and continues after errors. The result contains all errors, and all reasons why a part of
/// the output cannot be determined.
///
/// `shared` contains caches that several builds use. The steps of the build are recorded only if `shared` is `None`.
/// Otherwise, the steps of a shared base would be recorded again for every build that uses the base.
pub(super) fn report(
    tree: &Tree,
    root: &TreePath,
    options: &Options,
    files: &Files,
    shared: Option<&Shared>,
) -> Reported {
    let sources = shared.map_or_else(Default::default, |shared| Arc::clone(&shared.sources));
    let mut run = Run::new(tree, options, files, sources);
    run.is_strict = false;
    (run.bases, run.patches) = shared.map(|shared| (&shared.bases, &shared.patches)).unzip();
    let (mut rendered, mut excluded) = (None, Vec::new());
    let checked = run.root(root, &Settings::default()).and_then(|mut map| {
        run.check(&mut map)?;
        rendered = run.rendered(&map);
        excluded = rendered.as_ref().map(|rendered| run.excluded(&map, rendered)).unwrap_or_default();
        Ok(())
    });
    if let Err(stop) = checked {
        run.record(stop, lost::Lost::Nothing);
    }
    let log::Folder { findings, reasons, step, .. } = run.take_log().end();
    Reported { findings, reasons, evaluation: step, rendered, excluded }
}
